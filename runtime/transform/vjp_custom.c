/* SPDX-License-Identifier: BSD-3-Clause */
/* The gradient of a function with a derivative of its own: its forward graph takes the place of the function, and its backward graph
 * pulls the cotangents back. */
#include "graph/call.h"
#include "transform/gradient.h"
#include "transform/rule.h"
#include <string.h>

/* Operands: the inputs of `forward` (arguments and captures), captures of `backward`, results. */
static oly_status pull_back(oly_rule *r)
{
    const oly_params *p = &r->node->params;
    const oly_graph *forward = p->branches[0], *backward = p->branches[1];
    int n_out = p->n_carry, n_residuals = forward->n_outputs - n_out,
        n_captured = backward->n_inputs - n_residuals - n_out, n = 0;
    oly_node **out, **in, **cotangent, **operands;
    OLY_ARENA_LIST(&r->g->arena, out, forward->n_outputs);
    OLY_ARENA_LIST(&r->g->arena, in, backward->n_inputs);
    OLY_ARENA_LIST(&r->g->arena, cotangent, backward->n_outputs);
    OLY_TRY(oly_graph_copy(r->g, forward, r->node->in, out));
    for (int k = 0; k < n_residuals; k++)
        in[n++] = out[n_out + k];
    for (int k = 0; k < n_out; k++) {
        in[n] = r->cotangents[k];
        if (!in[n])
            OLY_TRY(oly_zeros_like(r->g, out[k], &in[n]));
        n++;
    }
    for (int k = 0; k < n_captured; k++)
        in[n++] = r->node->in[forward->n_inputs + k];
    OLY_TRY(oly_graph_copy(r->g, backward, in, cotangent));
    for (int k = 0; k < backward->n_outputs; k++)
        r->operands[k] = r->wanted[k] ? cotangent[k] : NULL;
    OLY_ARENA_LIST(&r->g->arena, operands,
                   r->node->n_in); /* the results are now those of the forward graph, which comes later */
    memcpy(operands, r->node->in, sizeof *operands * (size_t)r->node->n_in);
    for (int k = 0; k < n_out; k++)
        operands[r->node->n_in - n_out + k] = out[k];
    r->node->in = operands;
    r->g->unsorted = true;
    return OLY_OK;
}

void oly_vjp_custom(oly_rule *r)
{
    r->status = pull_back(r);
}
