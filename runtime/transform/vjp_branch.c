/* SPDX-License-Identifier: BSD-3-Clause */
/* The gradient of a branch: a branch by the same index, in which every alternative recomputes its values and pulls the cotangents
 * back. */
#include "graph/call.h"
#include "transform/gradient.h"
#include "transform/rule.h"
#include <string.h>

/* Inputs: those of the branch, then the cotangents of the results that have one. Outputs: a cotangent of every requested operand. */
static oly_status record_side(const oly_rule *r, const oly_graph *side, oly_graph *g)
{
    oly_node **in, **out, **cotangent, **wrt, **gradient;
    int n_wrt = 0;
    OLY_ARENA_LIST(&g->arena, in, side->n_inputs);
    OLY_ARENA_LIST(&g->arena, out, side->n_outputs);
    OLY_ARENA_LIST(&g->arena, cotangent, side->n_outputs);
    OLY_ARENA_LIST(&g->arena, wrt, side->n_inputs);
    OLY_ARENA_LIST(&g->arena, gradient, side->n_inputs);
    for (int k = 0; k < side->n_inputs; k++)
        OLY_TRY(oly_graph_input(g, &side->inputs[k]->type, &in[k]));
    for (int k = 0; k < side->n_outputs; k++)
        if (r->cotangents[k])
            OLY_TRY(oly_graph_input(g, &r->cotangents[k]->type, &cotangent[k]));
    OLY_TRY(oly_graph_copy(g, side, in, out));
    oly_graph_silence(g); /* it is computed once more */
    for (int k = 0; k < side->n_inputs; k++)
        if (r->wanted[1 + k])
            wrt[n_wrt++] = in[k];
    OLY_TRY(oly_gradient(g, side->n_outputs, out, cotangent, n_wrt, wrt, gradient));
    for (int k = 0; k < n_wrt; k++) {
        if (!gradient[k])
            OLY_TRY(oly_zeros_like(g, wrt[k], &gradient[k]));
        OLY_TRY(oly_graph_output(g, gradient[k]));
    }
    return OLY_OK;
}

static oly_status add_branch(oly_rule *r, oly_graph **sides, oly_node **made)
{
    oly_node **in;
    oly_params p;
    int n = r->node->n_in;
    OLY_ARENA_LIST(&r->g->arena, in, n + oly_graph_results(r->node));
    memcpy(in, r->node->in, sizeof *in * (size_t)n);
    for (int k = 0; k < oly_graph_results(r->node); k++)
        if (r->cotangents[k])
            in[n++] = r->cotangents[k];
    memset(&p, 0, sizeof p);
    p.n_branches = r->node->params.n_branches;
    p.branches = sides;
    return oly_graph_add(r->g, OLY_OP_branch, n, in, &p, made);
}

static oly_status take_results(oly_rule *r, oly_node *branch)
{
    int n = 0;
    for (int k = 0; k < r->node->n_in; k++)
        if (r->wanted[k]) {
            oly_params which;
            memset(&which, 0, sizeof which);
            which.dimension = n++;
            OLY_TRY(oly_graph_add(r->g, OLY_OP_result, 1, &branch, &which, &r->operands[k]));
        }
    return OLY_OK;
}

void oly_vjp_branch(oly_rule *r)
{
    int n = r->node->params.n_branches, made = 0;
    oly_node *branch;
    oly_graph **sides = OLY_ARENA_NEW(&r->g->arena, oly_graph *, n + 1);
    if (!sides)
        r->status = oly_out_of_memory(sizeof *sides * (size_t)n, "the gradient of a branch");
    while (made < n && r->status == OLY_OK) {
        oly_graph *g = sides[made] = oly_graph_new("side");
        r->status = g ? record_side(r, r->node->params.branches[made], g) : OLY_MEMORY;
        made += g != NULL;
    }
    if (r->status == OLY_OK)
        r->status = add_branch(r, sides, &branch);
    if (r->status == OLY_OK)
        r->status = take_results(r, branch);
    else
        for (int k = 0; k < made; k++)
            oly_graph_free(sides[k]);
}
