/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds sums of what is looked up. See gathered_sums.h. */
#include "plan/model/gathered_sums.h"
#include "plan/model/effects.h"
#include "plan/model/row_operands.h"

enum { ONE_BY_ONE = 64 }; /* fewer elements of a result are added one after the other: kernels/cpu/reduce.c */

/* The sum over the middle one of the dimensions [row, position, element]; the last may be missing. */
static bool sums_positions(const oly_step *s, int device)
{
    const oly_reduce_work *w = s->kind == OLY_STEP_REDUCE ? &s->reduce.device[device] : NULL;
    if (!w || !w->has_work)
        return false;
    const oly_reduce_task *t = &w->task;
    return t->combiner == OLY_COMBINE_SUM && (t->dtype == OLY_FLOAT32 || t->dtype == OLY_FLOAT64) && !t->converts &&
           (t->rank == 2 || t->rank == 3) && !t->reduced[0] && t->reduced[1] && (t->rank == 2 || !t->reduced[2]) &&
           t->extent[1] > 0 && t->extent[1] < ONE_BY_ONE && w->scratch_base < 0;
}

/* Is the place one after the other in memory, in the dimensions of the reduction's operand but the first? */
static bool is_dense(const oly_reduce_task *t, const int64_t *stride)
{
    int64_t next = 1;
    for (int d = t->rank - 1; d >= 0; d--) {
        if (t->extent[d] > 1 && stride[d] != next)
            return false;
        next *= t->extent[d];
    }
    return true;
}

/* Rows of x, or its elements, at positions [row, position], of which all is here. */
static bool looks_up_rows(const oly_step *s, int device, const oly_reduce_task *sum)
{
    const oly_local_work *w = s->kind == OLY_STEP_LOCAL ? &s->local.device[device] : NULL;
    if (!w || !w->has_work || w->task.op != OLY_LOCAL_GATHER)
        return false;
    const oly_local_task *t = &w->task;
    const oly_local_operand *x = &t->in[0], *at = &t->in[1];
    return t->n_in == 2 && t->n_batch == 0 && !t->partial && !t->keeps && t->n_axes == 1 && t->axes[0] == 0 &&
           x->dtype == sum->dtype && x->rank == sum->rank - 1 && x->extent[0] == x->size[0] &&
           (x->rank == 1 || (x->extent[1] == sum->extent[2] && (x->stride[1] == 1 || x->extent[1] == 1))) &&
           at->dtype == OLY_INT32 && at->rank == 2 && at->extent[0] == sum->extent[0] &&
           at->extent[1] == sum->extent[1] && (at->stride[1] == 1 || at->extent[1] == 1) &&
           (at->stride[0] == at->extent[1] || at->extent[0] == 1) && t->out.rank == sum->rank;
}

/* One weight for each position, times what has been looked up, which is load `gathered`. */
static bool weighs(const oly_step *s, int device, const oly_reduce_task *sum, int gathered)
{
    const oly_tile_work *w = &s->tile.device[device];
    const oly_place *value = &w->loads[!gathered];
    if (w->box.rank != sum->rank)
        return false;
    for (int d = 0; d < sum->rank; d++)
        if (w->box.extent[d] != sum->extent[d])
            return false;
    bool side_by_side = (value->stride[1] == 1 || sum->extent[1] == 1) &&
                        (value->stride[0] == sum->extent[1] || sum->extent[0] == 1) &&
                        (sum->rank == 2 || value->stride[2] == 0 || sum->extent[2] == 1);
    return side_by_side && is_dense(sum, w->loads[gathered].stride) && is_dense(sum, w->stores[0].stride);
}

/* The step before k that writes there last; -1: none of the chain, or it writes more than that. */
static int writer_of(const oly_step *first, int k, int device, const oly_place *place)
{
    while (--k >= 0) {
        const oly_step *s = &first[k];
        if (s->kind == OLY_STEP_TILE && s->tile.device[device].has_work) {
            const oly_tile_work *w = &s->tile.device[device];
            for (int j = 0; j < s->tile.program.n_stores; j++)
                if (w->stores[j].base == place->base)
                    return s->tile.program.n_stores == 1 && w->stores[j].offset == place->offset ? k : -1;
        } else if (s->kind == OLY_STEP_LOCAL && s->local.device[device].out_base == place->base) {
            return place->offset == 0 ? k : -1;
        } else if (s->kind == OLY_STEP_REDUCE && s->reduce.device[device].out_base == place->base) {
            return -1;
        }
    }
    return -1;
}

/* Does the step write only memory that nothing else in the chain has? Memory of results may be that of what the caller gives up. */
static bool writes_scratch(const oly_plan *plan, const oly_step *s, int device)
{
    int n = s->kind == OLY_STEP_TILE ? s->tile.program.n_stores : 1;
    for (int j = 0; j < n; j++) {
        int cell = s->kind == OLY_STEP_TILE    ? s->tile.device[device].stores[j].base
                   : s->kind == OLY_STEP_LOCAL ? s->local.device[device].out_base
                                               : s->reduce.device[device].out_base;
        const oly_slot *slot = &plan->slots[oly_cell_slot(plan, cell)];
        if (slot->kind != OLY_SLOT_SCRATCH || slot->claimed)
            return false;
    }
    return true;
}

static bool uses(const oly_plan *plan, const oly_step *s, int slot)
{
    oly_effect x = oly_effect_on(plan, s, slot);
    return x.reads || x.writes;
}

/* Does only the sum use what lies in between, and does nothing change what it reads before its last step? */
static bool is_apart(const oly_plan *plan, const oly_step *first, int n, int device, const oly_gathered_sum *r)
{
    const oly_local_work *lookup = &first[r->lookup].local.device[device];
    int gathered = oly_cell_slot(plan, lookup->out_base), read[4], n_read = 0;
    int product = oly_cell_slot(plan, first[r->sum].reduce.device[device].in.base);
    for (int j = 0; j < lookup->task.n_in; j++)
        read[n_read++] = oly_cell_slot(plan, lookup->in[j].base);
    for (int j = 0; r->product >= 0 && j < 2; j++)
        read[n_read++] = oly_cell_slot(plan, first[r->product].tile.device[device].loads[j].base);
    for (int k = 0; k < n; k++) {
        if (k == r->lookup || k == r->product || k == r->sum)
            continue;
        if (uses(plan, &first[k], gathered) || uses(plan, &first[k], product))
            return false;
        if (k < r->lookup || k > r->sum)
            continue;
        if (!writes_scratch(plan, &first[k], device))
            return false;
        for (int j = 0; j < n_read; j++)
            if (oly_effect_on(plan, &first[k], read[j]).writes)
                return false;
    }
    return true;
}

/* Of a product of two loads: the load that has been looked up by an earlier step, and that step; -1: neither has. */
static int gathered_load(const oly_step *first, int product, int device, const oly_reduce_task *sum, int *lookup)
{
    for (int of = 0; of < 2; of++) {
        *lookup = writer_of(first, product, device, &first[product].tile.device[device].loads[of]);
        if (*lookup >= 0 && looks_up_rows(&first[*lookup], device, sum))
            return of;
    }
    return -1;
}

bool oly_gathered_sum_of(const oly_plan *plan, const oly_step *first, int n, int k, int device, const int *operands,
                         oly_gathered_sum *sum)
{
    if (!sums_positions(&first[k], device))
        return false;
    const oly_reduce_work *reduce = &first[k].reduce.device[device];
    const oly_reduce_task *t = &reduce->task;
    *sum = (oly_gathered_sum){.product = -1,
                              .sum = k,
                              .value = -1,
                              .multiplied = -1,
                              .width = t->extent[1],
                              .line = t->rank == 3 ? t->extent[2] : 1};
    int from = writer_of(first, k, device, &reduce->in), gathered = 0;
    if (from >= 0 && oly_multiplies_loads(&first[from], t->dtype)) {
        sum->product = from;
        gathered = gathered_load(first, sum->product, device, t, &from);
        if (gathered < 0 || !weighs(&first[sum->product], device, t, gathered))
            return false;
    }
    sum->lookup = from;
    if (from < 0 || !looks_up_rows(&first[from], device, t) || !is_dense(t, t->stride) ||
        !is_apart(plan, first, n, device, sum))
        return false;
    int at[OLY_ROW_STEPS], before = 0;
    for (int j = 0; j <= k; before += operands[j++])
        at[j] = before;
    sum->x = at[sum->lookup];
    sum->column = sum->x + 1;
    sum->gathered = sum->x + 2;
    sum->out = at[k] + 1;
    if (sum->product >= 0) {
        sum->value = at[sum->product] + !gathered;
        sum->multiplied = at[sum->product] + 2;
    }
    return true;
}
