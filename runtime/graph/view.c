/* SPDX-License-Identifier: BSD-3-Clause */
/* See view.h: one function for each kind of view. */
#include "graph/view.h"

static void same(const oly_node *node, oly_view_dim *dims)
{
    for (int d = 0; d < node->type.rank; d++)
        dims[d] = (oly_view_dim){d, 0, 1};
}

static void transpose(const oly_node *node, oly_view_dim *dims)
{
    for (int d = 0; d < node->type.rank; d++)
        dims[d] = (oly_view_dim){node->params.axes[d], 0, 1};
}

static void broadcast(const oly_node *node, oly_view_dim *dims)
{
    const oly_type *in = &node->in[0]->type;
    for (int d = 0; d < node->type.rank; d++)
        dims[d] = (oly_view_dim){-1, 0, 1};
    for (int e = 0; e < in->rank; e++)
        if (in->shape[e] == node->type.shape[node->params.axes[e]])
            dims[node->params.axes[e]].from = e;
}

static void slice(const oly_node *node, oly_view_dim *dims)
{
    for (int d = 0; d < node->type.rank; d++)
        dims[d] = (oly_view_dim){d, node->params.start[d], node->params.step[d]};
}

static void rev(const oly_node *node, oly_view_dim *dims)
{
    same(node, dims);
    for (int k = 0; k < node->params.n_axes; k++)
        dims[node->params.axes[k]] =
            (oly_view_dim){node->params.axes[k], node->type.shape[node->params.axes[k]] - 1, -1};
}

static bool is_thin(const oly_node *node, int8_t *from)
{
    const oly_type *x = &node->in[0]->type;
    int e = 0;
    for (int d = 0; d < node->type.rank; d++) {
        from[d] = -1;
        if (node->type.shape[d] == 1)
            continue;
        while (e < x->rank && x->shape[e] == 1)
            e++;
        if (e == x->rank || x->shape[e] != node->type.shape[d])
            return false;
        from[d] = (int8_t)e++;
    }
    while (e < x->rank && x->shape[e] == 1)
        e++;
    return e == x->rank;
}

static void squeeze(const oly_node *node, oly_view_dim *dims)
{
    int8_t from[OLY_MAX_RANK];
    is_thin(node, from);
    for (int d = 0; d < node->type.rank; d++)
        dims[d] = (oly_view_dim){from[d], 0, 1};
}

static void (*const rules[])(const oly_node *, oly_view_dim *) = {
    [OLY_VIEW_SAME] = same,
    [OLY_VIEW_TRANSPOSE] = transpose,
    [OLY_VIEW_BROADCAST] = broadcast,
    [OLY_VIEW_SLICE] = slice,
    [OLY_VIEW_REV] = rev,
    [OLY_VIEW_SQUEEZE] = squeeze,
};

void oly_view_of(const oly_node *node, oly_view_dim *dims)
{
    rules[oly_ops[node->op].detail](node, dims);
}

bool oly_is_thin(const oly_node *node, int8_t *from)
{
    return oly_ops[node->op].lowering == OLY_LOWER_RESHAPE && node->n_in == 1 && is_thin(node, from);
}

bool oly_is_part(const oly_node *node, int64_t step)
{
    bool part = oly_ops[node->op].lowering == OLY_LOWER_VIEW && oly_ops[node->op].detail == OLY_VIEW_SLICE;
    for (int d = 0; part && d < node->type.rank; d++)
        part = node->params.step[d] == step;
    return part;
}
