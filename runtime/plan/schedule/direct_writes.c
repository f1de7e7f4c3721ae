/* SPDX-License-Identifier: BSD-3-Clause */
/* Direct writes: where a group's result is copied into a part of a larger array (an update of the inner part of a field, a concatenation,
 * padding), the group writes it there, and nothing is copied. Other steps that read the result, such as a smoother that needs a field with
 * and without its margins, read that part instead. Of the copies of the step the others stay, such as those of a field's border. Called by
 * plan.c once all steps are lowered, before they are ordered. */
#include "core/optimisation.h"
#include "plan/schedule/schedule.h"
#include "plan/schedule/scheduler.h"
#include <string.h>

enum {
    FAR = 256, /* steps between the group and the copies, and from these to other readers */
    MOST_READERS = 8,
    LEAST_ROW = 16 /* elements of a part's rows: shorter ones take longer to read than an array of their own */
};

/* Other steps that read a group's result. */
typedef struct readers {
    int n, step[MOST_READERS];
} readers;

typedef struct search {
    int from, to; /* slots: the result, and the array that it is copied into */
    bool found;
} search;

static void look_for(void *context, int slot, bool writes)
{
    search *x = context;
    (void)writes;
    x->found = x->found || slot == x->from || slot == x->to;
}

static bool uses_either(const oly_plan *plan, const oly_step *s, int from, int to)
{
    search x = {from, to, false};
    oly_step_effects(plan, s, look_for, &x);
    return x.found;
}

/* -- the group --------------------------------------------------------------------------------------------------------------- */

int oly_store_into(const oly_plan *plan, const oly_step *group, int slot)
{
    int store = -1;
    for (int d = 0; d < plan->n_devices; d++)
        for (int k = 0; group->tile.device[d].has_work && k < group->tile.program.n_stores; k++) {
            if (oly_cell_slot(plan, group->tile.device[d].stores[k].base) != slot)
                continue;
            if (store >= 0 && store != k)
                return -1;
            store = k;
        }
    return store;
}

/* Is it where a copy of the step would have put what the group now stores there? Copies of one step are disjoint. */
static bool was_copied(const oly_step *move, const oly_place *store)
{
    for (int k = 0; k < move->move.n_copies; k++) {
        const oly_copy_work *c = &move->move.copies[k];
        if (c->from.base < 0 && c->to.base == store->base && c->to.offset == store->offset)
            return true;
    }
    return false;
}

/* Does the group use the array for nothing but what the step would have copied there? */
static bool keeps_off(const oly_plan *plan, const oly_step *group, int to, const oly_step *move)
{
    for (int d = 0; d < plan->n_devices; d++) {
        const oly_tile_work *w = &group->tile.device[d];
        for (int k = 0; w->has_work && k < group->tile.program.n_loads; k++)
            if (oly_cell_slot(plan, w->loads[k].base) == to)
                return false;
        for (int k = 0; w->has_work && k < group->tile.program.n_stores; k++)
            if (oly_cell_slot(plan, w->stores[k].base) == to && !was_copied(move, &w->stores[k]))
                return false;
    }
    return true;
}

/* May the step read the slot elsewhere? */
static bool reads_places(const oly_plan *plan, const oly_step *s, int slot)
{
    bool moves = s->kind == OLY_STEP_MOVE && !s->second && !s->starts;
    return (moves || s->kind == OLY_STEP_TILE) && !s->exchange && !oly_effect_on(plan, s, slot).writes;
}

static bool add_reader(const oly_plan *plan, const oly_block *b, int j, int slot, readers *others)
{
    if (others->n == MOST_READERS || !reads_places(plan, &b->steps[j], slot))
        return false;
    others->step[others->n++] = j;
    return true;
}

/* Steps between the two that read the result are added to the others. */
static oly_step *group_of(const oly_plan *plan, const oly_block *b, int k, int from, int to, readers *others)
{
    for (int j = k - 1; j >= 0 && j >= k - FAR; j--) {
        oly_step *s = &b->steps[j];
        if (s->number == plan->slots[from].first) {
            bool fits = s->kind == OLY_STEP_TILE && !s->exchange && keeps_off(plan, s, to, &b->steps[k]);
            return fits ? s : NULL;
        }
        if (uses_either(plan, s, to, to) || (uses_either(plan, s, from, from) && !add_reader(plan, b, j, from, others)))
            return NULL;
    }
    return NULL;
}

/* -- its copies -------------------------------------------------------------------------------------------------------------- */

/* The next dimension from d on with more than one element; `rank`: there is none. */
static int next_long(int rank, const int64_t *extent, int d)
{
    while (d < rank && extent[d] == 1)
        d++;
    return d;
}

bool oly_match_box(const oly_tile_box *box, int rank, const int64_t *extent, const int64_t *stride, int64_t *place)
{
    int e = next_long(rank, extent, 0);
    for (int d = 0; d < box->rank; d++) {
        place[d] = 0;
        if (box->extent[d] == 1)
            continue;
        if (e >= rank || extent[e] != box->extent[d])
            return false;
        place[d] = stride[e];
        e = next_long(rank, extent, e + 1);
    }
    return e >= rank;
}

bool oly_stores_box(const oly_tile_box *box, const oly_place *store, int rank, const int64_t *extent,
                    const int64_t *stride)
{
    int64_t place[OLY_MAX_RANK];
    if (!oly_match_box(box, rank, extent, stride, place))
        return false;
    for (int d = 0; d < box->rank; d++)
        if (box->extent[d] > 1 && store->stride[d] != place[d])
            return false;
    return true;
}

/* Does the copy take just what the group has stored on the device? */
static bool takes_all(const oly_plan *plan, const oly_step *group, int store, int device, const oly_copy_work *c)
{
    const oly_tile_work *w = &group->tile.device[device];
    const oly_place *place = w->has_work ? &w->stores[store] : NULL;
    return place && oly_cell_device(plan, c->to.base) == device && place->base == c->from.base &&
           place->offset == c->from.offset &&
           c->task.element_bytes == oly_dtype_size((oly_dtype)group->tile.program.store_dtype[store]) &&
           oly_stores_box(&w->box, place, c->task.rank, c->task.extent, c->task.from_stride);
}

/* Does each device that computes copy all of it once? */
static oly_status find_copies(oly_planner *p, const oly_step *group, int store, const oly_step *move, int from,
                              bool *all)
{
    int *n = OLY_PLAN_NEW(p, int, p->plan->n_devices + 1);
    OLY_PLAN_CHECK(n);
    *all = true;
    for (int k = 0; *all && k < move->move.n_copies; k++) {
        const oly_copy_work *c = &move->move.copies[k];
        if (c->from.base < 0 || oly_cell_slot(p->plan, c->from.base) != from)
            continue;
        int d = oly_cell_device(p->plan, c->from.base);
        *all = n[d]++ == 0 && takes_all(p->plan, group, store, d, c);
    }
    for (int d = 0; d < p->plan->n_devices; d++)
        *all = *all && n[d] == group->tile.device[d].has_work;
    return OLY_OK;
}

/* The group stores where the copies from this slot go. They are done: they have no place to read from any more. */
static oly_status redirect(oly_planner *p, oly_step *group, int store, oly_copy_work *copies, int n_copies, int from)
{
    oly_plan *plan = p->plan;
    int n_stores = group->tile.program.n_stores;
    oly_tile_work *work = OLY_PLAN_NEW(p, oly_tile_work, plan->n_devices + 1);
    OLY_PLAN_CHECK(work);
    memcpy(work, group->tile.device, sizeof *work * (size_t)plan->n_devices);
    for (int k = 0; k < n_copies; k++) {
        oly_copy_work *c = &copies[k];
        if (c->from.base < 0 || oly_cell_slot(plan, c->from.base) != from)
            continue;
        oly_tile_work *w = &work[oly_cell_device(plan, c->from.base)];
        oly_place *stores = OLY_PLAN_NEW(p, oly_place, n_stores + 1);
        OLY_PLAN_CHECK(stores);
        memcpy(stores, w->stores, sizeof *stores * (size_t)n_stores);
        stores[store] = (oly_place){.base = c->to.base, .offset = c->to.offset};
        oly_match_box(&w->box, c->task.rank, c->task.extent, c->task.to_stride, stores[store].stride);
        w->stores = stores;
        c->from.base = -1;
    }
    group->tile.device = work;
    oly_slot *unused = &plan->slots[from];
    unused->bytes = 0;
    memset(unused->device_bytes, 0, sizeof *unused->device_bytes * (size_t)plan->n_devices);
    return OLY_OK;
}

/* -- other readers ----------------------------------------------------------------------------------------------------------- */

/* Is step k the last that uses the slot? To copies that were added to a step before, lives seem to end one step later. */
static bool is_last(const oly_plan *plan, const oly_block *b, int k, int slot)
{
    int last = plan->slots[slot].last, number = b->steps[k].number;
    for (int j = k + 1; j < b->n_steps; j++)
        if (oly_has_blocks(&b->steps[j]) && uses_either(plan, &b->steps[j], slot, slot))
            return false;
    return last == number ||
           (last == number + 1 && (k + 1 == b->n_steps || !uses_either(plan, &b->steps[k + 1], slot, slot)));
}

/* The steps after k that read the result. False: one of them cannot read it in the larger array, or not any more. */
static bool find_later(const oly_plan *plan, const oly_block *b, int k, int from, int to, readers *others)
{
    int last = k, written = b->n_steps;
    if (is_last(plan, b, k, from))
        return true;
    if (plan->slots[to].kind != OLY_SLOT_SCRATCH && plan->slots[to].kind != OLY_SLOT_POOL)
        return false;
    for (int j = k + 1; j < b->n_steps; j++) {
        const oly_step *s = &b->steps[j];
        if (s->number > plan->slots[from].last && !oly_has_blocks(s))
            continue;
        if (j > k + FAR || (oly_has_blocks(s) && uses_either(plan, s, from, from)))
            return false;
        if (uses_either(plan, s, from, from)) {
            if (!add_reader(plan, b, j, from, others))
                return false;
            last = j;
        }
        if (written > j && oly_effect_on(plan, s, to).writes)
            written = j;
    }
    return last < written;
}

/* From the larger array into the group's result, for each device. */
static oly_copy_work backwards(const oly_copy_work *c)
{
    oly_copy_work back = {.task = c->task, .from = c->to, .to = c->from};
    memcpy(back.task.to_stride, c->task.from_stride, sizeof back.task.to_stride);
    memcpy(back.task.from_stride, c->task.to_stride, sizeof back.task.from_stride);
    return back;
}

static bool has_rows(const oly_copy_work *back)
{
    int d = back->task.rank - 1;
    return d >= 0 && back->task.from_stride[d] == 1 && back->task.extent[d] >= LEAST_ROW && oly_writes_box(back);
}

static const oly_copy_work *copy_from(const oly_copy_work *copies, int n, int base)
{
    for (int k = 0; k < n; k++)
        if (copies[k].from.base == base && base >= 0)
            return &copies[k];
    return NULL;
}

/* What a step that copies reads there, it reads in the larger array. */
static bool turn_copy(const oly_copy_work *back, oly_copy_work *c)
{
    oly_tile_work box = {.box.rank = c->task.rank};
    if (c->task.element_bytes != back->task.element_bytes)
        return false;
    for (int d = 0; d < c->task.rank; d++) {
        box.box.extent[d] = c->task.extent[d];
        c->from.stride[d] = c->task.from_stride[d];
        if (c->task.extent[d] == 0)
            return false;
    }
    if (!oly_redirect_load(back, &box, &c->from))
        return false;
    memcpy(c->task.from_stride, c->from.stride, sizeof c->task.from_stride);
    return true;
}

/* The step with its reads of `from` in the larger array, in memory of its own. Not *fits: one of them cannot be. */
static oly_status turn_reader(oly_planner *p, int from, const oly_copy_work *copies, int n, oly_step *s, bool *fits)
{
    oly_plan *plan = p->plan;
    if (s->kind == OLY_STEP_MOVE) {
        oly_copy_work *own = OLY_PLAN_NEW(p, oly_copy_work, s->move.n_copies + 1);
        OLY_PLAN_CHECK(own);
        memcpy(own, s->move.copies, sizeof *own * (size_t)s->move.n_copies);
        s->move.copies = own;
        for (int k = 0; k < s->move.n_copies; k++) {
            const oly_copy_work *c = copy_from(copies, n, own[k].from.base);
            oly_copy_work back = c ? backwards(c) : (oly_copy_work){0};
            if (own[k].from.base >= 0 && oly_cell_slot(plan, own[k].from.base) == from)
                *fits = *fits && c && has_rows(&back) && turn_copy(&back, &own[k]);
        }
        return OLY_OK;
    }
    oly_tile_work *work = OLY_PLAN_NEW(p, oly_tile_work, plan->n_devices + 1);
    OLY_PLAN_CHECK(work);
    memcpy(work, s->tile.device, sizeof *work * (size_t)plan->n_devices);
    for (int d = 0; d < plan->n_devices; d++) {
        oly_place *loads = OLY_PLAN_NEW(p, oly_place, s->tile.program.n_loads + 1);
        OLY_PLAN_CHECK(loads);
        if (!work[d].has_work)
            continue;
        memcpy(loads, work[d].loads, sizeof *loads * (size_t)s->tile.program.n_loads);
        work[d].loads = loads;
        for (int k = 0; k < s->tile.program.n_loads; k++) {
            if (loads[k].base < 0 || oly_cell_slot(plan, loads[k].base) != from)
                continue;
            const oly_copy_work *c = copy_from(copies, n, loads[k].base);
            oly_copy_work back = c ? backwards(c) : (oly_copy_work){0};
            *fits = *fits && c && has_rows(&back) &&
                    oly_dtype_size((oly_dtype)s->tile.program.load_dtype[k]) == back.task.element_bytes &&
                    oly_redirect_load(&back, &work[d], &loads[k]);
        }
    }
    s->tile.device = work;
    return OLY_OK;
}

/* All of them, or none: then not *fits. */
static oly_status turn_readers(oly_planner *p, const oly_block *b, const readers *others, int from, int to,
                               const oly_copy_work *copies, int n, bool *fits)
{
    oly_step turned[MOST_READERS];
    for (int k = 0; k < others->n && *fits; k++) {
        turned[k] = b->steps[others->step[k]];
        OLY_TRY(turn_reader(p, from, copies, n, &turned[k], fits));
    }
    for (int k = 0; k < others->n && *fits; k++) {
        oly_slot *larger = &p->plan->slots[to];
        b->steps[others->step[k]] = turned[k];
        larger->last = turned[k].number > larger->last ? turned[k].number : larger->last;
    }
    return OLY_OK;
}

/* -- the pass ---------------------------------------------------------------------------------------------------------------- */

/* The group whose result this is, if it can write it where the copies of step k put it: *store. NULL: there is none. */
static oly_status find_group(oly_planner *p, const oly_block *b, int k, int from, int to, oly_step **group, int *store)
{
    const oly_plan *plan = p->plan;
    const oly_slot *s = &plan->slots[from];
    bool all = false;
    readers others = {.n = 0};
    *group = NULL;
    if (s->kind != OLY_SLOT_SCRATCH || s->claimed || s->block != b || from == to ||
        !find_later(plan, b, k, from, to, &others))
        return OLY_OK;
    oly_step *found = group_of(plan, b, k, from, to, &others);
    *store = found ? oly_store_into(plan, found, from) : -1;
    if (*store >= 0)
        OLY_TRY(find_copies(p, found, *store, &b->steps[k], from, &all));
    if (all)
        OLY_TRY(turn_readers(p, b, &others, from, to, b->steps[k].move.copies, b->steps[k].move.n_copies, &all));
    *group = all ? found : NULL;
    return OLY_OK;
}

static oly_status write_directly(oly_planner *p, const oly_block *b, int k, bool *changed)
{
    oly_step *move = &b->steps[k];
    oly_copy_work *copies = NULL; /* the step's own, once there is something to change */
    int store, left = 0, n = move->move.n_copies;
    for (int i = 0; i < n; i++) {
        const oly_copy_work *c = &move->move.copies[i];
        oly_step *group = NULL;
        if (c->from.base >= 0)
            OLY_TRY(find_group(p, b, k, oly_cell_slot(p->plan, c->from.base), oly_cell_slot(p->plan, c->to.base),
                               &group, &store));
        if (!group)
            continue;
        if (!copies) {
            copies = OLY_PLAN_NEW(p, oly_copy_work, n);
            OLY_PLAN_CHECK(copies);
            memcpy(copies, move->move.copies, sizeof *copies * (size_t)n);
            move->move.copies = copies;
        }
        OLY_TRY(redirect(p, group, store, copies, n, oly_cell_slot(p->plan, copies[i].from.base)));
    }
    for (int i = 0; copies && i < n; i++)
        if (copies[i].from.base >= 0)
            copies[left++] = copies[i];
    if (!copies)
        return OLY_OK;
    *changed = true;
    move->move.n_copies = left;
    move->work = oly_copied_elements(left, copies);
    return OLY_OK;
}

static bool is_left_over(const oly_step *s)
{
    return s->kind == OLY_STEP_MOVE && s->alone && s->move.n_copies == 0;
}

static oly_status visit(oly_planner *p, oly_block *b, bool *changed)
{
    int n = 0;
    for (int k = 0; k < b->n_steps; k++) {
        const oly_step *s = &b->steps[k];
        if (s->kind == OLY_STEP_MOVE && s->alone && !s->exchange)
            OLY_TRY(write_directly(p, b, k, changed));
    }
    for (int k = 0; k < b->n_steps; k++)
        if (!is_left_over(&b->steps[k]))
            b->steps[n++] = b->steps[k];
    *changed = *changed || n < b->n_steps;
    b->n_steps = n;
    return OLY_OK;
}

oly_status oly_write_directly(oly_planner *p)
{
    return oly_enabled(OLY_OPTIMISATION_IN_PLACE_UPDATE) ? oly_pass_over_blocks(p, visit) : OLY_OK;
}
