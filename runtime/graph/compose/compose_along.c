/* SPDX-License-Identifier: BSD-3-Clause */
/* Compositions along one dimension: sorting, the largest elements, running results, positions of extremes, searches in
 * sorted arrays. */
#include "graph/compose/compose.h"
#include "graph/build.h"
#include <inttypes.h>
#include <string.h>

/* Resolves the dimension; flattens x where none is named. */
static oly_status read_axis(oly_graph *g, oly_node **x, const oly_recipe *recipe, oly_params *p)
{
    memset(p, 0, sizeof *p);
    p->reverse = recipe->params.reverse;
    p->dtype = recipe->params.dtype;
    if (recipe->all_axes) {
        int64_t n = oly_type_size(&(*x)->type);
        return oly_build_reshape(g, *x, 1, &n, x);
    }
    return oly_build_axis(&(*x)->type, recipe->params.dimension, &p->dimension);
}

/* -- sorting --------------------------------------------------------------------------------------------------------- */

oly_status oly_compose_sort(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in;
    oly_params p;
    oly_node *x = in[0];
    OLY_TRY(read_axis(g, &x, recipe, &p));
    p.dtype = 0;
    return oly_graph_add(g, OLY_OP_sort, 1, &x, &p, out);
}

oly_status oly_compose_argsort(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    oly_params p;
    oly_node *keys[OLY_LOCAL_MOST];
    if (n_in < 1 || n_in > OLY_LOCAL_MOST)
        return oly_fail(OLY_INVALID, "%d keys given; give 1 to %d", n_in, OLY_LOCAL_MOST);
    for (int k = 0; k < n_in; k++) {
        keys[k] = in[k];
        if (k > 0 && (in[k]->type.rank != in[0]->type.rank ||
                      memcmp(in[k]->type.shape, in[0]->type.shape, sizeof(int64_t) * (size_t)in[0]->type.rank) != 0))
            return oly_fail(OLY_SHAPE, "%s and %s (operand %d) cannot be sorted together; give arrays of one shape",
                            oly_type_short(&in[0]->type), oly_type_short(&in[k]->type), k);
        OLY_TRY(read_axis(g, &keys[k], recipe, &p));
    }
    if (keys[0]->type.shape[p.dimension] > INT32_MAX)
        p.dtype = OLY_INT64;
    return oly_graph_add(g, OLY_OP_argsort, n_in, keys, &p, out);
}

oly_status oly_compose_top_k(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in;
    oly_params p;
    const oly_type *x = &in[0]->type;
    memset(&p, 0, sizeof p);
    p.dtype = recipe->params.dtype;
    p.count = recipe->params.count;
    if (x->rank == 0 || p.count < 0 || p.count > x->shape[x->rank - 1])
        return oly_fail(OLY_SHAPE,
                        "the %" PRId64 " largest of %s asked for; the number is 0 to the size of the last dimension",
                        p.count, oly_type_short(x));
    if (oly_dtype_kind(x->dtype) == OLY_KIND_COMPLEX)
        return oly_fail(OLY_DTYPE, "%s has no largest elements: complex numbers are not ordered; take oly_abs first",
                        oly_type_short(x));
    p.dimension = x->rank - 1;
    return oly_graph_add(g, OLY_OP_top_k, 1, in, &p, out);
}

oly_status oly_compose_searchsorted(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe,
                                    oly_node **out)
{
    (void)n_in;
    oly_params p;
    oly_node *both[2] = {in[0], in[1]};
    memset(&p, 0, sizeof p);
    p.reverse = recipe->params.reverse;
    if (in[0]->type.rank != 1)
        return oly_fail(OLY_SHAPE, "the sorted array is %s; it must have one dimension", oly_type_short(&in[0]->type));
    p.dtype = in[0]->type.shape[0] > INT32_MAX ? OLY_INT64 : OLY_INT32;
    OLY_TRY(oly_build_promoted(g, 2, both));
    return oly_graph_add(g, OLY_OP_searchsorted, 2, both, &p, out);
}

/* -- running results ------------------------------------------------------------------------------------------------- */

oly_status oly_compose_running(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in;
    oly_params p;
    oly_node *x = in[0];
    bool adds = recipe->op == OLY_OP_cumsum || recipe->op == OLY_OP_cumprod;
    OLY_TRY(read_axis(g, &x, recipe, &p));
    if (recipe->op == OLY_OP_cumlogsumexp)
        OLY_TRY(oly_build_floating(g, x, &x));
    else if (adds && x->type.dtype == OLY_BOOL)
        OLY_TRY(oly_build_convert(g, x, p.dtype, false, &x));
    if (!adds && oly_dtype_kind(x->type.dtype) == OLY_KIND_COMPLEX)
        return oly_fail(OLY_DTYPE, "%s of %s is not defined: complex numbers are not ordered; take oly_abs first",
                        oly_ops[recipe->op].name, oly_type_short(&x->type));
    p.dtype = 0;
    return oly_graph_add(g, recipe->op, 1, &x, &p, out);
}

/* -- positions of extremes --------------------------------------------------------------------------------- */

oly_status oly_compose_argreduce(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in;
    const oly_type *x = &in[0]->type;
    oly_params p;
    int64_t shape[OLY_MAX_RANK], count = 1;
    bool reduced[OLY_MAX_RANK] = {false};
    memset(&p, 0, sizeof p);
    p.dtype = recipe->params.dtype;
    memcpy(shape, x->shape, sizeof shape);
    for (int k = 0; k < recipe->params.n_axes && !recipe->all_axes; k++) {
        int axis;
        OLY_TRY(oly_build_axis(x, recipe->params.axes[k], &axis));
        if (reduced[axis])
            return oly_fail(OLY_INVALID, "axis %d of %s is named twice; name each axis once", recipe->params.axes[k],
                            oly_type_short(x));
        reduced[axis] = true;
    }
    for (int d = 0; d < x->rank; d++)
        if (recipe->all_axes || reduced[d]) {
            p.axes[p.n_axes++] = d;
            count *= x->shape[d];
            shape[d] = 1;
        }
    if (count == 0)
        return oly_fail(OLY_SHAPE, "%s of %s over no elements has no value; reduce only dimensions of size 1 or more",
                        oly_ops[recipe->op].name, oly_type_short(x));
    if (oly_dtype_kind(x->dtype) == OLY_KIND_COMPLEX)
        return oly_fail(OLY_DTYPE, "%s of %s is not defined: complex numbers are not ordered; take oly_abs first",
                        oly_ops[recipe->op].name, oly_type_short(x));
    if (count > INT32_MAX)
        p.dtype = OLY_INT64;
    if (p.n_axes == 0) { /* over dimensions of one element each */
        oly_node *zero;
        OLY_TRY(oly_build_number(g, p.dtype, 0, &zero));
        return oly_build_broadcast(g, zero, x->rank, x->shape, out);
    }
    oly_node *line; /* of all dimensions: refused where the flattened array would be */
    int64_t all = oly_type_size(x);
    if (recipe->all_axes && x->mesh && x->mesh->explicit_axes)
        OLY_TRY(oly_build_reshape(g, in[0], 1, &all, &line));
    OLY_TRY(oly_graph_add(g, recipe->op, 1, in, &p, out));
    return recipe->keepdims ? oly_build_reshape(g, *out, x->rank, shape, out) : OLY_OK;
}
