/* SPDX-License-Identifier: BSD-3-Clause */
/* Common subexpressions: values that the same operations compute from the same values are one value, computed once. Views stay as many as
 * the program has, as they cost nothing, and so do values made of constants alone, which are cheap to make where they are read. In bodies
 * of loops and branches, captures of one value are one value. See graph.h. */
#include "core/hash.h"
#include "graph/call.h"
#include "graph/graph.h"
#include <string.h>

/* Nodes of one graph by class: all nodes of a class have one value. */
typedef struct sharing {
    oly_graph *g;
    oly_node **first; /* [node] the first node of its class */
    bool *constant;   /* [node] made of constants alone */
    int mask;         /* of the table */
    oly_node **table; /* first nodes, by hash */
    bool any;         /* nodes read another node now */
} sharing;

static bool same_params(const oly_params *a, const oly_params *b)
{
    if (a->window && b->window && memcmp(a->window, b->window, sizeof *a->window) == 0) {
        oly_params like = *a;
        like.window = b->window;
        return memcmp(&like, b, sizeof like) == 0;
    }
    return memcmp(a, b, sizeof *a) == 0;
}

static bool same_operation(const sharing *s, const oly_node *a, const oly_node *b)
{
    bool same = a->op == b->op && a->n_in == b->n_in && same_params(&a->params, &b->params);
    for (int k = 0; k < a->n_in && same; k++)
        same = s->first[a->in[k]->index] == s->first[b->in[k]->index];
    return same;
}

static uint64_t hash_of(const sharing *s, const oly_node *n)
{
    uint64_t h = oly_hash_mix((uint64_t)n->op, n->hash);
    for (int k = 0; k < n->n_in; k++)
        h = oly_hash_mix(h, (uint64_t)s->first[n->in[k]->index]->index);
    return h;
}

/* The first node of this node's class. */
static oly_node *find(sharing *s, oly_node *n)
{
    oly_graph *const *graphs;
    oly_lowering how = oly_ops[n->op].lowering;
    if (how == OLY_LOWER_INPUT || how == OLY_LOWER_CUSTOM || how == OLY_LOWER_CALL || n->params.call ||
        oly_node_graphs(n, &graphs) > 0 || oly_node_has_effect(n))
        return n;
    int at = (int)(hash_of(s, n) & (uint64_t)s->mask);
    while (s->table[at] && !same_operation(s, s->table[at], n))
        at = (at + 1) & s->mask;
    if (!s->table[at])
        s->table[at] = n;
    return s->table[at];
}

static bool is_computed(const sharing *s, const oly_node *n)
{
    oly_lowering how = oly_ops[n->op].lowering;
    return how != OLY_LOWER_VIEW && how != OLY_LOWER_RESULT && !s->constant[n->index];
}

static void read_first(sharing *s, oly_node **operand)
{
    oly_node *first = s->first[(*operand)->index];
    if (first == *operand || !is_computed(s, first))
        return;
    *operand = first;
    s->any = true;
}

/* Captures of one value of the graph around, which node n with the operands `outer` contains. */
static void share_captures(sharing *s, const oly_node *n, const sharing *outer)
{
    bool branch = n->params.n_branches > 0;
    int begin = branch ? 0 : 1 + n->params.n_carry, shift = branch ? 1 : -1;
    for (int k = begin; k < s->g->n_inputs; k++)
        for (int j = begin; j < k; j++)
            if (outer->first[n->in[k + shift]->index] == outer->first[n->in[j + shift]->index]) {
                s->first[s->g->inputs[k]->index] = s->first[s->g->inputs[j]->index];
                break;
            }
}

enum { MOST_CAPTURES = 64 };

static oly_status share(oly_graph *g, const oly_node *around, const sharing *outer, bool *any)
{
    sharing s = {.g = g, .mask = 15};
    while (s.mask < 2 * g->n_nodes)
        s.mask = 2 * s.mask + 1;
    s.first = OLY_ARENA_NEW(&g->arena, oly_node *, g->n_nodes + 1);
    s.constant = OLY_ARENA_NEW(&g->arena, bool, g->n_nodes + 1);
    s.table = OLY_ARENA_NEW(&g->arena, oly_node *, s.mask + 1);
    if (!s.first || !s.constant || !s.table)
        return oly_out_of_memory(sizeof *s.table * (size_t)s.mask, "the nodes of a graph");
    for (int k = 0; k < g->n_inputs; k++)
        s.first[g->inputs[k]->index] = g->inputs[k];
    if (around && g->n_inputs <= MOST_CAPTURES)
        share_captures(&s, around, outer);
    for (int k = 0; k < g->n_nodes; k++) {
        oly_node *n = g->nodes[k];
        oly_graph *const *graphs;
        oly_graph_ahead(g, k, 1);
        if (!s.first[k])
            s.first[k] = find(&s, n);
        s.constant[k] = oly_ops[n->op].lowering != OLY_LOWER_INPUT;
        for (int j = 0; j < n->n_in; j++) {
            s.constant[k] = s.constant[k] && s.constant[n->in[j]->index];
            read_first(&s, &n->in[j]);
        }
        for (int j = oly_node_graphs(n, &graphs) - 1; j >= 0; j--)
            OLY_TRY(share(graphs[j], n, &s, any));
    }
    for (int k = 0; k < g->n_outputs && !around; k++) /* results of bodies stay: carries have memory of their own */
        read_first(&s, &g->outputs[k]);
    *any = *any || s.any;
    return OLY_OK;
}

oly_status oly_graph_share(oly_graph *g)
{
    bool any = false;
    OLY_TRY(share(g, NULL, NULL, &any));
    if (any)
        oly_graph_prune(g);
    return OLY_OK;
}
