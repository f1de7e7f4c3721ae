/* Batching rules of contractions. */
#include "graph/contract.h"
#include "transform/batch_rules.h"
#include <string.h>

/* Only one operand differs along the axis (vmap): there the axis is a free dimension, so that rows merge. In the result it stands
 * behind the batch dimensions, and for the second operand behind the first's free ones too. */
static oly_status one_side(oly_batch *b, const oly_node *node, oly_lifted *in, const oly_contraction_dims *dims,
                           oly_lifted *out)
{
    oly_params p = node->params;
    oly_contraction *c = &p.contraction;
    int o = in[1].axes != 0, order[OLY_MAX_RANK], rank = node->type.rank + 1;
    int at = c->n_batch + (o ? dims->n_free[0] : 0);
    for (int k = 0; k < c->n_batch; k++)
        c->batch[o][k]++;
    for (int k = 0; k < c->n_contract; k++)
        c->contract[o][k]++;
    OLY_TRY(oly_graph_add(b->into, node->op, 2, (oly_node *[]){in[0].node, in[1].node}, &p, &out->node));
    out->axes = in[o].axes;
    order[0] = at;
    for (int d = 1; d < rank; d++)
        order[d] = d <= at ? d - 1 : d;
    return oly_batch_reorder(b, &out->node, order);
}

oly_status oly_batching_dot_general(oly_batch *b, const oly_node *node, oly_lifted *in, oly_lifted *out)
{
    oly_params p = node->params;
    oly_contraction *c = &p.contraction;
    oly_contraction_dims dims;
    OLY_TRY(oly_contraction_read(&node->in[0]->type, &node->in[1]->type, c, &dims));
    if (!b->axes->mesh && !in[0].axes != !in[1].axes && node->type.rank < OLY_MAX_RANK)
        return one_side(b, node, in, &dims, out);
    OLY_TRY(oly_batch_align(b, 2, in));
    int lead = oly_batch_lead(in[0].axes);
    if (node->type.rank + lead > OLY_MAX_RANK)
        return oly_fail(OLY_SHAPE, "%s: the result, %s, would get %d batch dimensions more; arrays have at most %d",
                        oly_ops[node->op].name, oly_type_short(&node->type), lead, OLY_MAX_RANK);
    for (int o = 0; o < 2; o++) {
        for (int k = 0; k < c->n_contract; k++)
            c->contract[o][k] = (uint8_t)(c->contract[o][k] + lead);
        for (int k = c->n_batch - 1; k >= 0; k--)
            c->batch[o][k + lead] = (uint8_t)(c->batch[o][k] + lead);
        for (int k = 0; k < lead; k++)
            c->batch[o][k] = (uint8_t)k;
    }
    c->n_batch = (uint8_t)(c->n_batch + lead);
    return oly_batch_apply(b, node->op, 2, in, &p, out);
}
