/* The steps of reductions over devices, stage by stage (fold_order.c). Every device needs the partials of a list of positions,
 * folds them in that order, and all the devices of one process with the same list share one fold. Small partials go to
 * everybody, who folds them all; of large ones each process folds a slice and hands it round. What would take too much memory of
 * one process goes in rounds, each of a part of the elements. Who gives whom what is the same for all reductions over the same
 * axes (fold_pattern.c); here are slots and lengths. Called by fold_wait.c. */
#include "plan/fold_pattern.h"
#include "core/option.h"
#include <string.h>

enum { SLICED_BYTES = 1 << 15 };

/* A value being folded. */
typedef struct folded {
    const oly_folded *of;
    const oly_fold_part *part; /* of the stage at hand */
    const oly_fold_pattern *pattern;
    int64_t largest;   /* bytes of the first device's partial, which is the largest: the same on every process */
    int first, staged; /* number of its first group, and of its first staged partial */
    int from;          /* the slot of the partials: in the first stage another one, maybe */
    int at[2];         /* the message of its part that is next: of those received, of those sent */
} folded;

enum { TEXTS = 8, EXCHANGES = 16 };

/* An exchange of one value, where all groups have as many elements: another value's of that kind differs in the slots only. */
typedef struct made_exchange {
    const oly_fold_part *part;
    bool results;
    int64_t count, element;
    const oly_exchange *exchange; /* a step's */
    int slots[2];                 /* that of its partials or its results, and that of staged partials */
} made_exchange;

/* Memory that one step after the other uses while it is made. */
typedef struct oly_fold_room {
    int64_t *counts,
        *offsets; /* elements that each group folds in this round; of staged partials, bytes from element 0 on */
    oly_message *messages;
    oly_piece *pieces;
    int *same;
    int n_counts, n_offsets, n_messages, n_pieces; /* room for so many */
    folded values[OLY_FOLD_TOGETHER];
    struct { /* what steps say of themselves: the same over and over */
        oly_combiner combiner;
        int members, n_values;
        const char *text;
    } said[TEXTS];
    int n_said;
    made_exchange made[EXCHANGES];
    int n_made;
} oly_fold_room;

/* One round of one stage of some values; what all of them send goes in one exchange. */
typedef struct folder {
    oly_planner *p;
    oly_fold_room *room;
    int n;
    folded *values[OLY_FOLD_TOGETHER];
    int64_t element; /* bytes */
    int round, n_rounds;
    int staging; /* slot of device 0 for partials of other processes */
    oly_fold_work *groups;
    int *slots,
        n_read; /* that are used: first those that are read, then as many that are written as there are values */
} folder;

/* Of n elements those of this round. */
static void round_of(const folder *f, int64_t n, int64_t *begin, int64_t *end)
{
    *begin = n / f->n_rounds * f->round + n % f->n_rounds * f->round / f->n_rounds;
    *end = n / f->n_rounds * (f->round + 1) + n % f->n_rounds * (f->round + 1) / f->n_rounds;
}

/* Of n elements the slice that is folded in this round. */
static void slice_of(const folder *f, int64_t n, int slice, int slices, int64_t *begin, int64_t *end)
{
    int64_t first, last;
    round_of(f, n, &first, &last);
    oly_fold_slice(first, last, slice, slices, begin, end);
}

static int64_t elements_at(const oly_layout *l, int position)
{
    oly_box b = oly_layout_box(l, position);
    return oly_box_count(&b);
}

/* -- what is folded here ------------------------------------------------------------------------------------------------- */

/* Memory for `most` of them, whatever it was before. */
static void *room_for(oly_planner *p, void *old, int *capacity, int most, size_t bytes)
{
    if (old && *capacity >= most)
        return old;
    *capacity = most < 32 ? 32 : 2 * most;
    return oly_arena_take(&p->plan->arena, bytes * (size_t)*capacity);
}

static oly_status make_room(folder *f, int n_groups, int n_staged)
{
    oly_fold_room *r = f->room;
    int n_messages = 1, n_pieces = 1, both;
    for (int k = 0; k < f->n; k++) {
        const oly_fold_part *part = f->values[k]->part;
        n_messages += part->partials[0].n + part->partials[1].n;
        both = part->partials[0].n_pieces + part->partials[1].n_pieces;
        n_pieces += both;
        both = part->results[0].n_pieces + part->results[1].n_pieces;
        n_messages += part->results[0].n + part->results[1].n;
        n_pieces += both;
    }
    int room = r->n_pieces;
    r->counts = room_for(f->p, r->counts, &r->n_counts, n_groups, sizeof *r->counts);
    r->offsets = room_for(f->p, r->offsets, &r->n_offsets, n_staged, sizeof *r->offsets);
    r->messages = room_for(f->p, r->messages, &r->n_messages, n_messages, sizeof *r->messages);
    r->pieces = room_for(f->p, r->pieces, &r->n_pieces, n_pieces, sizeof *r->pieces);
    r->same = room_for(f->p, r->same, &room, n_pieces, sizeof *r->same);
    OLY_PLAN_CHECK(r->counts && r->offsets && r->messages && r->pieces ? r->same : NULL);
    return OLY_OK;
}

/* Where partials of other processes will lie. */
static void stage_partials(folder *f)
{
    int64_t bytes = 0, begin, end;
    for (int k = 0; k < f->n; k++) {
        const folded *v = f->values[k];
        for (int j = 0; j < v->part->n_staged; j++) {
            const oly_fold_team *g = &v->part->groups[v->part->staged[j]];
            slice_of(f, f->room->counts[v->first + v->part->staged[j]], g->slice, g->slices, &begin, &end);
            f->room->offsets[v->staged + j] = bytes - begin * f->element;
            bytes += ((end - begin) * f->element + 63) / 64 * 64;
        }
    }
    oly_slot_grow(f->p, f->staging, 0, (size_t)bytes);
}

/* The groups of a value, whose lists begin at `bases`, `offsets` and `outs`. */
static void fill_groups(const folder *f, const folded *v, int *bases, int64_t *offsets, int *outs)
{
    const oly_plan *plan = f->p->plan;
    int staging = oly_cell(plan, 0, f->staging), own = oly_cell(plan, 0, v->of->slot),
        from = oly_cell(plan, 0, v->from);
    for (int k = 0; k < v->part->n_groups; k++) {
        const oly_fold_team *g = &v->part->groups[k];
        oly_fold_work *w = &f->groups[v->first + k];
        *w = (oly_fold_work){.n_sources = g->n_sources,
                             .source_base = bases,
                             .source_offset = offsets,
                             .n_outs = g->n_outs,
                             .out_base = outs,
                             .first_source = g->first_source,
                             .in_pairs = v->of->rule.in_pairs,
                             .n_counts = v->part->stage.n_digits};
        slice_of(f, f->room->counts[v->first + k], g->slice, g->slices, &w->begin, &w->end);
        memcpy(w->counts, g->counts, sizeof w->counts);
        for (int j = 0; j < g->n_sources; j++) {
            bool here = g->sources[j] >= 0;
            bases[j] = here ? from + g->sources[j] : staging;
            offsets[j] = here ? 0 : f->room->offsets[v->staged - 1 - g->sources[j]];
        }
        for (int j = 0; j < g->n_outs; j++)
            outs[j] = own + g->outs[j];
        bases += g->n_sources;
        offsets += g->n_sources;
        outs += g->n_outs;
    }
}

/* Which slots the step uses, told apart from its groups: whoever asks need not look through all their sources. */
static void list_slots(folder *f, bool staged, int *slots)
{
    f->slots = slots;
    f->n_read = 0;
    for (int k = 0; k < f->n; k++)
        slots[f->n_read++] = f->values[k]->from;
    if (staged)
        slots[f->n_read++] = f->staging;
    for (int k = 0; k < f->n; k++)
        slots[f->n_read + k] = f->values[k]->of->slot;
}

/* All groups of the step, with their lists, in one piece of memory. */
static oly_status make_groups(folder *f, int *n_groups)
{
    int n = 0, n_staged = 0, n_sources = 0, n_outs = 0;
    for (int k = 0; k < f->n; k++) {
        folded *v = f->values[k];
        v->first = n;
        v->staged = n_staged;
        n += v->part->n_groups;
        n_staged += v->part->n_staged;
        n_sources += v->part->n_sources;
        n_outs += v->part->n_outs;
    }
    OLY_TRY(make_room(f, n, n_staged));
    for (int k = 0; k < f->n; k++)
        for (int g = 0; g < f->values[k]->part->n_groups; g++)
            f->room->counts[f->values[k]->first + g] =
                elements_at(f->values[k]->of->layout, f->values[k]->part->groups[g].first_source);
    stage_partials(f);
    size_t lists = sizeof(int64_t) * (size_t)n_sources + sizeof(int) * (size_t)(n_sources + n_outs + 2 * f->n + 1);
    f->groups = oly_arena_take(&f->p->plan->arena, sizeof *f->groups * (size_t)n + lists);
    OLY_PLAN_CHECK(f->groups);
    int64_t *offsets = (int64_t *)(f->groups + n);
    int *bases = (int *)(offsets + n_sources), *outs = bases + n_sources;
    for (int k = 0; k < f->n; k++) {
        fill_groups(f, f->values[k], bases, offsets, outs);
        offsets += f->values[k]->part->n_sources;
        bases += f->values[k]->part->n_sources;
        outs += f->values[k]->part->n_outs;
    }
    list_slots(f, n_staged > 0, outs);
    *n_groups = n;
    return OLY_OK;
}

/* -- what travels -------------------------------------------------------------------------------------------------------- */

/* Messages of a step being listed: of partials or of folded slices. */
typedef struct listing {
    const folder *f;
    bool results;
    int n_messages, n_pieces;
} listing;

static const oly_fold_messages *messages_of(const listing *l, const folded *v, bool sent)
{
    return l->results ? &v->part->results[sent] : &v->part->partials[sent];
}

/* A value's pieces, without those that are empty, go on with the message. */
static void add_pieces(listing *l, const folded *v, const oly_fold_message *from, bool sent, oly_message *m)
{
    const folder *f = l->f;
    bool staged = !l->results && !sent;
    int base = oly_cell(f->p->plan, 0, staged ? f->staging : l->results ? v->of->slot : v->from), first = 0;
    for (int k = 0; k < from->n_pieces; k++) {
        const oly_fold_piece *piece = &from->pieces[k];
        int64_t begin, end;
        slice_of(f, f->room->counts[v->first + piece->group], piece->slice, v->part->groups[piece->group].slices,
                 &begin, &end);
        if (begin == end)
            continue;
        first = piece->repeated ? first : m->n_pieces;
        m->same[m->n_pieces] = piece->repeated ? first : -1;
        oly_piece *to = &m->pieces[m->n_pieces++];
        to->buffer = base + (staged ? 0 : piece->at);
        to->offset = begin * f->element + (staged ? f->room->offsets[v->staged + piece->at] : 0);
        to->rank = 1;
        to->extent[0] = end - begin;
        to->stride[0] = 1;
        l->n_pieces++;
    }
}

/* One message to or from each process that some value has something for. */
static int list_messages(listing *l, bool sent)
{
    const folder *f = l->f;
    int before = l->n_messages;
    for (int k = 0; k < f->n; k++)
        f->values[k]->at[sent] = 0;
    for (;;) {
        int peer = INT32_MAX;
        for (int k = 0; k < f->n; k++) {
            const oly_fold_messages *of = messages_of(l, f->values[k], sent);
            int at = f->values[k]->at[sent];
            peer = at < of->n && of->message[at].peer < peer ? of->message[at].peer : peer;
        }
        if (peer == INT32_MAX)
            return l->n_messages - before;
        oly_message *m = &f->room->messages[l->n_messages];
        *m = (oly_message){.peer = peer, .pieces = f->room->pieces + l->n_pieces, .same = f->room->same + l->n_pieces};
        for (int k = 0; k < f->n; k++) {
            const oly_fold_messages *of = messages_of(l, f->values[k], sent);
            int at = f->values[k]->at[sent];
            if (at < of->n && of->message[at].peer == peer) {
                add_pieces(l, f->values[k], &of->message[at], sent, m);
                f->values[k]->at[sent]++;
            }
        }
        l->n_messages += m->n_pieces > 0;
    }
}

/* What an exchange is of, if that is a thing that comes again. */
static bool kind_of(const folder *f, bool results, made_exchange *kind)
{
    const folded *v = f->values[0];
    const int64_t *counts = &f->room->counts[v->first];
    for (int g = 1; g < v->part->n_groups; g++)
        if (counts[g] != counts[0])
            return false;
    int own = results ? v->of->slot : v->from;
    *kind = (made_exchange){v->part, results, counts[0], f->element, NULL, {own, f->staging}};
    return f->n == 1 && f->n_rounds == 1 && v->part->n_groups > 0;
}

static const made_exchange *made_before(const oly_fold_room *r, const made_exchange *kind)
{
    for (int k = 0; k < EXCHANGES; k++)
        if (r->made[k].part == kind->part && r->made[k].results == kind->results && r->made[k].count == kind->count &&
            r->made[k].element == kind->element)
            return &r->made[k];
    return NULL;
}

static oly_status make_alike(const folder *f, const made_exchange *before, const made_exchange *kind,
                             oly_exchange **exchange)
{
    int from[2], to[2];
    for (int k = 0; k < 2; k++) {
        from[k] = oly_cell(f->p->plan, 0, before->slots[k]);
        to[k] = oly_cell(f->p->plan, 0, kind->slots[k]);
    }
    return oly_exchange_make_like(before->exchange, 2, from, to, f->p->plan->n_devices, exchange);
}

/* NULL: there is nothing to send or receive. */
static oly_status make_exchange(const folder *f, bool results, oly_exchange **exchange)
{
    made_exchange kind;
    bool again = kind_of(f, results, &kind);
    const made_exchange *before = again ? made_before(f->room, &kind) : NULL;
    if (before)
        return make_alike(f, before, &kind, exchange);
    listing l = {f, results, 0, 0};
    int n_sends = list_messages(&l, true), n_receives = list_messages(&l, false);
    f->p->plan->looked_at += l.n_pieces;
    *exchange = NULL;
    if (l.n_messages == 0)
        return OLY_OK;
    OLY_TRY(oly_exchange_make((size_t)f->element, n_sends, f->room->messages, n_receives, f->room->messages + n_sends,
                              exchange));
    kind.exchange = *exchange;
    if (again)
        f->room->made[f->room->n_made++ % EXCHANGES] = kind;
    return OLY_OK;
}

/* -- steps --------------------------------------------------------------------------------------------------------------- */

static const char *combiner_name(oly_combiner c)
{
    static const char *const names[OLY_N_COMBINERS] = {
        [OLY_COMBINE_SUM] = "sum", [OLY_COMBINE_PROD] = "prod", [OLY_COMBINE_MAX] = "max",
        [OLY_COMBINE_MIN] = "min", [OLY_COMBINE_AND] = "and",   [OLY_COMBINE_OR] = "or"};
    return names[c];
}

static const char *detail_of(const folder *f, oly_combiner combiner, int members)
{
    oly_fold_room *r = f->room;
    for (int k = 0; k < TEXTS; k++)
        if (r->said[k].text && r->said[k].combiner == combiner && r->said[k].members == members &&
            r->said[k].n_values == f->n)
            return r->said[k].text;
    const char *name = combiner_name(combiner);
    const char *text = f->n == 1 ? oly_plan_say(f->p, "%s over %d devices", name, members)
                                 : oly_plan_say(f->p, "%s over %d devices of %d values", name, members, f->n);
    int k = r->n_said++ % TEXTS;
    r->said[k].combiner = combiner;
    r->said[k].members = members;
    r->said[k].n_values = f->n;
    r->said[k].text = text;
    return text;
}

static void describe(const folder *f, oly_step *step)
{
    int members = 1;
    for (int k = 0; k < f->n; k++) {
        const folded *v = f->values[k];
        int64_t bytes = 0;
        for (int g = v->first; g < v->first + v->part->n_groups; g++) {
            const oly_fold_work *w = &f->groups[g];
            int64_t begin, end;
            round_of(f, f->room->counts[g], &begin, &end);
            int64_t n = (end - begin) * f->element;
            bytes = n > bytes ? n : bytes;
            step->work += (double)(w->end - w->begin) * w->n_sources;
            step->wire += w->n_outs * 2 * (w->n_sources - 1) * n / w->n_sources;
        }
        step->bytes += bytes;
        step->fold.sliced = step->fold.sliced || v->part->sliced;
        members = v->part->members > members ? v->part->members : members;
    }
    step->members = members;
    step->messages = members - 1;
    step->detail = detail_of(f, step->fold.combiner, members);
}

static oly_status add_round(folder *f, oly_block *b, const oly_axis_list *axes)
{
    oly_planner *p = f->p;
    const oly_folded *first = f->values[0]->of;
    oly_exchange *exchange, *second;
    int n_groups;
    OLY_TRY(make_groups(f, &n_groups));
    OLY_TRY(make_exchange(f, false, &exchange));
    oly_status st = make_exchange(f, true, &second);
    oly_step *step = st == OLY_OK ? oly_step_add(p, b, OLY_STEP_FOLD, first->node, "all-reduce") : NULL;
    if (!step) {
        oly_exchange_free(exchange);
        oly_exchange_free(second);
        return st == OLY_OK ? oly_out_of_memory(0, "a plan") : st;
    }
    step->exchange = exchange;
    step->second = second;
    step->out_slot = first->slot;
    step->over = *axes;
    step->fold.combiner = first->rule.combiner;
    step->fold.dtype = first->node->type.dtype;
    step->fold.n_groups = n_groups;
    step->fold.groups = f->groups;
    step->fold.n_read = f->n_read;
    step->fold.n_written = f->n;
    step->fold.slots = f->slots;
    describe(f, step);
    for (int k = 0; k < f->n; k++) {
        oly_slot_use(p, f->values[k]->from);
        oly_slot_use(p, f->values[k]->of->slot);
    }
    oly_slot_use(p, f->staging);
    return OLY_OK;
}

/* -- uneven stages ------------------------------------------------------------------------------------------------------- */

/* Where the last group of positions is shorter than the others, a partial of it may be folded by several groups of one process:
 * they must not find a result there. The same on every process. */
static bool is_read_by_others(const folder *f, const oly_fold_stage *s)
{
    oly_mesh mesh = f->p->mesh;
    int64_t each = oly_mesh_devices_each();
    for (int k = 0; k < s->n_digits; k++) {
        const oly_fold_digit *g = &s->digits[k];
        bool several = each == 0 || each > g->same; /* of a process more than one run, maybe */
        if (several && g->stride > 1 && g->same < g->stride && mesh->size[g->axis] % (g->stride * g->radix) != 0)
            return true;
    }
    return false;
}

/* The partials are folded out of a copy. */
static oly_status set_aside(const folder *f, oly_block *b, folded *v)
{
    oly_planner *p = f->p;
    oly_region r = oly_region_of_layout(v->of->layout);
    oly_copy_work *copies = OLY_PLAN_NEW(p, oly_copy_work, p->plan->n_devices + 1);
    int slot = oly_slot_new(p, &r, (size_t)f->element), n = 0;
    OLY_PLAN_CHECK(slot >= 0 ? copies : NULL);
    p->plan->slots[slot].block = b;
    for (int d = 0; d < p->plan->n_devices; d++) {
        int64_t elements = p->position[d] < 0 ? 0 : elements_at(v->of->layout, p->position[d]);
        if (elements == 0)
            continue;
        oly_copy_work *c = &copies[n++];
        *c = (oly_copy_work){.task = {.element_bytes = (size_t)f->element, .rank = 1, .extent = {elements}}};
        c->task.from_stride[0] = c->task.to_stride[0] = 1;
        c->from = (oly_place){.base = oly_cell(p->plan, d, v->from), .stride = {1}};
        c->to = (oly_place){.base = oly_cell(p->plan, d, slot), .stride = {1}};
        c->chunks = oly_copy_chunks(&c->task);
    }
    oly_slot_use(p, v->from);
    oly_step *s = oly_step_add(p, b, OLY_STEP_MOVE, v->of->node, "copy");
    OLY_PLAN_CHECK(s);
    s->out_slot = slot;
    s->alone = true;
    s->move.n_copies = n;
    s->move.copies = copies;
    s->work = (double)n * (double)v->largest / (double)f->element;
    oly_slot_use(p, slot);
    v->from = slot;
    return OLY_OK;
}

/* -- rounds ------------------------------------------------------------------------------------------------------------ */

int64_t oly_fold_limit(void)
{
    return (oly_option.exchange_memory << 20) / 4;
}

int64_t oly_fold_limit_left(const oly_planner *p)
{
    return oly_fold_limit() - (p->fold_share ? p->fold_share->taken : 0);
}

int oly_fold_staging(oly_planner *p, oly_block *b)
{
    int slot = p->fold_share ? p->fold_share->staging : oly_slot_new(p, NULL, 0);
    if (slot >= 0)
        p->plan->slots[slot].block = b;
    return slot;
}

void oly_slot_grow(oly_planner *p, int slot, int device, size_t bytes)
{
    oly_slot *s = &p->plan->slots[slot];
    if (s->device_bytes[device] < bytes)
        s->device_bytes[device] = bytes;
    if (s->bytes < bytes)
        s->bytes = bytes;
}

/* At most what a process keeps of others' partials for one value, if all goes in one round. */
static int64_t staged_by(const folder *f, const folded *v, int process)
{
    oly_mesh mesh = f->p->mesh;
    int first, n_last = 0, last[OLY_FOLD_SOURCES], n = oly_mesh_devices_of(process, &first);
    int64_t bytes = 0;
    for (int id = first; id < first + n; id++) {
        int position = oly_mesh_position_of(mesh, id), counts[4], sources[OLY_FOLD_SOURCES];
        if (position < 0)
            continue;
        int n_sources = oly_fold_sources(mesh, &v->part->stage, position, counts, sources);
        if (n_sources == n_last && memcmp(sources, last, sizeof *sources * (size_t)n_sources) == 0)
            continue; /* as the device before */
        n_last = n_sources;
        memcpy(last, sources, sizeof *sources * (size_t)n_sources);
        int processes[OLY_FOLD_SOURCES], n_processes = oly_fold_processes(mesh, sources, n_sources, processes), j = 0;
        while (j < n_processes && processes[j] != process)
            j++;
        int64_t begin = 0, end = elements_at(v->of->layout, position);
        if (v->part->sliced)
            oly_fold_slice(0, end, j, n_processes, &begin, &end);
        for (int k = 0; k < n_sources; k++)
            if (oly_mesh_process_of(oly_mesh_device_id(mesh, sources[k])) != process)
                bytes += (end - begin) * f->element + 64;
    }
    return bytes;
}

/* More than any process keeps of others' partials, roughly. */
static int64_t staged_at_most(const folder *f)
{
    int64_t bytes = 0, each = oly_mesh_devices_each(), lists = f->p->mesh->n_devices;
    lists = each && each < lists ? each : lists;
    for (int k = 0; k < f->n; k++) {
        const oly_fold_stage *s = &f->values[k]->part->stage;
        int64_t sources = 1;
        for (int j = 0; j < s->n_digits; j++)
            sources *= s->digits[j].radix;
        bytes += sources * lists * (f->values[k]->largest + 64);
    }
    return bytes;
}

/* The same on every process: of what the one that keeps most keeps. Where processes are very many, they are alike. */
static int rounds_of(const folder *f)
{
    enum { MOST_COUNTED = 64 };
    int64_t most = staged_at_most(f), limit = oly_fold_limit_left(f->p) / 16 * 15;
    int n = oly_mesh_processes(), step = (n + MOST_COUNTED - 1) / MOST_COUNTED;
    if (most <= limit)
        return 1;
    most = 0;
    for (int r = 0; r < n; r += step) {
        int64_t bytes = 0;
        for (int k = 0; k < f->n; k++)
            bytes += staged_by(f, f->values[k], r);
        most = bytes > most ? bytes : most;
    }
    return most <= limit ? 1 : (int)((most + limit - 1) / limit);
}

static int64_t largest_part(const oly_folded *of)
{
    int64_t most = (int64_t)oly_dtype_size(of->node->type.dtype);
    for (int d = 0; d < of->layout->rank; d++)
        most *= oly_split_cut(&of->layout->split[d], of->layout->shape[d], 1);
    return most;
}

/* The values' last stages go together, then those before. */
oly_status oly_fold_all(oly_planner *p, oly_block *b, const oly_axis_list *axes, int n_items, const oly_folded *items)
{
    if (!p->fold_room)
        p->fold_room = OLY_PLAN_NEW(p, oly_fold_room, 1);
    OLY_PLAN_CHECK(p->fold_room);
    folder f = {.p = p, .room = p->fold_room, .element = (int64_t)oly_dtype_size(items[0].node->type.dtype)};
    folded *values = p->fold_room->values;
    int most = 0;
    for (int k = 0; k < n_items; k++) {
        values[k] = (folded){.of = &items[k], .largest = largest_part(&items[k])};
        OLY_TRY(oly_fold_pattern_of(p, axes, &items[k].rule, values[k].largest > SLICED_BYTES, &values[k].pattern));
        most = values[k].pattern->n_stages > most ? values[k].pattern->n_stages : most;
    }
    for (int left = most; left > 0; left--) {
        f.n = 0;
        for (int k = 0; k < n_items; k++)
            if (values[k].pattern->n_stages >= left) {
                values[k].from = values[k].pattern->n_stages == left ? items[k].from : items[k].slot;
                values[k].part = &values[k].pattern->stages[values[k].pattern->n_stages - left];
                f.values[f.n++] = &values[k];
            }
        for (int k = 0; k < f.n; k++)
            if (f.values[k]->from == f.values[k]->of->slot && is_read_by_others(&f, &f.values[k]->part->stage))
                OLY_TRY(set_aside(&f, b, f.values[k]));
        f.n_rounds = rounds_of(&f);
        f.staging = oly_fold_staging(p, b); /* one for all rounds: each waits for the one before */
        if (f.staging < 0)
            return OLY_MEMORY;
        for (f.round = 0; f.round < f.n_rounds; f.round++)
            OLY_TRY(add_round(&f, b, axes));
    }
    return OLY_OK;
}
