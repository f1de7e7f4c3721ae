/* SPDX-License-Identifier: BSD-3-Clause */
/* Sharding types of elementwise operations, and of all that are described by their factors. */
#include "graph/factors.h"
#include "graph/sharding_rule/sharding_rule.h"
#include <string.h>

static oly_status conflict(const oly_node *node, int d)
{
    return oly_sharding_fail(node, "broadcast_conflict",
                             "the operands have incompatible shardings for broadcasting: dimension %d of the result is "
                             "split in two ways; move one operand with oly_reshard",
                             d);
}

/* Merges operands of the result's rank dimension by dimension; differing axes are an error. */
static oly_status merge_dimensions(oly_node *node)
{
    oly_type *t = &node->type;
    for (int k = 0; k < node->n_in; k++) {
        const oly_type *x = &node->in[k]->type;
        for (int d = 0; d < t->rank && x->rank == t->rank; d++)
            if (!oly_axes_merge(&t->axes[d], &x->axes[d]))
                return conflict(node, d);
    }
    return oly_sharding_once(node); /* before unreduced operands are checked */
}

oly_status oly_sharding_rule_elementwise(oly_node *node)
{
    OLY_TRY(merge_dimensions(node));
    OLY_TRY(oly_sharding_common_reduced(node, &node->type.reduced));
    return oly_sharding_refuse_sums(node);
}

/* Two unreduced operands over the same axes: the partial sums are added. */
oly_status oly_sharding_rule_add(oly_node *node)
{
    const oly_type *x = &node->in[0]->type, *y = &node->in[1]->type;
    OLY_TRY(merge_dimensions(node));
    OLY_TRY(oly_sharding_common_reduced(node, &node->type.reduced));
    if (x->unreduced != y->unreduced)
        return oly_sharding_fail(node, "unreduced",
                                 "both operands must be sums over the same axes ({U:...}), or neither; reduce the sums "
                                 "with oly_reshard first");
    node->type.unreduced = x->unreduced;
    return OLY_OK;
}

/* An unreduced operand and a factor that is replicated along its axes ({R:...}). */
oly_status oly_sharding_rule_mul(oly_node *node)
{
    const oly_type *x = &node->in[0]->type, *y = &node->in[1]->type;
    OLY_TRY(merge_dimensions(node));
    OLY_TRY(oly_sharding_common_reduced(node, &node->type.reduced));
    if (!x->unreduced && !y->unreduced)
        return OLY_OK;
    if (x->unreduced ? x->unreduced != y->reduced : y->unreduced != x->reduced)
        return oly_sharding_fail(node, "unreduced",
                                 "an unreduced sum ({U:...}) can only be multiplied by an operand that is reduced "
                                 "along the same axes ({R:...}); reduce the sum with oly_reshard first");
    node->type.unreduced = x->unreduced | y->unreduced;
    node->type.reduced = 0;
    return OLY_OK;
}

/* Conversions keep the sharding. */
oly_status oly_sharding_rule_same(oly_node *node)
{
    const oly_type *x = &node->in[0]->type;
    memcpy(node->type.axes, x->axes, sizeof x->axes);
    node->type.unreduced = x->unreduced;
    node->type.reduced = x->reduced;
    return OLY_OK;
}

/* The bounds do not count. */
oly_status oly_sharding_rule_clamp(oly_node *node)
{
    const oly_type *x = &node->in[1]->type;
    memcpy(node->type.axes, x->axes, sizeof x->axes);
    return oly_sharding_refuse_marks(node);
}

/* Branches must be sharded alike, and so must the condition unless it has rank 0. */
oly_status oly_sharding_rule_select(oly_node *node)
{
    const oly_type *which = &node->in[0]->type, *first = NULL;
    for (int k = 1; k < node->n_in; k++) {
        const oly_type *x = &node->in[k]->type;
        if (x->mesh && first &&
            (!oly_axes_same(x, first) || x->unreduced != first->unreduced || x->reduced != first->reduced))
            return oly_sharding_fail(node, "select_conflict",
                                     "the branches must be sharded alike; move one with oly_reshard");
        first = x->mesh && !first ? x : first;
    }
    if (first && which->mesh && which->rank > 0 && !oly_axes_same(which, first))
        return oly_sharding_fail(node, "select_conflict",
                                 "the condition must be sharded as the branches are; move one with oly_reshard");
    first = first ? first : which;
    memcpy(node->type.axes, first->axes, sizeof first->axes);
    node->type.unreduced = first->unreduced;
    node->type.reduced = first->reduced;
    return OLY_OK;
}

/* -- by factors -------------------------------------------------------------------------------------------------------------- */

static oly_status merge_factors(oly_node *node)
{
    oly_factors f;
    oly_axis_list of[OLY_MAX_FACTORS] = {0};
    OLY_TRY(oly_factors_of(node, &f));
    for (int k = 0; k < f.n_operands; k++)
        for (int d = 0; d < node->in[k]->type.rank; d++) {
            const oly_dim_factors *dim = &f.operand[k][d];
            if (dim->n == 1 && !oly_axes_merge(&of[dim->factor[0]], &node->in[k]->type.axes[d]))
                return conflict(node, d);
        }
    for (int d = 0; d < node->type.rank; d++)
        if (f.result[d].n == 1)
            node->type.axes[d] = of[f.result[d].factor[0]];
    return OLY_OK;
}

/* Dimensions with equal factors are split alike; the axes of reduced ones are dropped. */
oly_status oly_sharding_rule_by_factors(oly_node *node)
{
    if (oly_ops[node->op].factors[0] == '.')
        return oly_sharding_rule_elementwise(node);
    OLY_TRY(merge_factors(node));
    return oly_sharding_refuse_marks(node);
}
