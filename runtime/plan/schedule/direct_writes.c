/* SPDX-License-Identifier: BSD-3-Clause */
/* Direct writes: where a group's result is only copied into a part of a larger array (an update of the inner part of a field, a
 * concatenation, padding), the group writes it there, and nothing is copied. Of the copies of the step the others stay, such as
 * those of a field's border. Called by plan.c once all steps are lowered, before they are ordered. */
#include "core/optimisation.h"
#include "plan/schedule/schedule.h"
#include "plan/schedule/scheduler.h"
#include <string.h>

enum { FAR = 256 }; /* steps between the group and the copies */

typedef struct search {
    const oly_plan *plan;
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
    search x = {plan, from, to, false};
    oly_step_effects(plan, s, look_for, &x);
    return x.found;
}

/* -- the group --------------------------------------------------------------------------------------------------------------- */

/* The only store of the group into the slot on any device; -1: there is none, or another. */
static int store_into(const oly_plan *plan, const oly_step *group, int slot)
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

static oly_step *group_of(const oly_plan *plan, const oly_block *b, int k, int from, int to)
{
    for (int j = k - 1; j >= 0 && j >= k - FAR; j--) {
        oly_step *s = &b->steps[j];
        if (s->number == plan->slots[from].first) {
            bool fits = s->kind == OLY_STEP_TILE && !s->exchange && !uses_either(plan, s, to, to);
            return fits ? s : NULL;
        }
        if (uses_either(plan, s, from, to))
            return NULL;
    }
    return NULL;
}

/* -- its copies -------------------------------------------------------------------------------------------------------------- */

/* Does the copy take just what the group has stored on the device? */
static bool takes_all(const oly_plan *plan, const oly_step *group, int store, int device, const oly_copy_work *c)
{
    const oly_tile_work *w = &group->tile.device[device];
    const oly_place *place = w->has_work ? &w->stores[store] : NULL;
    if (!place || oly_cell_device(plan, c->to.base) != device || place->base != c->from.base ||
        place->offset != c->from.offset || w->box.rank != c->task.rank ||
        c->task.element_bytes != oly_dtype_size((oly_dtype)group->tile.program.store_dtype[store]))
        return false;
    for (int d = 0; d < w->box.rank; d++)
        if (w->box.extent[d] != c->task.extent[d] ||
            (w->box.extent[d] > 1 && place->stride[d] != c->task.from_stride[d]))
            return false;
    return true;
}

/* Does each device that computes copy all of it once? */
static bool all_copied(const oly_plan *plan, const oly_step *group, int store, const oly_step *move, int from)
{
    for (int d = 0; d < plan->n_devices; d++) {
        int n = 0;
        for (int k = 0; k < move->move.n_copies; k++) {
            const oly_copy_work *c = &move->move.copies[k];
            if (oly_cell_slot(plan, c->from.base) != from || oly_cell_device(plan, c->from.base) != d)
                continue;
            if (n++ > 0 || !takes_all(plan, group, store, d, c))
                return false;
        }
        if (n != group->tile.device[d].has_work)
            return false;
    }
    return true;
}

static oly_status redirect(oly_planner *p, oly_step *group, int store, oly_step *move, int from)
{
    oly_plan *plan = p->plan;
    oly_tile_work *work = OLY_PLAN_NEW(p, oly_tile_work, plan->n_devices + 1);
    oly_copy_work *rest = OLY_PLAN_NEW(p, oly_copy_work, move->move.n_copies + 1);
    OLY_PLAN_CHECK(rest ? work : NULL);
    memcpy(work, group->tile.device, sizeof *work * (size_t)plan->n_devices);
    int n = 0;
    double left = 0;
    for (int k = 0; k < move->move.n_copies; k++) {
        const oly_copy_work *c = &move->move.copies[k];
        if (oly_cell_slot(plan, c->from.base) != from) {
            double elements = 1;
            for (int d = 0; d < c->task.rank; d++)
                elements *= (double)c->task.extent[d];
            left += elements;
            rest[n++] = *c;
            continue;
        }
        oly_tile_work *w = &work[oly_cell_device(plan, c->from.base)];
        int n_stores = group->tile.program.n_stores;
        oly_place *stores = OLY_PLAN_NEW(p, oly_place, n_stores + 1);
        OLY_PLAN_CHECK(stores);
        memcpy(stores, w->stores, sizeof *stores * (size_t)n_stores);
        stores[store] = (oly_place){.base = c->to.base, .offset = c->to.offset};
        memcpy(stores[store].stride, c->task.to_stride, sizeof stores[store].stride);
        w->stores = stores;
    }
    group->tile.device = work;
    move->move.copies = rest;
    move->move.n_copies = n;
    move->work = left;
    oly_slot *unused = &plan->slots[from];
    unused->bytes = 0;
    memset(unused->device_bytes, 0, sizeof *unused->device_bytes * (size_t)plan->n_devices);
    return OLY_OK;
}

/* -- the pass ---------------------------------------------------------------------------------------------------------------- */

/* Is step k the last that uses the slot? To copies that were added to a step before, lives seem to end one step later. */
static bool is_last(const oly_plan *plan, const oly_block *b, int k, int slot)
{
    int last = plan->slots[slot].last, number = b->steps[k].number;
    return last == number ||
           (last == number + 1 && (k + 1 == b->n_steps || !uses_either(plan, &b->steps[k + 1], slot, slot)));
}

static oly_status write_directly(oly_planner *p, const oly_block *b, int k, bool *changed)
{
    const oly_plan *plan = p->plan;
    oly_step *move = &b->steps[k];
    for (int i = 0; i < move->move.n_copies; i++) {
        int from = oly_cell_slot(plan, move->move.copies[i].from.base),
            to = oly_cell_slot(plan, move->move.copies[i].to.base);
        const oly_slot *s = &plan->slots[from];
        if (s->kind != OLY_SLOT_SCRATCH || s->claimed || s->block != b || from == to || !is_last(plan, b, k, from))
            continue;
        oly_step *group = group_of(plan, b, k, from, to);
        int store = group ? store_into(plan, group, from) : -1;
        if (store < 0 || !all_copied(plan, group, store, move, from))
            continue;
        OLY_TRY(redirect(p, group, store, move, from));
        *changed = true;
        i = -1; /* the list is another */
    }
    return OLY_OK;
}

/* Steps have the same numbers on all processes, so where there are others one without copies stays. */
static bool is_left_over(const oly_plan *plan, const oly_step *s)
{
    return s->kind == OLY_STEP_MOVE && s->alone && s->move.n_copies == 0 && !plan->distributed;
}

static oly_status visit(oly_planner *p, oly_block *b, bool *changed)
{
    int n = 0;
    for (int k = 0; b && k < b->n_steps; k++) {
        oly_step *s = &b->steps[k];
        if (s->kind == OLY_STEP_LOOP)
            OLY_TRY(visit(p, s->loop.body, changed));
        for (int j = 0; s->kind == OLY_STEP_BRANCH && j < s->branch.n; j++)
            OLY_TRY(visit(p, s->branch.blocks[j], changed));
        if (s->kind == OLY_STEP_MOVE && s->alone && !s->exchange && s->move.n_copies > 0)
            OLY_TRY(write_directly(p, b, k, changed));
    }
    for (int k = 0; b && k < b->n_steps; k++)
        if (!is_left_over(p->plan, &b->steps[k]))
            b->steps[n++] = b->steps[k];
    if (b && n < b->n_steps) {
        b->n_steps = n;
        *changed = true;
    }
    return OLY_OK;
}

oly_status oly_write_directly(oly_planner *p)
{
    bool changed = false;
    if (!oly_enabled(OLY_OPTIMISATION_IN_PLACE_UPDATE))
        return OLY_OK;
    OLY_TRY(visit(p, p->plan->main, &changed));
    if (changed)
        oly_renumber_steps(p);
    return OLY_OK;
}
