/* SPDX-License-Identifier: BSD-3-Clause */
/* Fused reductions: an elementwise group with a result that only a reduction soon after it reads need not be written to memory. The reduction is given the
 * group (oly_step.reduce.operand), and what the group reads lives as long as the reduction, so that an executor may compute the elements
 * while it reduces them; one that does not runs both steps. Values and bits are the same. Called by plan.c, after the order of
 * steps is final and before memory is assigned. */
#include "plan/schedule/schedule.h"
#include "core/optimisation.h"
#include "plan/schedule/fused_groups.h"
#include <string.h>

/* Where a part of the group begins in the box of the whole group. */
static void part_begin(const oly_step *const *parts, int n, int d, const oly_tile_work *w, int64_t *begin)
{
    for (int e = 0; e < w->box.rank; e++) {
        int64_t first = w->box.origin[e];
        for (int k = 0; k < n; k++) {
            const oly_tile_work *other = &parts[k]->tile.device[d];
            first = other->has_work && other->box.origin[e] < first ? other->box.origin[e] : first;
        }
        begin[e] = w->box.origin[e] - first;
    }
}

/* Is what is stored, a part that begins there, where the reduction reads that part? */
static bool same_place(const oly_tile_work *w, const int64_t *begin, const oly_place *store, const oly_reduce_work *r)
{
    int64_t offset = r->in.offset;
    if (w->box.rank != r->task.rank)
        return false;
    for (int d = 0; d < w->box.rank; d++) {
        if (begin[d] + w->box.extent[d] > r->task.extent[d] ||
            (w->box.extent[d] > 1 && store->stride[d] != r->task.stride[d]))
            return false;
        offset += begin[d] * r->task.stride[d] * (int64_t)oly_dtype_size(r->task.dtype);
    }
    return store->offset == offset;
}

static double volume_of(int rank, const int64_t *extent)
{
    double n = 1;
    for (int d = 0; d < rank; d++)
        n *= (double)extent[d];
    return n;
}

/* The store of the group that writes the slot on device d; NULL: none. */
static const oly_place *store_to(const oly_plan *plan, const oly_step *group, int d, int slot)
{
    for (int k = 0; k < group->tile.program.n_stores; k++)
        if (group->tile.device[d].stores[k].base == oly_cell(plan, d, slot))
            return &group->tile.device[d].stores[k];
    return NULL;
}

/* Does the reduction read on every device just what the group has written there? Its parts have no element in common. */
static bool reads_all(const oly_plan *plan, const oly_step *const *parts, int n, const oly_step *reduce, int slot)
{
    for (int d = 0; d < plan->n_devices; d++) {
        const oly_reduce_work *r = &reduce->reduce.device[d];
        double volume = 0;
        bool has_work = false;
        for (int k = 0; k < n; k++) {
            const oly_tile_work *w = &parts[k]->tile.device[d];
            int64_t begin[OLY_MAX_RANK];
            if (!w->has_work)
                continue;
            const oly_place *store = store_to(plan, parts[k], d, slot);
            part_begin(parts, n, d, w, begin);
            if (!r->has_work || !store || !same_place(w, begin, store, r))
                return false;
            volume += volume_of(w->box.rank, w->box.extent);
            has_work = true;
        }
        if (has_work != r->has_work)
            return false;
        if (has_work && (r->in.base != oly_cell(plan, d, slot) || volume != volume_of(r->task.rank, r->task.extent)))
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
    oly_step *parts[OLY_MOST_OPERAND_STEPS];
    int n = oly_group_parts_before(plan, b, k, slot, parts);
    if (n == 0 || !reads_all(plan, (const oly_step *const *)parts, n, reduce, slot))
        return;
    for (int j = 0; j < n; j++)
        if (!oly_group_may_wait(plan, parts[j], reduce))
            return;
    if (n > 1) {
        const oly_step **kept = OLY_ARENA_NEW(&plan->arena, const oly_step *, n);
        if (!kept)
            return; /* computed by themselves, with the same values */
        memcpy(kept, parts, sizeof *kept * (size_t)n);
        reduce->reduce.parts = kept;
        reduce->reduce.n_parts = n;
    }
    reduce->reduce.operand = parts[0];
    for (int j = 0; j < n; j++)
        oly_group_take(plan, parts[j], reduce->number);
}

void oly_fuse_reductions(oly_plan *plan)
{
    if (oly_enabled(OLY_OPTIMISATION_FUSED_REDUCTIONS))
        oly_for_steps(plan, plan->main, fuse);
}
