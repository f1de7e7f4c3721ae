/* SPDX-License-Identifier: BSD-3-Clause */
/* Compositions built on reductions: any, all, variance, logsumexp, softmax, one-hot vectors. See
 * compose_statistics.h. */
#include "graph/compose/compose_statistics.h"
#include "graph/build.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* -- truth ------------------------------------------------------------------------------------------------------------ */

static oly_status truth(oly_graph *g, oly_op op, oly_node *x, const oly_recipe *recipe, oly_node **out)
{
    oly_recipe of_bools = *recipe;
    of_bools.op = op;
    OLY_TRY(oly_build_convert(g, x, OLY_BOOL, false, &x));
    return oly_compose_reduce(g, 1, &x, &of_bools, out);
}

oly_status oly_compose_any(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in;
    return truth(g, OLY_OP_reduce_or, in[0], recipe, out);
}

oly_status oly_compose_all(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in;
    return truth(g, OLY_OP_reduce_and, in[0], recipe, out);
}

/* -- variance ---------------------------------------------------------------------------------------------- */

static oly_status reduced(oly_graph *g, oly_op op, oly_node *x, const oly_recipe *recipe, bool keepdims, oly_node **out)
{
    oly_recipe r = *recipe;
    r.op = op;
    r.keepdims = keepdims;
    return oly_compose_reduce(g, 1, &x, &r, out);
}

static oly_status binary(oly_graph *g, oly_op op, oly_node *x, oly_node *y, oly_node **out)
{
    oly_node *both[2] = {x, y};
    OLY_TRY(oly_build_common_shape(g, 2, both));
    return oly_build_apply(g, op, 2, both, out);
}

/* How many elements are reduced to one. */
static int64_t elements_each(const oly_type *x, const oly_recipe *recipe)
{
    int64_t n = 1;
    for (int k = 0; k < recipe->params.n_axes && !recipe->all_axes; k++) {
        int axis = recipe->params.axes[k];
        if (axis < -x->rank || axis >= x->rank)
            return 1; /* the reduction reports what is wrong */
        n *= x->shape[axis < 0 ? axis + x->rank : axis];
    }
    return recipe->all_axes ? oly_type_size(x) : n;
}

/* The mean of |x - mean(x)|^2, in float32 where x is narrower. */
static oly_status spread(oly_graph *g, oly_node *x, const oly_recipe *recipe, oly_node **out)
{
    oly_recipe of_all = *recipe;
    oly_node *mean, *away, *sum, *count;
    of_all.op = OLY_OP_reduce_sum;
    of_all.keepdims = true;
    OLY_TRY(oly_build_wide(g, x, &x));
    OLY_TRY(oly_compose_mean(g, 1, &x, &of_all, &mean));
    OLY_TRY(binary(g, OLY_OP_sub, x, mean, &away));
    OLY_TRY(oly_build_square_magnitude(g, away, &away));
    OLY_TRY(reduced(g, OLY_OP_reduce_sum, away, recipe, recipe->keepdims, &sum));
    double n = (double)elements_each(&x->type, recipe) - (double)recipe->params.start[0];
    OLY_TRY(oly_build_number(g, away->type.dtype, n > 0 ? n : NAN, &count));
    return binary(g, OLY_OP_div, sum, count, out);
}

oly_status oly_compose_var(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in;
    oly_dtype dtype = oly_dtype_real(oly_dtype_inexact(in[0]->type.dtype));
    OLY_TRY(spread(g, in[0], recipe, out));
    return oly_build_convert(g, *out, dtype, false, out);
}

oly_status oly_compose_std(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in;
    oly_dtype dtype = oly_dtype_real(oly_dtype_inexact(in[0]->type.dtype));
    OLY_TRY(spread(g, in[0], recipe, out));
    OLY_TRY(oly_build_apply(g, OLY_OP_sqrt, 1, out, out));
    return oly_build_convert(g, *out, dtype, false, out);
}

/* -- exponentials ----------------------------------------------------------------------------------------------------- */

/* The largest of x, reduced dimensions kept; -inf where there are none. A constant to gradients. */
static oly_status largest(oly_graph *g, oly_node *x, const oly_recipe *recipe, oly_node **out)
{
    if (elements_each(&x->type, recipe) > 0) {
        OLY_TRY(reduced(g, OLY_OP_reduce_max, x, recipe, true, out));
        return oly_build_apply(g, OLY_OP_stop_gradient, 1, out, out);
    }
    /* the sum over no elements has the shape */
    oly_node *infinity;
    OLY_TRY(reduced(g, OLY_OP_reduce_sum, x, recipe, true, out));
    OLY_TRY(oly_build_number(g, x->type.dtype, -INFINITY, &infinity));
    return oly_build_broadcast(g, infinity, (*out)->type.rank, (*out)->type.shape, out);
}

/* 0 where x is not finite. */
static oly_status finite_or_zero(oly_graph *g, oly_node *x, oly_node **out)
{
    oly_node *limit, *finite, *zero;
    OLY_TRY(oly_build_number(g, x->type.dtype, INFINITY, &limit));
    OLY_TRY(oly_build_apply(g, OLY_OP_abs, 1, &x, &finite));
    OLY_TRY(binary(g, OLY_OP_lt, finite, limit, &finite)); /* false for NaN */
    OLY_TRY(oly_build_number(g, x->type.dtype, 0, &zero));
    OLY_TRY(oly_build_broadcast(g, zero, x->type.rank, x->type.shape, &zero));
    oly_node *all[3] = {finite, x, zero};
    return oly_build_apply(g, OLY_OP_select, 3, all, out);
}

oly_status oly_compose_logsumexp(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in;
    oly_node *x, *top, *rest;
    OLY_TRY(oly_build_floating(g, in[0], &x));
    top = x;
    if (oly_dtype_kind(x->type.dtype) == OLY_KIND_COMPLEX) /* real parts bound the exponentials */
        OLY_TRY(oly_build_apply(g, OLY_OP_real, 1, &x, &top));
    OLY_TRY(largest(g, top, recipe, &top));
    OLY_TRY(finite_or_zero(g, top, &top));
    OLY_TRY(oly_build_convert(g, top, x->type.dtype, false, &top));
    OLY_TRY(binary(g, OLY_OP_sub, x, top, &rest));
    OLY_TRY(oly_build_apply(g, OLY_OP_exp, 1, &rest, &rest));
    OLY_TRY(reduced(g, OLY_OP_reduce_sum, rest, recipe, recipe->keepdims, &rest));
    OLY_TRY(oly_build_apply(g, OLY_OP_log, 1, &rest, &rest));
    OLY_TRY(oly_build_reshape(g, top, rest->type.rank, rest->type.shape, &top));
    return binary(g, OLY_OP_add, rest, top, out);
}

/* x - max(x), in floating point. */
static oly_status lowered(oly_graph *g, oly_node *x, const oly_recipe *recipe, oly_node **out)
{
    oly_node *top;
    OLY_TRY(oly_build_floating(g, x, &x));
    OLY_TRY(largest(g, x, recipe, &top));
    return binary(g, OLY_OP_sub, x, top, out);
}

oly_status oly_compose_softmax(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in;
    oly_node *part, *sum;
    OLY_TRY(lowered(g, in[0], recipe, &part));
    OLY_TRY(oly_build_apply(g, OLY_OP_exp, 1, &part, &part));
    OLY_TRY(reduced(g, OLY_OP_reduce_sum, part, recipe, true, &sum));
    return binary(g, OLY_OP_div, part, sum, out);
}

oly_status oly_compose_log_softmax(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe,
                                   oly_node **out)
{
    (void)n_in;
    oly_node *rest, *sum;
    OLY_TRY(lowered(g, in[0], recipe, &rest));
    OLY_TRY(oly_build_apply(g, OLY_OP_exp, 1, &rest, &sum));
    OLY_TRY(reduced(g, OLY_OP_reduce_sum, sum, recipe, true, &sum));
    OLY_TRY(oly_build_apply(g, OLY_OP_log, 1, &sum, &sum));
    return binary(g, OLY_OP_sub, rest, sum, out);
}

/* -- classes ---------------------------------------------------------------------------------------------------------- */

oly_status oly_compose_one_hot(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in;
    const oly_type *x = &in[0]->type;
    oly_type wider = {.dtype = x->dtype, .rank = x->rank + 1};
    oly_params p, spread_out;
    oly_node *both[2];
    int axis;
    memset(&p, 0, sizeof p);
    memset(&spread_out, 0, sizeof spread_out);
    if (wider.rank > OLY_MAX_RANK)
        return oly_fail(OLY_SHAPE, "%s with one more dimension; arrays have at most %d", oly_type_short(x),
                        OLY_MAX_RANK);
    if (recipe->params.shape[0] < 0)
        return oly_fail(OLY_INVALID, "%" PRId64 " classes; the number is 0 or more", recipe->params.shape[0]);
    OLY_TRY(oly_build_new_axis(x, recipe->params.dimension, &axis));
    p.rank = wider.rank;
    p.dimension = axis;
    p.dtype = x->dtype == OLY_BOOL ? OLY_INT32 : x->dtype;
    for (int d = 0, from = 0; d < wider.rank; d++) {
        if (d != axis)
            spread_out.axes[from] = d;
        p.shape[d] = d == axis ? recipe->params.shape[0] : x->shape[from++];
    }
    memcpy(wider.shape, p.shape, sizeof wider.shape);
    OLY_TRY(oly_type_check(&wider));
    spread_out.rank = p.rank;
    spread_out.n_axes = x->rank;
    memcpy(spread_out.shape, p.shape, sizeof p.shape);
    OLY_TRY(oly_build_convert(g, in[0], p.dtype, false, &both[0]));
    OLY_TRY(oly_graph_add(g, OLY_OP_broadcast, 1, &both[0], &spread_out, &both[0]));
    OLY_TRY(oly_graph_add(g, OLY_OP_iota, 0, NULL, &p, &both[1]));
    if (x->reduced) { /* the class numbers are replicated everywhere, so the two cannot be combined */
        wider.mesh = x->mesh;
        oly_sharding whole = oly_type_sharding(&wider);
        if (!whole)
            return OLY_MEMORY;
        OLY_TRY(oly_build_reshard(g, both[1], whole, &both[1]));
    }
    OLY_TRY(oly_build_apply(g, OLY_OP_eq, 2, both, out));
    return oly_build_convert(g, *out, recipe->params.dtype, false, out);
}
