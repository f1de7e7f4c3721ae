/* SPDX-License-Identifier: BSD-3-Clause */
/* Moves reversals (rev) towards the outputs, where they cancel or are not needed: rev commutes with elementwise
 * operations, slices, padding, running results (which then run from the other end) and lookups; a reduction over the
 * dimension does not depend on it, and two reversals cancel. In
 *
 *     rev(mul(2, rev(x)))      max(rev(x))      slice(rev(x), 0:4)
 *
 * at most the final result has to be reversed; over devices, that is data which need not move.
 *
 * Every node gets a label: the dimensions along which it is built reversed. Where an operation, or the graph's caller,
 * needs the original order, the value is reversed there. Nodes connected by labelled values form a region. Regions with
 * fewer reversals than before are rewritten, the others stay as they are. See graph.h. */
#include "graph/build.h"
#include "graph/factors.h"
#include "graph/view.h"
#include <string.h>

enum {
    MOST_ROUNDS = 8, /* of dropping regions that do not pay */
    MOST_DEPTH = 32
};

typedef struct flipping {
    oly_graph *graph;
    oly_op rev;
    int n;                /* nodes of the graph as it was */
    unsigned *label;      /* dimensions built reversed, as bits */
    unsigned *same;       /* dimensions along which all elements are equal */
    unsigned *either;     /* dimensions that can be built in either order at no cost */
    unsigned char *depth; /* length of the chain of nodes with such dimensions */
    bool *stays;          /* a rev that is kept */
    int *region;          /* union-find: a node of the same region, or itself */
    double *saved;        /* by region: bytes reversed without labels, minus those with them */
    int *fewer;           /* by region: the same, in values */
    bool *counted;        /* nodes that some reader needs reversed */
    oly_node **made;      /* the nodes as labelled */
    oly_node **reversed;  /* reversed copies, for those readers */
    unsigned *reversed_dims;
} flipping;

static bool is_view(const oly_node *node, int how)
{
    return oly_ops[node->op].lowering == OLY_LOWER_VIEW && oly_ops[node->op].detail == how;
}

static unsigned all_dims(const oly_node *node)
{
    return (1u << node->type.rank) - 1;
}

static unsigned axes_of(const oly_node *node)
{
    unsigned axes = 0;
    for (int k = 0; k < node->params.n_axes; k++)
        axes |= 1u << node->params.axes[k];
    return axes;
}

/* Nodes with a sharding of their own, and what they read, are not rewritten. */
static bool is_fixed(const oly_node *node)
{
    return node->params.sharding || node->type.mesh || node->type.rank > 16;
}

static double bytes_of(const oly_node *node)
{
    return (double)oly_type_size(&node->type) * (double)oly_dtype_size(node->type.dtype);
}

/* Dimensions along which the node is built reversed, where that makes a difference. */
static unsigned label_of(const flipping *s, const oly_node *node)
{
    return s->label[node->index] & ~s->same[node->index];
}

/* -- dimensions across an operation ------------------------------------------------------------------------ */

/* The result dimension that operand dimension e of a view or reduction becomes; -1: none. */
static int result_dim(const oly_node *node, int e)
{
    if (oly_ops[node->op].lowering == OLY_LOWER_REDUCE) {
        int d = e;
        for (int k = 0; k < node->params.n_axes; k++) {
            if (node->params.axes[k] == e)
                return -1;
            d -= node->params.axes[k] < e;
        }
        return d;
    }
    oly_view_dim dims[OLY_MAX_RANK];
    oly_view_of(node, dims);
    for (int d = 0; d < node->type.rank; d++)
        if (dims[d].from == e)
            return d;
    return -1;
}

static unsigned to_result(const oly_node *node, unsigned dims)
{
    unsigned to = 0;
    for (int e = 0; e < node->in[0]->type.rank; e++)
        if (dims >> e & 1 && result_dim(node, e) >= 0)
            to |= 1u << result_dim(node, e);
    return to;
}

static unsigned to_operand(const oly_node *node, unsigned dims)
{
    unsigned to = 0;
    for (int e = 0; e < node->in[0]->type.rank; e++)
        if (result_dim(node, e) >= 0 && dims >> result_dim(node, e) & 1)
            to |= 1u << e;
    return to;
}

/* Maps reversed dimensions (`have`) across a reshape. Dimensions correspond in groups of equal size, and all of a group
 * must be reversed. Dimensions along which elements are equal (`equal`) count as reversed if another one of the group
 * is. */
static unsigned through_reshape(const oly_type *from, const oly_type *to, unsigned have, unsigned equal)
{
    unsigned gives = 0;
    int e = 0, d = 0;
    while (e < from->rank && d < to->rank) {
        int first = e, first_to = d;
        int64_t x = from->shape[e++], y = to->shape[d++];
        while (x != y && (x < y ? e < from->rank : d < to->rank))
            *(x < y ? &x : &y) *= x < y ? from->shape[e++] : to->shape[d++];
        if (x != y || x == 0)
            return 0;
        bool all = true, any = false;
        for (int k = first; k < e; k++) {
            any = any || have >> k & 1;
            all = all && (have | equal) >> k & 1;
        }
        for (int k = first_to; k < d && any && all; k++)
            gives |= 1u << k;
    }
    return gives;
}

/* The reversed result dimensions by factors: those that all operands with the factor have reversed. `need`: which
 * operand dimensions are read reversed, summed pairs of a product included. */
static unsigned through_factors(const flipping *s, const oly_node *node, unsigned *need)
{
    oly_factors fs;
    unsigned gives = 0;
    const oly_op_row *row = &oly_ops[node->op];
    bool local = row->lowering == OLY_LOWER_LOCAL;
    bool writes = local && oly_local_way_of((oly_local_op)row->detail) == OLY_LOCAL_WRITES;
    if (node->n_in > 16 || oly_factors_of(node, &fs) != OLY_OK)
        return 0;
    for (int f = 0; f < fs.n_factors; f++) {
        int users = 0, reversed = 0, equal = 0, at = -1;
        for (int d = 0; d < node->type.rank; d++)
            if (fs.result[d].n == 1 && fs.result[d].factor[0] == f)
                at = d;
        bool summed = !local && at < 0 && fs.kind[f] == OLY_FACTOR_REDUCTION;
        if (!summed && (at < 0 || fs.kind[f] != OLY_FACTOR_PARALLEL))
            continue;
        for (int pass = 0; pass < 2; pass++) {
            for (int k = 0; k < fs.n_operands && k < node->n_in; k++)
                for (int e = 0; e < node->in[k]->type.rank; e++) {
                    const oly_dim_factors *dim = &fs.operand[k][e];
                    if (dim->n != 1 || dim->factor[0] != f)
                        continue;
                    int in = node->in[k]->index;
                    if (pass) {
                        need[k] |= 1u << e;
                        continue;
                    }
                    users++;
                    equal += (s->same[in] >> e & 1) != 0;
                    reversed += (label_of(s, node->in[k]) >> e & 1) != 0;
                }
            if (reversed == 0 || reversed + equal < users || (writes && users < 2))
                break;
            gives |= pass && at >= 0 ? 1u << at : 0;
        }
    }
    return gives;
}

/* -- labels --------------------------------------------------------------------------------------------------------------- */

static unsigned loose(const flipping *s, const oly_node *node)
{
    return s->same[node->index] | s->either[node->index];
}

/* Dimensions that some operand has reversed, and all others have reversed or can have. */
static unsigned agreed(const flipping *s, const oly_node *node)
{
    unsigned all = all_dims(node), any = 0;
    for (int k = 0; k < node->n_in; k++) {
        any |= label_of(s, node->in[k]);
        all &= label_of(s, node->in[k]) | loose(s, node->in[k]);
    }
    return all & any;
}

/* An iota can count from the end at no cost: n - 1 - i. */
static bool counts_from_end(const oly_node *node)
{
    return node->op == OLY_OP_iota && oly_dtype_kind(node->type.dtype) == OLY_KIND_INTEGER &&
           oly_dtype_size(node->type.dtype) >= 4 && node->type.shape[node->params.dimension] <= INT32_MAX;
}

/* Finds the dimensions along which all elements are equal, and those that can be built in either order because all
 * operands can. */
static void find_free_dims(flipping *s, const oly_node *node)
{
    const oly_op_row *row = &oly_ops[node->op];
    unsigned same = 0, free = 0, all = all_dims(node), equal = all;
    for (int k = 0; k < node->n_in; k++) {
        all &= loose(s, node->in[k]);
        equal &= s->same[node->in[k]->index];
    }
    switch (row->lowering) {
    case OLY_LOWER_TILE: same = equal; /* fall through */
    case OLY_LOWER_WRITE: free = all; break;
    case OLY_LOWER_PAD: free = loose(s, node->in[0]); break;
    case OLY_LOWER_REDUCE:
    case OLY_LOWER_VIEW:
        same = to_result(node, s->same[node->in[0]->index]);
        free = to_result(node, loose(s, node->in[0]));
        if (row->detail == OLY_VIEW_BROADCAST && row->lowering == OLY_LOWER_VIEW)
            same |= all_dims(node) & ~to_result(node, all_dims(node->in[0]));
        if (is_view(node, OLY_VIEW_SAME) || s->stays[node->index])
            free = 0;
        break;
    default: break;
    }
    if (node->n_in == 0) {
        free = counts_from_end(node) ? 1u << node->params.dimension : 0;
        same = free ? all_dims(node) & ~free : 0;
    }
    for (int d = 0; d < node->type.rank; d++)
        same |= node->type.shape[d] == 1 ? 1u << d : 0;
    int depth = 0;
    for (int k = 0; k < node->n_in && (free & ~same); k++)
        depth = s->depth[node->in[k]->index] > depth ? s->depth[node->in[k]->index] : depth;
    s->same[node->index] = same;
    s->either[node->index] = depth < MOST_DEPTH ? free & ~same : 0;
    s->depth[node->index] = (unsigned char)(s->either[node->index] ? depth + 1 : 0);
}

/* How the operands are read when the node is built with this label; need[k]: reversed dimensions of operand k. For
 * products and operations along a dimension through_factors has set it. */
static void find_needs(const flipping *s, const oly_node *node, unsigned label, unsigned *need)
{
    switch (oly_ops[node->op].lowering) {
    case OLY_LOWER_TILE:
    case OLY_LOWER_WRITE:
        for (int k = 0; k < node->n_in; k++)
            need[k] = label;
        break;
    case OLY_LOWER_PAD: need[0] = label; break;
    case OLY_LOWER_RESHAPE:
        need[0] = through_reshape(&node->type, &node->in[0]->type, label, s->same[node->index]);
        break;
    case OLY_LOWER_REDUCE:
        need[0] = to_operand(node, label);
        if (!node->params.one_by_one)
            need[0] |= label_of(s, node->in[0]) & axes_of(node);
        break;
    case OLY_LOWER_VIEW:
        need[0] = to_operand(node, label);
        if (is_view(node, OLY_VIEW_REV) && !s->stays[node->index])
            need[0] = label ^ axes_of(node);
        break;
    default: break;
    }
}

/* Derives a node's label from those of its operands. */
static void label_node(flipping *s, const oly_node *node, unsigned *need)
{
    const oly_op_row *row = &oly_ops[node->op];
    unsigned label = 0, in = node->n_in ? label_of(s, node->in[0]) : 0;
    memset(need, 0, sizeof *need * (size_t)node->n_in);
    s->label[node->index] = s->same[node->index] = s->either[node->index] = 0;
    if (is_fixed(node))
        return;
    find_free_dims(s, node);
    if (node->n_in == 0)
        return;
    switch (row->lowering) {
    case OLY_LOWER_TILE:
        if (node->params.rank > 0)
            return;
        label = agreed(s, node);
        break;
    case OLY_LOWER_WRITE: label = agreed(s, node); break;
    case OLY_LOWER_VIEW:
        if (row->detail == OLY_VIEW_REV)
            label = s->stays[node->index] ? 0 : in ^ axes_of(node);
        else if (row->detail != OLY_VIEW_SAME)
            label = to_result(node, in);
        break;
    case OLY_LOWER_REDUCE: label = to_result(node, in); break;
    case OLY_LOWER_RESHAPE:
        label = through_reshape(&node->in[0]->type, &node->type, in, s->same[node->in[0]->index]);
        break;
    case OLY_LOWER_PAD: label = in; break;
    case OLY_LOWER_CONTRACT: label = through_factors(s, node, need); break;
    case OLY_LOWER_LOCAL:
        label = through_factors(s, node, need);
        if (oly_local_way_of((oly_local_op)row->detail) == OLY_LOCAL_RUNS) {
            label |= in & 1u << node->params.dimension;
            need[0] |= in & 1u << node->params.dimension;
        }
        break;
    default: break;
    }
    find_needs(s, node, label, need);
    s->label[node->index] = label;
}

/* Dimensions along which an operand is read in another order than it is built in. */
static unsigned differs(const flipping *s, const oly_node *in, unsigned need)
{
    return (s->label[in->index] ^ need) & ~s->same[in->index];
}

/* -- regions -------------------------------------------------------------------------------------------------------------- */

static int region_of(flipping *s, int k)
{
    while (s->region[k] != k)
        k = s->region[k] = s->region[s->region[k]];
    return k;
}

static void join(flipping *s, int a, int b)
{
    int x = region_of(s, a), y = region_of(s, b);
    if (x == y)
        return;
    s->saved[x] += s->saved[y];
    s->fewer[x] += s->fewer[y];
    s->region[y] = x;
}

static void count_reversed(flipping *s, const oly_node *in, unsigned need)
{
    if (!(differs(s, in, need) & ~s->either[in->index]) || s->counted[in->index])
        return;
    s->counted[in->index] = true;
    s->saved[region_of(s, in->index)] -= bytes_of(in);
    s->fewer[region_of(s, in->index)]--;
}

static void label_all(flipping *s, unsigned *need)
{
    const oly_graph *g = s->graph;
    for (int k = 0; k < s->n; k++) {
        const oly_node *node = g->nodes[k];
        s->region[k] = k;
        s->saved[k] = s->fewer[k] = 0;
        s->counted[k] = false;
        label_node(s, node, need);
        for (int j = 0; j < node->n_in; j++) {
            count_reversed(s, node->in[j], need[j]);
            if (label_of(s, node) && label_of(s, node->in[j]))
                join(s, k, node->in[j]->index);
        }
        if (is_view(node, OLY_VIEW_REV) && !s->stays[k] && (axes_of(node) & ~loose(s, node->in[0]))) {
            int region = region_of(s, label_of(s, node) ? k : node->in[0]->index);
            s->saved[region] += bytes_of(node);
            s->fewer[region]++;
        }
    }
    for (int k = 0; k < g->n_outputs; k++)
        count_reversed(s, g->outputs[k], 0);
}

/* Drops regions that save nothing and returns whether there were any; *any: whether some are left. Fewer bytes alone
 * are no reason: an early reversal may be free because the value is not split there. */
static bool drop_regions(flipping *s, bool *any)
{
    bool dropped = false;
    *any = false;
    for (int k = 0; k < s->n; k++) {
        const oly_node *node = s->graph->nodes[k];
        if (!is_view(node, OLY_VIEW_REV) || s->stays[k])
            continue;
        int region = region_of(s, label_of(s, node) ? k : node->in[0]->index);
        if (s->fewer[region] > 0 && s->saved[region] >= 0)
            *any = true;
        else
            s->stays[k] = dropped = true;
    }
    return dropped;
}

/* -- the rewritten graph ----------------------------------------------------------------------------------- */

/* Where a part starts when both it and the whole are reversed. */
static int64_t reversed_start(int64_t whole, int64_t start, int64_t step, int64_t n)
{
    return whole - 1 - start - (n - 1) * step;
}

static void reverse_params(const oly_node *node, unsigned label, oly_params *params)
{
    const oly_op_row *row = &oly_ops[node->op];
    bool part = is_view(node, OLY_VIEW_SLICE),
         into = row->lowering == OLY_LOWER_PAD || (row->lowering == OLY_LOWER_WRITE && row->detail == OLY_WRITE_PART);
    const oly_type *inner = part ? &node->type : &node->in[row->lowering == OLY_LOWER_PAD ? 0 : node->n_in - 1]->type,
                   *outer = part ? &node->in[0]->type : &node->type;
    for (int d = 0; d < node->type.rank && (part || into); d++)
        if (label >> d & 1)
            params->start[d] = reversed_start(outer->shape[d], params->start[d], params->step[d], inner->shape[d]);
    if (row->lowering == OLY_LOWER_LOCAL && oly_local_way_of((oly_local_op)row->detail) == OLY_LOCAL_RUNS &&
        label >> params->dimension & 1)
        params->reverse = !params->reverse;
}

static oly_status make(flipping *s, oly_node *node, unsigned label, const unsigned *need, oly_node **made);

static oly_status count_from_end(oly_graph *g, oly_node *node, oly_node **made)
{
    oly_node *last;
    OLY_TRY(oly_build_number(g, node->type.dtype, (double)(node->type.shape[node->params.dimension] - 1), &last));
    OLY_TRY(oly_build_broadcast(g, last, node->type.rank, node->type.shape, &last));
    OLY_TRY(oly_graph_add(g, OLY_OP_sub, 2, (oly_node *[]){last, node}, NULL, made));
    (*made)->site = node->site;
    return OLY_OK;
}

/* Builds a node in the other order along dimensions in which that is free. */
static oly_status make_reordered(flipping *s, oly_node *node, unsigned dims, oly_node **made)
{
    unsigned label = s->label[node->index] ^ dims;
    if (node->n_in == 0)
        return count_from_end(s->graph, node, made);
    unsigned *need = OLY_ARENA_NEW(&s->graph->arena, unsigned, node->n_in);
    if (!need)
        return oly_out_of_memory(sizeof *need * (size_t)node->n_in, "the nodes of a graph");
    find_needs(s, node, label, need);
    return make(s, node, label, need, made);
}

/* Reverses a built value along `dims`, for one of its readers. */
static oly_status reverse(flipping *s, oly_node *in, unsigned dims, oly_node **made)
{
    int k = in->index;
    *made = s->reversed_dims[k] == dims && s->reversed[k] ? s->reversed[k] : s->made[k];
    if (dims == 0 || *made == s->reversed[k])
        return OLY_OK;
    unsigned either = dims & s->either[k], axes = dims & ~either;
    if (either)
        OLY_TRY(make_reordered(s, in, either, made));
    if (axes) {
        oly_params params = {0};
        for (int d = 0; d < in->type.rank; d++)
            if (axes >> d & 1)
                params.axes[params.n_axes++] = d;
        oly_node *whole = *made;
        OLY_TRY(oly_graph_add(s->graph, s->rev, 1, &whole, &params, made));
        (*made)->site = in->site;
    }
    s->reversed[k] = *made;
    s->reversed_dims[k] = dims;
    return OLY_OK;
}

static oly_status make(flipping *s, oly_node *node, unsigned label, const unsigned *need, oly_node **made)
{
    const oly_op_row *row = &oly_ops[node->op];
    if (is_view(node, OLY_VIEW_REV) && !s->stays[node->index])
        return reverse(s, node->in[0], differs(s, node->in[0], need[0]), made);
    oly_node **in = OLY_ARENA_NEW(&s->graph->arena, oly_node *, node->n_in + 1);
    if (!in)
        return oly_out_of_memory(sizeof *in * (size_t)node->n_in, "the nodes of a graph");
    bool backwards =
        row->lowering == OLY_LOWER_WRITE && row->detail == OLY_WRITE_ALL && label >> node->params.dimension & 1;
    for (int j = 0; j < node->n_in; j++)
        OLY_TRY(reverse(s, node->in[j], differs(s, node->in[j], need[j]), &in[backwards ? node->n_in - 1 - j : j]));
    *made = node;
    if (label == 0 && (node->n_in == 0 || memcmp(in, node->in, sizeof *in * (size_t)node->n_in) == 0))
        return OLY_OK;
    if (label == 0 && !s->either[node->index]) { /* no reader needs it in the other order */
        node->in = in;
        return OLY_OK;
    }
    oly_params params = node->params;
    reverse_params(node, label, &params);
    OLY_TRY(oly_graph_add(s->graph, node->op, node->n_in, in, &params, made));
    (*made)->site = node->site;
    return OLY_OK;
}

static oly_status make_all(flipping *s, unsigned *need)
{
    oly_graph *g = s->graph;
    for (int k = 0; k < s->n; k++) {
        label_node(s, g->nodes[k], need);
        OLY_TRY(make(s, g->nodes[k], s->label[k], need, &s->made[k]));
    }
    for (int k = 0; k < g->n_outputs; k++)
        OLY_TRY(reverse(s, g->outputs[k], differs(s, g->outputs[k], 0), &g->outputs[k]));
    return oly_graph_sort(g);
}

/* -- the pass ---------------------------------------------------------------------------------------------- */

static oly_status flip(oly_graph *g, bool *any)
{
    bool any_rev = false, taken = false;
    oly_op rev = 0;
    int most = 1;
    for (int k = 0; k < g->n_nodes; k++) {
        oly_node *node = g->nodes[k];
        oly_graph_ahead(g, k, 1);
        oly_graph *const *graphs;
        for (int j = oly_node_graphs(node, &graphs) - 1; j >= 0; j--)
            OLY_TRY(flip(graphs[j], any));
        if (is_view(node, OLY_VIEW_REV)) {
            any_rev = true;
            rev = node->op;
        }
        most = node->n_in > most ? node->n_in : most;
    }
    if (!any_rev)
        return OLY_OK;
    size_t n = (size_t)g->n_nodes;
    flipping s = {.graph = g, .rev = rev, .n = g->n_nodes};
    unsigned *need = OLY_ARENA_NEW(&g->arena, unsigned, most);
    s.label = OLY_ARENA_NEW(&g->arena, unsigned, n);
    s.same = OLY_ARENA_NEW(&g->arena, unsigned, n);
    s.either = OLY_ARENA_NEW(&g->arena, unsigned, n);
    s.depth = OLY_ARENA_NEW(&g->arena, unsigned char, n);
    s.reversed_dims = OLY_ARENA_NEW(&g->arena, unsigned, n);
    s.stays = OLY_ARENA_NEW(&g->arena, bool, n);
    s.counted = OLY_ARENA_NEW(&g->arena, bool, n);
    s.region = OLY_ARENA_NEW(&g->arena, int, n);
    s.saved = OLY_ARENA_NEW(&g->arena, double, n);
    s.fewer = OLY_ARENA_NEW(&g->arena, int, n);
    s.made = OLY_ARENA_NEW(&g->arena, oly_node *, n);
    s.reversed = OLY_ARENA_NEW(&g->arena, oly_node *, n);
    if (!need || !s.label || !s.same || !s.either || !s.depth || !s.reversed_dims || !s.stays || !s.counted ||
        !s.region || !s.saved || !s.fewer || !s.made || !s.reversed)
        return oly_out_of_memory(n * sizeof(oly_node *), "the nodes of a graph");
    for (int k = 0; k < g->n_nodes; k++) /* nodes that are not rewritten have no label to save them */
        s.stays[k] = is_fixed(g->nodes[k]);
    for (int round = 0; round < MOST_ROUNDS; round++) {
        label_all(&s, need);
        if (drop_regions(&s, &taken))
            continue;
        *any = *any || taken;
        return taken ? make_all(&s, need) : OLY_OK;
    }
    return OLY_OK;
}

oly_status oly_graph_flip(oly_graph *g)
{
    bool any = false;
    OLY_TRY(flip(g, &any));
    if (any)
        oly_graph_prune(g);
    return OLY_OK;
}
