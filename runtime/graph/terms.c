/* SPDX-License-Identifier: BSD-3-Clause */
/* Terms of sums over devices. See terms.h. */
#include "graph/terms.h"
#include "graph/build.h"
#include <string.h>

/* Is dimension d split into `terms` equal blocks over the axes of dimension 0 of the wide type? */
static bool is_cut(const oly_type *x, int d, const oly_type *wide)
{
    return oly_axis_list_equal(&x->axes[d], &wide->axes[0]) && x->shape[d] % wide->shape[0] == 0;
}

/* Splits dimension d in two: the block number, as the first dimension, and the position in the block, in its place. */
static oly_status blocks_first(oly_graph *g, oly_node *x, int d, int64_t blocks, oly_node **out)
{
    oly_type t = x->type;
    int order[OLY_MAX_RANK];
    oly_params p;
    if (t.rank == OLY_MAX_RANK)
        return oly_fail(OLY_INVALID, "%s: sums over devices have at most %d dimensions", oly_type_short(&t),
                        OLY_MAX_RANK - 1);
    for (int k = t.rank++; k > d; k--) {
        t.shape[k] = t.shape[k - 1];
        t.axes[k] = t.axes[k - 1];
    }
    t.shape[d + 1] /= blocks;
    t.shape[d] = blocks;
    t.axes[d + 1] = (oly_axis_list){0};
    memset(&p, 0, sizeof p);
    p.rank = t.rank;
    memcpy(p.shape, t.shape, sizeof p.shape);
    if (!(p.sharding = oly_type_sharding(&t)))
        return OLY_MEMORY;
    OLY_TRY(oly_graph_add(g, OLY_OP_reshape, 1, &x, &p, &x));
    for (int k = 0; k < t.rank; k++)
        order[k] = k == 0 ? d : k - (k <= d);
    return oly_build_transpose(g, x, order, out);
}

static oly_status partial_sums(oly_graph *g, const oly_node *node, const oly_type *wide, oly_sharding split,
                               oly_node **out)
{
    oly_params p = node->params;
    oly_node *x = node->in[0];
    int cut = -1;
    for (int k = 0; k < p.n_axes; k++) {
        if (is_cut(&x->type, p.axes[k], wide))
            cut = p.axes[k];
        else if (x->type.axes[p.axes[k]].n > 0)
            return OLY_OK;
        p.axes[k]++;
    }
    if (cut < 0 || x->type.unreduced)
        return OLY_OK;
    OLY_TRY(blocks_first(g, x, cut, wide->shape[0], &x));
    p.sharding = split;
    return oly_graph_add(g, node->op, 1, &x, &p, out);
}

static oly_status partial_products(oly_graph *g, const oly_node *node, const oly_type *wide, oly_sharding split,
                                   oly_node **out)
{
    oly_params p = node->params;
    oly_contraction *c = &p.contraction;
    oly_node *both[2] = {node->in[0], node->in[1]};
    int cut = -1;
    for (int k = 0; k < c->n_contract; k++)
        if (is_cut(&both[0]->type, c->contract[0][k], wide) && is_cut(&both[1]->type, c->contract[1][k], wide))
            cut = k;
        else if (both[0]->type.axes[c->contract[0][k]].n > 0 || both[1]->type.axes[c->contract[1][k]].n > 0)
            return OLY_OK;
    if (cut < 0)
        return OLY_OK;
    for (int in = 0; in < 2; in++) {
        OLY_TRY(blocks_first(g, both[in], c->contract[in][cut], wide->shape[0], &both[in]));
        for (int k = 0; k < c->n_contract; k++)
            c->contract[in][k]++;
        for (int k = c->n_batch; k > 0; k--)
            c->batch[in][k] = (uint8_t)(c->batch[in][k - 1] + 1);
        c->batch[in][0] = 0;
    }
    c->n_batch++;
    p.sharding = split;
    return oly_graph_add(g, node->op, 2, both, &p, out);
}

static bool has_axis(const oly_axis_list *axes, int axis)
{
    for (int k = 0; k < axes->n; k++)
        if (axes->axis[k] == axis)
            return true;
    return false;
}

static oly_status reshaped(oly_graph *g, oly_node *x, const oly_type *to, oly_node **out)
{
    oly_params p;
    memset(&p, 0, sizeof p);
    p.rank = to->rank;
    memcpy(p.shape, to->shape, sizeof p.shape);
    if (!(p.sharding = oly_type_sharding(to)))
        return OLY_MEMORY;
    return oly_graph_add(g, OLY_OP_reshape, 1, &x, &p, out);
}

/* Is one type split as the other, and beyond that only over axes of the terms? */
static bool is_scattered(const oly_type *from, const oly_type *to, const oly_axis_list *terms)
{
    for (int d = 0; d < from->rank; d++) {
        const oly_axis_list *had = &from->axes[d], *has = &to->axes[d];
        if (has->n < had->n || memcmp(has->axis, had->axis, had->n) != 0)
            return false;
        for (int k = had->n; k < has->n; k++)
            if (!has_axis(terms, has->axis[k]))
                return false;
    }
    return true;
}

/* The terms along dimension 0, one per device along its axes, summed over the axes that dimension 0 of the wide type
 * does not have, and sharded as that is. */
static oly_status sum_over_others(oly_graph *g, oly_node *x, const oly_type *wide, oly_node **out)
{
    const oly_axis_list had = x->type.axes[0];
    oly_type each = x->type, some = x->type, moved;
    oly_sharding there;
    oly_params p;
    memset(&p, 0, sizeof p);
    each.rank = some.rank = 0;
    for (int k = 0; k < had.n; k++) {
        int axis = had.axis[k], size = x->type.mesh->size[axis];
        oly_axis_list alone = {.n = 1, .axis = {(uint8_t)axis}};
        each.shape[each.rank] = size;
        each.axes[each.rank++] = alone;
        if (!has_axis(&wide->axes[0], axis)) {
            p.axes[p.n_axes++] = k;
            continue;
        }
        some.shape[some.rank] = size;
        some.axes[some.rank++] = alone;
    }
    for (int d = 1; d < x->type.rank; d++) {
        each.shape[each.rank] = some.shape[some.rank] = x->type.shape[d];
        each.axes[each.rank++] = some.axes[some.rank++] = x->type.axes[d];
    }
    moved = some;
    for (int d = 1; d < wide->rank; d++)
        moved.axes[moved.rank - wide->rank + d] = wide->axes[d];
    p.sharding = oly_type_sharding(is_scattered(&some, &moved, &had) ? &moved : &some);
    there = oly_type_sharding(&moved);
    if (!p.sharding || !there)
        return OLY_MEMORY;
    OLY_TRY(reshaped(g, x, &each, &x));
    OLY_TRY(oly_graph_add(g, OLY_OP_reduce_sum, 1, &x, &p, &x));
    OLY_TRY(oly_build_reshard(g, x, there, &x));
    return reshaped(g, x, wide, out);
}

/* An unreduced input that is returned unreduced, elsewhere or over fewer axes: its terms are moved. */
static oly_status moved_terms(oly_graph *g, const oly_node *node, const oly_type *wide, oly_sharding split,
                              oly_node **out)
{
    const oly_node *sum = node->in[0];
    oly_node *x = sum->n_in ? sum->in[0] : NULL;
    int64_t terms = 1;
    if (!x || oly_ops[sum->op].lowering != OLY_LOWER_REDUCE || oly_ops[sum->op].detail != OLY_COMBINE_SUM ||
        oly_ops[x->op].lowering != OLY_LOWER_INPUT || sum->params.n_axes != 1 || sum->params.axes[0] != 0 ||
        x->type.mesh != wide->mesh || x->type.rank + x->type.axes[0].n > OLY_MAX_RANK)
        return OLY_OK;
    for (int k = 0; k < x->type.axes[0].n; k++)
        terms *= x->type.mesh->size[x->type.axes[0].axis[k]];
    for (int k = 0; k < wide->axes[0].n; k++)
        if (!has_axis(&x->type.axes[0], wide->axes[0].axis[k]))
            return OLY_OK;
    if (terms != x->type.shape[0] || wide->axes[0].n == 0)
        return OLY_OK;
    if (wide->axes[0].n < x->type.axes[0].n)
        return sum_over_others(g, x, wide, out);
    return oly_build_reshard(g, x, split, out);
}

oly_status oly_build_terms(oly_graph *g, const oly_node *node, const oly_type *wide, oly_sharding split, oly_node **out)
{
    const oly_op_row *row = &oly_ops[node->op];
    *out = NULL;
    if (!node->params.sharding || node->params.sharding->spec.unreduced != node->type.unreduced)
        return OLY_OK;
    if (row->lowering == OLY_LOWER_PLACE)
        return moved_terms(g, node, wide, split, out);
    if (row->lowering == OLY_LOWER_REDUCE && row->detail == OLY_COMBINE_SUM)
        return partial_sums(g, node, wide, split, out);
    return row->lowering == OLY_LOWER_CONTRACT ? partial_products(g, node, wide, split, out) : OLY_OK;
}
