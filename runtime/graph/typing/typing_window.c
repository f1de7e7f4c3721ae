/* SPDX-License-Identifier: BSD-3-Clause */
/* Type rules of sliding windows: convolutions and windowed reductions. */
#include "graph/contract.h"
#include "graph/typing/typing.h"
#include <inttypes.h>

static const char *name_of(const oly_node *node)
{
    return oly_ops[node->op].name;
}

oly_status oly_window_places(const oly_sliding_window *w, int d, int64_t n, int64_t *places)
{
    int64_t padded = 0, window = oly_dilated(w->size[d], w->dilation[d]);
    bool over = n > 0 && (__builtin_mul_overflow(n - 1, w->base_dilation[d], &padded) ||
                          __builtin_add_overflow(padded, 1, &padded));
    if (over || __builtin_add_overflow(padded, w->lo[d] + w->hi[d], &padded))
        return oly_fail(OLY_OVERFLOW, "a dimension of %" PRId64 " elements, dilated and padded, exceeds 2^63", n);
    if (padded < 0)
        return oly_fail(OLY_SHAPE,
                        "padding (%" PRId64 ", %" PRId64 ") removes more of a dimension than the %" PRId64
                        " elements it has",
                        w->lo[d], w->hi[d], padded - w->lo[d] - w->hi[d]);
    *places = padded < window ? 0 : (padded - window) / w->stride[d] + 1;
    return OLY_OK;
}

/* Checks the numbers of a window; each must be small enough to be multiplied. */
static oly_status check_window(const oly_node *node, int rank)
{
    const oly_sliding_window *w = node->params.window;
    const int64_t most = INT32_MAX;
    if (w->rank < 0 || w->rank > OLY_MAX_WINDOW || w->rank > rank)
        return oly_fail(OLY_SHAPE, "%s: a window over %" PRId64 " of %d dimensions; there can be 0 to %d",
                        name_of(node), w->rank, rank, OLY_MAX_WINDOW);
    for (int d = 0; d < w->rank; d++) {
        bool small = w->stride[d] >= 1 && w->stride[d] <= most && w->dilation[d] >= 1 && w->dilation[d] <= most &&
                     w->base_dilation[d] >= 1 && w->base_dilation[d] <= most && w->lo[d] >= -most && w->lo[d] <= most &&
                     w->hi[d] >= -most && w->hi[d] <= most && w->size[d] >= 0 && w->size[d] <= most;
        if (!small)
            return oly_fail(
                OLY_INVALID,
                "%s: dimension %d of the window: size %" PRId64 ", stride %" PRId64 ", padding (%" PRId64 ", %" PRId64
                "), dilations %" PRId64 " and %" PRId64 "; strides and dilations are 1 or more, all below 2^31",
                name_of(node), d, w->size[d], w->stride[d], w->lo[d], w->hi[d], w->base_dilation[d], w->dilation[d]);
    }
    return OLY_OK;
}

oly_status oly_typing_window(oly_node *node)
{
    const oly_sliding_window *w = node->params.window;
    const oly_type *x = &node->in[0]->type;
    OLY_TRY(check_window(node, x->rank));
    node->type = *x;
    for (int d = 0; d < w->rank; d++) {
        int to = x->rank - (int)w->rank + d;
        OLY_TRY(oly_window_places(w, d, x->shape[to], &node->type.shape[to]));
    }
    return OLY_OK;
}

static oly_status check_features(const oly_node *node)
{
    const oly_type *x = &node->in[0]->type, *k = &node->in[1]->type;
    int64_t groups = node->params.window->groups, batch_groups = node->params.window->batch_groups;
    if (groups < 1 || batch_groups < 1 || (groups > 1 && batch_groups > 1))
        return oly_fail(OLY_INVALID,
                        "%s: %" PRId64 " groups of features and %" PRId64
                        " of the batch; numbers are 1 or more, and one of them is 1",
                        name_of(node), groups, batch_groups);
    if (k->shape[1] > INT64_MAX / groups || x->shape[1] != k->shape[1] * groups)
        return oly_fail(OLY_SHAPE,
                        "%s: %s has %" PRId64 " features (dimension 1), the kernels %s want %" PRId64 " in %" PRId64
                        " group%s; they must be equal",
                        name_of(node), oly_type_short(x), x->shape[1], oly_type_short(k), k->shape[1], groups,
                        groups == 1 ? "" : "s");
    if (k->shape[0] % (groups * batch_groups) != 0 || x->shape[0] % batch_groups != 0)
        return oly_fail(OLY_SHAPE, "%s: %" PRId64 " kernels (%s)%s of %s must divide into the %" PRId64 " groups",
                        name_of(node), k->shape[0], oly_type_short(k), batch_groups > 1 ? " and the batch" : "",
                        oly_type_short(x), groups * batch_groups);
    return OLY_OK;
}

oly_status oly_typing_conv(oly_node *node)
{
    const oly_sliding_window *w = node->params.window;
    const oly_type *x = &node->in[0]->type, *k = &node->in[1]->type;
    if (x->dtype != k->dtype || x->dtype == OLY_BOOL)
        return oly_fail(OLY_DTYPE, "%s: %s and %s must have one number type; convert with oly_astype", name_of(node),
                        oly_type_short(x), oly_type_short(k));
    if (x->rank != k->rank || x->rank != w->rank + 2)
        return oly_fail(OLY_SHAPE,
                        "%s: %s and %s must both have a batch or kernel dimension, features, and %" PRId64
                        " dimensions of space",
                        name_of(node), oly_type_short(x), oly_type_short(k), w->rank);
    OLY_TRY(check_window(node, x->rank));
    OLY_TRY(check_features(node));
    node->type.dtype = x->dtype;
    node->type.weak = x->weak && k->weak;
    node->type.rank = x->rank;
    node->type.shape[0] = x->shape[0] / w->batch_groups;
    node->type.shape[1] = k->shape[0];
    for (int d = 0; d < w->rank; d++) {
        if (w->size[d] != k->shape[2 + d])
            return oly_fail(OLY_INVALID, "%s: dimension %d of the window has size %" PRId64 ", the kernels are %s",
                            name_of(node), d, w->size[d], oly_type_short(k));
        OLY_TRY(oly_window_places(w, d, x->shape[2 + d], &node->type.shape[2 + d]));
    }
    return OLY_OK;
}
