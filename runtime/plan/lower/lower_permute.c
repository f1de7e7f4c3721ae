/* SPDX-License-Identifier: BSD-3-Clause */
/* Permutations of slices over devices: one exchange. A slice that receives nothing is zero. */
#include "plan/lower/lower.h"
#include "plan/move/move.h"

static bool has_holes(oly_permutation permutation)
{
    for (int k = 0; k < permutation->n; k++)
        if (permutation->source[k] < 0)
            return true;
    return false;
}

oly_status oly_lower_permute(oly_planner *p, oly_frame *f, oly_node *n)
{
    oly_layout l = oly_operand_layout(p, f, n->in[0]);
    oly_region r = oly_region_of_layout(&l);
    oly_value *v = oly_value_of(f, n);
    int from;
    OLY_TRY(oly_materialise(p, f, n->in[0], &l, &from));
    OLY_TRY(oly_set_layout(p, v, &l));
    v->block = f->block;
    v->slot = oly_slot_new(p, &r, oly_dtype_size(n->type.dtype));
    if (v->slot < 0)
        return OLY_MEMORY;
    p->plan->slots[v->slot].block = f->block;
    if (has_holes(n->params.permutation)) {
        oly_node *zero = OLY_PLAN_NEW(p, oly_node, 1);
        OLY_PLAN_CHECK(zero);
        zero->op = OLY_OP_constant;
        zero->type.dtype = n->type.dtype;
        OLY_TRY(oly_fill(p, f, zero, n, &l, v->slot));
    }
    return oly_reshard_permuted(p, f->block, n, &l, from, &r, v->slot, n->params.dimension, n->params.permutation);
}
