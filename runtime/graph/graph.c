/* SPDX-License-Identifier: BSD-3-Clause */
/* Graphs: making, freeing and fingerprinting them. */
#include "graph/graph.h"
#include "graph/call.h"
#include "graph/sharding_rule/sharding_rule.h"
#include "graph/varying.h"
#include "core/hash.h"
#include <string.h>

oly_graph *oly_graph_new(const char *name)
{
    oly_graph *g = oly_calloc(1, sizeof *g);
    size_t bytes = strlen(name ? name : "") + 1;
    char *copy = g ? oly_arena_take(&g->arena, bytes) : NULL;
    if (!copy) {
        oly_graph_free(g);
        oly_out_of_memory(sizeof *g, "a graph");
        return NULL;
    }
    memcpy(copy, name ? name : "", bytes);
    g->name = copy;
    return g;
}

int oly_node_graphs(const oly_node *node, oly_graph *const **graphs)
{
    const oly_params *p = &node->params;
    *graphs = p->n_branches ? p->branches : &p->body;
    return p->n_branches ? p->n_branches : p->body != NULL;
}

static void free_graphs(oly_node *node)
{
    oly_graph *const *graphs;
    for (int k = oly_node_graphs(node, &graphs) - 1; k >= 0; k--)
        oly_graph_free(graphs[k]);
    node->params.body = NULL;
    node->params.n_branches = 0;
}

void oly_graph_free(oly_graph *g)
{
    if (!g)
        return;
    for (int k = 0; k < g->n_nodes; k++)
        free_graphs(g->nodes[k]);
    oly_arena_free(&g->arena);
    oly_release(g);
}

/* -- fingerprint: member by member, so that neither pointers nor padding count --------------------------- */
static uint64_t hash_numbers(uint64_t h, int n, const int64_t *numbers)
{
    for (int k = 0; k < n; k++)
        h = oly_hash_mix(h, (uint64_t)numbers[k]);
    return h;
}

/* A list that ends in zeros: most parameters are not used. */
static uint64_t hash_few(uint64_t h, int n, const int64_t *numbers)
{
    while (n > 0 && numbers[n - 1] == 0)
        n--;
    return hash_numbers(oly_hash_mix(h, (uint64_t)n), n, numbers);
}

static uint64_t hash_type(uint64_t h, const oly_type *t)
{
    h = oly_hash_mix(h, (uint64_t)t->dtype << 16 | (uint64_t)t->weak << 8 | (uint64_t)t->rank);
    h = hash_numbers(h, t->rank, t->shape);
    if (!t->mesh)
        return h;
    for (int d = 0; d < t->rank; d++)
        h = oly_hash(oly_hash_mix(h, t->axes[d].n), t->axes[d].axis, t->axes[d].n);
    h = oly_hash_mix(h, (uint64_t)t->unreduced << 32 | t->reduced);
    return oly_hash_mix(oly_hash_mix(h, t->varying), t->mesh->hash);
}

static uint64_t hash_params(uint64_t h, const oly_params *p)
{
    h = oly_hash_mix(h, (uint64_t)p->dtype << 16 | (uint64_t)p->weak << 8 | (uint64_t)p->n_axes);
    int n_axes = OLY_MAX_RANK;
    while (n_axes > 0 && p->axes[n_axes - 1] == 0)
        n_axes--;
    for (int k = 0; k < n_axes; k++)
        h = oly_hash_mix(h, (uint64_t)p->axes[k]);
    h = oly_hash_mix(h, (uint64_t)p->rank << 32 ^ (uint64_t)p->dimension ^ (uint64_t)p->one_by_one << 63);
    h = hash_few(h, OLY_MAX_RANK, p->shape);
    h = hash_few(h, OLY_MAX_RANK, p->start);
    h = hash_few(h, OLY_MAX_RANK, p->step);
    h = oly_hash_mix(h, (uint64_t)p->value.i); /* the bits of either member */
    uint64_t imaginary;
    memcpy(&imaginary, &p->imaginary, sizeof imaginary);
    if (imaginary != 0)
        h = oly_hash_mix(h, imaginary);
    h = oly_hash_mix(h, p->sharding ? p->sharding->hash : 0);
    h = oly_hash_mix(h, (uint64_t)p->n_carry << 32 | (uint64_t)p->predicate);
    h = oly_hash_mix(h, (uint64_t)p->lower);
    h = oly_hash_mix(h, (uint64_t)p->upper);
    h = oly_hash_mix(h, p->mesh ? p->mesh->hash : 0);
    h = oly_hash(oly_hash_mix(h, p->over.n), p->over.axis, p->over.n);
    h = oly_hash_mix(h, (p->permutation ? p->permutation->hash : 0) ^ p->settled ^ (uint64_t)p->unchecked << 32);
    h = oly_hash_mix(h, (uint64_t)p->reverse << 32 | (uint64_t)p->n_batch << 8 | (uint64_t)p->index_mode);
    h = oly_hash_mix(h, (uint64_t)p->count);
    if (p->call)
        h = oly_hash_mix(oly_hash_mix(h, oly_call_hash(p->call)), (uint64_t)p->mapped << 1 | p->muted);
    if (p->contraction.n_contract || p->contraction.n_batch)
        h = oly_hash(h, &p->contraction, sizeof p->contraction);
    return p->window ? oly_hash(h, p->window, sizeof *p->window) : h;
}

/* Makes room for one more in a list of n nodes. Old lists stay in the arena: doubling keeps their total below the new
 * one's size. */
static oly_status reserve(oly_graph *g, int n, int least, int *capacity, oly_node ***list)
{
    if (n < *capacity)
        return OLY_OK;
    int room = *capacity ? 2 * *capacity : least;
    oly_node **nodes = OLY_ARENA_NEW(&g->arena, oly_node *, room);
    if (!nodes)
        return oly_out_of_memory(sizeof *nodes * (size_t)room, "the nodes of a graph");
    if (n > 0)
        memcpy(nodes, *list, sizeof *nodes * (size_t)n);
    *list = nodes;
    *capacity = room;
    return OLY_OK;
}

static oly_status new_node(oly_graph *g, oly_op op, int n_in, oly_node *const *in, const oly_params *params,
                           oly_node **made)
{
    size_t before = (sizeof *in * (size_t)n_in + 15) / 16 * 16; /* the operands are stored in front of the node */
    char *piece = oly_arena_take(&g->arena, before + sizeof(oly_node));
    if (!piece)
        return oly_out_of_memory(sizeof(oly_node), "a node");
    oly_node *node = (oly_node *)(piece + before);
    node->op = op;
    node->index = g->n_nodes;
    node->n_in = n_in;
    node->site = oly_current_site();
    if (params)
        memcpy(&node->params, params, sizeof *params); /* as memory: that is how they are compared and hashed */
    if (params && params->n_branches) {
        size_t bytes = sizeof(oly_graph *) * (size_t)params->n_branches;
        node->params.branches = oly_arena_take(&g->arena, bytes);
        if (!node->params.branches)
            return oly_out_of_memory(bytes, "the branches of a node");
        memcpy(node->params.branches, params->branches, bytes);
    }
    if (params && params->window) {
        oly_sliding_window *window = OLY_ARENA_NEW(&g->arena, oly_sliding_window, 1);
        if (!window)
            return oly_out_of_memory(sizeof *window, "the window of a node");
        *window = *params->window;
        node->params.window = window;
    }
    if (params && params->call && !(node->params.call = oly_call_copy(&g->arena, params->call)))
        return oly_out_of_memory(params->call->bytes, "a function in a graph");
    if (n_in > 0) {
        node->in = (oly_node **)piece;
        memcpy(node->in, in, sizeof *in * (size_t)n_in);
    }
    *made = node;
    return OLY_OK;
}

oly_status oly_graph_add(oly_graph *g, oly_op op, int n_in, oly_node *const *in, const oly_params *params,
                         oly_node **node)
{
    const oly_op_row *row = &oly_ops[op];
    oly_node *made = NULL;
    if (n_in < 0 || (row->n_operands >= 0 && n_in != row->n_operands))
        return oly_fail(OLY_INVALID, "%s: %d operands given, takes %d", row->name, n_in, row->n_operands);
    for (int k = 0; k < n_in; k++)
        if (in[k]->index >= g->n_nodes || g->nodes[in[k]->index] != in[k])
            return oly_fail(OLY_TRACE,
                            "%s: operand %d belongs to another traced function; pass it in as an input of this one",
                            row->name, k);
    oly_node *aligned[8];
    OLY_TRY(oly_vary_operands(g, op, n_in, &in, aligned));
    OLY_TRY(reserve(g, g->n_nodes, 32, &g->capacity, &g->nodes));
    OLY_TRY(new_node(g, op, n_in, in, params, &made));
    OLY_TRY(row->typing(made));
    OLY_TRY(oly_sharding_rule_apply(made));
    OLY_TRY(oly_type_check(&made->type));
    for (int k = 0; k < n_in; k++)
        in[k]->n_uses++;
    made->hash = hash_params(hash_type(0, &made->type), &made->params);
    g->nodes[g->n_nodes++] = made;
    g->has_effects = g->has_effects || oly_node_has_effect(made);
    *node = made;
    return OLY_OK;
}

oly_status oly_graph_input(oly_graph *g, const oly_type *type, oly_node **node)
{
    OLY_TRY(reserve(g, g->n_inputs, 4, &g->input_capacity, &g->inputs));
    oly_params params;
    memset(&params, 0, sizeof params);
    params.dtype = type->dtype;
    params.weak = type->weak;
    params.rank = type->rank;
    for (int d = 0; d < type->rank && d < OLY_MAX_RANK; d++)
        params.shape[d] = type->shape[d];
    OLY_TRY(oly_graph_add(g, OLY_OP_input, 0, NULL, &params, node));
    oly_type *made = &(*node)->type; /* rules that give the whole type set the sharding part too */
    made->mesh = type->mesh;
    memcpy(made->axes, type->axes, sizeof made->axes);
    made->unreduced = type->unreduced;
    made->reduced = type->reduced;
    made->varying = type->varying;
    (*node)->hash = hash_type((*node)->hash, made);
    g->inputs[g->n_inputs++] = *node;
    return OLY_OK;
}

oly_status oly_graph_constant_to_input(oly_graph *g, oly_node *constant)
{
    OLY_TRY(reserve(g, g->n_inputs, 4, &g->input_capacity, &g->inputs));
    constant->op = OLY_OP_input;
    memset(&constant->params, 0, sizeof constant->params);
    constant->params.dtype = constant->type.dtype;
    constant->params.weak = constant->type.weak;
    constant->hash = hash_params(hash_type(0, &constant->type), &constant->params);
    g->inputs[g->n_inputs++] = constant;
    return OLY_OK;
}

oly_status oly_graph_output(oly_graph *g, oly_node *node)
{
    OLY_TRY(reserve(g, g->n_outputs, 4, &g->output_capacity, &g->outputs));
    g->outputs[g->n_outputs++] = node;
    node->n_uses++;
    return OLY_OK;
}

uint64_t oly_graph_hash(const oly_graph *g)
{
    uint64_t h = oly_hash_mix(0, (uint64_t)g->n_nodes);
    for (int k = 0; k < g->n_nodes; k++) {
        const oly_node *node = g->nodes[k];
        oly_graph_ahead(g, k, 1);
        h = oly_hash_text(h, oly_ops[node->op].name);
        for (int j = 0; j < node->n_in; j++)
            h = oly_hash_mix(h, (uint64_t)node->in[j]->index + 1);
        h = oly_hash_mix(h, node->hash);
        oly_graph *const *graphs;
        int n_graphs = oly_node_graphs(node, &graphs);
        if (n_graphs > 0) /* passes change loops and the graphs in them */
            h = hash_params(h, &node->params);
        for (int j = 0; j < n_graphs; j++)
            h = oly_hash_mix(h, oly_graph_hash(graphs[j]));
    }
    for (int k = 0; k < g->n_outputs; k++)
        h = oly_hash_mix(h, (uint64_t)g->outputs[k]->index + 1);
    return h;
}

/* -- pruning ---------------------------------------------------------------------------------------------------------- */

/* The check of a pure callback of which nobody reads a result: it may be dropped with it. */
static bool is_idle(const oly_graph *g, const oly_node *n)
{
    const oly_user_call *c = n->params.call;
    if (!c || !c->gathers || !c->locally)
        return false;
    bool here = false; /* a callback that was moved out of a loop is not */
    for (int k = 0; k < n->index && k < g->n_nodes; k++) {
        if (g->nodes[k]->op != n->op || g->nodes[k]->params.call_number != n->params.call_number)
            continue;
        if (g->nodes[k]->n_uses > 0)
            return false;
        here = true;
    }
    return here;
}

void oly_graph_prune(oly_graph *g)
{
    for (int k = 0; k < g->n_nodes; k++) {
        oly_graph_ahead(g, k, 1);
        g->nodes[k]->n_uses = 0;
    }
    for (int k = 0; k < g->n_outputs; k++)
        g->outputs[k]->n_uses++;
    for (int k = g->n_nodes - 1; k >= 0; k--) {
        oly_node *n = g->nodes[k];
        oly_graph_ahead(g, k, -1);
        if (g->has_effects && oly_node_has_effect(n) && !is_idle(g, n))
            n->n_uses++; /* it counts as a result */
        if (n->n_uses == 0 && n->op != OLY_OP_input)
            continue;
        for (int j = 0; j < n->n_in; j++)
            n->in[j]->n_uses++;
        oly_graph *const *graphs;
        for (int j = oly_node_graphs(n, &graphs) - 1; j >= 0; j--)
            oly_graph_prune(graphs[j]);
    }
    int kept = 0;
    for (int k = 0; k < g->n_nodes; k++) {
        oly_graph_ahead(g, k, 1);
        oly_node *n = g->nodes[k];
        if (n->n_uses == 0 && n->op != OLY_OP_input) {
            free_graphs(n);
            continue;
        }
        n->index = kept;
        g->nodes[kept++] = n;
    }
    g->n_nodes = kept;
}
