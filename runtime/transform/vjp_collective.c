/* SPDX-License-Identifier: BSD-3-Clause */
/* Gradient rules of collectives inside shard_map, and of what they become outside. Types say along which axes a value varies
 * between devices: a value that is the same along an axis is made to vary (pvary) where that is needed, and there cotangents
 * are summed over the devices. Where types do not say so (unchecked), a sum is its own transpose. */
#include "transform/rule.h"
#include <string.h>

/* A collective over the axes of the node being differentiated. Narrow floating types are summed in float32. */
static oly_node *collective(oly_rule *r, oly_op op, oly_node *x, int dimension, int made)
{
    oly_params p;
    memset(&p, 0, sizeof p);
    p.mesh = r->node->params.mesh;
    p.over = r->node->params.over;
    p.unchecked = r->node->params.unchecked;
    p.dimension = dimension;
    p.axes[0] = made;
    if (!x || (op != OLY_OP_psum && op != OLY_OP_psum_scatter))
        return oly_rule_add(r, op, 1, &x, &p);
    oly_dtype dtype = x->type.dtype;
    x = oly_rule_convert(r, x, oly_dtype_computed(dtype));
    x = oly_rule_add(r, op, 1, &x, &p);
    return x ? oly_rule_convert(r, x, dtype) : NULL;
}

void oly_vjp_pvary(oly_rule *r)
{
    r->operands[0] = collective(r, OLY_OP_psum, r->cotangents[0], 0, 0);
}

void oly_vjp_psum(oly_rule *r)
{
    r->operands[0] = collective(r, r->node->params.unchecked ? OLY_OP_psum : OLY_OP_pvary, r->cotangents[0], 0, 0);
}

/* All elements that reach the extreme share equally, as in a reduction. */
void oly_vjp_pextreme(oly_rule *r)
{
    oly_node *x = r->node->in[0], *one = oly_rule_number(r, x, 1), *zero = oly_rule_number(r, x, 0);
    bool unchecked = r->node->params.unchecked;
    oly_node *reaches = oly_rule_binary(r, OLY_OP_eq, x, r->node), *marks = oly_rule_select(r, reaches, one, zero);
    oly_node *count = collective(r, OLY_OP_psum, marks, 0, 0);
    oly_node *shared = oly_rule_binary(r, OLY_OP_div, r->cotangents[0], count);
    shared = collective(r, unchecked ? OLY_OP_psum : OLY_OP_pvary, shared, 0, 0);
    r->operands[0] = oly_rule_mul(r, shared, marks);
}

/* The result is the same everywhere: each device's cotangent is its own slice of the one cotangent. */
void oly_vjp_all_gather(oly_rule *r)
{
    oly_op back = r->node->params.unchecked ? OLY_OP_psum_scatter : OLY_OP_own_slice;
    r->operands[0] = collective(r, back, r->cotangents[0], r->node->params.dimension, 0);
}

static oly_node *gather(oly_rule *r)
{
    return collective(r, OLY_OP_all_gather, r->cotangents[0], r->node->params.dimension, 0);
}

void oly_vjp_psum_scatter(oly_rule *r)
{
    oly_node *all = gather(r);
    r->operands[0] = r->node->params.unchecked ? all : collective(r, OLY_OP_pvary, all, 0, 0);
}

void oly_vjp_own_slice(oly_rule *r)
{
    r->operands[0] = gather(r);
}

void oly_vjp_all_to_all(oly_rule *r)
{
    const oly_params *p = &r->node->params;
    r->operands[0] = collective(r, OLY_OP_all_to_all, r->cotangents[0], p->axes[0], p->dimension);
}

/* ppermute and permute: the reverse transfer. */
void oly_vjp_permute(oly_rule *r)
{
    oly_params p = r->node->params;
    p.permutation = oly_permutation_inverse(p.permutation);
    if (!p.permutation)
        r->status = OLY_MEMORY;
    r->operands[0] = oly_rule_add(r, r->node->op, 1, r->cotangents, &p);
}
