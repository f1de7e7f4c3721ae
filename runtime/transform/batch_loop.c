/* Batching of loops: the body is batched in turn. A carry is batched along an axis when what goes in or what the body makes of it
 * is; finding out which are takes as many rounds as there are changes. */
#include "transform/batch_rules.h"
#include <string.h>

/* The body with carries and captures batched along these axes; what it makes of the carries has the axes made[]. */
static oly_status batch_body(oly_batch *b, const oly_node *loop, const oly_lifted *in, const uint32_t *carried,
                             oly_graph **body, uint32_t *made)
{
    const oly_graph *inner = loop->params.body;
    oly_lifted inputs[64], outputs[64];
    oly_graph *g = oly_graph_new(inner->name);
    if (!g)
        return OLY_MEMORY;
    oly_batch within = {.into = g, .axes = b->axes};
    oly_status st = OLY_OK;
    for (int k = 0; k < inner->n_inputs && st == OLY_OK; k++) {
        const oly_type *type = k == 0 ? &inner->inputs[0]->type : &in[k - 1].node->type;
        inputs[k].axes = k == 0 ? 0 : in[k - 1].axes;
        st = oly_graph_input(g, type, &inputs[k].node);
    }
    if (st == OLY_OK)
        st = oly_batch_graph(g, b->axes, inner, inputs, outputs);
    for (int k = 0; k < loop->params.n_carry && st == OLY_OK; k++) {
        made[k] = outputs[k].axes;
        st = oly_batch_vary(&within, &outputs[k], carried[k]);
        if (st == OLY_OK)
            st = oly_graph_output(g, outputs[k].node);
    }
    if (st != OLY_OK)
        oly_graph_free(g);
    *body = st == OLY_OK ? g : NULL;
    return st;
}

static oly_status add_loop(oly_batch *b, const oly_node *loop, const oly_lifted *in, oly_graph *body, oly_lifted *out)
{
    oly_params p = loop->params;
    p.body = body;
    oly_status st = oly_batch_apply(b, loop->op, loop->n_in, in, &p, out);
    if (st != OLY_OK)
        oly_graph_free(body);
    return st;
}

oly_status oly_batching_loop(oly_batch *b, const oly_node *node, oly_lifted *in, oly_lifted *out)
{
    int n = node->params.n_carry;
    uint32_t *carried = OLY_ARENA_NEW(&b->into->arena, uint32_t, 2 * n + 1), *made = carried + n;
    if (!carried)
        return oly_out_of_memory(sizeof *carried * (size_t)n, "a loop");
    for (int k = 0; k < n; k++)
        carried[k] = in[k].axes;
    b->carried[node->index] = carried;
    for (;;) {
        oly_graph *body;
        bool more = false;
        for (int k = 0; k < n; k++)
            OLY_TRY(oly_batch_vary(b, &in[k], carried[k]));
        OLY_TRY(batch_body(b, node, in, carried, &body, made));
        for (int k = 0; k < n; k++) {
            more = more || (made[k] & ~carried[k]);
            carried[k] |= made[k];
        }
        if (!more)
            return add_loop(b, node, in, body, out);
        oly_graph_free(body);
    }
}

oly_status oly_batching_result(oly_batch *b, const oly_node *node, oly_lifted *in, oly_lifted *out)
{
    OLY_TRY(oly_graph_add(b->into, node->op, 1, &in[0].node, &node->params, &out->node));
    out->axes = b->carried[node->in[0]->index][node->params.dimension];
    return OLY_OK;
}
