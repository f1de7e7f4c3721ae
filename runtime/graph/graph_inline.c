/* One graph copied into another, and nodes taken out that only gradients look at. See graph.h. */
#include "graph/graph.h"

int oly_graph_results(const oly_node *node)
{
    if (oly_ops[node->op].lowering == OLY_LOWER_BRANCH)
        return node->params.branches[0]->n_outputs;
    return oly_ops[node->op].lowering == OLY_LOWER_LOOP ? node->params.n_carry : -1;
}

static int input_number(const oly_graph *g, const oly_node *node)
{
    for (int k = 0; k < g->n_inputs; k++)
        if (g->inputs[k] == node)
            return k;
    return -1;
}

static oly_status copy_node(oly_graph *g, oly_node *node, oly_node *const *copies, oly_node **copy)
{
    oly_node **in = OLY_ARENA_NEW(&g->arena, oly_node *, node->n_in + 1);
    if (!in)
        return oly_out_of_memory(sizeof *in * (size_t)node->n_in, "the operands of a node");
    for (int k = 0; k < node->n_in; k++)
        in[k] = copies[node->in[k]->index];
    oly_restore_site(node->site);
    OLY_TRY(oly_graph_add(g, node->op, node->n_in, in, &node->params, copy));
    node->params.body = NULL; /* the copy's now, and so are the branches */
    node->params.n_branches = 0;
    return OLY_OK;
}

oly_status oly_graph_inline(oly_graph *g, oly_graph *from, oly_node *const *in, oly_node **out)
{
    oly_site here = oly_current_site();
    oly_status st = OLY_OK;
    oly_graph_prune(from);
    oly_node **copies = OLY_ARENA_NEW(&g->arena, oly_node *, from->n_nodes + 1);
    if (!copies)
        return oly_out_of_memory(sizeof *copies * (size_t)from->n_nodes, "a function in a function");
    for (int k = 0; k < from->n_nodes && st == OLY_OK; k++) {
        oly_node *node = from->nodes[k];
        if (node->op == OLY_OP_input)
            copies[k] = in[input_number(from, node)];
        else
            st = copy_node(g, node, copies, &copies[k]);
    }
    oly_restore_site(here);
    for (int k = 0; k < from->n_outputs && st == OLY_OK; k++)
        out[k] = copies[from->outputs[k]->index];
    return st;
}

static oly_node *meant(oly_node *node)
{
    while (node->op == OLY_OP_stop_gradient)
        node = node->in[0];
    return node;
}

void oly_graph_bypass(oly_graph *g)
{
    for (int k = 0; k < g->n_nodes; k++) {
        oly_node *node = g->nodes[k];
        for (int j = 0; j < node->n_in; j++)
            node->in[j] = meant(node->in[j]);
        oly_graph *const *graphs;
        for (int j = oly_node_graphs(node, &graphs) - 1; j >= 0; j--)
            oly_graph_bypass(graphs[j]);
    }
    for (int k = 0; k < g->n_outputs; k++)
        g->outputs[k] = meant(g->outputs[k]);
}
