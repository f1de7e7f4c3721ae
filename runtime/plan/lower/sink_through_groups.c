/* SPDX-License-Identifier: BSD-3-Clause */
/* Sinks reductions over devices past elementwise operations. The part of a group that is linear in deferred values of
 * one and the same reduction, a *cone*, is computed from each device's partial results, and its result is deferred
 * instead of them:
 *
 *      tanh(x + c * sum(a) + sum(b).T)     per device: c * a' + b'.T, plus x on the first device of each group;
 *                                          one sum over devices; tanh
 *
 * Complete operands count once: they are added on the first device of a group only. Multipliers are the same on all
 * devices. A carry that a loop sums as partial results (sink_past_loops.c) is one more deferred value, and its cone
 * becomes the carry again. A cone is taken if its result has fewer bytes than the deferred values, or if that of a
 * reader has (it is reduced again, read in part, multiplied by a narrow matrix). Decided by the graph and layouts
 * alone, so that sums have the same order on every layout of ranks. Called by lower.c and lowering_order.c. */
#include "plan/lower/lower.h"
#include "plan/lower/sink_past_loops.h"
#include "plan/lower/sink_reductions.h"
#include "plan/partition/partition.h"
#include <string.h>

enum { MOST_LEAVES = 16, MOST_NODES = 64, FAR = 64, LONGEST = 8 };

typedef struct cone {
    oly_planner *p;
    oly_frame *f;
    const oly_group *g; /* the rest of the group */
    oly_deferred off;
    bool leaf[MOST_NODES][2]; /* operands that are deferred */
    bool partial[MOST_NODES]; /* nodes of the group that are linear in deferred values */
    bool taken[MOST_NODES];   /* in the cone, or complete and computed for it */
    int n_leaves;
    oly_node *leaves[MOST_LEAVES]; /* deferred values; read directly or through views */
    const oly_node *carry;         /* the leaf that is summed as a partial result; NULL: none */
    bool adds_complete;
} cone;

static int place_in(const oly_group *g, const oly_node *n)
{
    for (int k = 0; k < g->n_nodes; k++)
        if (g->nodes[k] == n)
            return k;
    return -1;
}

/* Is it a deferred value of the cone's reduction, and can the group read its partial results in place? */
static bool is_leaf(const cone *c, const oly_node *operand)
{
    oly_layout natural;
    if (oly_accumulates(c->f, operand)) /* a carry has one layout in all iterations */
        return oly_natural_layout(c->f, operand, &natural) && oly_layout_equal(&natural, &c->g->layout);
    oly_node *root = oly_deferred_root(c->f, operand);
    if (!root || root->type.dtype == OLY_BOOL)
        return false;
    const oly_deferred *w = oly_deferred_of(c->p, c->f, root);
    if (!w || w->rule.combiner != OLY_COMBINE_SUM || !oly_axis_list_equal(&w->axes, &c->off.axes) ||
        !oly_natural_layout(c->f, operand, &natural) || natural.mesh != c->p->mesh ||
        oly_cut_over(&natural, &c->off.axes))
        return false;
    oly_region r = oly_region_of_layout(&c->g->layout);
    return oly_region_inside_layout(&r, &natural);
}

static bool is_partial(const cone *c, int node, int operand)
{
    const oly_node *n = c->g->nodes[node];
    int from = operand < n->n_in ? place_in(c->g, n->in[operand]) : -1;
    return from >= 0 ? c->partial[from] : c->leaf[node][operand];
}

static void find_partials(cone *c)
{
    for (int k = 0; k < c->g->n_nodes; k++) {
        const oly_node *n = c->g->nodes[k];
        for (int j = 0; j < 2; j++)
            c->leaf[k][j] = j < n->n_in && n->n_in <= 2 && is_leaf(c, n->in[j]);
        bool first = is_partial(c, k, 0), second = is_partial(c, k, 1);
        c->partial[k] = n->n_in <= 2 && (first || second) && oly_is_linear_in(n, first, second);
    }
}

/* How many uses of a node are in the cone. */
static int uses_in(const cone *c, const oly_node *n)
{
    int uses = 0;
    for (int k = 0; k < c->g->n_nodes; k++)
        for (int j = 0; c->taken[k] && c->partial[k] && j < c->g->nodes[k]->n_in; j++)
            uses += c->g->nodes[k]->in[j] == n;
    return uses;
}

/* Takes the partial nodes that make node `last`, and the complete nodes of the group that they read. */
static void take(cone *c, int last)
{
    memset(c->taken, 0, sizeof c->taken);
    c->taken[last] = true;
    for (int k = last; k >= 0; k--)
        for (int j = 0; c->taken[k] && j < c->g->nodes[k]->n_in; j++) {
            int from = place_in(c->g, c->g->nodes[k]->in[j]);
            if (from >= 0)
                c->taken[from] = true;
        }
}

static bool add_leaf(cone *c, oly_node *root)
{
    if (c->n_leaves < MOST_LEAVES && oly_accumulates(c->f, root) && !c->carry) {
        c->carry = c->leaves[c->n_leaves++] = root;
        return true;
    }
    const oly_deferred *w = oly_deferred_of(c->p, c->f, root);
    for (int k = 0; k < c->n_leaves; k++)
        if (c->leaves[k] == root)
            return true;
    if (c->n_leaves == MOST_LEAVES || !w)
        return false;
    c->off.rule.in_pairs = c->off.rule.in_pairs && w->rule.in_pairs; /* otherwise one after the other */
    c->leaves[c->n_leaves++] = root;
    return true;
}

/* Has nothing in the cone a reader outside? Finds the leaves. */
static bool is_closed(cone *c, int last)
{
    c->n_leaves = 0;
    c->carry = NULL;
    c->off.rule.in_pairs = true;
    c->adds_complete = false;
    for (int k = 0; k < c->g->n_nodes; k++) {
        oly_node *n = c->g->nodes[k];
        if (!c->taken[k] || !c->partial[k])
            continue;
        if (n->type.dtype != c->g->nodes[last]->type.dtype || (k != last && n->n_uses != uses_in(c, n)))
            return false;
        for (int j = 0; j < n->n_in; j++) {
            if (!is_partial(c, k, j)) {
                oly_linearity how = oly_linearity_of(n->op);
                c->adds_complete = c->adds_complete || how == OLY_LINEAR_SUM || how == OLY_LINEAR_DIFFERENCE;
                continue;
            }
            if (place_in(c->g, n->in[j]) >= 0)
                continue;
            oly_node *root = oly_accumulates(c->f, n->in[j]) ? n->in[j] : oly_deferred_root(c->f, n->in[j]);
            if (n->in[j]->n_uses != uses_in(c, n->in[j]) || !add_leaf(c, root))
                return false;
        }
    }
    return !c->carry || (c->n_leaves > 1 && oly_accumulates_in(c->f, c->carry, c->g->nodes[last]));
}

/* -- does it reduce less? ------------------------------------------------------------------------------------------ */

/* Of the first device, which has the most. */
static int64_t elements_of(const oly_layout *l)
{
    oly_box b = oly_layout_box(l, 0);
    return oly_box_count(&b);
}

static int64_t bytes_of(const oly_node *n, int64_t elements)
{
    return elements * (int64_t)oly_dtype_size(n->type.dtype);
}

static oly_node *only_user(const oly_frame *f, const oly_node *n)
{
    oly_node *user = NULL;
    if (oly_is_result(f, n))
        return NULL;
    for (int k = n->index + 1; k < f->graph->n_nodes && k <= n->index + FAR; k++)
        for (int j = 0; j < f->graph->nodes[k]->n_in; j++)
            if (f->graph->nodes[k]->in[j] == n) {
                if (user || n->n_uses > 1)
                    return NULL;
                user = f->graph->nodes[k];
            }
    return user;
}

/* Is it a deferred value, or will it be one, seen through views and reshapes? */
static bool will_wait(oly_frame *f, const oly_node *n)
{
    while ((oly_ops[n->op].lowering == OLY_LOWER_VIEW || oly_ops[n->op].lowering == OLY_LOWER_RESHAPE) &&
           !oly_value_of(f, n)->waits)
        n = n->in[0];
    return !oly_captured(f, n) && oly_value_of(f, n)->waits;
}

bool oly_shrinks_later(oly_frame *f, const oly_node *n)
{
    int64_t bytes = bytes_of(n, oly_type_size(&n->type));
    for (int k = 0; k < LONGEST; k++) {
        const oly_node *user = only_user(f, n);
        if (!user)
            return false;
        oly_lowering how = oly_ops[user->op].lowering;
        bool first = user->in[0] == n, second = user->n_in == 2 && user->in[1] == n;
        if (how == OLY_LOWER_TILE && !oly_is_linear_in(user, first, second))
            return false;
        if (how == OLY_LOWER_TILE && user->n_in == 2 && oly_linearity_of(user->op) != OLY_LINEAR_PRODUCT &&
            will_wait(f, user->in[first ? 1 : 0]))
            return true; /* two reductions become one */
        if (how == OLY_LOWER_REDUCE &&
            ((oly_combiner)oly_ops[user->op].detail != OLY_COMBINE_SUM || user->type.dtype != n->type.dtype))
            return false;
        if (how != OLY_LOWER_TILE && how != OLY_LOWER_VIEW && how != OLY_LOWER_REDUCE && how != OLY_LOWER_RESHAPE &&
            how != OLY_LOWER_CONTRACT)
            return false;
        n = user;
        if (bytes_of(n, oly_type_size(&n->type)) < bytes)
            return true;
    }
    return false;
}

static bool is_less(const cone *c, const oly_node *result)
{
    int64_t before = 0, after = bytes_of(result, elements_of(&c->g->layout));
    for (int k = 0; k < c->n_leaves; k++)
        before += bytes_of(c->leaves[k], elements_of(oly_value_of(c->f, c->leaves[k])->layout));
    return after < before || (after == before && oly_shrinks_later(c->f, result));
}

/* -- taking the cone out of the group ------------------------------------------------------------------------------ */

/* Lowers the cone, and keeps the rest. */
static oly_status lower_cone(cone *c, oly_group *g, oly_node *result)
{
    oly_group part = {.layout = c->g->layout, .settled = true, .next = -1};
    oly_node **left = OLY_PLAN_NEW(c->p, oly_node *, c->g->n_nodes + 1);
    part.nodes = OLY_PLAN_NEW(c->p, oly_node *, c->g->n_nodes + 1);
    OLY_PLAN_CHECK(left ? part.nodes : NULL);
    int n_left = 0;
    for (int k = 0; k < c->g->n_nodes; k++)
        if (c->taken[k])
            part.nodes[part.n_nodes++] = c->g->nodes[k];
        else
            left[n_left++] = c->g->nodes[k];
    for (int k = 0; k < c->n_leaves; k++)
        if (c->leaves[k] != c->carry)
            oly_keep_partial(c->f, c->leaves[k]);
    const oly_partial_work work = {
        .axes = c->off.axes, .n_partials = c->n_leaves, .partials = c->leaves, .adds_complete = c->adds_complete};
    OLY_TRY(oly_lower_part(c->p, c->f, &part, &work));
    g->left = left;
    g->n_left = n_left;
    g->lowered = n_left == 0;
    if (c->carry) {
        oly_accumulate(c->f, c->carry, &c->off);
        return OLY_OK;
    }
    return oly_place_reduction(c->p, c->f, result, &c->off.rule, &c->off.axes);
}

/* The reduction of the first deferred value that the group reads. */
static bool find_reduction(cone *c)
{
    for (int k = 0; k < c->g->n_nodes; k++)
        for (int j = 0; j < c->g->nodes[k]->n_in; j++) {
            oly_node *root =
                place_in(c->g, c->g->nodes[k]->in[j]) >= 0 ? NULL : oly_deferred_root(c->f, c->g->nodes[k]->in[j]);
            const oly_deferred *w = root ? oly_deferred_of(c->p, c->f, root) : NULL;
            if (!w || w->rule.combiner != OLY_COMBINE_SUM)
                continue;
            c->off = *w;
            return true;
        }
    return false;
}

oly_status oly_sink_group(oly_planner *p, oly_frame *f, oly_group *g)
{
    OLY_TRY(oly_settle_group(p, f, g));
    for (bool again = f->deferred != NULL; again && !g->lowered;) {
        oly_group now = *g;
        if (g->left) {
            now.nodes = g->left;
            now.n_nodes = g->n_left;
        }
        cone c = {.p = p, .f = f, .g = &now};
        again = false;
        if (now.n_nodes > MOST_NODES || g->layout.mesh != p->mesh || !find_reduction(&c) ||
            oly_cut_over(&g->layout, &c.off.axes))
            return OLY_OK;
        find_partials(&c);
        for (int k = now.n_nodes - 1; k >= 0 && !again; k--) {
            oly_node *result = now.nodes[k];
            bool goes_on = !c.partial[k]; /* or it is part of a larger cone */
            for (int j = k + 1; j < now.n_nodes && !goes_on; j++)
                for (int i = 0; i < now.nodes[j]->n_in; i++)
                    goes_on = goes_on || (c.partial[j] && now.nodes[j]->in[i] == result && result->n_uses == 1);
            if (goes_on)
                continue;
            take(&c, k);
            if (!is_closed(&c, k) || !is_less(&c, result))
                continue;
            OLY_TRY(lower_cone(&c, g, result));
            again = true;
        }
    }
    return OLY_OK;
}
