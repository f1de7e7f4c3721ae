/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes as expressions for gradient rules. See rule.h. */
#include "transform/rule.h"
#include "transform/gradient.h"
#include <string.h>

static oly_node *keep(oly_rule *r, oly_status status, oly_node **node)
{
    if (status != OLY_OK)
        r->status = status;
    return status == OLY_OK ? *node : NULL;
}

oly_node *oly_rule_add(oly_rule *r, oly_op op, int n_in, oly_node *const *in, const oly_params *params)
{
    oly_node *out = NULL;
    for (int k = 0; k < n_in; k++)
        if (!in[k])
            return NULL;
    if (r->status != OLY_OK)
        return NULL;
    return keep(r, oly_graph_add(r->g, op, n_in, in, params, &out), &out);
}

oly_node *oly_rule_unary(oly_rule *r, oly_op op, oly_node *x)
{
    return oly_rule_add(r, op, 1, &x, NULL);
}

oly_node *oly_rule_binary(oly_rule *r, oly_op op, oly_node *x, oly_node *y)
{
    return oly_rule_add(r, op, 2, (oly_node *[]){x, y}, NULL);
}

oly_node *oly_rule_select(oly_rule *r, oly_node *condition, oly_node *x, oly_node *y)
{
    return oly_rule_add(r, OLY_OP_select, 3, (oly_node *[]){condition, x, y}, NULL);
}

/* A 1 with which this derivative started. Ones of the program are kept: it may be differentiated with respect to them later. */
static bool is_seed_one(const oly_rule *r, const oly_node *x)
{
    while (x && x->index >= r->n_before && (x->op == OLY_OP_broadcast || x->op == OLY_OP_reshape))
        x = x->in[0];
    return x && x->index >= r->n_before && x->op == OLY_OP_constant && oly_differentiable(x->type.dtype) &&
           x->params.value.f == 1 && x->params.imaginary == 0;
}

oly_node *oly_rule_mul(oly_rule *r, oly_node *x, oly_node *y)
{
    if (x && y && is_seed_one(r, x))
        return y;
    return x && y && is_seed_one(r, y) ? x : oly_rule_binary(r, OLY_OP_mul, x, y);
}

oly_node *oly_rule_number(oly_rule *r, const oly_node *like, double value)
{
    oly_node *number = NULL;
    if (!like || r->status != OLY_OK)
        return NULL;
    const oly_type type = like->type;
    if (!keep(r, oly_build_number(r->g, type.dtype, value, &number), &number) ||
        !keep(r, oly_build_convert(r->g, number, type.dtype, type.weak, &number), &number))
        return NULL;
    return keep(r, oly_build_broadcast(r->g, number, type.rank, type.shape, &number), &number);
}

oly_node *oly_rule_zeros(oly_rule *r, const oly_node *like)
{
    oly_node *zeros = oly_rule_number(r, like, 0);
    oly_sharding sharding = zeros ? oly_rule_sharding(r, like) : NULL;
    return sharding ? keep(r, oly_build_reshard(r->g, zeros, sharding, &zeros), &zeros) : zeros;
}

oly_node *oly_rule_convert(oly_rule *r, oly_node *x, oly_dtype dtype)
{
    oly_node *out = NULL;
    return x && r->status == OLY_OK ? keep(r, oly_build_convert(r->g, x, dtype, x->type.weak, &out), &out) : NULL;
}

oly_node *oly_rule_reshape(oly_rule *r, oly_node *x, int rank, const int64_t *shape)
{
    oly_node *out = NULL;
    return x && r->status == OLY_OK ? keep(r, oly_build_reshape(r->g, x, rank, shape, &out), &out) : NULL;
}

oly_node *oly_rule_reshape_like(oly_rule *r, oly_node *x, const oly_node *like)
{
    oly_params p;
    memset(&p, 0, sizeof p);
    p.rank = like->type.rank;
    memcpy(p.shape, like->type.shape, sizeof p.shape);
    bool same = x && x->type.rank == p.rank && memcmp(x->type.shape, p.shape, sizeof *p.shape * (size_t)p.rank) == 0;
    if (!x || r->status != OLY_OK || same || !like->type.mesh || !like->type.mesh->explicit_axes)
        return oly_rule_reshape(r, x, p.rank, p.shape);
    p.sharding = oly_rule_sharding(r, like);
    return oly_rule_add(r, OLY_OP_reshape, 1, &x, &p);
}

oly_sharding oly_rule_sharding(oly_rule *r, const oly_node *like)
{
    oly_type type = like->type;
    type.unreduced = like->type.reduced;
    type.reduced = like->type.unreduced;
    bool any = type.mesh && type.mesh->explicit_axes;
    oly_sharding sharding = any ? oly_type_sharding(&type) : NULL;
    if (any && !sharding)
        r->status = OLY_MEMORY;
    return sharding;
}

oly_node *oly_rule_transpose(oly_rule *r, oly_node *x, const int *axes)
{
    oly_node *out = NULL;
    return x && r->status == OLY_OK ? keep(r, oly_build_transpose(r->g, x, axes, &out), &out) : NULL;
}

/* -- parts ----------------------------------------------------------------------------------------------------------- */
static oly_params part_params(const oly_node *whole, const int64_t *start, const int64_t *shape, const int64_t *step)
{
    oly_params p;
    memset(&p, 0, sizeof p);
    p.rank = whole->type.rank;
    for (int d = 0; d < p.rank; d++) {
        p.start[d] = start[d];
        p.shape[d] = shape[d];
        p.step[d] = step ? step[d] : 1;
    }
    return p;
}

oly_node *oly_rule_slice(oly_rule *r, oly_node *x, const int64_t *start, const int64_t *shape, const int64_t *step)
{
    if (!x)
        return NULL;
    oly_params p = part_params(x, start, shape, step);
    return oly_rule_add(r, OLY_OP_slice, 1, &x, &p);
}

oly_node *oly_rule_update(oly_rule *r, oly_node *x, oly_node *part, const int64_t *start, const int64_t *step)
{
    if (!x || !part)
        return NULL;
    oly_params p = part_params(x, start, part->type.shape, step);
    return oly_rule_add(r, OLY_OP_update, 2, (oly_node *[]){x, part}, &p);
}

oly_node *oly_rule_concatenate(oly_rule *r, oly_node *x, oly_node *y, int dimension)
{
    oly_params p;
    memset(&p, 0, sizeof p);
    p.dimension = dimension;
    return oly_rule_add(r, OLY_OP_concatenate, 2, (oly_node *[]){x, y}, &p);
}

/* -- reductions ------------------------------------------------------------------------------------------------------ */
oly_node *oly_rule_repeat(oly_rule *r, oly_node *x, const oly_type *whole, const oly_params *reduced)
{
    oly_params p;
    memset(&p, 0, sizeof p);
    p.rank = whole->rank;
    for (int d = 0, k = 0; d < whole->rank; d++) {
        p.shape[d] = whole->shape[d];
        if (k < reduced->n_axes && reduced->axes[k] == d)
            k++;
        else
            p.axes[p.n_axes++] = d;
    }
    return reduced->n_axes == 0 ? x : oly_rule_add(r, OLY_OP_broadcast, 1, &x, &p);
}

oly_node *oly_rule_sum(oly_rule *r, oly_node *x, int n_axes, const int *axes)
{
    oly_params p;
    memset(&p, 0, sizeof p);
    p.n_axes = n_axes;
    memcpy(p.axes, axes, sizeof *axes * (size_t)n_axes);
    return n_axes == 0 ? x : oly_rule_add(r, OLY_OP_reduce_sum, 1, &x, &p);
}

oly_node *oly_rule_square(oly_rule *r, oly_node *x)
{
    return oly_rule_binary(r, OLY_OP_mul, x, x);
}

oly_node *oly_rule_through(oly_rule *r, oly_node *value, oly_node *cotangent, oly_node *of)
{
    oly_node *gradient = NULL;
    if (!value || !cotangent || !of || r->status != OLY_OK)
        return NULL;
    return keep(r, oly_gradient(r->g, 1, &value, &cotangent, 1, &of, &gradient), &gradient);
}
