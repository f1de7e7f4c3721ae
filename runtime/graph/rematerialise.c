/* SPDX-License-Identifier: BSD-3-Clause */
/* Rematerialises values that are cheaper to compute again than to store. See graph.h.
 *
 * Masks and numbers computed from indexes and constants alone: a mask read by two operations, one split over devices and one not,
 * would be computed in parts and gathered for the other; each elementwise operation that reads one gets its own copy instead, which
 * fuses with it. Only small ones: random bits of a constant key are worth storing.
 *
 * Sums, differences and products of a large array and something repeated, such as x - mean(x), that are reduced and read again after
 * that: the reduction gets its own copy, which is computed as it is reduced, and so do the others. The array itself is there for both. So do
 * reductions of those of two small things, such as x[:, None] - x[None, :]: nothing of that size need be there. */
#include "graph/graph.h"
#include "graph/view.h"

enum { MOST_NODES = 8 };
enum { LEAST_BYTES = 1 << 18 }; /* of what is worth two computations: smaller values stay in caches */
enum { LEAST_TIMES = 8 };       /* that something small is repeated */

static bool elementwise(const oly_node *node)
{
    return oly_ops[node->op].lowering == OLY_LOWER_TILE;
}

/* How many nodes compute it from nothing, each counted once per read; 0: it reads an input, or needs too many. */
static int count(const oly_node *node, const unsigned char *counts)
{
    const oly_op_row *row = &oly_ops[node->op];
    int n = 1;
    if (!elementwise(node) && !(row->lowering == OLY_LOWER_VIEW && row->detail == OLY_VIEW_BROADCAST))
        return 0;
    if (node->params.sharding || node->type.mesh)
        return 0;
    for (int k = 0; k < node->n_in; k++) {
        int more = counts[node->in[k]->index];
        if (more == 0)
            return 0;
        n += more;
    }
    return n <= MOST_NODES ? n : 0;
}

/* Is it, or what it repeats, read elsewhere too? Scalars need no copy: every device has them. */
static bool shared(const oly_node *node)
{
    bool more = false;
    for (; !elementwise(node); node = node->in[0])
        more = more || node->n_uses > 1;
    return node->n_in > 0 && node->type.rank > 0 && (more || node->n_uses > 1);
}

static oly_status again(oly_graph *g, oly_node *node, oly_node **made)
{
    oly_node *in[8];
    for (int k = 0; k < node->n_in; k++)
        OLY_TRY(again(g, node->in[k], &in[k]));
    OLY_TRY(oly_graph_add(g, node->op, node->n_in, in, &node->params, made));
    (*made)->site = node->site;
    return OLY_OK;
}

/* -- what is reduced, and read again after that ---------------------------------------------------------------------------- */

static bool repeats(const oly_node *node)
{
    return oly_is_constant(node) ||
           (oly_ops[node->op].lowering == OLY_LOWER_VIEW && oly_ops[node->op].detail == OLY_VIEW_BROADCAST);
}

/* Is it computed in a moment, read twice, and large? */
static bool is_cheap(const oly_node *node)
{
    bool cheap = node->op == OLY_OP_add || node->op == OLY_OP_sub || node->op == OLY_OP_mul;
    return cheap && node->n_uses >= 2 &&
           oly_type_size(&node->type) * (int64_t)oly_dtype_size(node->type.dtype) >= LEAST_BYTES;
}

/* Of one array of its size, which is in memory? */
static bool from_one_array(const oly_node *node, const bool *stored)
{
    return is_cheap(node) && repeats(node->in[0]) != repeats(node->in[1]) &&
           stored[node->in[repeats(node->in[0])]->index];
}

static bool repeats_little(const oly_node *node)
{
    return oly_is_constant(node) ||
           (repeats(node) && LEAST_TIMES * oly_type_size(&node->in[0]->type) <= oly_type_size(&node->type));
}

/* Is it a cheap operation on two small things that are repeated, such as the differences of all pairs? */
static bool from_little(const oly_node *node)
{
    return is_cheap(node) && repeats_little(node->in[0]) && repeats_little(node->in[1]);
}

/* Arrays that are in memory, whatever is fused: what is not elementwise makes them or reads them. */
static void find_stored(const oly_graph *g, bool *stored)
{
    for (int k = 0; k < g->n_nodes; k++) {
        oly_lowering how = oly_ops[g->nodes[k]->op].lowering;
        stored[k] = how != OLY_LOWER_TILE && how != OLY_LOWER_VIEW && how != OLY_LOWER_RESHAPE;
        for (int j = 0; j < g->nodes[k]->n_in && stored[k]; j++) {
            const oly_node *in = g->nodes[k]->in[j];
            stored[in->index] = stored[in->index] || elementwise(in);
        }
    }
    for (int k = 0; k < g->n_outputs; k++)
        stored[g->outputs[k]->index] = stored[g->outputs[k]->index] || elementwise(g->outputs[k]);
}

/* Marks the nodes that only a reduction reads, through elementwise operations, and reductions. */
static void find_reduced(const oly_graph *g, bool *reduced)
{
    for (int k = g->n_nodes - 1; k >= 0; k--) {
        const oly_node *node = g->nodes[k];
        oly_graph_ahead(g, k, -1);
        bool reduction = oly_ops[node->op].lowering == OLY_LOWER_REDUCE;
        reduced[k] = reduction || (reduced[k] && elementwise(node));
        for (int j = 0; j < node->n_in && reduced[k]; j++)
            if (node->in[j]->n_uses == 1)
                reduced[node->in[j]->index] = true;
    }
}

/* Readers that keep a value in memory: all but reductions. */
static void count_keepers(const oly_graph *g, const bool *reduced, int *keepers)
{
    for (int k = 0; k < g->n_nodes; k++)
        for (int j = 0; j < g->nodes[k]->n_in; j++)
            keepers[g->nodes[k]->in[j]->index] += !reduced[k];
    for (int k = 0; k < g->n_outputs; k++)
        keepers[g->outputs[k]->index]++;
}

static oly_status copy_for(oly_graph *g, oly_node *reader, oly_node *value)
{
    oly_node *made;
    OLY_TRY(oly_graph_add(g, value->op, value->n_in, value->in, &value->params, &made));
    made->site = value->site;
    for (int j = 0; j < value->n_in; j++)
        value->in[j]->n_uses++;
    for (int j = 0; j < reader->n_in; j++) {
        if (reader->in[j] != value)
            continue;
        reader->in[j] = made;
        value->n_uses--;
        made->n_uses++;
    }
    return OLY_OK;
}

static oly_status copy_reduced(oly_graph *g)
{
    int n = g->n_nodes;
    bool *reduced = OLY_ARENA_NEW(&g->arena, bool, n + 1), *stored = OLY_ARENA_NEW(&g->arena, bool, n + 1);
    int *keepers = OLY_ARENA_NEW(&g->arena, int, n + 1);
    if (!reduced || !stored || !keepers)
        return oly_out_of_memory((size_t)n, "the nodes of a graph");
    find_stored(g, stored);
    find_reduced(g, reduced);
    count_keepers(g, reduced, keepers);
    for (int k = 0; k < n; k++)
        for (int j = 0; j < g->nodes[k]->n_in && reduced[k]; j++) {
            oly_node *in = g->nodes[k]->in[j];
            if (in->index < n && ((keepers[in->index] > 0 && from_one_array(in, stored)) || from_little(in)))
                OLY_TRY(copy_for(g, g->nodes[k], in));
        }
    return OLY_OK;
}

/* -- all ----------------------------------------------------------------------------------------------------------------------- */

oly_status oly_graph_rematerialise(oly_graph *g)
{
    int before = g->n_nodes;
    OLY_TRY(copy_reduced(g));
    if (g->n_nodes > before)
        OLY_TRY(oly_graph_sort(g));
    int n = g->n_nodes;
    unsigned char *counts = OLY_ARENA_NEW(&g->arena, unsigned char, n + 1);
    if (!counts)
        return oly_out_of_memory((size_t)n, "the nodes of a graph");
    for (int k = 0; k < n; k++) {
        oly_node *node = g->nodes[k];
        oly_graph_ahead(g, k, 1);
        oly_graph *const *graphs;
        for (int j = oly_node_graphs(node, &graphs) - 1; j >= 0; j--)
            OLY_TRY(oly_graph_rematerialise(graphs[j]));
        counts[k] = (unsigned char)count(node, counts);
        for (int j = 0; j < node->n_in && elementwise(node) && counts[k] == 0; j++) {
            oly_node *in = node->in[j];
            if (in->index >= n || counts[in->index] == 0 || !shared(in))
                continue;
            in->n_uses--;
            OLY_TRY(again(g, in, &node->in[j]));
            node->in[j]->n_uses++;
        }
    }
    return g->n_nodes > n ? oly_graph_sort(g) : OLY_OK;
}
