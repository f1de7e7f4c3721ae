/* SPDX-License-Identifier: BSD-3-Clause */
/* Components that loops carry: a carry whose parts alone are read, and which is put together from them, becomes several carries. See
 * components.h. */
#include "graph/components.h"
#include <string.h>

/* Does the loop's body read carry c part by part only, and is what it becomes put together from these parts? */
static bool falls_into_parts(const oly_node *loop, int c)
{
    const oly_graph *body = loop->params.body;
    const oly_node *carry = body->inputs[1 + c], *next = body->outputs[c];
    bool read = false;
    if (!oly_has_components(next) || carry->type.mesh || loop->in[c]->type.mesh || loop->params.predicate == c + 1)
        return false;
    for (int k = 0; k < body->n_outputs; k++)
        if (body->outputs[k] == carry)
            return false;
    for (int k = 0; k < body->n_nodes; k++)
        for (int j = 0; j < body->nodes[k]->n_in; j++)
            if (body->nodes[k]->in[j] == carry) {
                if (!oly_is_plain_slice(body->nodes[k]) || oly_component_read(body->nodes[k], next) < 0)
                    return false;
                read = true;
            }
    return read;
}

/* Makes a node, in its place, what another of its type is: its readers need not be found. */
static void become(oly_node *node, const oly_node *made)
{
    node->op = made->op;
    node->params = made->params;
    node->n_in = made->n_in;
    node->in = made->in;
    node->hash = made->hash;
}

/* Takes an input that is none any more off the nodes. */
static void drop_node(oly_graph *g, const oly_node *node)
{
    int kept = 0;
    for (int k = 0; k < g->n_nodes; k++)
        if (g->nodes[k] != node) {
            g->nodes[k]->index = kept;
            g->nodes[kept++] = g->nodes[k];
        }
    g->n_nodes = kept;
}

/* The body's inputs and outputs: the parts, the first in the carry's place, the others after the last carry. */
static oly_status divide_body(oly_graph *body, int n_carry, int c, const oly_node *next)
{
    int n = next->n_in, at = 1 + n_carry, d = next->params.dimension;
    oly_node *carry = body->inputs[1 + c], *part[OLY_MOST_COMPONENTS], *made[OLY_MOST_COMPONENTS];
    for (int k = 0; k < n; k++) {
        oly_type type = carry->type;
        type.shape[d] = next->in[k]->type.shape[d];
        type = oly_components_are_thin(next) ? oly_type_without(type, d) : type;
        made[k] = next->in[k];
        if (oly_components_are_thin(next))
            OLY_TRY(oly_component_thin(body, &made[k], d, next->site));
        OLY_TRY(oly_graph_input(body, &type, &part[k]));
        if (k > 0)
            OLY_TRY(oly_graph_output(body, made[k]));
    }
    body->n_inputs -= n;
    memmove(body->inputs + at + n - 1, body->inputs + at, sizeof(oly_node *) * (size_t)(body->n_inputs - at));
    memcpy(body->inputs + at, part + 1, sizeof(oly_node *) * (size_t)(n - 1));
    body->inputs[1 + c] = part[0];
    body->n_inputs += n - 1;
    body->outputs[c] = made[0];
    for (int k = 0; k < body->n_nodes; k++) {
        oly_node *slice = body->nodes[k];
        if (slice->n_in == 0 || slice->in[0] != carry)
            continue;
        int p = oly_component_read(slice, next);
        oly_params params = slice->params;
        oly_node *of = part[p], *shown;
        params.start[d] -= oly_component_begin(next, p);
        if (oly_components_are_thin(next))
            OLY_TRY(oly_component_thicken(body, &of, d, slice->site));
        OLY_TRY(oly_graph_add(body, slice->op, 1, &of, &params, &shown));
        become(slice, shown);
    }
    drop_node(body, carry);
    return oly_graph_sort(body);
}

/* What the loop begins with: slices of the carry's value. */
static oly_status divide_operands(oly_graph *g, oly_node *loop, int c, const oly_node *next)
{
    int n = next->n_in, d = next->params.dimension, n_carry = loop->params.n_carry;
    oly_node **in = OLY_ARENA_NEW(&g->arena, oly_node *, loop->n_in + n), *x = loop->in[c];
    if (!in)
        return oly_out_of_memory(sizeof *in * (size_t)(loop->n_in + n), "the nodes of a graph");
    memcpy(in, loop->in, sizeof *in * (size_t)n_carry);
    memcpy(in + n_carry + n - 1, loop->in + n_carry, sizeof *in * (size_t)(loop->n_in - n_carry));
    for (int k = 0; k < n; k++) {
        oly_node **to = k ? &in[n_carry + k - 1] : &in[c];
        OLY_TRY(oly_component_slice(g, x, d, oly_component_begin(next, k), next->in[k]->type.shape[d], loop->site, to));
        if (oly_components_are_thin(next))
            OLY_TRY(oly_component_thin(g, to, d, loop->site));
    }
    loop->in = in;
    loop->n_in += n - 1;
    loop->params.n_carry += n - 1;
    return OLY_OK;
}

/* Results of the loop are put together again. */
static oly_status join_results(oly_graph *g, oly_node *loop, int c, const oly_node *next, int n_carry)
{
    int n_nodes = g->n_nodes;
    for (int k = 0; k < n_nodes; k++) {
        oly_node *result = g->nodes[k], *part[OLY_MOST_COMPONENTS], *made;
        if (oly_ops[result->op].lowering != OLY_LOWER_RESULT || result->in[0] != loop || result->params.dimension != c)
            continue;
        for (int j = 0; j < next->n_in; j++) {
            oly_params params = result->params;
            params.dimension = j ? n_carry + j - 1 : c;
            OLY_TRY(oly_graph_add(g, result->op, 1, &loop, &params, &part[j]));
            part[j]->site = result->site;
            if (oly_components_are_thin(next))
                OLY_TRY(oly_component_thicken(g, &part[j], next->params.dimension, result->site));
        }
        oly_params params = {.dimension = next->params.dimension};
        OLY_TRY(oly_graph_add(g, OLY_OP_concatenate, next->n_in, part, &params, &made));
        become(result, made);
    }
    return OLY_OK;
}

oly_status oly_separate_carries(oly_graph *g, oly_node *loop, bool *any)
{
    for (int c = 0, n = loop->params.n_carry; c < n; c++) {
        int n_carry = loop->params.n_carry;
        if (loop->params.unrolled || !falls_into_parts(loop, c))
            continue;
        const oly_node *next = loop->params.body->outputs[c];
        OLY_TRY(divide_body(loop->params.body, n_carry, c, next));
        OLY_TRY(divide_operands(g, loop, c, next));
        OLY_TRY(join_results(g, loop, c, next, n_carry));
        *any = true;
    }
    return OLY_OK;
}
