/* SPDX-License-Identifier: BSD-3-Clause */
/* Batching rules of operations by index: their operands share leading dimensions, whose number increases. */
#include "transform/batch_rules.h"

/* Dimensions in params.axes and params.n_batch. */
oly_status oly_batching_indexed(oly_batch *b, const oly_node *node, oly_lifted *in, oly_lifted *out)
{
    oly_params p = node->params;
    OLY_TRY(oly_batch_align(b, node->n_in, in));
    int lead = oly_batch_lead(in[0].axes);
    p.n_batch += lead;
    for (int k = 0; k < p.n_axes; k++)
        p.axes[k] += lead;
    return oly_batch_apply(b, node->op, node->n_in, in, &p, out);
}

/* Also the sizes of the part. */
oly_status oly_batching_dynamic_slice(oly_batch *b, const oly_node *node, oly_lifted *in, oly_lifted *out)
{
    oly_params p = node->params;
    OLY_TRY(oly_batch_align(b, node->n_in, in));
    OLY_TRY(oly_batch_shape(in[0], false, &p));
    p.n_batch += oly_batch_lead(in[0].axes);
    return oly_batch_apply(b, node->op, node->n_in, in, &p, out);
}
