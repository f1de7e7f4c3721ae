/* SPDX-License-Identifier: BSD-3-Clause */
/* Copying one graph into another, and removing nodes that matter only to gradients. See graph.h. */
#include "graph/graph.h"

int oly_graph_results(const oly_node *node)
{
    if (oly_ops[node->op].lowering == OLY_LOWER_BRANCH)
        return node->params.branches[0]->n_outputs;
    if (oly_ops[node->op].lowering == OLY_LOWER_CUSTOM)
        return node->params.n_carry;
    return oly_ops[node->op].lowering == OLY_LOWER_LOOP ? node->params.n_carry : -1;
}

static int input_number(const oly_graph *g, const oly_node *node)
{
    for (int k = 0; k < g->n_inputs; k++)
        if (g->inputs[k] == node)
            return k;
    return -1;
}

static oly_status copy_nodes(oly_graph *g, oly_graph *from, oly_node *const *in, bool move, oly_node **out);

static oly_status clone_into(const oly_graph *from, oly_graph *g)
{
    oly_node **in, **out;
    OLY_ARENA_LIST(&g->arena, in, from->n_inputs);
    OLY_ARENA_LIST(&g->arena, out, from->n_outputs);
    for (int k = 0; k < from->n_inputs; k++)
        OLY_TRY(oly_graph_input(g, &from->inputs[k]->type, &in[k]));
    OLY_TRY(copy_nodes(g, (oly_graph *)from, in, false, out));
    for (int k = 0; k < from->n_outputs; k++)
        OLY_TRY(oly_graph_output(g, out[k]));
    return OLY_OK;
}

oly_status oly_graph_clone(const oly_graph *from, oly_graph **made)
{
    oly_graph *g = oly_graph_new(from->name);
    oly_status st = g ? clone_into(from, g) : OLY_MEMORY;
    if (st != OLY_OK)
        oly_graph_free(g);
    *made = st == OLY_OK ? g : NULL;
    return st;
}

/* Clones, for a node's copy, the graphs inside it. */
static oly_status clone_graphs(oly_arena *arena, const oly_node *node, oly_params *p)
{
    oly_graph *const *graphs;
    int n = oly_node_graphs(node, &graphs);
    oly_graph **made = OLY_ARENA_NEW(arena, oly_graph *, n + 1);
    oly_status st = made ? OLY_OK : oly_out_of_memory(sizeof *made * (size_t)n, "the graphs of a node");
    int done = 0;
    for (; done < n && st == OLY_OK; done++)
        st = oly_graph_clone(graphs[done], &made[done]);
    for (int k = 0; st != OLY_OK && k < done; k++)
        oly_graph_free(made[k]);
    if (p->n_branches)
        p->branches = made;
    else if (n)
        p->body = made[0];
    return st;
}

static oly_status copy_node(oly_graph *g, oly_node *node, oly_node *const *copies, bool move, oly_node **copy)
{
    oly_node **in = OLY_ARENA_NEW(&g->arena, oly_node *, node->n_in + 1);
    oly_params p = node->params;
    if (!in)
        return oly_out_of_memory(sizeof *in * (size_t)node->n_in, "the operands of a node");
    for (int k = 0; k < node->n_in; k++)
        in[k] = copies[node->in[k]->index];
    if (!move)
        OLY_TRY(clone_graphs(&g->arena, node, &p));
    oly_restore_site(node->site);
    OLY_TRY(oly_graph_add(g, node->op, node->n_in, in, &p, copy));
    if (move) { /* the copy owns its graphs now */
        node->params.body = NULL;
        node->params.n_branches = 0;
    }
    return OLY_OK;
}

static oly_status copy_nodes(oly_graph *g, oly_graph *from, oly_node *const *in, bool move, oly_node **out)
{
    oly_site here = oly_current_site();
    oly_status st = OLY_OK;
    oly_node **copies = OLY_ARENA_NEW(&g->arena, oly_node *, from->n_nodes + 1);
    if (!copies)
        return oly_out_of_memory(sizeof *copies * (size_t)from->n_nodes, "a function in a function");
    for (int k = 0; k < from->n_nodes && st == OLY_OK; k++) {
        oly_node *node = from->nodes[k];
        if (node->op == OLY_OP_input)
            copies[k] = in[input_number(from, node)];
        else
            st = copy_node(g, node, copies, move, &copies[k]);
    }
    oly_restore_site(here);
    for (int k = 0; k < from->n_outputs && st == OLY_OK; k++)
        out[k] = copies[from->outputs[k]->index];
    return st;
}

oly_status oly_graph_inline(oly_graph *g, oly_graph *from, oly_node *const *in, oly_node **out)
{
    oly_graph_prune(from);
    return copy_nodes(g, from, in, true, out);
}

oly_status oly_graph_copy(oly_graph *g, const oly_graph *from, oly_node *const *in, oly_node **out)
{
    return copy_nodes(g, (oly_graph *)from, in, false, out);
}

/* -- order ----------------------------------------------------------------------------------------------------------- */

/* Operands first; `index` is the position in the new order, -1 before. */
static void place(oly_node *node, oly_node **order, int *n)
{
    if (node->index >= 0)
        return;
    node->index = 0; /* being visited */
    for (int k = 0; k < node->n_in; k++)
        place(node->in[k], order, n);
    node->index = *n;
    order[(*n)++] = node;
}

oly_status oly_graph_sort(oly_graph *g)
{
    int n = 0;
    oly_node **order = OLY_ARENA_NEW(&g->arena, oly_node *, g->capacity + 1);
    if (!order)
        return oly_out_of_memory(sizeof *order * (size_t)g->capacity, "the nodes of a graph");
    for (int k = 0; k < g->n_nodes; k++)
        g->nodes[k]->index = -1;
    for (int k = 0; k < g->n_nodes; k++)
        place(g->nodes[k], order, &n);
    g->nodes = order;
    return OLY_OK;
}

/* -- nodes that matter only to gradients ------------------------------------------------------------------- */

static oly_node *meant(oly_node *node)
{
    for (;;) {
        const oly_node *from = node->n_in ? node->in[0] : NULL;
        if (node->op == OLY_OP_stop_gradient)
            node = node->in[0];
        else if (node->op == OLY_OP_result && from->op == OLY_OP_custom)
            node = from->in[from->n_in - from->params.n_carry + node->params.dimension];
        else
            return node;
    }
}

void oly_graph_bypass(oly_graph *g)
{
    for (int k = 0; k < g->n_nodes; k++) {
        oly_graph_ahead(g, k, 1);
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
