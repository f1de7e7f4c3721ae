/* SPDX-License-Identifier: BSD-3-Clause */
/* Compositions of collectives: makes operands vary, splits and concatenates dimensions for the tiled forms, adds the
 * rows themselves. */
#include "graph/compose/compose.h"
#include "graph/build.h"
#include "graph/varying.h"
#include <inttypes.h>
#include <string.h>

static unsigned axes_of(const oly_recipe *recipe)
{
    unsigned axes = 0;
    for (int k = 0; k < recipe->params.over.n; k++)
        axes |= 1u << recipe->params.over.axis[k];
    return axes;
}

/* Types x as varying along the axes (nothing where types do not say). */
static oly_status vary(oly_graph *g, oly_node *x, const oly_recipe *recipe, oly_node **out)
{
    *out = x;
    return recipe->params.unchecked ? OLY_OK : oly_build_vary(g, x, recipe->params.mesh, axes_of(recipe), out);
}

static int64_t devices(const oly_recipe *recipe)
{
    return oly_axis_list_parts(recipe->params.mesh, &recipe->params.over);
}

/* Adds the row with the recipe's mesh, axes and permutation, and these dimensions. */
static oly_status apply(oly_graph *g, oly_op op, oly_node *x, const oly_recipe *recipe, int dimension, int made,
                        oly_node **out)
{
    oly_params p;
    memset(&p, 0, sizeof p);
    p.mesh = recipe->params.mesh;
    p.over = recipe->params.over;
    p.permutation = recipe->params.permutation;
    p.unchecked = recipe->params.unchecked;
    p.dimension = dimension;
    p.axes[0] = made;
    return oly_graph_add(g, op, x ? 1 : 0, &x, &p, out);
}

oly_status oly_compose_pvary(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in;
    return vary(g, in[0], recipe, out);
}

/* Sums of narrow floating-point numbers are computed in float32 and rounded once. source: XLA's AllReducePromotion */
static oly_status widened(oly_graph *g, oly_node **x)
{
    oly_dtype dtype = oly_dtype_computed((*x)->type.dtype);
    return dtype == (*x)->type.dtype ? OLY_OK : oly_build_convert(g, *x, dtype, (*x)->type.weak, x);
}

oly_status oly_compose_psum(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in;
    oly_node *x = in[0];
    bool sum = oly_ops[recipe->op].detail == OLY_COMBINE_SUM;
    if (sum && x->type.dtype == OLY_BOOL)
        OLY_TRY(oly_build_convert(g, x, OLY_INT32, false, &x));
    if (oly_is_constant(x)) { /* known without communication */
        oly_node *both[2] = {x, NULL};
        *out = x;
        if (!sum)
            return OLY_OK;
        OLY_TRY(oly_build_number(g, x->type.dtype, (double)devices(recipe), &both[1]));
        OLY_TRY(oly_build_convert(g, both[1], x->type.dtype, x->type.weak, &both[1]));
        return oly_build_apply(g, OLY_OP_mul, 2, both, out);
    }
    oly_dtype dtype = x->type.dtype;
    OLY_TRY(vary(g, x, recipe, &x));
    if (sum)
        OLY_TRY(widened(g, &x));
    OLY_TRY(apply(g, recipe->op, x, recipe, 0, 0, out));
    return oly_build_convert(g, *out, dtype, (*out)->type.weak, out);
}

oly_status oly_compose_pmean(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    oly_node *both[2], *x;
    OLY_TRY(oly_build_floating(g, in[0], &x));
    OLY_TRY(oly_compose_psum(g, n_in, &x, recipe, &both[0]));
    OLY_TRY(oly_build_number(g, x->type.dtype, (double)devices(recipe), &both[1]));
    OLY_TRY(oly_build_common_shape(g, 2, both));
    return oly_build_apply(g, OLY_OP_div, 2, both, out);
}

/* -- dimensions ------------------------------------------------------------------------------------------------------ */

static oly_status check_dimension(const oly_recipe *recipe, const oly_type *x, int rank, int dimension, int *d)
{
    *d = dimension < 0 ? dimension + rank : dimension;
    if (*d < 0 || *d >= rank)
        return oly_fail(OLY_SHAPE, "%s of %s along dimension %d, which does not exist", oly_ops[recipe->op].name,
                        oly_type_short(x), dimension);
    return OLY_OK;
}

/* Splits dimension d in two: [n, rest]. */
static oly_status cut(oly_graph *g, oly_node *x, const oly_recipe *recipe, int d, oly_node **out)
{
    int64_t shape[OLY_MAX_RANK], n = devices(recipe);
    const oly_type *t = &x->type;
    if (t->shape[d] % n != 0)
        return oly_fail(OLY_SHAPE, "%s of %s: %" PRId64 " devices do not divide its dimension %d",
                        oly_ops[recipe->op].name, oly_type_short(t), n, d);
    if (t->rank == OLY_MAX_RANK)
        return oly_fail(OLY_SHAPE, "%s of %s: a tiled form takes at most %d dimensions", oly_ops[recipe->op].name,
                        oly_type_short(t), OLY_MAX_RANK - 1);
    memcpy(shape, t->shape, sizeof *shape * (size_t)d);
    shape[d] = n;
    shape[d + 1] = t->shape[d] / n;
    memcpy(&shape[d + 2], &t->shape[d + 1], sizeof *shape * (size_t)(t->rank - d - 1));
    return oly_build_reshape(g, x, t->rank + 1, shape, out);
}

/* Merges dimensions d and d + 1. */
static oly_status join(oly_graph *g, oly_node *x, int d, oly_node **out)
{
    int64_t shape[OLY_MAX_RANK];
    const oly_type *t = &x->type;
    memcpy(shape, t->shape, sizeof *shape * (size_t)d);
    shape[d] = t->shape[d] * t->shape[d + 1];
    memcpy(&shape[d + 1], &t->shape[d + 2], sizeof *shape * (size_t)(t->rank - d - 2));
    return oly_build_reshape(g, x, t->rank - 1, shape, out);
}

/* The untiled form: the dimension must have one element per device. */
static oly_status check_devices(const oly_recipe *recipe, const oly_type *x, int d)
{
    if (x->shape[d] == devices(recipe))
        return OLY_OK;
    return oly_fail(OLY_SHAPE,
                    "%s of %s: its dimension %d must have one element for each of %" PRId64 " devices; or give tiled",
                    oly_ops[recipe->op].name, oly_type_short(x), d, devices(recipe));
}

oly_status oly_compose_all_gather(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in;
    oly_node *x;
    int d;
    OLY_TRY(check_dimension(recipe, &in[0]->type, in[0]->type.rank + !recipe->tiled, recipe->params.dimension, &d));
    OLY_TRY(vary(g, in[0], recipe, &x));
    OLY_TRY(apply(g, OLY_OP_all_gather, x, recipe, d, 0, out));
    if (recipe->tiled)
        OLY_TRY(join(g, *out, d, out));
    return recipe->invariant ? OLY_OK : vary(g, *out, recipe, out);
}

oly_status oly_compose_psum_scatter(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe,
                                    oly_node **out)
{
    (void)n_in;
    oly_node *x;
    int d;
    OLY_TRY(check_dimension(recipe, &in[0]->type, in[0]->type.rank, recipe->params.dimension, &d));
    OLY_TRY(vary(g, in[0], recipe, &x));
    oly_dtype dtype = x->type.dtype; /* bools stay bools: whether any was true */
    if (dtype == OLY_BOOL)
        OLY_TRY(oly_build_convert(g, x, OLY_INT32, false, &x));
    OLY_TRY(widened(g, &x));
    OLY_TRY(recipe->tiled ? cut(g, x, recipe, d, &x) : check_devices(recipe, &x->type, d));
    OLY_TRY(apply(g, OLY_OP_psum_scatter, x, recipe, d, 0, out));
    return oly_build_convert(g, *out, dtype, (*out)->type.weak, out);
}

oly_status oly_compose_all_to_all(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in;
    oly_node *x;
    int split, concat, rank = in[0]->type.rank;
    OLY_TRY(check_dimension(recipe, &in[0]->type, rank, recipe->params.dimension, &split));
    OLY_TRY(check_dimension(recipe, &in[0]->type, rank, recipe->params.axes[0], &concat));
    OLY_TRY(vary(g, in[0], recipe, &x));
    OLY_TRY(recipe->tiled ? cut(g, x, recipe, split, &x) : check_devices(recipe, &x->type, split));
    OLY_TRY(apply(g, OLY_OP_all_to_all, x, recipe, split, concat, out));
    return recipe->tiled ? join(g, *out, concat, out) : OLY_OK;
}

oly_status oly_compose_ppermute(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in;
    oly_node *x;
    OLY_TRY(vary(g, in[0], recipe, &x));
    return apply(g, OLY_OP_ppermute, x, recipe, 0, 0, out);
}

/* ((i0) n1 + i1) n2 + i2 ... */
oly_status oly_compose_axis_index(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in, (void)in;
    for (int k = 0; k < recipe->params.over.n; k++) {
        oly_node *both[2], *index;
        oly_recipe one = *recipe;
        one.params.over = (oly_axis_list){.n = 1, .axis = {recipe->params.over.axis[k]}};
        OLY_TRY(apply(g, OLY_OP_axis_index, NULL, &one, 0, 0, &index));
        if (k > 0) {
            both[0] = *out;
            OLY_TRY(oly_build_number(g, OLY_INT32, (double)devices(&one), &both[1]));
            OLY_TRY(oly_build_apply(g, OLY_OP_mul, 2, both, &both[0]));
            both[1] = index;
            OLY_TRY(oly_build_apply(g, OLY_OP_add, 2, both, &index));
        }
        *out = index;
    }
    return OLY_OK;
}
