/* Terms of sums over devices. See terms.h. */
#include "graph/terms.h"
#include "graph/build.h"
#include <string.h>

/* Is dimension d cut into `terms` equal blocks over the axes of dimension 0 of the wide type? */
static bool is_cut(const oly_type *x, int d, const oly_type *wide)
{
    return oly_axis_list_equal(&x->axes[d], &wide->axes[0]) && x->shape[d] % wide->shape[0] == 0;
}

/* Dimension d as two: the blocks, in front of all dimensions, and what lies in a block, in its place. */
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

oly_status oly_build_terms(oly_graph *g, const oly_node *node, const oly_type *wide, oly_sharding split, oly_node **out)
{
    const oly_op_row *row = &oly_ops[node->op];
    *out = NULL;
    if (!node->params.sharding || node->params.sharding->spec.unreduced != node->type.unreduced)
        return OLY_OK;
    if (row->lowering == OLY_LOWER_REDUCE && row->detail == OLY_COMBINE_SUM)
        return partial_sums(g, node, wide, split, out);
    return row->lowering == OLY_LOWER_CONTRACT ? partial_products(g, node, wide, split, out) : OLY_OK;
}
