/* What a loop computes from values of outside alone is computed once, before it: its communication with it, and that which brings
 * the result to where the body reads it. The graph is changed before anything is planned. Only values that are not much
 * larger than what they are made of are moved, so that memory does not grow. What a branch inside a loop computes so is moved, too:
 * its exchanges would come before the branch in any case. Called by plan.c. */
#include "plan/planner.h"
#include <string.h>

enum { MOST_INPUTS = 64 }; /* that are looked at: bits */

/* A graph inside a node, looked at for what is the same in every iteration. */
typedef struct inside {
    oly_graph *outer, *graph;
    oly_node *node; /* in outer: operand k + shift is the graph's input k */
    int shift;
    bool *same;         /* [n_nodes] made of inputs that stay the same */
    uint64_t *made_of;  /* [n_nodes] those inputs (bits) */
    bool *moved, *root; /* [n_nodes] copied to the outside; and replaced by an input */
    oly_node **copies;  /* [n_nodes] in outer */
} inside;

static double bytes_of(const oly_node *n)
{
    return (double)oly_type_size(&n->type) * (double)oly_dtype_size(n->type.dtype);
}

static double bytes_made_of(const inside *x, uint64_t inputs)
{
    double bytes = 0;
    for (int k = 0; k < x->graph->n_inputs; k++)
        if (k < MOST_INPUTS && inputs >> k & 1)
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

static void mark_same(inside *x, uint64_t inputs)
{
    oly_graph *const *graphs;
    for (int k = 0; k < x->graph->n_nodes; k++) {
        oly_graph_ahead(x->graph, k, 1);
        const oly_node *n = x->graph->nodes[k];
        x->same[k] = oly_ops[n->op].lowering != OLY_LOWER_INPUT && oly_ops[n->op].lowering != OLY_LOWER_RESULT &&
                     !oly_node_graphs(n, &graphs);
        for (int j = 0; j < n->n_in; j++) {
            x->same[k] = x->same[k] && x->same[n->in[j]->index];
            x->made_of[k] |= x->made_of[n->in[j]->index];
        }
        for (int j = 0; oly_ops[n->op].lowering == OLY_LOWER_INPUT && j < x->graph->n_inputs; j++)
            if (j < MOST_INPUTS && x->graph->inputs[j] == n && inputs >> j & 1) {
                x->same[k] = true;
                x->made_of[k] = 1ull << j;
            }
    }
}

/* Roots: what is worth computing once and is read by a node that stays. From the last node on, so that readers are known. */
static void choose(inside *x)
{
    const oly_graph *g = x->graph;
    int room = OLY_MOST_ENDS - 4 - g->n_inputs;
    for (int k = g->n_nodes - 1; k >= 0; k--) {
        const oly_node *n = g->nodes[k];
        bool result = false;
        for (int j = 0; j < g->n_outputs; j++)
            result = result || g->outputs[j] == n;
        bool good = x->same[k] && x->made_of[k] && is_computed(n) && !result && room > 0 &&
                    bytes_of(n) <= 2 * bytes_made_of(x, x->made_of[k]);
        bool read = x->root[k]; /* by one that stays */
        x->root[k] = read && good;
        x->moved[k] = x->moved[k] || x->root[k];
        room -= x->root[k];
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

/* The graph gets an input for a value that is now made outside; its node one operand more. */
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

/* Moves what stays the same when these inputs (bits) do. */
static oly_status move_out(oly_graph *outer, oly_node *node, oly_graph *graph, int shift, uint64_t inputs, bool *any)
{
    oly_arena *arena = &outer->arena;
    int n = graph->n_nodes, n_roots = 0;
    if (inputs == 0)
        return OLY_OK;
    inside x = {outer,
                graph,
                node,
                shift,
                OLY_ARENA_NEW(arena, bool, n + 1),
                OLY_ARENA_NEW(arena, uint64_t, n + 1),
                OLY_ARENA_NEW(arena, bool, n + 1),
                OLY_ARENA_NEW(arena, bool, n + 1),
                OLY_ARENA_NEW(arena, oly_node *, n + 1)};
    OLY_PLAN_CHECK(x.same && x.made_of && x.moved && x.root ? x.copies : NULL);
    mark_same(&x, inputs);
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

/* All inputs from `first` on. */
static uint64_t from(int first, int n)
{
    return n > first && first < MOST_INPUTS ? (n < MOST_INPUTS ? (1ull << n) - 1 : ~0ull) & ~((1ull << first) - 1) : 0;
}

/* From the branches of a loop's body into the body, when it stays the same in every iteration. */
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
            inside x = {.graph = body,
                        .same = OLY_ARENA_NEW(&body->arena, bool, body->n_nodes + 1),
                        .made_of = OLY_ARENA_NEW(&body->arena, uint64_t, body->n_nodes + 1)};
            OLY_PLAN_CHECK(x.same ? x.made_of : NULL);
            mark_same(&x, from(1 + loop->params.n_carry, body->n_inputs));
            oly_graph *graph = branches[b]->params.branches[g];
            uint64_t inputs = 0;
            for (int k = 0; k < graph->n_inputs && k < MOST_INPUTS; k++)
                if (x.same[branches[b]->in[k + 1]->index])
                    inputs |= 1ull << k;
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
        OLY_TRY(move_out(g, inner[k], inner[k]->params.body, -1,
                         from(1 + inner[k]->params.n_carry, inner[k]->params.body->n_inputs), any));
    }
    return OLY_OK;
}

oly_status oly_move_invariants(oly_graph *g)
{
    bool any = false;
    OLY_TRY(move_all(g, &any));
    if (any)
        oly_graph_prune(g);
    return OLY_OK;
}
