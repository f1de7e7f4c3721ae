/* SPDX-License-Identifier: BSD-3-Clause */
/* Components: an array that is concatenated from parts and sliced into the same parts again, through elementwise operations and as the carry
 * of loops, such as the state of a system of equations,
 *
 *     k = concatenate(f(x), g(x));  y = x + dt k;  ... y[0:1] ... y[1:2] ...
 *
 * is never put together: each operation is done part by part, with the same bits, so that what a part is made of is fused with what reads
 * it, and a carry becomes several. Parts with one element along the dimension (those of oly_stack) lose it. Who reads the whole has the parts of its own value concatenated. Not where a slice reads across parts:
 * these are neighbours then (the margins of a field), and the array is better whole. See graph.h. */
#include "graph/graph.h"
#include "graph/view.h"
#include <string.h>

enum {
    MOST_PARTS = 16,
    MOST_OPERANDS = 8,
    NARROW = 64,   /* elements of all parts together */
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
    oly_node **instead;  /* [n] of a slice: what it shows */
    const oly_node *
        *source; /* [n] of a loop's carry: the concatenation into whose parts it falls, as what it becomes does */
    int *beside; /* [n] an elementwise operation that also has an operand that falls into parts, + 1; 0: none */
} separation;

static bool is_slice(const oly_node *n)
{
    return oly_ops[n->op].lowering == OLY_LOWER_VIEW && oly_ops[n->op].detail == OLY_VIEW_SLICE && !n->type.mesh &&
           !n->params.sharding;
}

static bool is_broadcast_number(const oly_node *n)
{
    return oly_ops[n->op].lowering == OLY_LOWER_VIEW && oly_ops[n->op].detail == OLY_VIEW_BROADCAST &&
           n->in[0]->type.rank == 0 && !n->type.mesh && !n->params.sharding;
}

/* Are all parts slices of one array? It is shifted then. */
static bool is_shift(const oly_node *concatenation)
{
    bool same = true;
    for (int k = 0; same && k < concatenation->n_in; k++) {
        const oly_node *part = concatenation->in[k];
        same = oly_ops[part->op].lowering == OLY_LOWER_VIEW && part->in[0] == concatenation->in[0]->in[0];
    }
    return same;
}

/* Is it a concatenation that may stay undone? Its parts are few elements wide or alike: what is cut off at one end is no component. */
static bool has_parts(const oly_node *n)
{
    int d = n->params.dimension;
    bool has = n->op == OLY_OP_concatenate && n->n_in >= 2 && n->n_in <= MOST_PARTS && !n->type.mesh &&
               !n->params.sharding,
         alike = n->type.shape[d] <= NARROW;
    for (int k = 0; has && k < n->n_in; k++)
        has = n->in[k]->type.shape[d] > 0 && (alike || n->in[k]->type.shape[d] == n->in[0]->type.shape[d]);
    return has && !is_shift(n);
}

static bool same_parts(const oly_node *a, const oly_node *b)
{
    int d = a->params.dimension;
    bool same = a == b || (d == b->params.dimension && a->n_in == b->n_in);
    for (int k = 0; same && a != b && k < a->n_in; k++)
        same = a->in[k]->type.shape[d] == b->in[k]->type.shape[d];
    return same;
}

/* Where part k begins. */
static int64_t begin_of(const oly_node *concatenation, int k)
{
    int64_t begin = 0;
    for (int j = 0; j < k; j++)
        begin += concatenation->in[j]->type.shape[concatenation->params.dimension];
    return begin;
}

/* The part in which all elements of a slice are. -1: there is none; -2: it reads all of the dimension, or nothing. */
static int part_read(const oly_node *slice, const oly_node *concatenation)
{
    int d = concatenation->params.dimension;
    int64_t n = slice->type.shape[d], low = slice->params.start[d], high = low + slice->params.step[d] * (n - 1);
    if (n == 0 || n == slice->in[0]->type.shape[d])
        return -2;
    for (int k = 0; k < concatenation->n_in; k++) {
        int64_t begin = begin_of(concatenation, k), end = begin_of(concatenation, k + 1);
        if (low >= begin && low < end)
            return high >= begin && high < end ? k : -1;
    }
    return -1;
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
    int part = of ? part_read(slice, of) : -2, root = root_of(s, slice->in[0]->index);
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
    if (is_slice(n))
        mark_slice(s, n);
    else if (is_joined(n))
        mark_along_others(s, n);
    else if (is_elementwise(n))
        mark_elementwise(s, n);
    if (!s->of[n->index] && has_parts(n))
        s->of[n->index] = n;
}

/* What reads an array by parts would read so what is made of it and of what falls into these parts: the next state of a system. */
static void mark_beside(separation *s, const oly_node *slice)
{
    int beside = is_slice(slice) && !s->of[slice->in[0]->index] ? s->beside[slice->in[0]->index] : 0;
    if (!beside)
        return;
    int root = root_of(s, beside - 1), part = part_read(slice, s->of[beside - 1]);
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

static oly_status slice_part(oly_graph *g, oly_node *x, int d, int64_t begin, int64_t length, oly_site site,
                             oly_node **made)
{
    oly_params params = {.rank = x->type.rank};
    for (int e = 0; e < x->type.rank; e++) {
        params.shape[e] = e == d ? length : x->type.shape[e];
        params.start[e] = e == d ? begin : 0;
        params.step[e] = 1;
    }
    OLY_TRY(oly_graph_add(g, OLY_OP_slice, 1, &x, &params, made));
    (*made)->site = site;
    return OLY_OK;
}

/* x in the shape of another value with as many elements; not reshaped twice. */
static oly_status reshape(oly_graph *g, oly_node *x, const oly_type *to, oly_site site, oly_node **made)
{
    oly_params params = {.rank = to->rank};
    memcpy(params.shape, to->shape, sizeof params.shape[0] * (size_t)to->rank);
    *made = x;
    if (oly_type_equal(&x->type, to))
        return OLY_OK;
    if (x->op == OLY_OP_reshape && !x->params.sharding && !x->type.mesh && oly_type_equal(&x->in[0]->type, to)) {
        *made = x->in[0];
        return OLY_OK;
    }
    OLY_TRY(oly_graph_add(g, OLY_OP_reshape, 1, &x, &params, made));
    (*made)->site = site;
    return OLY_OK;
}

/* Has every part one element along the dimension, which the parts then do without? */
static bool are_thin(const oly_node *concatenation)
{
    int d = concatenation->params.dimension;
    return concatenation->type.rank > 1 && concatenation->type.shape[d] == concatenation->n_in;
}

/* The type without dimension d, of one element, and with it. */
static oly_type without(oly_type type, int d)
{
    type.rank--;
    for (int e = d; e < type.rank; e++)
        type.shape[e] = type.shape[e + 1];
    type.shape[type.rank] = 0;
    return type;
}

static oly_type with(oly_type type, int d)
{
    for (int e = type.rank++; e > d; e--)
        type.shape[e] = type.shape[e - 1];
    type.shape[d] = 1;
    return type;
}

static oly_status thin(oly_graph *g, oly_node **x, int d, oly_site site)
{
    oly_type type = without((*x)->type, d);
    return reshape(g, *x, &type, site, x);
}

static oly_status thicken(oly_graph *g, oly_node **x, int d, oly_site site)
{
    oly_type type = with((*x)->type, d);
    return reshape(g, *x, &type, site, x);
}

/* Part k of an operand, which may be a number or an array that does not fall into parts itself. */
static oly_status operand_part(separation *s, oly_node *x, const oly_node *of, int k, oly_site site, oly_node **made)
{
    int d = of->params.dimension;
    int64_t begin = begin_of(of, k), length = begin_of(of, k + 1) - begin;
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
        OLY_TRY(slice_part(s->graph, x, d, begin, length, site, made));
        return are_thin(of) ? thin(s->graph, made, d, site) : OLY_OK;
    }
    oly_params params = x->params;
    oly_type type = x->type;
    type.shape[d] = length;
    type = are_thin(of) ? without(type, d) : type;
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
    if (is_slice(n))
        params.shape[d] = length;
    if (!are_thin(of))
        return params;
    if (n->op == OLY_OP_concatenate && params.dimension > d)
        params.dimension--;
    for (int e = d; is_slice(n) && e < n->type.rank; e++) {
        bool last = e + 1 == n->type.rank;
        params.shape[e] = last ? 0 : n->params.shape[e + 1];
        params.start[e] = last ? 0 : n->params.start[e + 1];
        params.step[e] = last ? 0 : n->params.step[e + 1];
    }
    params.rank -= is_slice(n);
    return params;
}

/* Part k of a value: what is concatenated, a slice of a carry, or the operation on parts of its operands. */
static oly_status value_part(separation *s, oly_node *n, int k, oly_node **made)
{
    const oly_node *of = s->of[n->index];
    int d = of->params.dimension;
    int64_t begin = begin_of(of, k), length = begin_of(of, k + 1) - begin;
    oly_node *in[MOST_OPERANDS];
    if (has_whole(s, n)) {
        if (s->source[n->index])
            OLY_TRY(slice_part(s->graph, n, d, begin, length, n->site, made));
        else
            *made = n->in[k];
        return are_thin(of) ? thin(s->graph, made, d, n->site) : OLY_OK;
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
        oly_node *part[MOST_PARTS];
        for (int k = 0; k < of->n_in; k++) {
            part[k] = s->part[n->index][k];
            if (are_thin(of))
                OLY_TRY(thicken(s->graph, &part[k], params.dimension, n->site));
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
    int d = of->params.dimension, k = part_read(slice, of);
    oly_node *part = s->part[x->index][k];
    oly_params params = slice->params;
    params.start[d] -= begin_of(of, k);
    if (are_thin(of))
        OLY_TRY(thicken(s->graph, &part, d, slice->site));
    s->instead[slice->index] = part;
    if (oly_type_equal(&part->type, &slice->type))
        return OLY_OK;
    OLY_TRY(oly_graph_add(s->graph, slice->op, 1, &part, &params, &s->instead[slice->index]));
    s->instead[slice->index]->site = slice->site;
    return OLY_OK;
}

static oly_status visit(separation *s, oly_node *n)
{
    bool shows = is_slice(n) && is_separate(s, n->in[0]) && part_read(n, s->of[n->in[0]->index]) >= 0;
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

/* -- the carries of loops ---------------------------------------------------------------------------------------------------------- */

/* Does the loop's body read carry c part by part only, and is what it becomes put together from these parts? */
static bool falls_into_parts(const oly_node *loop, int c)
{
    const oly_graph *body = loop->params.body;
    const oly_node *carry = body->inputs[1 + c], *next = body->outputs[c];
    bool read = false;
    if (!has_parts(next) || carry->type.mesh || loop->in[c]->type.mesh || loop->params.predicate == c + 1)
        return false;
    for (int k = 0; k < body->n_outputs; k++)
        if (body->outputs[k] == carry)
            return false;
    for (int k = 0; k < body->n_nodes; k++)
        for (int j = 0; j < body->nodes[k]->n_in; j++)
            if (body->nodes[k]->in[j] == carry) {
                if (!is_slice(body->nodes[k]) || part_read(body->nodes[k], next) < 0)
                    return false;
                read = true;
            }
    return read;
}

/* Takes an input that is none any more off the nodes. */
static void drop_node(oly_graph *g, const oly_node *node)
{
    int kept = 0;
    for (int k = 0; k < g->n_nodes; k++)
        if (g->nodes[k] != node) {
            g->nodes[k]->index = kept;
            g->nodes[kept++] = g->nodes[k];
        }
    g->n_nodes = kept;
}

/* The body's inputs and outputs: the parts, the first in the carry's place, the others after the last carry. */
static oly_status divide_body(oly_graph *body, int n_carry, int c, const oly_node *next)
{
    int n = next->n_in, at = 1 + n_carry, d = next->params.dimension;
    oly_node *carry = body->inputs[1 + c], *part[MOST_PARTS], *made[MOST_PARTS];
    for (int k = 0; k < n; k++) {
        oly_type type = carry->type;
        type.shape[d] = next->in[k]->type.shape[d];
        type = are_thin(next) ? without(type, d) : type;
        made[k] = next->in[k];
        if (are_thin(next))
            OLY_TRY(thin(body, &made[k], d, next->site));
        OLY_TRY(oly_graph_input(body, &type, &part[k]));
        if (k > 0)
            OLY_TRY(oly_graph_output(body, made[k]));
    }
    body->n_inputs -= n;
    memmove(body->inputs + at + n - 1, body->inputs + at, sizeof(oly_node *) * (size_t)(body->n_inputs - at));
    memcpy(body->inputs + at, part + 1, sizeof(oly_node *) * (size_t)(n - 1));
    body->inputs[1 + c] = part[0];
    body->n_inputs += n - 1;
    body->outputs[c] = made[0];
    for (int k = 0; k < body->n_nodes; k++) {
        oly_node *slice = body->nodes[k];
        if (slice->n_in == 0 || slice->in[0] != carry)
            continue;
        int p = part_read(slice, next);
        oly_params params = slice->params;
        oly_node *of = part[p], *shown;
        params.start[d] -= begin_of(next, p);
        if (are_thin(next))
            OLY_TRY(thicken(body, &of, d, slice->site));
        OLY_TRY(oly_graph_add(body, slice->op, 1, &of, &params, &shown));
        slice->in = shown->in;
        slice->params = shown->params;
        slice->hash = shown->hash;
    }
    drop_node(body, carry);
    return oly_graph_sort(body);
}

/* What the loop begins with: slices of the carry's value. */
static oly_status divide_operands(oly_graph *g, oly_node *loop, int c, const oly_node *next)
{
    int n = next->n_in, d = next->params.dimension, n_carry = loop->params.n_carry;
    oly_node **in = OLY_ARENA_NEW(&g->arena, oly_node *, loop->n_in + n), *x = loop->in[c];
    if (!in)
        return oly_out_of_memory(sizeof *in * (size_t)(loop->n_in + n), "the nodes of a graph");
    memcpy(in, loop->in, sizeof *in * (size_t)n_carry);
    memcpy(in + n_carry + n - 1, loop->in + n_carry, sizeof *in * (size_t)(loop->n_in - n_carry));
    for (int k = 0; k < n; k++) {
        oly_node **to = k ? &in[n_carry + k - 1] : &in[c];
        OLY_TRY(slice_part(g, x, d, begin_of(next, k), next->in[k]->type.shape[d], loop->site, to));
        if (are_thin(next))
            OLY_TRY(thin(g, to, d, loop->site));
    }
    loop->in = in;
    loop->n_in += n - 1;
    loop->params.n_carry += n - 1;
    return OLY_OK;
}

/* Results of the loop are put together again. */
static oly_status join_results(oly_graph *g, oly_node *loop, int c, const oly_node *next, int n_carry)
{
    int n_nodes = g->n_nodes;
    for (int k = 0; k < n_nodes; k++) {
        oly_node *result = g->nodes[k], *part[MOST_PARTS], *made;
        if (oly_ops[result->op].lowering != OLY_LOWER_RESULT || result->in[0] != loop || result->params.dimension != c)
            continue;
        for (int j = 0; j < next->n_in; j++) {
            oly_params params = result->params;
            params.dimension = j ? n_carry + j - 1 : c;
            OLY_TRY(oly_graph_add(g, result->op, 1, &loop, &params, &part[j]));
            part[j]->site = result->site;
            if (are_thin(next))
                OLY_TRY(thicken(g, &part[j], next->params.dimension, result->site));
        }
        oly_params params = {.dimension = next->params.dimension};
        OLY_TRY(oly_graph_add(g, OLY_OP_concatenate, next->n_in, part, &params, &made));
        result->op = made->op;
        result->params = made->params;
        result->n_in = made->n_in;
        result->in = made->in;
        result->hash = made->hash;
    }
    return OLY_OK;
}

static oly_status separate_carries(oly_graph *g, oly_node *loop, bool *any)
{
    for (int c = 0, n = loop->params.n_carry; c < n; c++) {
        int n_carry = loop->params.n_carry;
        if (loop->params.unrolled || !falls_into_parts(loop, c))
            continue;
        const oly_node *next = loop->params.body->outputs[c];
        OLY_TRY(divide_body(loop->params.body, n_carry, c, next));
        OLY_TRY(divide_operands(g, loop, c, next));
        OLY_TRY(join_results(g, loop, c, next, n_carry));
        *any = true;
    }
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
            OLY_TRY(separate_carries(g, node, any));
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
