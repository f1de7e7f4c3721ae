/* SPDX-License-Identifier: BSD-3-Clause */
/* Components: an array that is concatenated from parts and sliced into the same parts again, through elementwise operations and as the carry
 * of loops, such as the state of a system of equations,
 *
 *     k = concatenate(f(x), g(x));  y = x + dt k;  ... y[0:1] ... y[1:2] ...
 *
 * is never put together: each operation is done part by part, with the same bits, so that what a part is made of is fused with what reads
 * it, and a carry becomes several (component_carries.c). Parts with one element along the dimension (those of oly_stack) lose it. Who reads
 * the whole has the parts of its own value concatenated. Not where a slice reads across parts: these are neighbours then (the margins of a
 * field), and the array is better whole.
 *
 * Values that are made of each other are one group, which is separated or not: first all nodes are marked with the concatenation into whose
 * parts they fall, then those of groups that are worth it are made again. See graph.h and components.h. */
#include "graph/components.h"
#include <string.h>

enum {
    MOST_OPERANDS = 8,
    LEAST_READ = 2 /* parts that slices read: for one alone the array need not be separated */
};

typedef struct separation {
    oly_graph *graph;
    int n;               /* nodes of the graph as it was */
    const oly_node **of; /* [n] the concatenation into whose parts the value falls; NULL: none */
    int *group;          /* [n] another node of the same group, at last its root: values that are made of each other */
    uint32_t *read;      /* [root] parts (bits) that slices read */
    bool *crossed;       /* [root] some slice reads more than one part */
    oly_node ***part;    /* [n] */
    oly_node **whole;    /* [n] the parts put together, once that is needed */
    oly_node **instead;  /* [n] of a slice or a reduction: what it shows, or is */
    const oly_node *
        *source; /* [n] of a loop's carry: the concatenation into whose parts it falls, as what it becomes does */
    int *beside; /* [n] an elementwise operation that also has an operand that falls into parts, + 1; 0: none */
} separation;

static bool is_broadcast_number(const oly_node *n)
{
    return oly_ops[n->op].lowering == OLY_LOWER_VIEW && oly_ops[n->op].detail == OLY_VIEW_BROADCAST &&
           n->in[0]->type.rank == 0 && !n->type.mesh && !n->params.sharding;
}

static bool same_parts(const oly_node *a, const oly_node *b)
{
    int d = a->params.dimension;
    bool same = a == b || (d == b->params.dimension && a->n_in == b->n_in);
    for (int k = 0; same && a != b && k < a->n_in; k++)
        same = a->in[k]->type.shape[d] == b->in[k]->type.shape[d];
    return same;
}

/* Does a slice read all of dimension d? */
static bool reads_all(const oly_node *slice, int d)
{
    return slice->params.start[d] == 0 && slice->params.step[d] == 1 &&
           slice->type.shape[d] == slice->in[0]->type.shape[d];
}

static bool is_joined(const oly_node *n)
{
    return n->op == OLY_OP_concatenate && n->n_in <= MOST_OPERANDS && !n->type.mesh && !n->params.sharding;
}

/* -- which values fall into parts ---------------------------------------------------------------------------------------------- */

static int root_of(separation *s, int k)
{
    while (s->group[k] != k)
        k = s->group[k] = s->group[s->group[k]];
    return k;
}

/* Joins the groups of a value and of an operand that falls into the same parts. */
static void join(separation *s, int k, int operand)
{
    int to = root_of(s, k), from = root_of(s, operand);
    if (from == to)
        return;
    s->group[from] = to;
    s->read[to] |= s->read[from];
    s->crossed[to] = s->crossed[to] || s->crossed[from];
}

static bool is_elementwise(const oly_node *n)
{
    return oly_ops[n->op].lowering == OLY_LOWER_TILE && n->n_in > 0 && n->n_in <= MOST_OPERANDS &&
           n->params.rank == 0 && !n->type.mesh && !n->params.sharding;
}

/* An elementwise operation falls into parts as its operands do, if those that do agree; the others are sliced. */
static void mark_elementwise(separation *s, const oly_node *n)
{
    const oly_node *of = NULL;
    for (int j = 0; j < n->n_in; j++) {
        const oly_node *in = n->in[j], *its = s->of[in->index];
        if (in->type.rank != n->type.rank && in->type.rank != 0)
            return;
        if (its && of && !same_parts(of, its))
            return;
        of = its ? its : of;
    }
    s->of[n->index] = of;
    for (int j = 0; of && j < n->n_in; j++)
        if (s->of[n->in[j]->index])
            join(s, n->index, n->in[j]->index);
        else
            s->beside[n->in[j]->index] = n->index + 1;
}

/* So do slices along other dimensions, and concatenations along another one. */
static void mark_along_others(separation *s, const oly_node *n)
{
    const oly_node *of = s->of[n->in[0]->index];
    for (int j = 1; of && j < n->n_in; j++) {
        const oly_node *its = s->of[n->in[j]->index];
        of = its && same_parts(of, its) ? of : NULL;
    }
    if (!of || (n->op == OLY_OP_concatenate && n->params.dimension == of->params.dimension))
        return;
    s->of[n->index] = of;
    for (int j = 0; j < n->n_in; j++)
        join(s, n->index, n->in[j]->index);
}

static void mark_slice(separation *s, const oly_node *slice)
{
    const oly_node *of = s->of[slice->in[0]->index];
    int part = of ? oly_component_read(slice, of) : -2, root = root_of(s, slice->in[0]->index);
    if (part >= 0)
        s->read[root] |= 1u << part;
    else if (part == -1)
        s->crossed[root] = true;
    else if (of && reads_all(slice, of->params.dimension))
        mark_along_others(s, slice);
}

static void mark(separation *s, const oly_node *n)
{
    s->of[n->index] = s->source[n->index];
    if (oly_is_plain_slice(n))
        mark_slice(s, n);
    else if (is_joined(n))
        mark_along_others(s, n);
    else if (is_elementwise(n))
        mark_elementwise(s, n);
    if (!s->of[n->index] && oly_has_components(n))
        s->of[n->index] = n;
}

/* What reads an array by parts would read so what is made of it and of what falls into these parts: the next state of a system. */
static void mark_beside(separation *s, const oly_node *slice)
{
    int beside = oly_is_plain_slice(slice) && !s->of[slice->in[0]->index] ? s->beside[slice->in[0]->index] : 0;
    if (!beside)
        return;
    int root = root_of(s, beside - 1), part = oly_component_read(slice, s->of[beside - 1]);
    s->read[root] |= part >= 0 ? 1u << part : 0;
    s->crossed[root] = s->crossed[root] || part == -1;
}

static void mark_all(separation *s)
{
    for (int k = 0; k < s->n; k++) {
        s->group[k] = k;
        s->read[k] = 0;
        s->crossed[k] = false;
        s->beside[k] = 0;
    }
    for (int k = 0; k < s->n; k++)
        mark(s, s->graph->nodes[k]);
    for (int k = 0; k < s->n; k++)
        mark_beside(s, s->graph->nodes[k]);
}

/* In a loop's body a carry falls into the parts of what it becomes. */
static void mark_carries(separation *s, const oly_node *loop)
{
    const oly_graph *body = loop->params.body;
    bool some = false, agree = true;
    for (int c = 0; c < loop->params.n_carry; c++) {
        const oly_node *carry = body->inputs[1 + c], *of = s->of[body->outputs[c]->index];
        s->source[carry->index] = carry->type.mesh || loop->params.predicate == c + 1 ? NULL : of;
        some = some || s->source[carry->index];
    }
    if (!some)
        return;
    mark_all(s);
    for (int c = 0; c < loop->params.n_carry; c++) {
        const oly_node *carry = body->inputs[1 + c], *next = body->outputs[c], *of = s->source[carry->index];
        agree = agree && (!of || (s->of[next->index] && same_parts(of, s->of[next->index])));
        if (of && agree)
            join(s, next->index, carry->index);
    }
    if (agree)
        return;
    memset(s->source, 0, sizeof *s->source * (size_t)s->n);
    mark_all(s);
}

static bool is_separate(separation *s, const oly_node *n)
{
    if (n->index >= s->n || !s->of[n->index])
        return false;
    int root = root_of(s, n->index);
    return !s->crossed[root] && __builtin_popcount(s->read[root]) >= LEAST_READ;
}

/* Is there a whole in any case: the concatenation itself, a loop's carry? */
static bool has_whole(const separation *s, const oly_node *n)
{
    return s->of[n->index] == n || s->source[n->index];
}

/* -- the parts ------------------------------------------------------------------------------------------------------------------- */

/* Part k of an operand, which may be a number or an array that does not fall into parts itself. */
static oly_status operand_part(separation *s, oly_node *x, const oly_node *of, int k, oly_site site, oly_node **made)
{
    int d = of->params.dimension;
    int64_t begin = oly_component_begin(of, k), length = oly_component_begin(of, k + 1) - begin;
    *made = x;
    if (x->type.rank == 0)
        return OLY_OK;
    if (is_separate(s, x)) {
        *made = s->part[x->index][k];
        return OLY_OK;
    }
    if (x->index < s->n && s->instead[x->index])
        x = s->instead[x->index];
    if (!is_broadcast_number(x)) {
        OLY_TRY(oly_component_slice(s->graph, x, d, begin, length, site, made));
        return oly_components_are_thin(of) ? oly_component_thin(s->graph, made, d, site) : OLY_OK;
    }
    oly_params params = x->params;
    oly_type type = x->type;
    type.shape[d] = length;
    type = oly_components_are_thin(of) ? oly_type_without(type, d) : type;
    if (type.rank == 0) {
        *made = x->in[0];
        return OLY_OK;
    }
    params.rank = type.rank;
    memset(params.shape, 0, sizeof params.shape);
    memcpy(params.shape, type.shape, sizeof params.shape[0] * (size_t)type.rank);
    return oly_graph_add(s->graph, x->op, 1, x->in, &params, made);
}

/* The parameters of a part of what is computed along other dimensions only. */
static oly_params part_params(const oly_node *n, const oly_node *of, int64_t length)
{
    oly_params params = n->params;
    int d = of->params.dimension;
    if (oly_is_plain_slice(n))
        params.shape[d] = length;
    if (!oly_components_are_thin(of))
        return params;
    if (n->op == OLY_OP_concatenate && params.dimension > d)
        params.dimension--;
    for (int e = d; oly_is_plain_slice(n) && e < n->type.rank; e++) {
        bool last = e + 1 == n->type.rank;
        params.shape[e] = last ? 0 : n->params.shape[e + 1];
        params.start[e] = last ? 0 : n->params.start[e + 1];
        params.step[e] = last ? 0 : n->params.step[e + 1];
    }
    params.rank -= oly_is_plain_slice(n);
    return params;
}

/* Part k of a value: what is concatenated, a slice of a carry, or the operation on parts of its operands. */
static oly_status value_part(separation *s, oly_node *n, int k, oly_node **made)
{
    const oly_node *of = s->of[n->index];
    int d = of->params.dimension;
    int64_t begin = oly_component_begin(of, k), length = oly_component_begin(of, k + 1) - begin;
    oly_node *in[MOST_OPERANDS];
    if (has_whole(s, n)) {
        if (s->source[n->index])
            OLY_TRY(oly_component_slice(s->graph, n, d, begin, length, n->site, made));
        else
            *made = n->in[k];
        return oly_components_are_thin(of) ? oly_component_thin(s->graph, made, d, n->site) : OLY_OK;
    }
    for (int j = 0; j < n->n_in; j++)
        OLY_TRY(operand_part(s, n->in[j], of, k, n->site, &in[j]));
    oly_params params = part_params(n, of, length);
    OLY_TRY(oly_graph_add(s->graph, n->op, n->n_in, in, &params, made));
    (*made)->site = n->site;
    return OLY_OK;
}

static oly_status separate(separation *s, oly_node *n)
{
    const oly_node *of = s->of[n->index];
    oly_node **part = OLY_ARENA_NEW(&s->graph->arena, oly_node *, of->n_in);
    if (!part)
        return oly_out_of_memory(sizeof *part * (size_t)of->n_in, "the nodes of a graph");
    s->part[n->index] = part;
    for (int k = 0; k < of->n_in; k++)
        OLY_TRY(value_part(s, n, k, &part[k]));
    return OLY_OK;
}

static oly_status put_together(separation *s, oly_node **x)
{
    oly_node *n = *x;
    if (!is_separate(s, n) || has_whole(s, n))
        return OLY_OK;
    const oly_node *of = s->of[n->index];
    oly_node **whole = &s->whole[n->index];
    if (!*whole) {
        oly_params params = {.dimension = of->params.dimension};
        oly_node *part[OLY_MOST_COMPONENTS];
        for (int k = 0; k < of->n_in; k++) {
            part[k] = s->part[n->index][k];
            if (oly_components_are_thin(of))
                OLY_TRY(oly_component_thicken(s->graph, &part[k], params.dimension, n->site));
        }
        OLY_TRY(oly_graph_add(s->graph, OLY_OP_concatenate, of->n_in, part, &params, whole));
        (*whole)->site = n->site;
    }
    *x = *whole;
    return OLY_OK;
}

/* What a slice of one part shows. */
static oly_status show(separation *s, oly_node *slice)
{
    const oly_node *x = slice->in[0], *of = s->of[x->index];
    int d = of->params.dimension, k = oly_component_read(slice, of);
    oly_node *part = s->part[x->index][k];
    oly_params params = slice->params;
    params.start[d] -= oly_component_begin(of, k);
    if (oly_components_are_thin(of))
        OLY_TRY(oly_component_thicken(s->graph, &part, d, slice->site));
    s->instead[slice->index] = part;
    if (oly_type_equal(&part->type, &slice->type))
        return OLY_OK;
    OLY_TRY(oly_graph_add(s->graph, slice->op, 1, &part, &params, &s->instead[slice->index]));
    s->instead[slice->index]->site = slice->site;
    return OLY_OK;
}

/* The operation that combines parts as a reduction over the dimension d of all of them does, in any order; OLY_N_OPS: it does not. */
static oly_op combines_parts(const oly_node *n, int d)
{
    bool over = false;
    if (oly_ops[n->op].lowering != OLY_LOWER_REDUCE || n->type.mesh || n->params.sharding)
        return OLY_N_OPS;
    for (int k = 0; k < n->params.n_axes; k++)
        over = over || n->params.axes[k] == d;
    if (!over)
        return OLY_N_OPS;
    switch (oly_ops[n->op].detail) {
    case OLY_COMBINE_MAX: return OLY_OP_max;
    case OLY_COMBINE_MIN: return OLY_OP_min;
    case OLY_COMBINE_AND: return OLY_OP_and;
    case OLY_COMBINE_OR: return OLY_OP_or;
    default: return OLY_N_OPS;
    }
}

/* Reduces each part, then what is left of them. */
static oly_status reduce_parts(separation *s, oly_node *n, oly_op combine)
{
    const oly_node *of = s->of[n->in[0]->index];
    int d = of->params.dimension;
    bool thin = oly_components_are_thin(of);
    oly_params params = n->params, none = {0};
    params.n_axes = 0;
    for (int k = 0; k < n->params.n_axes; k++)
        if (!thin || n->params.axes[k] != d)
            params.axes[params.n_axes++] = n->params.axes[k] - (thin && n->params.axes[k] > d);
    oly_node *all = NULL;
    for (int k = 0; k < of->n_in; k++) {
        oly_node *part = s->part[n->in[0]->index][k];
        if (params.n_axes > 0) {
            OLY_TRY(oly_graph_add(s->graph, n->op, 1, &part, &params, &part));
            part->site = n->site;
        }
        if (all) {
            oly_node *in[] = {all, part};
            OLY_TRY(oly_graph_add(s->graph, combine, 2, in, &none, &part));
            part->site = n->site;
        }
        all = part;
    }
    s->instead[n->index] = all;
    return OLY_OK;
}

static oly_status visit(separation *s, oly_node *n)
{
    if (n->n_in == 1 && is_separate(s, n->in[0])) {
        oly_op combine = combines_parts(n, s->of[n->in[0]->index]->params.dimension);
        if (combine != OLY_N_OPS)
            return reduce_parts(s, n, combine);
    }
    bool shows =
        oly_is_plain_slice(n) && is_separate(s, n->in[0]) && oly_component_read(n, s->of[n->in[0]->index]) >= 0;
    if (shows)
        return show(s, n);
    if (is_separate(s, n) && !has_whole(s, n))
        return separate(s, n);
    for (int j = 0; j < n->n_in; j++) {
        if (n->in[j]->index < s->n && s->instead[n->in[j]->index])
            n->in[j] = s->instead[n->in[j]->index];
        else
            OLY_TRY(put_together(s, &n->in[j]));
    }
    return is_separate(s, n) ? separate(s, n) : OLY_OK;
}

/* loop: whose body the graph is; NULL: of none */
static oly_status separate_values(oly_graph *g, const oly_node *loop, bool *any)
{
    separation s = {.graph = g, .n = g->n_nodes};
    OLY_ARENA_LIST(&g->arena, s.of, s.n);
    OLY_ARENA_LIST(&g->arena, s.group, s.n);
    OLY_ARENA_LIST(&g->arena, s.read, s.n);
    OLY_ARENA_LIST(&g->arena, s.crossed, s.n);
    OLY_ARENA_LIST(&g->arena, s.part, s.n);
    OLY_ARENA_LIST(&g->arena, s.whole, s.n);
    OLY_ARENA_LIST(&g->arena, s.instead, s.n);
    OLY_ARENA_LIST(&g->arena, s.source, s.n);
    OLY_ARENA_LIST(&g->arena, s.beside, s.n);
    bool some = false;
    mark_all(&s);
    if (loop)
        mark_carries(&s, loop);
    for (int k = 0; k < s.n && !some; k++)
        some = is_separate(&s, g->nodes[k]);
    if (!some)
        return OLY_OK;
    *any = true;
    for (int k = 0; k < s.n; k++)
        OLY_TRY(visit(&s, g->nodes[k]));
    for (int k = 0; k < g->n_outputs; k++) {
        oly_node *instead = s.instead[g->outputs[k]->index];
        if (instead)
            g->outputs[k] = instead;
        else
            OLY_TRY(put_together(&s, &g->outputs[k]));
    }
    OLY_TRY(oly_graph_sort(g));
    oly_graph_prune(g); /* so that the whole is not read any more */
    return OLY_OK;
}

/* -- the pass ------------------------------------------------------------------------------------------------------------------------ */

static oly_status visit_graph(oly_graph *g, const oly_node *loop, bool *any)
{
    int n = g->n_nodes;
    for (int k = 0; k < n; k++) {
        oly_node *node = g->nodes[k];
        oly_graph *const *graphs;
        bool is_loop = oly_ops[node->op].lowering == OLY_LOWER_LOOP;
        oly_graph_ahead(g, k, 1);
        for (int j = oly_node_graphs(node, &graphs) - 1; j >= 0; j--)
            OLY_TRY(visit_graph(graphs[j], is_loop ? node : NULL, any));
        if (is_loop)
            OLY_TRY(oly_separate_carries(g, node, any));
    }
    if (g->n_nodes > n)
        OLY_TRY(oly_graph_sort(g));
    return separate_values(g, loop, any);
}

oly_status oly_graph_separate(oly_graph *g)
{
    bool any = false;
    OLY_TRY(visit_graph(g, NULL, &any));
    if (any)
        oly_graph_prune(g);
    return OLY_OK;
}
