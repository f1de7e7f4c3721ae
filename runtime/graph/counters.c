/* SPDX-License-Identifier: BSD-3-Clause */
/* See counters.h. Indexes are wrapped and clamped by operations (select(i < 0, i + n, i)): since the range of the counter is known, so is
 * which operand they choose. */
#include "graph/counters.h"

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

static void visit(oly_graph *g, const oly_node *loop, bool *any)
{
    for (int k = 0; k < g->n_nodes; k++) {
        oly_node *n = g->nodes[k];
        oly_graph *const *graphs;
        oly_graph_ahead(g, k, 1);
        for (int j = oly_node_graphs(n, &graphs) - 1; j >= 0; j--)
            visit(graphs[j], is_counted(n) ? n : NULL, any);
        if (loop)
            settle(loop, n, any);
    }
}

void oly_graph_settle_counters(oly_graph *g)
{
    bool any = false;
    visit(g, NULL, &any);
    if (any)
        oly_graph_prune(g);
}
