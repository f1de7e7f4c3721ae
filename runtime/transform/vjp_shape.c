/* SPDX-License-Identifier: BSD-3-Clause */
/* Gradient rules of operations that move elements: each is the transposed move. Names after oly_vjp_ are the entries of the
 * column `gradient` of ops.def. */
#include "transform/rule.h"
#include <string.h>

static const int64_t first[OLY_MAX_RANK];

void oly_vjp_reshape(oly_rule *r)
{
    r->operands[0] = oly_rule_reshape_like(r, r->cotangents[0], r->node->in[0]);
}

void oly_vjp_transpose(oly_rule *r)
{
    int inverse[OLY_MAX_RANK];
    for (int d = 0; d < r->node->type.rank; d++)
        inverse[r->node->params.axes[d]] = d;
    r->operands[0] = oly_rule_transpose(r, r->cotangents[0], inverse);
}

/* Sums over the broadcast dimensions. */
void oly_vjp_broadcast(oly_rule *r)
{
    const oly_type *x = &r->node->in[0]->type;
    int axes[OLY_MAX_RANK], n = 0;
    for (int d = 0, k = 0; d < r->node->type.rank; d++) {
        bool from = k < x->rank && r->node->params.axes[k] == d;
        if (!from || x->shape[k] != r->node->type.shape[d])
            axes[n++] = d;
        k += from;
    }
    r->operands[0] = oly_rule_reshape_like(r, oly_rule_sum(r, r->cotangents[0], n, axes), r->node->in[0]);
}

void oly_vjp_slice(oly_rule *r)
{
    oly_node *zeros = oly_rule_zeros(r, r->node->in[0]);
    r->operands[0] = oly_rule_update(r, zeros, r->cotangents[0], r->node->params.start, r->node->params.step);
}

void oly_vjp_update(oly_rule *r)
{
    const oly_params *p = &r->node->params;
    if (r->wanted[0])
        r->operands[0] = oly_rule_update(r, r->cotangents[0], oly_rule_zeros(r, r->node->in[1]), p->start, p->step);
    if (r->wanted[1])
        r->operands[1] = oly_rule_slice(r, r->cotangents[0], p->start, p->shape, p->step);
}

void oly_vjp_concatenate(oly_rule *r)
{
    int64_t start[OLY_MAX_RANK] = {0};
    int along = r->node->params.dimension;
    for (int k = 0; k < r->node->n_in; k++) {
        const oly_type *x = &r->node->in[k]->type;
        if (r->wanted[k])
            r->operands[k] = oly_rule_slice(r, r->cotangents[0], start, x->shape, NULL);
        start[along] += x->shape[along];
    }
}

/* The reverse boundary of a shard_map, where Explicit axes are part of types outside only. */
static bool other_way(const oly_rule *r, oly_params *p)
{
    oly_mesh mesh = p->sharding->mesh, inside;
    unsigned settled = mesh->explicit_axes & p->settled;
    if (settled)
        inside = oly_mesh_retyped(mesh, mesh->explicit_axes & ~settled, mesh->manual_axes);
    else
        inside = r->node->in[0]->type.mesh; /* outside, in this case */
    if (!settled && (!inside || !oly_mesh_same_grid(inside, mesh)))
        return true;
    return inside && (p->sharding = oly_sharding_intern(inside, &p->sharding->spec, p->sharding->written_dims));
}

/* The cotangent has the sharding requested for the value. */
void oly_vjp_place(oly_rule *r)
{
    oly_params p = r->node->params;
    if (p.settled && !other_way(r, &p))
        r->status = OLY_MEMORY;
    r->operands[0] = oly_rule_add(r, OLY_OP_place, 1, r->cotangents, &p);
}

/* The walk moves cotangents to the operand's placement. */
void oly_vjp_reshard(oly_rule *r)
{
    r->operands[0] = r->cotangents[0];
}

/* -- reductions ------------------------------------------------------------------------------------------------------ */
void oly_vjp_reduce_sum(oly_rule *r)
{
    const oly_type *x = &r->node->in[0]->type;
    r->operands[0] = oly_rule_convert(r, oly_rule_repeat(r, r->cotangents[0], x, &r->node->params), x->dtype);
}

/* All elements that reach the extreme share equally. */
void oly_vjp_reduce_extreme(oly_rule *r)
{
    oly_node *x = r->node->in[0], *one = oly_rule_number(r, x, 1), *zero = oly_rule_number(r, x, 0);
    const oly_params *p = &r->node->params;
    oly_node *reaches = oly_rule_binary(r, OLY_OP_eq, x, oly_rule_repeat(r, r->node, &x->type, p));
    oly_node *marks = oly_rule_select(r, reaches, one, zero);
    oly_node *count = oly_rule_sum(r, marks, p->n_axes, p->axes);
    oly_node *shared = oly_rule_binary(r, OLY_OP_div, r->cotangents[0], count);
    r->operands[0] = oly_rule_mul(r, oly_rule_repeat(r, shared, &x->type, p), marks);
}

/* The product recomputed by halves along dimension 0 of [n, rest]: without division, so that zeros and second derivatives are
 * correct. */
static oly_node *product_by_halves(oly_rule *r, oly_node *x)
{
    while (x && x->type.shape[0] > 1) {
        int64_t half = x->type.shape[0] / 2, left = x->type.shape[0] - 2 * half;
        int64_t start[OLY_MAX_RANK] = {0}, shape[OLY_MAX_RANK];
        memcpy(shape, x->type.shape, sizeof shape);
        shape[0] = half;
        oly_node *low = oly_rule_slice(r, x, first, shape, NULL);
        start[0] = half;
        oly_node *both = oly_rule_binary(r, OLY_OP_mul, low, oly_rule_slice(r, x, start, shape, NULL));
        start[0] = 2 * half;
        shape[0] = left;
        x = left == 0 ? both : oly_rule_concatenate(r, both, oly_rule_slice(r, x, start, shape, NULL), 0);
    }
    return x;
}

void oly_vjp_reduce_prod(oly_rule *r)
{
    oly_node *x = r->node->in[0], *moved, *product;
    const oly_params *p = &r->node->params;
    int order[OLY_MAX_RANK], n = 0;
    int64_t flat[OLY_MAX_RANK] = {1}, count = 1;
    bool reduced[OLY_MAX_RANK] = {false};
    for (int k = 0; k < p->n_axes; k++) {
        reduced[p->axes[k]] = true;
        count *= x->type.shape[p->axes[k]];
        order[n++] = p->axes[k];
    }
    if (count == 0)
        return;
    flat[0] = count;
    for (int d = 0, rank = 1; d < x->type.rank; d++)
        if (!reduced[d]) {
            order[n++] = d;
            flat[rank++] = x->type.shape[d];
        }
    moved = oly_rule_reshape(r, oly_rule_transpose(r, x, order), r->node->type.rank + 1, flat);
    product = product_by_halves(r, moved);
    product = oly_rule_reshape(r, product, r->node->type.rank, r->node->type.shape);
    r->operands[0] = oly_rule_through(r, product, r->cotangents[0], x);
}
