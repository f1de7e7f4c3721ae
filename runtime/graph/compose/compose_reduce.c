/* SPDX-License-Identifier: BSD-3-Clause */
/* Reductions: over which dimensions, in which type, and the dimensions of size 1 that keepdims leaves. */
#include "graph/compose/compose.h"
#include "graph/build.h"
#include <inttypes.h>
#include <string.h>

/* Reads the reduced dimensions, ascending, into p, and the product of their extents into `count`. */
static oly_status read_axes(const oly_type *x, const oly_recipe *recipe, oly_params *p, int64_t *count)
{
    bool reduced[OLY_MAX_RANK] = {false};
    for (int k = 0; k < recipe->params.n_axes && !recipe->all_axes; k++) {
        int axis;
        OLY_TRY(oly_build_axis(x, recipe->params.axes[k], &axis));
        if (reduced[axis])
            return oly_fail(OLY_INVALID, "axis %d of %s is named twice; name each axis once", recipe->params.axes[k],
                            oly_type_short(x));
        reduced[axis] = true;
    }
    *count = 1;
    for (int d = 0; d < x->rank; d++)
        if (recipe->all_axes || reduced[d]) {
            p->axes[p->n_axes++] = d;
            *count *= x->shape[d];
        }
    return OLY_OK;
}

/* Over Explicit axes a reshape cannot tell which of several dimensions of size 1 is split: reinserts them by a
 * broadcast. */
static oly_status keep_places(oly_graph *g, const oly_params *p, int rank, const int64_t *shape, oly_node **out)
{
    oly_params to;
    memset(&to, 0, sizeof to);
    to.rank = rank;
    memcpy(to.shape, shape, sizeof *shape * (size_t)rank);
    for (int d = 0, k = 0; d < rank; d++)
        if (k < p->n_axes && p->axes[k] == d)
            k++;
        else
            to.axes[to.n_axes++] = d;
    return oly_graph_add(g, OLY_OP_broadcast, 1, out, &to, out);
}

static bool splits_one(const oly_type *x)
{
    bool any = false;
    for (int d = 0; d < x->rank && x->mesh; d++)
        any = any || (x->shape[d] == 1 && x->axes[d].n > 0);
    return any;
}

static oly_status keep_dimensions(oly_graph *g, const oly_type *x, const oly_params *p, oly_node **out)
{
    int64_t shape[OLY_MAX_RANK];
    memcpy(shape, x->shape, sizeof shape);
    for (int k = 0; k < p->n_axes; k++)
        shape[p->axes[k]] = 1;
    if (splits_one(&(*out)->type))
        return keep_places(g, p, x->rank, shape, out);
    return oly_build_reshape(g, *out, x->rank, shape, out);
}

/* May the reduction convert elements as it reads them, without storing a converted array? Not products, whose gradients
 * need one. */
static bool converts(oly_op op, oly_dtype from, oly_dtype to)
{
    bool real = oly_dtype_kind(from) != OLY_KIND_COMPLEX && oly_dtype_kind(to) != OLY_KIND_COMPLEX;
    return from != to && real && (op == OLY_OP_reduce_sum || oly_dtype_kind(to) == OLY_KIND_INTEGER);
}

/* The reduction itself, in `dtype`. */
static oly_status apply(oly_graph *g, oly_op op, oly_node *x, oly_dtype dtype, const oly_recipe *recipe, int64_t *count,
                        oly_node **out)
{
    oly_params p;
    memset(&p, 0, sizeof p);
    OLY_TRY(read_axes(&x->type, recipe, &p, count));
    if (p.n_axes > 0 && converts(op, x->type.dtype, dtype))
        p.dtype = dtype;
    else
        OLY_TRY(oly_build_convert(g, x, dtype, x->type.weak, &x));
    bool has_identity = oly_ops[op].detail != OLY_COMBINE_MAX && oly_ops[op].detail != OLY_COMBINE_MIN;
    if (*count == 0 && !has_identity)
        return oly_fail(OLY_SHAPE, "%s of %s over no elements has no value; reduce only dimensions of size 1 or more",
                        oly_ops[op].name, oly_type_short(&x->type));
    *out = x;
    oly_sharding to = recipe->params.sharding;
    bool finishes = to && oly_ops[op].detail == OLY_COMBINE_SUM && to->mesh->explicit_axes && p.n_axes > 0;
    p.sharding = finishes ? to : NULL; /* a sum may stay unreduced; other reductions are moved when complete */
    if (p.n_axes > 0)
        OLY_TRY(oly_graph_add(g, op, 1, &x, &p, out));
    if (to && !finishes)
        OLY_TRY(oly_build_reshard(g, *out, to, out));
    if (p.n_axes == 0)
        return OLY_OK;
    return recipe->keepdims ? keep_dimensions(g, &x->type, &p, out) : OLY_OK;
}

oly_status oly_compose_reduce(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in;
    oly_node *x = in[0];
    enum { KEEPS = false, WIDENS = true };
#define RESULT(a, number, name, as_bool, op, identity, result) [OLY_COMBINE_##number] = result,
    static const bool widens[OLY_N_COMBINERS] = {OLY_EVERY_COMBINER(RESULT, )};
    int combiner = oly_ops[recipe->op].detail;
    int64_t count;
    if (!widens[combiner])
        return apply(g, recipe->op, x, x->type.dtype, recipe, &count, out);
    oly_dtype dtype = oly_dtype_summed(x->type.dtype);
    OLY_TRY(apply(g, recipe->op, x, oly_dtype_computed(dtype), recipe, &count, out));
    return oly_build_convert(g, *out, dtype, false, out);
}

oly_status oly_compose_mean(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in;
    oly_node *both[2];
    int64_t count;
    oly_dtype dtype = oly_dtype_inexact(in[0]->type.dtype);
    OLY_TRY(apply(g, OLY_OP_reduce_sum, in[0], oly_dtype_computed(dtype), recipe, &count, &both[0]));
    OLY_TRY(oly_build_number(g, both[0]->type.dtype, (double)count, &both[1]));
    OLY_TRY(oly_build_common_shape(g, 2, both));
    OLY_TRY(oly_build_apply(g, OLY_OP_div, 2, both, out));
    return oly_build_convert(g, *out, dtype, false, out);
}
