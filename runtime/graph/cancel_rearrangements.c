/* SPDX-License-Identifier: BSD-3-Clause */
/* Cancelling rearrangements: rev, transpose and reshape commute with elementwise operations, so in
 *
 *     reshape(mul(2, reshape(x)))   whose outer reshape restores the shape of x     (typical of gradients)
 *
 * neither is needed: the product is computed on x itself, with the same bits, and nothing moves. XLA's simplifier does
 * this before it propagates shardings. A rearrangement is removed if every path from it upwards, through elementwise
 * operations with no other reader, ends in its inverse or in a broadcast number. A broadcast does not need dimensions
 * of size 1 that a reshape inserts before it either: once they are gone, all readers of the operand read the same value.
 * Operations on numbers that have been given dimensions are done on the numbers.
 * Nor does a reduction need a transpose: it reduces the other dimensions of what was transposed, and elements are added in the order in
 * which they are in memory. See graph.h. */
#include "graph/graph.h"
#include "graph/view.h"
#include <string.h>

enum { MOST_NODES = 64 }; /* visited between a rearrangement and its inverse */

static bool rearranges(const oly_node *node)
{
    const oly_op_row *row = &oly_ops[node->op];
    return row->lowering == OLY_LOWER_RESHAPE ||
           (row->lowering == OLY_LOWER_VIEW && (row->detail == OLY_VIEW_TRANSPOSE || row->detail == OLY_VIEW_REV));
}

/* Is last(first(x)) x? */
static bool is_inverse(const oly_node *last, const oly_node *first)
{
    const oly_type *x = &first->in[0]->type;
    if (oly_ops[last->op].lowering != oly_ops[first->op].lowering || x->rank != last->type.rank ||
        memcmp(x->shape, last->type.shape, sizeof x->shape[0] * (size_t)x->rank) != 0 ||
        !oly_type_same_sharding(x, &last->type))
        return false;
    if (oly_ops[last->op].lowering == OLY_LOWER_RESHAPE)
        return true; /* both keep row-major order */
    oly_view_dim of_first[OLY_MAX_RANK], of_last[OLY_MAX_RANK];
    oly_view_of(first, of_first);
    oly_view_of(last, of_last);
    for (int d = 0; d < x->rank; d++) {
        const oly_view_dim *a = &of_last[d], *b = &of_first[a->from];
        if (b->from != d || b->start + b->step * a->start != 0 || b->step * a->step != 1)
            return false;
    }
    return true;
}

/* The number that a broadcast repeats in all elements, or NULL. */
static const oly_node *number_of(const oly_node *node)
{
    bool repeats = oly_ops[node->op].lowering == OLY_LOWER_VIEW && oly_ops[node->op].detail == OLY_VIEW_BROADCAST;
    return repeats && node->in[0]->type.rank == 0 && !node->params.sharding && !node->type.mesh ? node->in[0] : NULL;
}

static bool elementwise(const oly_node *node)
{
    return oly_ops[node->op].lowering == OLY_LOWER_TILE && node->n_in > 0 && node->params.rank == 0;
}

typedef struct cancellation {
    oly_graph *graph;
    const oly_node *last; /* the rearrangement to be removed */
    int left;             /* nodes that may still be visited */
    int inverses;         /* found so far */
} cancellation;

/* The rearrangement that `c->last` undoes: node, or one above it that reshapes follow; NULL: none. */
static const oly_node *undone(const cancellation *c, const oly_node *node)
{
    while (rearranges(node)) {
        if (is_inverse(c->last, node))
            return node;
        if (oly_ops[node->op].lowering != OLY_LOWER_RESHAPE || oly_ops[c->last->op].lowering != OLY_LOWER_RESHAPE)
            return NULL;
        node = node->in[0];
    }
    return NULL;
}

/* Can this node produce its elements in the order that `c->last` produces? */
static bool gives(cancellation *c, const oly_node *node)
{
    if (c->left-- <= 0)
        return false;
    if (number_of(node))
        return true;
    if (undone(c, node)) {
        c->inverses++;
        return true;
    }
    bool can = elementwise(node) && node->n_uses == 1;
    for (int k = 0; can && k < node->n_in; k++)
        can = gives(c, node->in[k]);
    return can;
}

/* Builds the node with its elements in that order. */
static oly_status give(const cancellation *c, oly_node *node, oly_node **made)
{
    oly_node *in[8];
    oly_params params = node->params;
    if (number_of(node)) {
        params.rank = c->last->type.rank;
        memset(params.shape, 0, sizeof params.shape);
        memcpy(params.shape, c->last->type.shape, sizeof params.shape[0] * (size_t)params.rank);
        in[0] = node->in[0];
    } else if (rearranges(node)) {
        *made = undone(c, node)->in[0];
        return OLY_OK;
    } else {
        for (int k = 0; k < node->n_in; k++)
            OLY_TRY(give(c, node->in[k], &in[k]));
    }
    OLY_TRY(oly_graph_add(c->graph, node->op, node->n_in, in, &params, made));
    (*made)->site = node->site;
    return OLY_OK;
}

/* A broadcast whose operand is a reshape that only inserts dimensions of size 1 can read the reshape's operand: fills
 * in its parameters for that. */
static bool skips_reshape(const oly_node *node, oly_params *params)
{
    const oly_node *thin = node->in[0];
    if (oly_ops[node->op].lowering != OLY_LOWER_VIEW || oly_ops[node->op].detail != OLY_VIEW_BROADCAST ||
        oly_ops[thin->op].lowering != OLY_LOWER_RESHAPE || node->params.sharding || node->type.mesh ||
        thin->params.sharding)
        return false;
    const oly_type *from = &thin->in[0]->type, *to = &thin->type;
    *params = node->params;
    memset(params->axes, 0, sizeof params->axes);
    int e = 0;
    for (int d = 0; d < to->rank; d++) {
        if (to->shape[d] == 1)
            continue;
        if (e == from->rank || from->shape[e] != to->shape[d])
            return false;
        params->axes[e++] = node->params.axes[d];
    }
    params->n_axes = e;
    return e == from->rank;
}

/* -- single elements ----------------------------------------------------------------------------------------------------- */

/* A slice of everything, such as that of an array that has become its parts (components.c). */
static bool shows_all(const oly_node *node)
{
    bool all = oly_ops[node->op].lowering == OLY_LOWER_VIEW && oly_ops[node->op].detail == OLY_VIEW_SLICE &&
               !node->params.sharding && !node->type.mesh;
    for (int d = 0; all && d < node->type.rank; d++)
        all = node->params.start[d] == 0 && node->params.step[d] == 1 &&
              node->type.shape[d] == node->in[0]->type.shape[d];
    return all;
}

/* A reshape of a number that gives it dimensions. */
static bool is_reshaped_number(const oly_node *node)
{
    return oly_ops[node->op].lowering == OLY_LOWER_RESHAPE && node->in[0]->type.rank == 0 && !node->params.sharding &&
           !node->type.mesh;
}

/* An operation on single elements that are numbers with dimensions is done on the numbers, and its result gets the dimensions: so all that is
 * computed from numbers has one shape, and can be one group. *made is NULL if that is not so. */
static oly_status compute_number(oly_graph *g, const oly_node *node, oly_node **made)
{
    oly_node *in[8], *number;
    const oly_node *reshape = NULL;
    *made = NULL;
    if (!elementwise(node) || node->type.rank == 0 || node->type.mesh)
        return OLY_OK;
    for (int k = 0; k < node->n_in; k++) {
        oly_node *x = node->in[k];
        if (!is_reshaped_number(x) && !number_of(x))
            return OLY_OK;
        reshape = is_reshaped_number(x) ? x : reshape;
        in[k] = x->in[0];
    }
    if (!reshape)
        return OLY_OK;
    OLY_TRY(oly_graph_add(g, node->op, node->n_in, in, &node->params, &number));
    OLY_TRY(oly_graph_add(g, reshape->op, 1, &number, &reshape->params, made));
    number->site = (*made)->site = node->site;
    return OLY_OK;
}

/* -- reductions ------------------------------------------------------------------------------------------------------------------ */

/* A transpose of arrays of this type above a reduction, through at least one elementwise operation; NULL: there is none. */
static const oly_node *transpose_above(const oly_node *node, int left)
{
    for (int k = 0; left > 0 && elementwise(node) && node->n_uses == 1 && k < node->n_in; k++) {
        const oly_node *in = node->in[k], *found = in;
        bool is = oly_ops[in->op].lowering == OLY_LOWER_VIEW && oly_ops[in->op].detail == OLY_VIEW_TRANSPOSE;
        if (is || (found = transpose_above(in, left - 1)))
            return found;
    }
    return NULL;
}

/* Of the result of a reduction, whose dimensions are those that are left of x in the order of x, in that of the transpose. */
static oly_status turn_back(oly_graph *g, oly_node *x, const oly_node *transpose, const oly_node *reduction,
                            oly_node **made)
{
    oly_params params = {.n_axes = reduction->type.rank};
    int place[OLY_MAX_RANK], n = 0, k = 0; /* [dimension before the transpose] in x */
    bool turned = false, reduced[OLY_MAX_RANK] = {false}, gone[OLY_MAX_RANK] = {false};
    for (int a = 0; a < reduction->params.n_axes; a++)
        reduced[reduction->params.axes[a]] = true;
    for (int d = 0; d < transpose->type.rank; d++)
        gone[transpose->params.axes[d]] = reduced[d];
    for (int e = 0; e < transpose->type.rank; e++)
        place[e] = gone[e] ? -1 : n++;
    for (int d = 0; d < transpose->type.rank; d++)
        if (!reduced[d]) {
            params.axes[k] = place[transpose->params.axes[d]];
            turned = turned || params.axes[k] != k;
            k++;
        }
    *made = x;
    if (turned) {
        OLY_TRY(oly_graph_add(g, transpose->op, 1, &x, &params, made));
        (*made)->site = reduction->site;
    }
    return OLY_OK;
}

/* Builds the reduction of what elementwise operations make of transposed arrays without the transposes; *made is NULL if there are none. */
static oly_status reduce_untransposed(oly_graph *g, const oly_node *node, oly_node **made)
{
    *made = NULL;
    if (oly_ops[node->op].lowering != OLY_LOWER_REDUCE || node->type.mesh || node->in[0]->type.mesh ||
        node->params.sharding)
        return OLY_OK;
    const oly_node *transpose = transpose_above(node->in[0], MOST_NODES);
    if (!transpose)
        return OLY_OK;
    oly_node *operand = node->in[0], back = {.op = transpose->op, .n_in = 1, .in = &operand, .type = operand->type};
    back.params.n_axes = back.type.rank;
    for (int d = 0; d < back.type.rank; d++) {
        back.params.axes[transpose->params.axes[d]] = d;
        back.type.shape[transpose->params.axes[d]] = transpose->type.shape[d];
    }
    cancellation c = {.graph = g, .last = &back, .left = MOST_NODES};
    oly_node *x, *reduced;
    if (!gives(&c, node->in[0]) || !c.inverses)
        return OLY_OK;
    OLY_TRY(give(&c, node->in[0], &x));
    oly_params params = node->params;
    bool chosen[OLY_MAX_RANK] = {false};
    for (int a = 0; a < node->params.n_axes; a++)
        chosen[transpose->params.axes[node->params.axes[a]]] = true;
    params.n_axes = 0;
    for (int d = 0; d < back.type.rank; d++)
        if (chosen[d])
            params.axes[params.n_axes++] = d;
    OLY_TRY(oly_graph_add(g, node->op, 1, &x, &params, &reduced));
    reduced->site = node->site;
    return turn_back(g, reduced, transpose, node, made);
}

/* Records what nodes read instead of a removed one; the list is made with the first. */
static oly_status note(oly_graph *g, oly_node ***instead, const oly_node *node, oly_node *made)
{
    if (!*instead)
        *instead = OLY_ARENA_NEW(&g->arena, oly_node *, g->n_nodes); /* zero */
    if (!*instead)
        return oly_out_of_memory(sizeof **instead * (size_t)g->n_nodes, "the nodes of a graph");
    made->n_uses += node->n_uses;
    (*instead)[node->index] = made;
    return OLY_OK;
}

static void follow(oly_node **instead, oly_node **node, int n)
{
    if (instead && (*node)->index < n && instead[(*node)->index])
        *node = instead[(*node)->index];
}

static oly_status cancel(oly_graph *g, bool *any)
{
    oly_node **instead = NULL;
    int n = g->n_nodes;
    for (int k = 0; k < n; k++) {
        oly_node *node = g->nodes[k], *made;
        oly_graph_ahead(g, k, 1);
        for (int j = 0; j < node->n_in; j++)
            follow(instead, &node->in[j], n);
        oly_graph *const *graphs;
        for (int j = oly_node_graphs(node, &graphs) - 1; j >= 0; j--)
            OLY_TRY(cancel(graphs[j], any));
        oly_params params;
        if (node->n_in == 1 && skips_reshape(node, &params)) {
            OLY_TRY(oly_graph_add(g, node->op, 1, &node->in[0]->in[0], &params, &made));
            made->site = node->site;
            OLY_TRY(note(g, &instead, node, made));
            continue;
        }
        if (shows_all(node)) {
            OLY_TRY(note(g, &instead, node, node->in[0]));
            continue;
        }
        OLY_TRY(compute_number(g, node, &made));
        if (!made)
            OLY_TRY(reduce_untransposed(g, node, &made));
        if (made) {
            OLY_TRY(note(g, &instead, node, made));
            continue;
        }
        cancellation c = {.graph = g, .last = node, .left = MOST_NODES};
        if (!rearranges(node) || !gives(&c, node->in[0]) || !c.inverses)
            continue;
        OLY_TRY(give(&c, node->in[0], &made));
        OLY_TRY(note(g, &instead, node, made));
    }
    for (int k = 0; k < g->n_outputs; k++)
        follow(instead, &g->outputs[k], n);
    *any = *any || instead;
    return g->n_nodes > n ? oly_graph_sort(g) : OLY_OK;
}

oly_status oly_graph_cancel_rearrangements(oly_graph *g)
{
    bool any = false;
    OLY_TRY(cancel(g, &any));
    if (any)
        oly_graph_prune(g);
    return OLY_OK;
}

oly_status oly_graph_before_reshapes(oly_graph *g, oly_node *x, const oly_node *reshape, oly_node **made)
{
    const oly_node last = {.op = reshape->op, .type = reshape->in[0]->type};
    cancellation c = {.graph = g, .last = &last, .left = MOST_NODES};
    *made = NULL;
    return gives(&c, x) ? give(&c, x, made) : OLY_OK;
}
