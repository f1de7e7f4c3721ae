/* SPDX-License-Identifier: BSD-3-Clause */
/* Demand through slices: where nothing but one slice of an elementwise result is read, the operation is made of slices of its operands, so
 * that only these elements are computed, only what they need is fetched from neighbours, and the result is fused with what reads
 * the slice. See graph.h. */
#include "graph/graph.h"
#include "graph/view.h"
#include <string.h>

enum {
    MOST_OPERANDS = 8,
    MOST_NODES = 256, /* of an expression: each slice that moves up one looks again */
    /* Elements: fewer are cheaper to compute than another exchange for an operand that is read elsewhere, too. */
    LEAST = 512
};

static bool is_slice(const oly_node *n)
{
    return oly_ops[n->op].lowering == OLY_LOWER_VIEW && oly_ops[n->op].detail == OLY_VIEW_SLICE;
}

static bool is_broadcast_number(const oly_node *n)
{
    return oly_ops[n->op].lowering == OLY_LOWER_VIEW && oly_ops[n->op].detail == OLY_VIEW_BROADCAST &&
           n->in[0]->type.rank == 0 && !n->params.sharding;
}

static bool is_elementwise(const oly_node *n)
{
    return oly_ops[n->op].lowering == OLY_LOWER_TILE && n->n_in > 0 && n->n_in <= MOST_OPERANDS && n->n_uses == 1 &&
           n->params.rank == 0 && !n->type.mesh;
}

/* Does an elementwise expression read slices and numbers only? *left: how many nodes may still be looked at. */
static bool of_slices(const oly_node *x, int *left)
{
    for (int k = 0; k < x->n_in; k++) {
        const oly_node *in = x->in[k];
        if (--*left < 0)
            return false;
        if (!is_broadcast_number(in) && !(is_slice(in) && !in->params.sharding) &&
            !(is_elementwise(in) && of_slices(in, left)))
            return false;
    }
    return true;
}

/* Is only the slice read of an elementwise result? It must be at most half of it: for more, where the slice is placed may cost more than
 * the elements that are left out. Not so of what is made of slices: these only get smaller, and the result needs no memory. */
static bool narrows(const oly_node *slice)
{
    const oly_node *x = is_slice(slice) ? slice->in[0] : NULL;
    int left = MOST_NODES;
    return x && is_elementwise(x) && !slice->type.mesh && !slice->params.sharding && oly_type_size(&x->type) >= LEAST &&
           (2 * oly_type_size(&slice->type) <= oly_type_size(&x->type) || of_slices(x, &left));
}

/* Makes a slice of a slice, with this result, one of its operand. One of nothing may have begun where the operand's operand has no element. */
static void add_slice(oly_params *slice, const oly_type *result, const oly_params *operand)
{
    for (int d = 0; d < result->rank; d++) {
        bool empty = result->shape[d] == 0;
        slice->start[d] = empty ? 0 : operand->start[d] + slice->start[d] * operand->step[d];
        slice->step[d] = empty ? 1 : slice->step[d] * operand->step[d];
    }
}

/* The slice of an operand; of a repeated number, fewer of them; of a slice, a slice of its operand. */
static oly_status slice_of(oly_graph *g, const oly_node *slice, oly_node *x, oly_node **made)
{
    oly_params params = slice->params;
    bool number = is_broadcast_number(x), again = is_slice(x) && !x->params.sharding;
    if (number) {
        params = x->params;
        memcpy(params.shape, slice->type.shape, sizeof params.shape[0] * (size_t)slice->type.rank);
    }
    if (again)
        add_slice(&params, &slice->type, &x->params);
    OLY_TRY(oly_graph_add(g, number ? x->op : slice->op, 1, number || again ? x->in : &x, &params, made));
    if (again && x->n_uses == 1)
        x->in[0]->n_uses--;
    (*made)->site = slice->site;
    return OLY_OK;
}

/* Slices of slices that nothing else reads become one, so that they can move up. */
static oly_status join_slices(oly_graph *g, oly_node *slice)
{
    oly_node *x = is_slice(slice) ? slice->in[0] : NULL, *made;
    if (!x || !is_slice(x) || x->n_uses != 1 || x->params.sharding || slice->params.sharding || slice->type.mesh ||
        x->type.mesh)
        return OLY_OK;
    oly_params params = slice->params;
    add_slice(&params, &slice->type, &x->params);
    OLY_TRY(oly_graph_add(g, slice->op, 1, x->in, &params, &made));
    x->in[0]->n_uses--;
    x->n_uses--;
    slice->params = made->params;
    slice->in = made->in;
    slice->hash = made->hash;
    return OLY_OK;
}

/* Makes the slice, in its place, the elementwise operation of slices. */
static oly_status narrow(oly_graph *g, oly_node *slice)
{
    oly_node *x = slice->in[0], *in[MOST_OPERANDS], *made;
    for (int k = 0; k < x->n_in; k++) {
        in[k] = NULL;
        for (int j = 0; j < k; j++)
            in[k] = x->in[j] == x->in[k] ? in[j] : in[k];
        if (!in[k])
            OLY_TRY(slice_of(g, slice, x->in[k], &in[k]));
        x->in[k]->n_uses--;
    }
    OLY_TRY(oly_graph_add(g, x->op, x->n_in, in, &x->params, &made));
    slice->op = made->op;
    slice->params = made->params;
    slice->n_in = made->n_in;
    slice->in = made->in;
    slice->hash = made->hash;
    slice->site = x->site;
    return OLY_OK;
}

/* From the end, so that a slice moves up with all those that it meets, and each operation is made again once. */
static oly_status visit(oly_graph *g, bool *any)
{
    int n = g->n_nodes;
    for (int k = n - 1; k >= 0; k--) {
        oly_graph *const *graphs;
        oly_graph_ahead(g, k, -1);
        for (int j = oly_node_graphs(g->nodes[k], &graphs) - 1; j >= 0; j--)
            OLY_TRY(visit(graphs[j], any));
        OLY_TRY(join_slices(g, g->nodes[k]));
        int next = g->n_nodes;
        if (narrows(g->nodes[k]))
            OLY_TRY(narrow(g, g->nodes[k]));
        for (; next < g->n_nodes; next++) /* the slices that this adds */
            if (narrows(g->nodes[next]))
                OLY_TRY(narrow(g, g->nodes[next]));
    }
    *any = *any || g->n_nodes > n;
    return g->n_nodes > n ? oly_graph_sort(g) : OLY_OK;
}

oly_status oly_graph_narrow(oly_graph *g)
{
    bool any = false;
    OLY_TRY(visit(g, &any));
    if (any)
        oly_graph_prune(g);
    return OLY_OK;
}
