/* SPDX-License-Identifier: BSD-3-Clause */
/* Loop-invariant hoisting: what a loop computes from values outside alone is computed once, before the loop,
 * together with its communication and with the transfer that brings the result to where the body reads it. The graph
 * is changed before anything is planned. Only values that are not much larger than their operands are hoisted, so
 * that memory does not grow. Invariant values of a branch inside a loop are hoisted too: their exchanges would run
 * before the branch in any case. Called by plan.c. */
#include "graph/call.h"
#include "plan/rewrite/rewrite.h"
#include <string.h>

/* A graph inside a node, searched for values that are the same in every iteration. */
typedef struct inside {
    oly_graph *outer, *graph;
    oly_node *node; /* in the outer graph; its operand k + shift is input k of `graph` */
    int shift;
    bool *same; /* [n_nodes] depends only on invariant inputs */
    int words;
    uint64_t *made_of;  /* [n_nodes][words] on which of them (bits) */
    bool *moved, *root; /* [n_nodes] copied to the outer graph; replaced by an input */
    oly_node **copies;  /* [n_nodes] in the outer graph */
} inside;

static double bytes_of(const oly_node *n)
{
    return (double)oly_type_size(&n->type) * (double)oly_dtype_size(n->type.dtype);
}

static bool has_bit(const uint64_t *bits, int k)
{
    return bits[k / 64] >> k % 64 & 1;
}

static uint64_t *made_of(const inside *x, int k)
{
    return x->made_of + (size_t)k * (size_t)x->words;
}

static double bytes_made_of(const inside *x, const uint64_t *inputs)
{
    double bytes = 0;
    for (int k = 0; k < x->graph->n_inputs; k++)
        if (has_bit(inputs, k))
            bytes += bytes_of(x->graph->inputs[k]);
    return bytes;
}

static bool is_computed(const oly_node *n)
{
    oly_lowering how = oly_ops[n->op].lowering;
    oly_graph *const *graphs;
    return how != OLY_LOWER_INPUT && how != OLY_LOWER_VIEW && how != OLY_LOWER_RESULT && n->n_in > 0 &&
           oly_node_graphs(n, &graphs) == 0;
}

/* Fills same[] and made_of[], given which inputs are invariant. */
static oly_status mark_same(inside *x, const bool *inputs)
{
    oly_graph *const *graphs;
    x->words = (x->graph->n_inputs + 63) / 64;
    OLY_ARENA_LIST(&x->outer->arena, x->same, x->graph->n_nodes);
    OLY_ARENA_LIST(&x->outer->arena, x->made_of, (size_t)x->graph->n_nodes * (size_t)x->words);
    for (int k = 0; k < x->graph->n_nodes; k++) {
        oly_graph_ahead(x->graph, k, 1);
        const oly_node *n = x->graph->nodes[k];
        x->same[k] = oly_ops[n->op].lowering != OLY_LOWER_INPUT && oly_ops[n->op].lowering != OLY_LOWER_RESULT &&
                     !oly_node_graphs(n, &graphs) && !oly_node_has_effect(n);
        for (int j = 0; j < n->n_in; j++) {
            x->same[k] = x->same[k] && x->same[n->in[j]->index];
            for (int w = 0; w < x->words; w++)
                made_of(x, k)[w] |= made_of(x, n->in[j]->index)[w];
        }
        for (int j = 0; oly_ops[n->op].lowering == OLY_LOWER_INPUT && j < x->graph->n_inputs; j++)
            if (x->graph->inputs[j] == n && inputs[j]) {
                x->same[k] = true;
                made_of(x, k)[j / 64] = 1ull << j % 64;
            }
    }
    return OLY_OK;
}

/* Chooses the roots: values that are worth computing once and are read by a node that stays. Visits nodes from last
 * to first, so that all readers are known. */
static void choose(inside *x)
{
    const oly_graph *g = x->graph;
    for (int k = g->n_nodes - 1; k >= 0; k--) {
        const oly_node *n = g->nodes[k];
        bool result = g->has_effects && oly_node_has_effect(n); /* it stays, and so its operands are worth moving */
        for (int j = 0; j < g->n_outputs; j++)
            result = result || g->outputs[j] == n;
        double from = x->same[k] && is_computed(n) && !result ? bytes_made_of(x, made_of(x, k)) : 0;
        bool good = from > 0 && bytes_of(n) <= 2 * from;
        bool read = x->root[k]; /* by a node that stays */
        x->root[k] = read && good;
        x->moved[k] = x->moved[k] || x->root[k];
        for (int j = 0; j < n->n_in; j++) {
            int in = n->in[j]->index;
            x->moved[in] = x->moved[in] || x->moved[k];
            x->root[in] = x->root[in] || result || (read && !x->root[k]);
        }
    }
}

static int input_number(const oly_graph *g, const oly_node *n)
{
    for (int k = 0; k < g->n_inputs; k++)
        if (g->inputs[k] == n)
            return k;
    return -1;
}

static oly_status copy_outside(inside *x, const oly_node *n)
{
    oly_node **in = OLY_ARENA_NEW(&x->outer->arena, oly_node *, n->n_in + 1);
    OLY_PLAN_CHECK(in);
    for (int j = 0; j < n->n_in; j++)
        in[j] = x->copies[n->in[j]->index];
    oly_restore_site(n->site);
    return oly_graph_add(x->outer, n->op, n->n_in, in, &n->params, &x->copies[n->index]);
}

/* Adds an input to the graph for a value that is now computed outside, and an operand to its node. */
static oly_status take_in(inside *x, int k)
{
    oly_node *from = x->graph->nodes[k], *input = NULL, **in;
    oly_graph *const *graphs;
    int n_graphs = oly_node_graphs(x->node, &graphs);
    for (int j = 0; j < n_graphs; j++) {
        oly_node *added;
        OLY_TRY(oly_graph_input(graphs[j], &from->type, &added));
        if (graphs[j] == x->graph)
            input = added;
    }
    in = OLY_ARENA_NEW(&x->outer->arena, oly_node *, x->node->n_in + 1);
    OLY_PLAN_CHECK(in);
    memcpy(in, x->node->in, sizeof *in * (size_t)x->node->n_in);
    in[x->node->n_in++] = x->copies[k];
    x->node->in = in;
    for (int u = 0; u < x->graph->n_nodes; u++)
        for (int j = 0; j < x->graph->nodes[u]->n_in; j++)
            if (x->graph->nodes[u]->in[j] == from)
                x->graph->nodes[u]->in[j] = input;
    return OLY_OK;
}

/* Moves the invariant values out of the graph, given which inputs are invariant. */
static oly_status move_out(oly_graph *outer, oly_node *node, oly_graph *graph, int shift, const bool *inputs, bool *any)
{
    oly_arena *arena = &outer->arena;
    int n = graph->n_nodes, n_roots = 0;
    if (!memchr(inputs, 1, (size_t)graph->n_inputs))
        return OLY_OK;
    inside x = {.outer = outer, .graph = graph, .node = node, .shift = shift};
    OLY_ARENA_LIST(arena, x.moved, n);
    OLY_ARENA_LIST(arena, x.root, n);
    OLY_ARENA_LIST(arena, x.copies, n);
    OLY_TRY(mark_same(&x, inputs));
    choose(&x);
    for (int k = 0; k < n; k++)
        n_roots += x.root[k];
    if (n_roots == 0)
        return OLY_OK;
    oly_site here = oly_current_site();
    oly_status st = OLY_OK;
    for (int k = 0; k < n && st == OLY_OK; k++) {
        if (!x.moved[k])
            continue;
        if (oly_ops[graph->nodes[k]->op].lowering == OLY_LOWER_INPUT)
            x.copies[k] = node->in[input_number(graph, graph->nodes[k]) + shift];
        else
            st = copy_outside(&x, graph->nodes[k]);
    }
    for (int k = 0; k < n && st == OLY_OK; k++)
        if (x.root[k])
            st = take_in(&x, k);
    oly_restore_site(here);
    OLY_TRY(st);
    *any = true;
    oly_graph *const *graphs;
    for (int j = oly_node_graphs(node, &graphs) - 1; j >= 0; j--)
        OLY_TRY(oly_graph_sort(graphs[j]));
    return oly_graph_sort(outer);
}

static bool is_loop(const oly_node *n)
{
    return oly_ops[n->op].lowering == OLY_LOWER_LOOP && (n->params.predicate || n->params.upper - n->params.lower > 1);
}

/* Which inputs of a loop's body are captures. */
static oly_status captures_of(const oly_node *loop, oly_arena *arena, bool **inputs)
{
    const oly_graph *body = loop->params.body;
    OLY_ARENA_LIST(arena, *inputs, body->n_inputs);
    for (int k = 1 + loop->params.n_carry; k < body->n_inputs; k++)
        (*inputs)[k] = true;
    return OLY_OK;
}

/* Moves invariant values from branches in a loop's body into the body. */
static oly_status out_of_branches(const oly_node *loop, bool *any)
{
    oly_graph *body = loop->params.body;
    oly_node **branches = OLY_ARENA_NEW(&body->arena, oly_node *, body->n_nodes + 1);
    int n_branches = 0;
    OLY_PLAN_CHECK(branches);
    for (int k = 0; k < body->n_nodes; k++)
        if (oly_ops[body->nodes[k]->op].lowering == OLY_LOWER_BRANCH)
            branches[n_branches++] = body->nodes[k];
    for (int b = 0; b < n_branches; b++)
        for (int g = 0; g < branches[b]->params.n_branches; g++) {
            inside x = {.outer = body, .graph = body};
            bool *inputs;
            OLY_TRY(captures_of(loop, &body->arena, &inputs));
            OLY_TRY(mark_same(&x, inputs));
            oly_graph *graph = branches[b]->params.branches[g];
            OLY_ARENA_LIST(&body->arena, inputs, graph->n_inputs);
            for (int k = 0; k < graph->n_inputs; k++)
                inputs[k] = x.same[branches[b]->in[k + 1]->index];
            OLY_TRY(move_out(body, branches[b], graph, 1, inputs, any));
        }
    return OLY_OK;
}

static oly_status move_all(oly_graph *g, bool *any)
{
    oly_graph *const *graphs;
    oly_node **inner = OLY_ARENA_NEW(&g->arena, oly_node *, g->n_nodes + 1);
    int n_inner = 0;
    OLY_PLAN_CHECK(inner);
    for (int k = 0; k < g->n_nodes; k++) {
        oly_graph_ahead(g, k, 1);
        if (oly_node_graphs(g->nodes[k], &graphs) > 0)
            inner[n_inner++] = g->nodes[k];
    }
    for (int k = 0; k < n_inner; k++) {
        for (int j = oly_node_graphs(inner[k], &graphs) - 1; j >= 0; j--)
            OLY_TRY(move_all(graphs[j], any));
        if (!is_loop(inner[k]))
            continue;
        OLY_TRY(out_of_branches(inner[k], any));
        bool *inputs;
        OLY_TRY(captures_of(inner[k], &g->arena, &inputs));
        OLY_TRY(move_out(g, inner[k], inner[k]->params.body, -1, inputs, any));
    }
    return OLY_OK;
}

oly_status oly_hoist(oly_graph *g)
{
    bool any = false;
    OLY_TRY(move_all(g, &any));
    if (any)
        oly_graph_prune(g);
    return OLY_OK;
}
