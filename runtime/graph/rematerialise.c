/* SPDX-License-Identifier: BSD-3-Clause */
/* Rematerialises values that are cheaper to compute again than to store: masks and numbers computed from indexes and
 * constants alone. A mask read by two operations, one split over devices and one not, would be computed in parts and
 * gathered for the other; each elementwise operation that reads one gets its own copy instead, which fuses with it.
 * Only small ones: random bits of a constant key are worth storing. See graph.h. */
#include "graph/graph.h"
#include "graph/view.h"

enum { MOST_NODES = 8 };

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

oly_status oly_graph_rematerialise(oly_graph *g)
{
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
