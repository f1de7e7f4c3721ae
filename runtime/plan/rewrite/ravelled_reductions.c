/* SPDX-License-Identifier: BSD-3-Clause */
/* Reductions of all elements of a reshaped array, such as sum(ravel(x)) and vdot(x, y), where the array is split in ways that its
 * reshape cannot be: x cut in two dimensions would be gathered before it is ravelled. The order of elements does not count in such a
 * reduction, so it takes the array, and the elementwise operations between, as they were before the reshape. Propagated layouts decide;
 * sums are then added in the order of the array's own elements. Called by plan.c after propagation, which then begins anew. */
#include "core/optimisation.h"
#include "plan/rewrite/rewrite.h"
#include <string.h>

enum {
    MOST_OPERANDS = 2,
    MOST_NODES = 64,   /* looked at above a reduction */
    LEAST_BYTES = 2048 /* of the array: gathering less takes no longer than reducing partial results */
};

static int axes_of(oly_frame *f, const oly_node *n)
{
    int count = 0;
    for (int d = 0; d < n->type.rank; d++)
        count += oly_value_of(f, n)->axes[d].n;
    return count;
}

static bool is_large(const oly_type *t)
{
    return oly_type_size(t) * (int64_t)oly_dtype_size(t->dtype) >= LEAST_BYTES;
}

/* The first of the reshapes that n ends, if they lose axes; NULL: they keep them. */
static const oly_node *lossy_reshape(oly_frame *f, const oly_node *n)
{
    const oly_node *first = NULL;
    for (const oly_node *at = n; oly_ops[at->op].lowering == OLY_LOWER_RESHAPE; at = at->in[0])
        if (!at->type.mesh && !at->in[0]->type.mesh && at->in[0]->type.rank > 1)
            first = at;
    return first && is_large(&first->in[0]->type) && axes_of(f, first->in[0]) > axes_of(f, n) ? first : NULL;
}

/* A search from a reduction upwards, through elementwise operations without other readers. */
typedef struct search {
    oly_frame *f;
    int *reads; /* [node] by whole reductions */
    int left;
    bool noting;           /* reads; else: do other readers need a reshape, too? */
    bool needed;           /* they do, so it is gathered in any case */
    const oly_node *found; /* the first reshape that loses axes */
} search;

static void look(search *s, const oly_node *n)
{
    const oly_node *reshape = lossy_reshape(s->f, n);
    if (reshape && !s->found)
        s->found = reshape;
    if (reshape && s->noting)
        s->reads[n->index]++;
    s->needed = s->needed || (reshape && s->reads[n->index] < n->n_uses);
    if (s->left-- <= 0 || oly_ops[n->op].lowering != OLY_LOWER_TILE || n->n_uses > 1)
        return;
    for (int k = 0; k < n->n_in; k++)
        look(s, n->in[k]);
}

static search look_above(oly_frame *f, int *reads, const oly_node *reduction, bool noting)
{
    search s = {.f = f, .reads = reads, .left = MOST_NODES, .noting = noting};
    for (int k = 0; k < reduction->n_in; k++)
        look(&s, reduction->in[k]);
    return s;
}

/* Is n a reduction of all elements of its operands, each with its own? */
static bool reduces_all(const oly_node *n)
{
    const oly_contraction *c = &n->params.contraction;
    if (n->type.rank != 0 || n->type.mesh || n->params.sharding)
        return false;
    if (oly_ops[n->op].lowering == OLY_LOWER_REDUCE)
        return n->params.n_axes > 0;
    bool pairs = oly_ops[n->op].lowering == OLY_LOWER_CONTRACT && n->in[0]->type.rank > 0;
    for (int k = 0; pairs && k < c->n_contract; k++)
        pairs = c->contract[0][k] == c->contract[1][k];
    return pairs;
}

static void reduce_all_of(oly_node *n, int rank)
{
    if (oly_ops[n->op].lowering == OLY_LOWER_REDUCE) {
        n->params.n_axes = rank;
        for (int d = 0; d < OLY_MAX_RANK; d++)
            n->params.axes[d] = d < rank ? d : 0;
        return;
    }
    oly_contraction *c = &n->params.contraction;
    memset(c, 0, sizeof *c);
    c->n_contract = (uint8_t)rank;
    for (int d = 0; d < rank; d++)
        c->contract[0][d] = c->contract[1][d] = (uint8_t)d;
}

static oly_status reduce_before(oly_frame *f, oly_node *n, const oly_node *reshape, bool *changed)
{
    oly_node *made[MOST_OPERANDS];
    for (int k = 0; k < n->n_in; k++) {
        OLY_TRY(oly_graph_before_reshapes(f->graph, n->in[k], reshape, &made[k]));
        if (!made[k])
            return OLY_OK; /* what has been added for the other operand is pruned */
    }
    for (int k = 0; k < n->n_in; k++)
        n->in[k] = made[k];
    reduce_all_of(n, reshape->in[0]->type.rank);
    *changed = true;
    return OLY_OK;
}

static oly_status visit(oly_planner *p, oly_frame *f, bool *changed)
{
    oly_graph *g = f->graph;
    int n = g->n_nodes, *reads = NULL;
    for (int k = 0; k < n; k++) {
        oly_graph_ahead(g, k, 1);
        for (oly_frame *body = f->bodies[k]; body; body = body->next)
            OLY_TRY(visit(p, body, changed));
        if (!reduces_all(g->nodes[k]))
            continue;
        if (!reads)
            OLY_PLAN_CHECK(reads = OLY_PLAN_NEW(p, int, n));
        look_above(f, reads, g->nodes[k], true);
    }
    for (int k = 0; reads && k < n; k++) {
        search s = reduces_all(g->nodes[k]) ? look_above(f, reads, g->nodes[k], false) : (search){.found = NULL};
        if (s.found && !s.needed)
            OLY_TRY(reduce_before(f, g->nodes[k], s.found, changed));
    }
    *changed = *changed || g->n_nodes > n;
    return g->n_nodes > n ? oly_graph_sort(g) : OLY_OK;
}

oly_status oly_reduce_unravelled(oly_planner *p, oly_frame *f, bool *changed)
{
    *changed = false;
    if (!oly_enabled(OLY_OPTIMISATION_RAVELLED_REDUCTIONS) || p->mesh->n_devices == 1 || p->mesh->explicit_axes)
        return OLY_OK;
    OLY_TRY(visit(p, f, changed));
    if (*changed)
        oly_graph_prune(f->graph);
    return OLY_OK;
}
