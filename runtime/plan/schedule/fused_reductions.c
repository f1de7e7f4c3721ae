/* SPDX-License-Identifier: BSD-3-Clause */
/* Fused reductions: an elementwise group with a result that only a reduction soon after it reads need not be written to memory. The reduction is given the
 * group (oly_step.reduce.operand), and what the group reads lives as long as the reduction, so that an executor may compute the elements
 * while it reduces them; one that does not runs both steps. Values and bits are the same. Called by plan.c, after the order of
 * steps is final and before memory is assigned. */
#include "plan/schedule/schedule.h"
#include "core/optimisation.h"
#include "plan/schedule/fused_groups.h"

static bool same_box(const oly_tile_work *w, const oly_place *store, const oly_reduce_work *r)
{
    if (w->box.rank != r->task.rank || store->offset != r->in.offset)
        return false;
    for (int d = 0; d < w->box.rank; d++)
        if (w->box.extent[d] != r->task.extent[d] || (w->box.extent[d] > 1 && store->stride[d] != r->task.stride[d]))
            return false;
    return true;
}

/* The store of the group that writes the slot on device d; NULL: none. */
static const oly_place *store_to(const oly_plan *plan, const oly_step *group, int d, int slot)
{
    for (int k = 0; k < group->tile.program.n_stores; k++)
        if (group->tile.device[d].stores[k].base == oly_cell(plan, d, slot))
            return &group->tile.device[d].stores[k];
    return NULL;
}

/* Does the reduction read on every device just what the group has written there? */
static bool reads_all(const oly_plan *plan, const oly_step *group, const oly_step *reduce, int slot)
{
    for (int d = 0; d < plan->n_devices; d++) {
        const oly_tile_work *w = &group->tile.device[d];
        const oly_reduce_work *r = &reduce->reduce.device[d];
        if (w->has_work != r->has_work)
            return false;
        if (!w->has_work)
            continue;
        const oly_place *store = store_to(plan, group, d, slot);
        if (r->in.base != oly_cell(plan, d, slot) || !store || !same_box(w, store, r))
            return false;
    }
    return true;
}

/* The slot that the reduction reads on the devices of this process; -1: none. */
static int operand_of(const oly_plan *plan, const oly_step *reduce)
{
    for (int d = 0; d < plan->n_devices; d++)
        if (reduce->reduce.device[d].has_work)
            return oly_cell_slot(plan, reduce->reduce.device[d].in.base);
    return -1;
}

/* -- the pass ---------------------------------------------------------------------------------------------------------- */

static void fuse(oly_plan *plan, const oly_block *b, int k)
{
    oly_step *reduce = &b->steps[k];
    int slot = reduce->kind == OLY_STEP_REDUCE && !reduce->exchange ? operand_of(plan, reduce) : -1;
    if (slot < 0)
        return;
    const oly_slot *s = &plan->slots[slot];
    if (s->kind != OLY_SLOT_SCRATCH || s->block != b || s->last != reduce->number)
        return;
    oly_step *group = oly_group_before(plan, b, k, s);
    if (!group || !reads_all(plan, group, reduce, slot) || !oly_group_may_wait(plan, group, reduce))
        return;
    reduce->reduce.operand = group;
    oly_group_take(plan, group, reduce->number);
}

void oly_fuse_reductions(oly_plan *plan)
{
    if (oly_enabled(OLY_OPTIMISATION_FUSED_REDUCTIONS))
        oly_for_steps(plan, plan->main, fuse);
}
