/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps of reductions over devices, stage by stage (reduction_order.c). Every device needs the partial results of
 * a list of positions, reduced in that order; devices of one process with the same list share one reduction. Small partial
 * results are sent to all processes, which all reduce them. Of large ones each process reduces a slice and sends it to
 * the others. What needs too much memory is done in rounds, each for a part of the elements. Who sends what to whom
 * is the same for all reductions over the same axes (reduction_pattern.c); this file adds slots and lengths. Called
 * by deferred_reduction.c. */
#include "plan/reduce/reduction_steps.h"
#include "plan/reduce/reduction_room.h"
#include <stdio.h>
#include <string.h>

enum { SLICED_BYTES = 1 << 15 };

/* The part of n elements that belongs to this round. */
static void round_of(const folder *f, int64_t n, int64_t *begin, int64_t *end)
{
    *begin = n / f->n_rounds * f->round + n % f->n_rounds * f->round / f->n_rounds;
    *end = n / f->n_rounds * (f->round + 1) + n % f->n_rounds * (f->round + 1) / f->n_rounds;
}

/* The part of a slice of n elements that is reduced in this round. */
static void slice_of(const folder *f, int64_t n, int slice, int slices, int64_t *begin, int64_t *end)
{
    int64_t first, last;
    round_of(f, n, &first, &last);
    oly_reduction_slice(first, last, slice, slices, begin, end);
}

static int64_t elements_at(const oly_layout *l, int position)
{
    oly_box b = oly_layout_box(l, position);
    return oly_box_count(&b);
}

/* -- local reductions --------------------------------------------------------------------------------------------------- */

/* Memory for `most` entries; the old contents are not kept. */
static void *room_for(oly_planner *p, void *old, int *capacity, int most, size_t bytes)
{
    if (old && *capacity >= most)
        return old;
    *capacity = most < 32 ? 32 : 2 * most;
    return oly_arena_take(&p->plan->arena, bytes * (size_t)*capacity);
}

static oly_status room_for_messages(const folder *f)
{
    oly_reduction_room *r = f->room;
    int n_messages = 1, n_pieces = 1, room = r->n_pieces;
    for (int k = 0; k < f->n; k++)
        for (int sent = 0; sent < 2; sent++) {
            const oly_reduction_part *part = f->values[k]->part;
            n_messages += part->partials[sent].n + part->results[sent].n;
            n_pieces += part->partials[sent].n_pieces + part->results[sent].n_pieces;
        }
    r->messages = room_for(f->p, r->messages, &r->n_messages, n_messages, sizeof *r->messages);
    r->pieces = room_for(f->p, r->pieces, &r->n_pieces, n_pieces, sizeof *r->pieces);
    r->same = room_for(f->p, r->same, &room, n_pieces, sizeof *r->same);
    OLY_PLAN_CHECK(r->messages && r->pieces ? r->same : NULL);
    return OLY_OK;
}

/* Computes where staged partial results will be. */
static void stage_partials(folder *f)
{
    int64_t bytes = 0, begin, end;
    for (int k = 0; k < f->n; k++) {
        const reduced_value *v = f->values[k];
        for (int j = 0; j < v->part->n_staged; j++) {
            const oly_reduction_team *g = &v->part->groups[v->part->staged[j]];
            slice_of(f, f->room->counts[v->first + v->part->staged[j]], g->slice, g->slices, &begin, &end);
            f->room->offsets[v->staged + j] = bytes - begin * f->element;
            bytes += ((end - begin) * f->element + 63) / 64 * 64;
        }
    }
    oly_slot_grow(f->p, f->staging, 0, (size_t)bytes);
}

/* Fills in a value's groups, whose lists begin at `bases`, `offsets` and `outs`. */
static void fill_groups(const folder *f, const reduced_value *v, int *bases, int64_t *offsets, int *outs)
{
    const oly_plan *plan = f->p->plan;
    int staging = oly_cell(plan, 0, f->staging), own = oly_cell(plan, 0, v->of->slot),
        from = oly_cell(plan, 0, v->read);
    for (int k = 0; k < v->part->n_groups; k++) {
        const oly_reduction_team *g = &v->part->groups[k];
        oly_reduction_work *w = &f->groups[v->first + k];
        *w = (oly_reduction_work){.n_sources = g->n_sources,
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

/* Lists the slots that the step uses, so that its effects are known without looking through all sources. */
static void list_slots(folder *f, bool staged, int *slots)
{
    f->slots = slots;
    f->n_read = 0;
    for (int k = 0; k < f->n; k++)
        slots[f->n_read++] = f->values[k]->read;
    if (staged)
        slots[f->n_read++] = f->staging;
    for (int k = 0; k < f->n; k++)
        slots[f->n_read + k] = f->values[k]->of->slot;
}

oly_status oly_reduction_place(folder *f, int *n_groups, int *n_staged)
{
    int n = 0;
    *n_staged = 0;
    for (int k = 0; k < f->n; k++) {
        reduced_value *v = f->values[k];
        v->first = n;
        v->staged = *n_staged;
        n += v->part->n_groups;
        *n_staged += v->part->n_staged;
    }
    oly_reduction_room *r = f->room;
    r->counts = room_for(f->p, r->counts, &r->n_counts, n, sizeof *r->counts);
    r->offsets = room_for(f->p, r->offsets, &r->n_offsets, *n_staged, sizeof *r->offsets);
    OLY_PLAN_CHECK(r->counts ? r->offsets : NULL);
    for (int k = 0; k < f->n; k++) /* devices of one group have equally many elements */
        for (int g = 0; g < f->values[k]->part->n_groups; g++)
            r->counts[f->values[k]->first + g] = f->values[k]->counts[f->values[k]->part->groups[g].outs[0]];
    stage_partials(f);
    *n_groups = n;
    return OLY_OK;
}

/* With their lists, in one allocation. */
oly_status oly_reduction_fill(folder *f, int n_groups, int n_staged)
{
    int n_sources = 0, n_outs = 0;
    for (int k = 0; k < f->n; k++) {
        n_sources += f->values[k]->part->n_sources;
        n_outs += f->values[k]->part->n_outs;
    }
    size_t lists = sizeof(int64_t) * (size_t)n_sources + sizeof(int) * (size_t)(n_sources + n_outs + 2 * f->n + 1);
    f->groups = oly_arena_take(&f->p->plan->arena, sizeof *f->groups * (size_t)n_groups + lists);
    OLY_PLAN_CHECK(f->groups);
    int64_t *offsets = (int64_t *)(f->groups + n_groups);
    int *bases = (int *)(offsets + n_sources), *outs = bases + n_sources;
    for (int k = 0; k < f->n; k++) {
        fill_groups(f, f->values[k], bases, offsets, outs);
        offsets += f->values[k]->part->n_sources;
        bases += f->values[k]->part->n_sources;
        outs += f->values[k]->part->n_outs;
    }
    list_slots(f, n_staged > 0, outs);
    return OLY_OK;
}

/* -- exchanges ----------------------------------------------------------------------------------------------------- */

/* Messages of a step being listed: of partial results or of reduced slices. */
typedef struct listing {
    const folder *f;
    bool results;
    int n_messages, n_pieces;
} listing;

static const oly_reduction_messages *messages_of(const listing *l, const reduced_value *v, bool sent)
{
    return l->results ? &v->part->results[sent] : &v->part->partials[sent];
}

/* Appends a value's non-empty pieces to the message. */
static void add_pieces(listing *l, const reduced_value *v, const oly_reduction_message *from, bool sent, oly_message *m)
{
    const folder *f = l->f;
    bool staged = !l->results && !sent;
    int base = oly_cell(f->p->plan, 0, staged ? f->staging : l->results ? v->of->slot : v->from), first = 0;
    for (int k = 0; k < from->n_pieces; k++) {
        const oly_reduction_piece *piece = &from->pieces[k];
        int64_t begin, end;
        slice_of(f, f->room->counts[v->first + piece->group], piece->slice, v->part->groups[piece->group].slices,
                 &begin, &end);
        if (begin == end)
            continue;
        first = piece->repeated ? first : m->n_pieces;
        m->same[m->n_pieces] = piece->repeated ? first : -1;
        oly_piece *to = &m->pieces[m->n_pieces++];
        to->buffer = base + (staged ? 0 : piece->at);
        to->device = oly_local_id(f->p, staged ? 0 : piece->at);
        to->peer_device = piece->peer_device >= 0 ? piece->peer_device : oly_first_id_of(f->p->plan, from->peer);
        to->offset = begin * f->element + (staged ? f->room->offsets[v->staged + piece->at] : 0);
        to->rank = 1;
        to->extent[0] = end - begin;
        to->stride[0] = 1;
        l->n_pieces++;
    }
}

/* Lists one message to or from each process with which some value has pieces to exchange. */
static int list_messages(listing *l, bool sent)
{
    const folder *f = l->f;
    int before = l->n_messages;
    for (int k = 0; k < f->n; k++)
        f->values[k]->at[sent] = 0;
    for (;;) {
        int peer = INT32_MAX;
        for (int k = 0; k < f->n; k++) {
            const oly_reduction_messages *of = messages_of(l, f->values[k], sent);
            int at = f->values[k]->at[sent];
            peer = at < of->n && of->message[at].peer < peer ? of->message[at].peer : peer;
        }
        if (peer == INT32_MAX)
            return l->n_messages - before;
        oly_message *m = &f->room->messages[l->n_messages];
        *m = (oly_message){.peer = peer, .pieces = f->room->pieces + l->n_pieces, .same = f->room->same + l->n_pieces};
        for (int k = 0; k < f->n; k++) {
            const oly_reduction_messages *of = messages_of(l, f->values[k], sent);
            int at = f->values[k]->at[sent];
            if (at < of->n && of->message[at].peer == peer) {
                add_pieces(l, f->values[k], &of->message[at], sent, m);
                f->values[k]->at[sent]++;
            }
        }
        l->n_messages += m->n_pieces > 0;
    }
}

/* What kind of exchange this is, if exchanges of its kind can be reused. */
static bool kind_of(const folder *f, bool results, made_exchange *kind)
{
    const reduced_value *v = f->values[0];
    const int64_t *counts = &f->room->counts[v->first];
    for (int g = 1; g < v->part->n_groups; g++)
        if (counts[g] != counts[0])
            return false;
    int own = results ? v->of->slot : v->from;
    *kind = (made_exchange){v->part, results, counts[0], f->element, NULL, {own, f->staging}};
    return f->n == 1 && f->n_rounds == 1 && v->part->n_groups > 0;
}

static const made_exchange *made_before(const oly_reduction_room *r, const made_exchange *kind)
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

oly_status oly_reduction_exchange(const folder *f, bool results, oly_exchange **exchange)
{
    made_exchange kind;
    bool again = !f->once && kind_of(f, results, &kind);
    const made_exchange *before = again ? made_before(f->room, &kind) : NULL;
    if (before)
        return make_alike(f, before, &kind, exchange);
    listing l = {f, results, 0, 0};
    OLY_TRY(room_for_messages(f));
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
#define NAME(a, number, name, ...) [OLY_COMBINE_##number] = #name,
    static const char *const names[OLY_N_COMBINERS] = {OLY_EVERY_COMBINER(NAME, )};
    return names[c];
}

const char *oly_reduction_detail(const folder *f, oly_combiner combiner, int members, int levels)
{
    oly_reduction_room *r = f->room;
    for (int k = 0; k < TEXTS; k++)
        if (r->said[k].text && r->said[k].combiner == combiner && r->said[k].members == members &&
            r->said[k].n_values == f->n && r->said[k].levels == levels)
            return r->said[k].text;
    char values[32] = "", in_levels[32] = "";
    if (f->n > 1)
        snprintf(values, sizeof values, " of %d values", f->n);
    if (levels > 1)
        snprintf(in_levels, sizeof in_levels, ", in %d stages", levels);
    int k = r->n_said++ % TEXTS;
    r->said[k].combiner = combiner;
    r->said[k].members = members;
    r->said[k].n_values = f->n;
    r->said[k].levels = levels;
    return r->said[k].text =
               oly_plan_say(f->p, "%s over %d devices%s%s", combiner_name(combiner), members, values, in_levels);
}

void oly_reduction_describe(const folder *f, oly_step *step, int *members)
{
    *members = 1;
    for (int k = 0; k < f->n; k++) {
        const reduced_value *v = f->values[k];
        int64_t bytes = 0;
        for (int g = 0; g < v->part->n_groups; g++) {
            const oly_reduction_team *team = &v->part->groups[g];
            int64_t begin, end, first, last, count = f->room->counts[v->first + g];
            round_of(f, count, &begin, &end);
            slice_of(f, count, team->slice, team->slices, &first, &last);
            int64_t n = (end - begin) * f->element;
            bytes = n > bytes ? n : bytes;
            step->work += (double)(last - first) * team->n_sources;
            step->wire += team->n_outs * 2 * (team->n_sources - 1) * n / team->n_sources;
        }
        step->bytes += bytes;
        step->reduction.sliced = step->reduction.sliced || v->part->sliced;
        *members = v->part->members > *members ? v->part->members : *members;
    }
}

static oly_status add_round(folder *f, oly_block *b, const oly_axis_list *axes)
{
    oly_planner *p = f->p;
    const oly_reduction_item *first = f->values[0]->of;
    oly_exchange *exchange, *second;
    int n_groups, n_staged;
    OLY_TRY(oly_reduction_place(f, &n_groups, &n_staged));
    OLY_TRY(oly_reduction_fill(f, n_groups, n_staged));
    OLY_TRY(oly_reduction_exchange(f, false, &exchange));
    oly_status st = oly_reduction_exchange(f, true, &second);
    oly_step *step = st == OLY_OK ? oly_step_add(p, b, OLY_STEP_REDUCTION, first->node, "all-reduce") : NULL;
    if (!step) {
        oly_exchange_free(exchange);
        oly_exchange_free(second);
        return st == OLY_OK ? oly_out_of_memory(0, "a plan") : st;
    }
    step->exchange = exchange;
    step->second = second;
    step->over = *axes;
    step->reduction.combiner = first->rule.combiner;
    step->reduction.dtype = first->node->type.dtype;
    step->reduction.n_groups = n_groups;
    step->reduction.groups = f->groups;
    step->reduction.n_read = f->n_read;
    step->reduction.n_written = f->n;
    step->reduction.slots = f->slots;
    oly_reduction_describe(f, step, &step->members);
    step->messages = step->members - 1;
    step->detail = oly_reduction_detail(f, step->reduction.combiner, step->members, 1);
    for (int k = 0; k < f->n; k++) {
        oly_slot_use(p, f->values[k]->from);
        oly_slot_use(p, f->values[k]->read);
        oly_slot_use(p, f->values[k]->of->slot);
    }
    oly_slot_use(p, f->staging);
    return OLY_OK;
}

/* -- uneven stages ------------------------------------------------------------------------------------------------------- */

bool oly_reduction_reads_copies(const folder *f, const reduced_value *v)
{
    oly_mesh mesh = f->p->mesh;
    int64_t each = oly_mesh_devices_each_in(mesh);
    const oly_reduction_stage *s = &v->part->stage;
    for (int k = 0; k < s->n_digits && v->from == v->of->slot; k++) {
        const oly_reduction_digit *g = &s->digits[k];
        bool several = each == 0 || each > g->same; /* a process may have several runs */
        if (several && g->stride > 1 && g->same < g->stride && mesh->size[g->axis] % (g->stride * g->radix) != 0)
            return true;
    }
    return false;
}

int oly_reduction_copies(const folder *f, const reduced_value *v, int slot, oly_copy_work *copies)
{
    const oly_plan *plan = f->p->plan;
    int n = 0;
    for (int d = 0; d < plan->n_devices; d++) {
        if (v->counts[d] == 0)
            continue;
        oly_copy_work *c = &copies[n++];
        *c = (oly_copy_work){.task = {.element_bytes = (size_t)f->element, .rank = 1, .extent = {v->counts[d]}}};
        c->task.from_stride[0] = c->task.to_stride[0] = 1;
        c->from = (oly_place){.base = oly_cell(plan, d, v->from), .stride = {1}};
        c->to = (oly_place){.base = oly_cell(plan, d, slot), .stride = {1}};
    }
    return n;
}

/* Copies the partial results, and reduces from the copies. */
static oly_status set_aside(const folder *f, oly_block *b, reduced_value *v)
{
    oly_planner *p = f->p;
    oly_region r = oly_region_of_layout(v->of->layout);
    oly_copy_work *copies = OLY_PLAN_NEW(p, oly_copy_work, p->plan->n_devices + 1);
    int slot = oly_slot_new(p, &r, (size_t)f->element);
    OLY_PLAN_CHECK(slot >= 0 ? copies : NULL);
    p->plan->slots[slot].block = b;
    int n = oly_reduction_copies(f, v, slot, copies);
    oly_slot_use(p, v->from);
    oly_step *s = oly_step_add(p, b, OLY_STEP_MOVE, v->of->node, "copy");
    OLY_PLAN_CHECK(s);
    s->out_slot = slot;
    s->alone = true;
    s->move.n_copies = n;
    s->move.copies = copies;
    s->work = (double)n * (double)v->largest / (double)f->element;
    oly_slot_use(p, slot);
    v->from = v->read = slot;
    return OLY_OK;
}

static int64_t largest_part(const oly_reduction_item *of)
{
    int64_t most = (int64_t)oly_dtype_size(of->node->type.dtype);
    for (int d = 0; d < of->layout->rank; d++)
        most *= oly_split_cut(&of->layout->split[d], of->layout->shape[d], 1);
    return most;
}

oly_status oly_reduction_values(folder *f, oly_planner *p, const oly_axis_list *axes, int n_items,
                                const oly_reduction_item *items, int *most)
{
    int n_devices = p->plan->n_devices;
    if (!p->reduction_room)
        p->reduction_room = OLY_PLAN_NEW(p, oly_reduction_room, 1);
    OLY_PLAN_CHECK(p->reduction_room);
    oly_reduction_room *r = p->reduction_room;
    *f = (folder){.p = p, .room = r, .element = (int64_t)oly_dtype_size(items[0].node->type.dtype), .n_rounds = 1};
    r->of_devices = room_for(p, r->of_devices, &r->n_of_devices, n_items * n_devices, sizeof *r->of_devices);
    OLY_PLAN_CHECK(r->of_devices);
    *most = 0;
    for (int k = 0; k < n_items; k++) {
        reduced_value *v = &r->values[k];
        int64_t *counts = r->of_devices + k * n_devices;
        *v = (reduced_value){.of = &items[k], .largest = largest_part(&items[k]), .counts = counts};
        for (int d = 0; d < n_devices; d++)
            counts[d] = p->position[d] < 0 ? 0 : elements_at(items[k].layout, p->position[d]);
        OLY_TRY(oly_reduction_pattern_of(p, axes, &items[k].rule, v->largest > SLICED_BYTES, &v->pattern));
        *most = v->pattern->n_stages > *most ? v->pattern->n_stages : *most;
    }
    return OLY_OK;
}

/* Values with fewer stages join later, so that all end with a common last stage. */
void oly_reduction_stage_of(folder *f, int n_items, const oly_reduction_item *items, int left)
{
    f->n = 0;
    for (int k = 0; k < n_items; k++) {
        reduced_value *v = &f->room->values[k];
        if (v->pattern->n_stages < left)
            continue;
        v->from = v->read = v->pattern->n_stages == left ? items[k].from : items[k].slot;
        v->part = &v->pattern->stages[v->pattern->n_stages - left];
        f->values[f->n++] = v;
    }
}

/* One stage of some values, in as many rounds as needed. */
static oly_status add_stage(folder *f, oly_block *b, const oly_axis_list *axes)
{
    for (int k = 0; k < f->n; k++)
        if (oly_reduction_reads_copies(f, f->values[k]))
            OLY_TRY(set_aside(f, b, f->values[k]));
    f->n_rounds = oly_reduction_rounds(f);
    f->staging = oly_reduction_staging(f->p, b); /* one slot for all rounds, so each waits for the one before */
    if (f->staging < 0)
        return OLY_MEMORY;
    for (f->round = 0; f->round < f->n_rounds; f->round++)
        OLY_TRY(add_round(f, b, axes));
    return OLY_OK;
}

/* Are all partial results of the stage reduced in the process that has them, on every process? */
static bool stays_here(const folder *f)
{
    oly_mesh mesh = f->p->mesh;
    for (int k = 0; k < f->n; k++)
        for (int j = 0; j < f->values[k]->part->stage.n_digits; j++) {
            const oly_reduction_digit *g = &f->values[k]->part->stage.digits[j];
            if (g->stride * g->radix > mesh->together[g->axis] && mesh->together[g->axis] < mesh->size[g->axis])
                return false;
        }
    return true;
}

static oly_status add_own_reductions(oly_planner *p, oly_block *b, const oly_axis_list *axes, int n_items,
                                     const oly_reduction_item *items)
{
    folder f;
    int left;
    bool later = oly_reduces_lazily(p, axes);
    OLY_TRY(oly_reduction_values(&f, p, axes, n_items, items, &left));
    for (; left > 0; left--) {
        oly_reduction_stage_of(&f, n_items, items, left);
        if (later && (oly_reduction_is_small(&f, n_items, left) ||
                      !stays_here(&f))) /* large local reductions come first, as steps of all threads */
            return oly_reduction_in_levels(p, b, axes, n_items, items, left);
        OLY_TRY(add_stage(&f, b, axes));
    }
    return OLY_OK;
}

oly_status oly_add_reductions(oly_planner *p, oly_block *b, const oly_axis_list *axes, int n_items,
                              const oly_reduction_item *items)
{
    oly_reduction_item of[2][OLY_REDUCTION_TOGETHER]; /* ours, the library's */
    int n[2] = {0, 0};
    for (int k = 0; k < n_items; k++) {
        bool library = oly_reduces_by_library(p, axes, &items[k]);
        of[library][n[library]++] = items[k];
    }
    if (n[1] > 0)
        OLY_TRY(oly_reduce_by_library(p, b, axes, n[1], of[1]));
    return n[0] > 0 ? add_own_reductions(p, b, axes, n[0], of[0]) : OLY_OK;
}
