/* SPDX-License-Identifier: BSD-3-Clause */
/* Batching rules of operations within each slice: their dimensions follow the leading ones. */
#include "transform/batch_rules.h"
#include "graph/build.h"
#include <string.h>

/* The same operation with unchanged parameters. */
oly_status oly_batching_elementwise(oly_batch *b, const oly_node *node, oly_lifted *in, oly_lifted *out)
{
    OLY_TRY(oly_batch_align(b, node->n_in, in));
    return oly_batch_apply(b, node->op, node->n_in, in, &node->params, out);
}

/* Dimensions in params.axes. */
oly_status oly_batching_axes(oly_batch *b, const oly_node *node, oly_lifted *in, oly_lifted *out)
{
    oly_params p = node->params;
    for (int k = 0; k < p.n_axes; k++)
        p.axes[k] += oly_batch_lead(in[0].axes);
    return oly_batch_apply(b, node->op, 1, in, &p, out);
}

/* One dimension, in params.dimension. */
oly_status oly_batching_dimension(oly_batch *b, const oly_node *node, oly_lifted *in, oly_lifted *out)
{
    oly_params p = node->params;
    OLY_TRY(oly_batch_align(b, node->n_in, in));
    p.dimension += oly_batch_lead(in[0].axes);
    return oly_batch_apply(b, node->op, node->n_in, in, &p, out);
}

/* A whole shape, in params.shape. */
oly_status oly_batching_shape(oly_batch *b, const oly_node *node, oly_lifted *in, oly_lifted *out)
{
    oly_params p = node->params;
    OLY_TRY(oly_batch_shape(in[0], false, &p));
    return oly_batch_apply(b, node->op, 1, in, &p, out);
}

/* A part, in params.start, shape and step. */
oly_status oly_batching_part(oly_batch *b, const oly_node *node, oly_lifted *in, oly_lifted *out)
{
    oly_params p = node->params;
    OLY_TRY(oly_batch_align(b, node->n_in, in));
    OLY_TRY(oly_batch_shape(in[0], true, &p));
    return oly_batch_apply(b, node->op, node->n_in, in, &p, out);
}

/* Every dimension has its position in params.axes: the leading ones keep theirs. */
static void lead_axes(int lead, oly_params *p)
{
    memmove(&p->axes[lead], p->axes, sizeof *p->axes * (size_t)p->n_axes);
    for (int d = 0; d < lead; d++)
        p->axes[d] = d;
    for (int k = lead; k < lead + p->n_axes; k++)
        p->axes[k] += lead;
    p->n_axes += lead;
}

oly_status oly_batching_transpose(oly_batch *b, const oly_node *node, oly_lifted *in, oly_lifted *out)
{
    oly_params p = node->params;
    lead_axes(oly_batch_lead(in[0].axes), &p);
    return oly_batch_apply(b, node->op, 1, in, &p, out);
}

oly_status oly_batching_broadcast(oly_batch *b, const oly_node *node, oly_lifted *in, oly_lifted *out)
{
    oly_params p = node->params;
    OLY_TRY(oly_batch_shape(in[0], false, &p));
    lead_axes(oly_batch_lead(in[0].axes), &p);
    return oly_batch_apply(b, node->op, 1, in, &p, out);
}
