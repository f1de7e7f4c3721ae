/* SPDX-License-Identifier: BSD-3-Clause */
/* Batching of padding. A padding value that varies between slices is inserted afterwards. See batch_shape.c. */
#include "transform/batch_rules.h"
#include "graph/build.h"
#include <string.h>

/* in[0] padded with a number. */
static oly_status pad_with_number(oly_batch *b, oly_node *x, double value, const oly_params *p, oly_node **out)
{
    oly_node *both[2] = {x, NULL};
    OLY_TRY(oly_build_number(b->into, x->type.dtype, value, &both[1]));
    return oly_graph_add(b->into, OLY_OP_pad, 2, both, p, out);
}

/* One element of every slice, broadcast over the slice. */
static oly_status repeat_over(oly_batch *b, oly_node *x, const oly_type *whole, oly_node **out)
{
    oly_params p;
    memset(&p, 0, sizeof p);
    p.rank = whole->rank;
    p.n_axes = x->type.rank;
    memcpy(p.shape, whole->shape, sizeof p.shape);
    for (int d = 0; d < p.n_axes; d++)
        p.axes[d] = d;
    *out = x;
    return p.n_axes == p.rank ? OLY_OK : oly_graph_add(b->into, OLY_OP_broadcast, 1, &x, &p, out);
}

oly_status oly_batching_pad(oly_batch *b, const oly_node *node, oly_lifted *in, oly_lifted *out)
{
    oly_params p = node->params;
    if (in[1].axes == 0) {
        oly_node *both[2] = {in[0].node, in[1].node};
        OLY_TRY(oly_batch_shape(in[0], true, &p));
        out->axes = in[0].axes;
        return oly_graph_add(b->into, node->op, 2, both, &p, &out->node);
    }
    oly_node *truth, *all[3];
    OLY_TRY(oly_batch_align(b, 2, in));
    OLY_TRY(oly_batch_shape(in[0], true, &p));
    OLY_TRY(oly_build_number(b->into, OLY_BOOL, 1, &truth));
    OLY_TRY(oly_build_broadcast(b->into, truth, in[0].node->type.rank, in[0].node->type.shape, &truth));
    OLY_TRY(pad_with_number(b, truth, 0, &p, &all[0]));
    OLY_TRY(pad_with_number(b, in[0].node, 0, &p, &all[1]));
    OLY_TRY(repeat_over(b, in[1].node, &all[1]->type, &all[2]));
    out->axes = in[0].axes;
    return oly_graph_add(b->into, OLY_OP_select, 3, all, NULL, &out->node);
}
