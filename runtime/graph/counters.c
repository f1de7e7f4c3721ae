/* SPDX-License-Identifier: BSD-3-Clause */
/* See counters.h. Indexes are wrapped and clamped by operations (select(i < 0, i + n, i)): since the range of the counter is known, so is
 * which operand they choose. */
#include "graph/build.h"
#include "graph/counters.h"
#include <string.h>

enum { DEEPEST = 16, LARGEST = 1 << 30 };

static bool is(const oly_node *n, oly_tile_op op)
{
    return oly_ops[n->op].lowering == OLY_LOWER_TILE && oly_ops[n->op].detail == (int)op;
}

static bool is_integer(const oly_node *n)
{
    return n->type.rank == 0 && (n->type.dtype == OLY_INT32 || n->type.dtype == OLY_INT64);
}

static int64_t last_of(const oly_counted *x)
{
    return x->first + x->step * (x->count - 1);
}

static int64_t lowest(const oly_counted *x)
{
    return x->step < 0 ? last_of(x) : x->first;
}

static int64_t highest(const oly_counted *x)
{
    return x->step < 0 ? x->first : last_of(x);
}

/* What an input of the body stands for around the loop; NULL: the counter, or a carry. */
static const oly_node *outer_of(const oly_node *loop, const oly_node *input)
{
    const oly_graph *body = loop->params.body;
    for (int k = 1 + loop->params.n_carry; k < body->n_inputs; k++)
        if (body->inputs[k] == input)
            return loop->in[k - 1];
    return NULL;
}

static bool find(const oly_node *loop, const oly_node *n, oly_counted *form, int depth);

/* Is x below y in all iterations, or in none? */
static bool compare(const oly_node *loop, const oly_node *condition, bool *below, int depth)
{
    oly_counted x, y;
    if (!is(condition, OLY_TILE_lt) || !find(loop, condition->in[0], &x, depth) ||
        !find(loop, condition->in[1], &y, depth))
        return false;
    *below = highest(&x) < lowest(&y);
    return *below || lowest(&x) >= highest(&y);
}

/* The operand that a select chooses in all iterations; NULL: it is not known. */
static const oly_node *chosen(const oly_node *loop, const oly_node *n, int depth)
{
    bool below;
    return is(n, OLY_TILE_select) && n->in[0]->type.rank == 0 && compare(loop, n->in[0], &below, depth)
               ? n->in[below ? 1 : 2]
               : NULL;
}

static bool within(const oly_counted *x)
{
    return lowest(x) >= -(int64_t)LARGEST && highest(x) <= LARGEST;
}

static bool find(const oly_node *loop, const oly_node *n, oly_counted *form, int depth)
{
    const oly_graph *body = loop->params.body;
    const oly_node *outer = oly_ops[n->op].lowering == OLY_LOWER_INPUT ? outer_of(loop, n) : n, *other;
    oly_counted x, y;
    *form = (oly_counted){.count = loop->params.upper - loop->params.lower};
    if (depth == 0 || !is_integer(n))
        return false;
    if (n == body->inputs[0]) {
        form->first = loop->params.lower;
        form->step = 1;
        return within(form);
    }
    if (outer && oly_is_constant(outer)) {
        form->first = outer->params.value.i;
        return within(form);
    }
    if (is(n, OLY_TILE_convert))
        return find(loop, n->in[0], form, depth - 1);
    if ((other = chosen(loop, n, depth - 1)))
        return find(loop, other, form, depth - 1);
    if ((!is(n, OLY_TILE_add) && !is(n, OLY_TILE_sub)) || !find(loop, n->in[0], &x, depth - 1) ||
        !find(loop, n->in[1], &y, depth - 1))
        return false;
    int sign = is(n, OLY_TILE_sub) ? -1 : 1;
    form->first = x.first + sign * y.first;
    form->step = x.step + sign * y.step;
    return within(form);
}

static bool is_counted(const oly_node *n)
{
    return n->params.body && !n->params.predicate && n->params.upper > n->params.lower;
}

bool oly_counted_of(const oly_node *loop, const oly_node *n, oly_counted *form)
{
    return is_counted(loop) && find(loop, n, form, DEEPEST);
}

/* -- the pass ---------------------------------------------------------------------------------------------------------------- */

/* The same number with fewer operations; a conversion is not needed, as kernels read indexes of any integer type. */
static oly_node *simpler(const oly_node *loop, oly_node *n)
{
    oly_counted form;
    for (bool again = true; again && find(loop, n, &form, DEEPEST);) {
        const oly_node *other = chosen(loop, n, DEEPEST);
        again = true;
        if (other)
            n = n->in[other == n->in[1] ? 1 : 2];
        else if (is(n, OLY_TILE_convert) && is_integer(n->in[0]))
            n = n->in[0];
        else
            again = false;
    }
    return n;
}

static void settle(const oly_node *loop, oly_node *n, bool *any)
{
    int detail = oly_ops[n->op].detail;
    if (oly_ops[n->op].lowering != OLY_LOWER_LOCAL || n->params.n_batch > 0 ||
        (detail != OLY_LOCAL_DYNAMIC_SLICE && detail != OLY_LOCAL_DYNAMIC_UPDATE))
        return;
    for (int k = detail == OLY_LOCAL_DYNAMIC_SLICE ? 1 : 2; k < n->n_in; k++) {
        oly_node *start = n->in[k]->type.rank == 0 ? simpler(loop, n->in[k]) : n->in[k];
        if (start == n->in[k])
            continue;
        n->in[k]->n_uses--;
        start->n_uses++;
        n->in[k] = start;
        *any = true;
    }
}

/* Is the first dimension of a node's operand indexed by one number alone, which is within it in all iterations? */
static bool indexes_row(const oly_node *loop, const oly_node *n, int op)
{
    oly_counted form;
    if (oly_ops[n->op].lowering != OLY_LOWER_LOCAL || oly_ops[n->op].detail != op || n->n_in < 2 ||
        n->params.n_batch > 0 || n->params.n_axes != 1 || n->params.axes[0] != 0 || n->params.sharding)
        return false;
    const oly_type *x = &n->in[0]->type;
    return !n->type.mesh && !x->mesh && oly_type_size(x) > 0 && n->in[1]->type.rank == 0 &&
           find(loop, n->in[1], &form, DEEPEST) && lowest(&form) >= 0 && highest(&form) < x->shape[0];
}

/* The operands of a slice or an update by the row's number: `first` of them are given. */
static oly_status add_starts(oly_graph *g, const oly_node *x, oly_node *index, oly_node **in, int first)
{
    oly_node *zero;
    OLY_TRY(oly_build_number(g, OLY_INT32, 0, &zero));
    for (int d = 0; d < x->type.rank; d++)
        in[first + d] = d == 0 ? index : zero;
    return OLY_OK;
}

/* x[i] and x.at[i].set(u) as slices and updates, of which rows are read and written where they are. *made: NULL: it is neither. */
static oly_status by_rows(oly_graph *g, const oly_node *loop, oly_node *n, oly_node **made)
{
    oly_node *in[2 + OLY_MAX_RANK];
    oly_params p;
    *made = NULL;
    bool gets = indexes_row(loop, n, OLY_LOCAL_GATHER);
    if (!gets &&
        !(indexes_row(loop, n, OLY_LOCAL_SCATTER) && n->in[2]->type.dtype == n->type.dtype && !n->in[2]->type.mesh))
        return OLY_OK;
    const oly_type *x = &n->in[0]->type;
    memset(&p, 0, sizeof p);
    p.rank = x->rank;
    memcpy(p.shape, x->shape, sizeof p.shape);
    p.shape[0] = 1;
    in[0] = n->in[0];
    OLY_TRY(add_starts(g, in[0], n->in[1], in, gets ? 1 : 2));
    if (gets) {
        OLY_TRY(oly_graph_add(g, OLY_OP_dynamic_slice, 1 + x->rank, in, &p, made));
        (*made)->site = n->site;
        OLY_TRY(oly_build_reshape(g, *made, n->type.rank, n->type.shape, made));
    } else {
        OLY_TRY(oly_build_reshape(g, n->in[2], p.rank, p.shape, &in[1]));
        in[1]->site = n->site;
        OLY_TRY(oly_graph_add(g, OLY_OP_dynamic_update_slice, 2 + x->rank, in, NULL, made));
    }
    (*made)->site = n->site;
    return OLY_OK;
}

static void follow(oly_node *const *instead, int n, oly_node **node)
{
    if (instead && (*node)->index < n && instead[(*node)->index])
        *node = instead[(*node)->index];
}

static oly_status visit(oly_graph *g, const oly_node *loop, bool *any)
{
    oly_node **instead = NULL;
    int n_nodes = g->n_nodes;
    for (int k = 0; k < n_nodes; k++) {
        oly_node *n = g->nodes[k], *made = NULL;
        oly_graph *const *graphs;
        oly_graph_ahead(g, k, 1);
        for (int j = 0; j < n->n_in; j++)
            follow(instead, n_nodes, &n->in[j]);
        for (int j = oly_node_graphs(n, &graphs) - 1; j >= 0; j--)
            OLY_TRY(visit(graphs[j], is_counted(n) ? n : NULL, any));
        if (loop)
            OLY_TRY(by_rows(g, loop, n, &made));
        if (made && !instead && !(instead = OLY_ARENA_NEW(&g->arena, oly_node *, n_nodes)))
            return oly_out_of_memory(sizeof *instead * (size_t)n_nodes, "the nodes of a graph");
        if (made)
            instead[k] = made;
    }
    for (int k = 0; k < g->n_outputs; k++)
        follow(instead, n_nodes, &g->outputs[k]);
    for (int k = 0; k < g->n_nodes && loop; k++)
        settle(loop, g->nodes[k], any);
    *any = *any || instead;
    return g->n_nodes > n_nodes ? oly_graph_sort(g) : OLY_OK;
}

oly_status oly_graph_settle_counters(oly_graph *g)
{
    bool any = false;
    OLY_TRY(visit(g, NULL, &any));
    if (any)
        oly_graph_prune(g);
    return OLY_OK;
}
