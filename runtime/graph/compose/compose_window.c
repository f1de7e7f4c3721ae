/* SPDX-License-Identifier: BSD-3-Clause */
/* Compositions of sliding windows: convolutions with any order of dimensions, convolutions of vectors, pooling. */
#include "graph/build.h"
#include "graph/compose/compose_contract.h"
#include "graph/conv_notation.h"
#include <inttypes.h>
#include <string.h>

/* One convolution of [batch, features, ...]. float16 is summed in float32, over devices too. */
static oly_status convolution(oly_graph *g, oly_node *const *in, const oly_sliding_window *w, oly_sharding sharding,
                              oly_node **out)
{
    oly_node *both[2] = {in[0], in[1]};
    oly_dtype dtype = in[0]->type.dtype;
    oly_params p;
    memset(&p, 0, sizeof p);
    p.window = w;
    p.sharding = sharding;
    for (int k = 0; k < 2; k++)
        OLY_TRY(oly_build_convert(g, both[k], oly_dtype_computed(dtype), both[k]->type.weak, &both[k]));
    OLY_TRY(oly_graph_add(g, OLY_OP_conv, 2, both, &p, out));
    return oly_build_convert(g, *out, dtype, (*out)->type.weak, out);
}

/* The sharding to request of the convolution when its transpose, the result, is requested at `s`. */
static oly_status untransposed(oly_sharding s, const oly_conv_dims *dims, oly_sharding *out)
{
    *out = s;
    if (!s)
        return OLY_OK;
    oly_spec spec = s->spec;
    memset(spec.dim, 0, sizeof spec.dim);
    spec.open = 0;
    spec.n_dims = dims->rank;
    for (int d = 0; d < dims->rank && d < s->spec.n_dims; d++) {
        spec.dim[dims->result[d]] = s->spec.dim[d];
        spec.open |= (s->spec.open >> d & 1) << dims->result[d];
    }
    *out = oly_sharding_intern(s->mesh, &spec, dims->rank);
    return *out ? OLY_OK : OLY_MEMORY;
}

oly_status oly_compose_conv(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    oly_node *both[2] = {in[0], in[1]};
    const oly_type *x = &in[0]->type, *k = &in[1]->type;
    oly_conv_dims dims;
    oly_sharding inside;
    (void)n_in;
    if (x->rank != k->rank || x->rank < 2 || x->rank > OLY_MAX_WINDOW + 2)
        return oly_fail(
            OLY_SHAPE,
            "%s and %s: both must have a dimension of batch or kernels, one of features, and the same up to %d of "
            "space",
            oly_type_short(x), oly_type_short(k), OLY_MAX_WINDOW);
    OLY_TRY(oly_conv_dims_read(recipe->notation, x->rank, &dims));
    OLY_TRY(untransposed(recipe->params.sharding, &dims, &inside));
    OLY_TRY(oly_product_operands(g, 2, both, recipe));
    OLY_TRY(oly_build_transpose(g, both[0], dims.operand, &both[0]));
    OLY_TRY(oly_build_transpose(g, both[1], dims.kernel, &both[1]));
    OLY_TRY(convolution(g, both, &recipe->window, inside, out));
    OLY_TRY(oly_build_transpose(g, *out, dims.result, out));
    return oly_product_place(g, *out, recipe, out);
}

/* -- vectors --------------------------------------------------------------------------------------------------------------- */

static oly_status reverse(oly_graph *g, oly_node *x, oly_node **out)
{
    oly_params p;
    memset(&p, 0, sizeof p);
    p.n_axes = 1;
    p.axes[0] = x->type.rank - 1;
    return oly_graph_add(g, OLY_OP_rev, 1, &x, &p, out);
}

static oly_status check_vectors(const oly_type *x, const oly_type *y)
{
    if (x->rank != 1 || y->rank != 1)
        return oly_fail(OLY_SHAPE, "%s and %s: both must have one dimension; oly_conv takes more", oly_type_short(x),
                        oly_type_short(y));
    if (x->shape[0] == 0 || y->shape[0] == 0)
        return oly_fail(OLY_SHAPE, "%s and %s: neither may be empty", oly_type_short(x), oly_type_short(y));
    return OLY_OK;
}

/* Slides the shorter over the longer. Mode: recipe.params.dimension, 0 full, 1 same, 2 valid. */
static oly_status slide(oly_graph *g, oly_node *x, oly_node *y, const oly_recipe *recipe, oly_node **out)
{
    int64_t n = y->type.shape[0], shape[3] = {1, 1, x->type.shape[0]};
    oly_sliding_window w;
    memset(&w, 0, sizeof w);
    w.rank = w.groups = w.batch_groups = w.stride[0] = w.dilation[0] = w.base_dilation[0] = 1;
    w.size[0] = n;
    if (recipe->params.dimension == 0)
        w.lo[0] = w.hi[0] = n - 1;
    if (recipe->params.dimension == 1) {
        w.lo[0] = n / 2;
        w.hi[0] = n - n / 2 - 1;
    }
    oly_node *both[2];
    OLY_TRY(oly_build_reshape(g, x, 3, shape, &both[0]));
    shape[2] = n;
    OLY_TRY(oly_build_reshape(g, y, 3, shape, &both[1]));
    OLY_TRY(convolution(g, both, &w, NULL, out));
    return oly_build_reshape(g, *out, 1, &(*out)->type.shape[2], out);
}

static oly_status vectors(oly_graph *g, oly_node *const *in, const oly_recipe *recipe, oly_node **both)
{
    OLY_TRY(check_vectors(&in[0]->type, &in[1]->type));
    both[0] = in[0];
    both[1] = in[1];
    OLY_TRY(oly_product_operands(g, 2, both, recipe));
    for (int k = 0; k < 2 && !recipe->dtype_given; k++)
        OLY_TRY(oly_build_floating(g, both[k], &both[k]));
    return OLY_OK;
}

oly_status oly_compose_convolve(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    oly_node *both[2], *reversed;
    (void)n_in;
    OLY_TRY(vectors(g, in, recipe, both));
    int longer = both[0]->type.shape[0] < both[1]->type.shape[0];
    OLY_TRY(reverse(g, both[1 - longer], &reversed));
    return slide(g, both[longer], reversed, recipe, out);
}

oly_status oly_compose_correlate(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    oly_node *both[2];
    (void)n_in;
    OLY_TRY(vectors(g, in, recipe, both));
    if (oly_dtype_kind(both[1]->type.dtype) == OLY_KIND_COMPLEX)
        OLY_TRY(oly_build_apply(g, OLY_OP_conj, 1, &both[1], &both[1]));
    if (both[0]->type.shape[0] >= both[1]->type.shape[0])
        return slide(g, both[0], both[1], recipe, out);
    OLY_TRY(slide(g, both[1], both[0], recipe, out));
    return reverse(g, *out, out);
}

/* -- pooling ---------------------------------------------------------------------------------------------------------------- */

oly_status oly_compose_window(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in;
    oly_params p;
    memset(&p, 0, sizeof p);
    p.window = &recipe->window;
    return oly_graph_add(g, recipe->op, 1, in, &p, out);
}

oly_status oly_compose_avg_pool(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    oly_node *x, *both[2];
    double count = 1;
    for (int d = 0; d < recipe->window.rank; d++)
        count *= (double)recipe->window.size[d];
    OLY_TRY(oly_build_floating(g, in[0], &x));
    OLY_TRY(oly_compose_window(g, n_in, &x, recipe, &both[0]));
    OLY_TRY(oly_build_number(g, x->type.dtype, count, &both[1]));
    OLY_TRY(oly_build_broadcast(g, both[1], both[0]->type.rank, both[0]->type.shape, &both[1]));
    return oly_build_apply(g, OLY_OP_div, 2, both, out);
}
