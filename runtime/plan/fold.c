/* Reductions over devices. The order is fixed by the mesh alone: one mesh axis at a time, major axis first, linear within groups of
 * up to 16 positions, then over the groups, so the same mesh gives the same bits however its devices are spread over processes,
 * and the depth stays logarithmic. Every device needs the partials of a list of positions, folds them in that order, and all the
 * devices of one process with the same list share one fold. Small groups of several axes are folded in one go (nested). */
#include "plan/planner.h"
#include <stdlib.h>
#include <string.h>

enum { RADIX = 16, MOST_SOURCES = 64 };

/* One digit of a stage: positions along `axis` at distance `stride`, up to RADIX of them. */
typedef struct digit {
    int axis, stride;
} digit;

typedef struct stage {
    int n_digits;
    digit digits[4];
} stage;

/* Coordinates along one digit that the position at c folds: subtrees of `stride` positions, each of which has the same
 * value everywhere; of a last, smaller subtree the representative wraps. */
static int digit_sources(oly_mesh mesh, const digit *g, int c, int *sources)
{
    int size = mesh->size[g->axis], base = c - c % (g->stride * RADIX), n = 0;
    for (int j = 0; j < RADIX && base + j * g->stride < size; j++) {
        int start = base + j * g->stride, count = size - start < g->stride ? size - start : g->stride;
        sources[n++] = start + c % g->stride % count;
    }
    return n;
}

/* The positions whose partials the device at `position` folds, nested by digit. */
static int sources_of(oly_mesh mesh, const stage *s, int position, int *counts, int *sources)
{
    int coordinates[OLY_MAX_RANK], list[4][RADIX], at[4] = {0}, n = 0;
    oly_mesh_coordinates(mesh, position, coordinates);
    for (int k = 0; k < s->n_digits; k++)
        counts[k] = digit_sources(mesh, &s->digits[k], coordinates[s->digits[k].axis], list[k]);
    for (;;) {
        for (int k = 0; k < s->n_digits; k++)
            coordinates[s->digits[k].axis] = list[k][at[k]];
        sources[n++] = oly_mesh_position(mesh, coordinates);
        int k = s->n_digits - 1;
        while (k >= 0 && ++at[k] == counts[k])
            at[k--] = 0;
        if (k < 0)
            return n;
    }
}

static bool lists(const int *sources, int n, int position)
{
    for (int k = 0; k < n; k++)
        if (sources[k] == position)
            return true;
    return false;
}

/* Who folds a position's partial: all positions that differ from it only along the digits' blocks. */
static oly_status users_of(oly_planner *p, const stage *s, int position, int *n_users, int **users)
{
    oly_mesh mesh = p->mesh;
    int coordinates[OLY_MAX_RANK], lo[4], hi[4], at[4], total = 1, counts[4], sources[MOST_SOURCES];
    oly_mesh_coordinates(mesh, position, coordinates);
    for (int k = 0; k < s->n_digits; k++) {
        const digit *g = &s->digits[k];
        int c = coordinates[g->axis], block = g->stride * RADIX;
        lo[k] = at[k] = c - c % block;
        hi[k] = lo[k] + block < mesh->size[g->axis] ? lo[k] + block : mesh->size[g->axis];
        total *= hi[k] - lo[k];
    }
    *users = OLY_PLAN_NEW(p, int, total);
    OLY_PLAN_CHECK(*users);
    *n_users = 0;
    for (;;) {
        for (int k = 0; k < s->n_digits; k++)
            coordinates[s->digits[k].axis] = at[k];
        int user = oly_mesh_position(mesh, coordinates);
        if (lists(sources, sources_of(mesh, s, user, counts, sources), position))
            (*users)[(*n_users)++] = user;
        int k = s->n_digits - 1;
        while (k >= 0 && ++at[k] == hi[k]) {
            at[k] = lo[k];
            k--;
        }
        if (k < 0)
            return OLY_OK;
    }
}

typedef struct folder {
    oly_planner *p;
    const oly_node *node;
    const oly_layout *layout;
    const stage *stage;
    int slot, staging; /* staging: slot of device 0 for partials of other processes */
    int64_t received;  /* bytes in staging so far */
    int n_wire, wire_capacity;
    struct wire {
        int peer, position, device; /* device -1: received */
        int64_t offset;             /* of a received partial in staging */
    } *wires;
} folder;

static int process_at(oly_mesh mesh, int position) { return oly_mesh_process_of(oly_mesh_device_id(mesh, position)); }

static int64_t elements_at(const folder *f, int position)
{
    oly_box b = oly_layout_box(f->layout, position);
    return oly_box_count(&b);
}

static int device_at(const folder *f, int position)
{
    for (int d = 0; d < f->p->plan->n_devices; d++)
        if (f->p->position[d] == position)
            return d;
    return -1;
}

static oly_status add_wire(folder *f, int peer, int position, int device, int64_t offset)
{
    for (int k = 0; k < f->n_wire; k++)
        if (f->wires[k].peer == peer && f->wires[k].position == position && (f->wires[k].device < 0) == (device < 0))
            return OLY_OK;
    if (f->n_wire == f->wire_capacity) {
        f->wire_capacity = f->wire_capacity ? 2 * f->wire_capacity : 16;
        struct wire *w = OLY_PLAN_NEW(f->p, struct wire, f->wire_capacity);
        OLY_PLAN_CHECK(w);
        if (f->n_wire)
            memcpy(w, f->wires, sizeof *w * (size_t)f->n_wire);
        f->wires = w;
    }
    f->wires[f->n_wire++] = (struct wire){peer, position, device, offset};
    return OLY_OK;
}

/* Offset of another process's partial in staging; adds it when it is new. */
static oly_status staged(folder *f, int position, int64_t *offset)
{
    int peer = process_at(f->p->mesh, position);
    for (int k = 0; k < f->n_wire; k++)
        if (f->wires[k].device < 0 && f->wires[k].position == position) {
            *offset = f->wires[k].offset;
            return OLY_OK;
        }
    *offset = f->received;
    f->received += (elements_at(f, position) * (int64_t)oly_dtype_size(f->node->type.dtype) + 63) / 64 * 64;
    return add_wire(f, peer, position, -1, *offset);
}

static oly_status add_senders(folder *f)
{
    int me = oly_mesh_my_process();
    for (int d = 0; d < f->p->plan->n_devices; d++) {
        int n, *users, position = f->p->position[d];
        if (position < 0 || elements_at(f, position) == 0)
            continue;
        OLY_TRY(users_of(f->p, f->stage, position, &n, &users));
        for (int k = 0; k < n; k++)
            if (process_at(f->p->mesh, users[k]) != me)
                OLY_TRY(add_wire(f, process_at(f->p->mesh, users[k]), position, d, 0));
    }
    return OLY_OK;
}

static int same_list(const oly_fold_work *g, const int *bases, const int64_t *offsets, int n)
{
    return g->n_sources == n && memcmp(g->source_base, bases, sizeof(int) * (size_t)n) == 0 &&
           memcmp(g->source_offset, offsets, sizeof(int64_t) * (size_t)n) == 0;
}

static oly_status add_device(folder *f, int d, oly_fold_work *groups, int *n_groups, int *counts)
{
    oly_planner *p = f->p;
    int capacity = p->plan->slot_capacity, sources[MOST_SOURCES];
    int n = sources_of(p->mesh, f->stage, p->position[d], counts, sources);
    int *bases = OLY_PLAN_NEW(p, int, n);
    int64_t *offsets = OLY_PLAN_NEW(p, int64_t, n);
    OLY_PLAN_CHECK(bases);
    OLY_PLAN_CHECK(offsets);
    for (int k = 0; k < n; k++) {
        int device = device_at(f, sources[k]);
        bases[k] = device >= 0 ? device * capacity + f->slot : f->staging;
        if (device < 0)
            OLY_TRY(staged(f, sources[k], &offsets[k]));
    }
    int g = 0;
    while (g < *n_groups && !same_list(&groups[g], bases, offsets, n))
        g++;
    if (g == *n_groups) {
        int *outs = OLY_PLAN_NEW(p, int, p->plan->n_devices);
        OLY_PLAN_CHECK(outs);
        groups[(*n_groups)++] = (oly_fold_work){n, bases, offsets, 0, elements_at(f, p->position[d]), 0, outs};
    }
    ((int *)groups[g].out_base)[groups[g].n_outs++] = d * capacity + f->slot;
    return OLY_OK;
}

static int by_peer(const void *a, const void *b)
{
    const struct wire *x = a, *y = b;
    if ((x->device < 0) != (y->device < 0))
        return x->device < 0 ? 1 : -1;
    return x->peer != y->peer ? x->peer - y->peer : x->position - y->position;
}

static oly_piece wire_piece(const folder *f, const struct wire *w)
{
    int base = w->device < 0 ? f->staging : w->device * f->p->plan->slot_capacity + f->slot;
    return (oly_piece){.buffer = base,
                       .offset = w->offset,
                       .rank = 1,
                       .extent = {elements_at(f, w->position)},
                       .stride = {1}};
}

static oly_status make_exchange(folder *f, oly_exchange **exchange)
{
    qsort(f->wires, (size_t)f->n_wire, sizeof *f->wires, by_peer);
    oly_message *messages = oly_calloc((size_t)f->n_wire, sizeof *messages);
    oly_piece *pieces = oly_calloc((size_t)f->n_wire, sizeof *pieces);
    int *same = oly_malloc(sizeof *same * (size_t)f->n_wire);
    int n = 0, n_sends = 0;
    oly_status st = OLY_OK;
    if (!messages || !pieces || !same)
        st = oly_out_of_memory(sizeof *pieces * (size_t)f->n_wire, "a reduction");
    for (int k = 0; st == OLY_OK && k < f->n_wire; k++) {
        const struct wire *w = &f->wires[k];
        bool fresh = k == 0 || w->peer != w[-1].peer || (w->device < 0) != (w[-1].device < 0);
        if (fresh) {
            messages[n++] = (oly_message){.peer = w->peer, .pieces = pieces + k, .same = same + k};
            n_sends += w->device >= 0;
        }
        messages[n - 1].n_pieces++;
        pieces[k] = wire_piece(f, w);
        same[k] = -1;
    }
    if (st == OLY_OK)
        st = oly_exchange_make(oly_dtype_size(f->node->type.dtype), n_sends, messages, n - n_sends, messages + n_sends,
                               exchange);
    oly_release(messages);
    oly_release(pieces);
    oly_release(same);
    return st;
}

static oly_status staging_slot(folder *f)
{
    oly_plan *plan = f->p->plan;
    f->staging = oly_slot_new(f->p, NULL, 0);
    if (f->staging < 0)
        return OLY_MEMORY;
    plan->slots[f->staging].device_bytes[0] = 1; /* sized below; of device 0 only */
    return OLY_OK;
}

static const char *combiner_name(oly_combiner c)
{
    static const char *const names[] = {"sum", "prod", "max", "min"};
    return names[c];
}

static oly_status add_stage(oly_planner *p, oly_block *b, const oly_node *node, oly_combiner combiner,
                            const oly_layout *l, int slot, const stage *s)
{
    folder f = {.p = p, .node = node, .layout = l, .stage = s, .slot = slot};
    oly_fold_work *groups = OLY_PLAN_NEW(p, oly_fold_work, p->plan->n_devices + 1);
    OLY_PLAN_CHECK(groups);
    int n_groups = 0, counts[4] = {1, 1, 1, 1}, members = 1;
    OLY_TRY(staging_slot(&f));
    OLY_TRY(add_senders(&f));
    for (int d = 0; d < p->plan->n_devices; d++)
        if (p->position[d] >= 0)
            OLY_TRY(add_device(&f, d, groups, &n_groups, counts));
    oly_slot *staging = &p->plan->slots[f.staging];
    staging->bytes = staging->device_bytes[0] = (size_t)f.received;
    staging->block = b;
    oly_exchange *exchange = NULL;
    if (f.n_wire)
        OLY_TRY(make_exchange(&f, &exchange));
    oly_step *step = oly_step_add(p, b, OLY_STEP_FOLD, node, "all-reduce");
    if (!step) {
        oly_exchange_free(exchange);
        return oly_out_of_memory(0, "a plan");
    }
    step->exchange = exchange;
    step->out_slot = slot;
    step->fold.combiner = combiner;
    step->fold.dtype = node->type.dtype;
    step->fold.n_counts = s->n_digits;
    for (int k = 0; k < s->n_digits; k++) {
        step->fold.counts[k] = counts[k];
        members *= counts[k];
    }
    step->fold.n_groups = n_groups;
    step->fold.groups = groups;
    for (int g = 0; g < n_groups; g++) {
        int64_t n = groups[g].end;
        step->fold.elements = n > step->fold.elements ? n : step->fold.elements;
        step->work += (double)n * groups[g].n_sources;
    }
    step->members = members;
    step->messages = members - 1;
    step->bytes = step->fold.elements * (int64_t)oly_dtype_size(node->type.dtype);
    step->detail = oly_plan_say(p, "%s over %d devices", combiner_name(combiner), members);
    oly_slot_use(p, slot);
    oly_slot_use(p, f.staging);
    return OLY_OK;
}

oly_status oly_fold_axes(oly_planner *p, oly_block *b, const oly_node *node, oly_combiner combiner, const oly_layout *l,
                         int slot, const oly_axis_list *axes, int *result_slot)
{
    stage all = {0};
    int64_t product = 1;
    bool large = false;
    *result_slot = slot;
    for (int a = 0; a < p->mesh->n_axes; a++) /* major axis first, whatever the order in the spec */
        for (int k = 0; k < axes->n; k++)
            if (axes->axis[k] == a && p->mesh->size[a] > 1) {
                product *= p->mesh->size[a];
                large = large || p->mesh->size[a] > RADIX || all.n_digits == 4;
                if (all.n_digits < 4)
                    all.digits[all.n_digits++] = (digit){a, 1};
            }
    if (all.n_digits == 0)
        return OLY_OK;
    if (!large && product <= MOST_SOURCES / 2)
        return add_stage(p, b, node, combiner, l, slot, &all);
    for (int a = 0; a < p->mesh->n_axes; a++)
        for (int k = 0; k < axes->n; k++)
            for (int64_t stride = 1; axes->axis[k] == a && stride < p->mesh->size[a]; stride *= RADIX) {
                stage one = {1, {{a, (int)stride}}};
                OLY_TRY(add_stage(p, b, node, combiner, l, slot, &one));
            }
    return OLY_OK;
}
