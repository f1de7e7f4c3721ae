/* SPDX-License-Identifier: BSD-3-Clause */
/* The cost of deferred reductions. Reductions of propagation's layouts are deferred past linear operations
 * (sink_reductions.c), so that fewer bytes are reduced. Which ones is decided when steps are made; here it is assumed
 * in favour of propagation, for a sum that is computed, together with all it is deferred past, as propagation has them.
 * See chooser.h. */
#include "plan/choose/chooser.h"

enum { LONGEST = 16 };

static double bytes_of(const oly_node *n)
{
    return (double)oly_type_size(&n->type) * (double)oly_dtype_size(n->type.dtype);
}

static bool is_slice(const oly_node *n)
{
    return oly_ops[n->op].lowering == OLY_LOWER_VIEW && oly_ops[n->op].detail == OLY_VIEW_SLICE;
}

/* May partial sums in these operands become partial sums of this node's result? */
static bool goes_past(const oly_node *n, bool first, bool second)
{
    switch (oly_ops[n->op].lowering) {
    case OLY_LOWER_VIEW:
    case OLY_LOWER_RESHAPE:
    case OLY_LOWER_CONTRACT: return true;
    case OLY_LOWER_REDUCE:
        return (oly_combiner)oly_ops[n->op].detail == OLY_COMBINE_SUM && n->type.dtype == n->in[0]->type.dtype;
    case OLY_LOWER_TILE: return n->n_in <= 2 && oly_is_linear_in(n, first, second);
    default: return false;
    }
}

/* Is it computed in parts over the axes of the sum? */
static bool is_cut_over(const oly_chooser *c, const oly_decision *d, oly_cuts summed)
{
    for (int a = 0; a < c->mesh->n_axes; a++)
        if (oly_cuts_byte(summed, a) && (oly_cuts_byte(d->work, a) || oly_cuts_byte(d->summed, a)))
            return true;
    return false;
}

/* The smallest fraction of the sum's bytes that deferral can reach, and the units passed on the way. */
static void follow(oly_chooser *c, oly_unit *u, const oly_node *const *user, const double *sliced, const bool *partial)
{
    const oly_node *n = u->node;
    double part = 1;
    int n_past = 0, past[OLY_CHOOSE_PAST] = {0};
    for (int k = 0; k < LONGEST; k++) {
        double here = part * bytes_of(n) / bytes_of(u->node);
        if (sliced[n->index] > 0)
            here *= sliced[n->index];
        if (here < u->deferred) {
            u->deferred = here;
            u->n_past = n_past;
            for (int j = 0; j < n_past; j++)
                u->past[j] = past[j];
        }
        const oly_node *next = user[n->index];
        if (!next || !partial[next->index])
            return;
        if (next->n_in == 2 && partial[next->in[0]->index] && partial[next->in[1]->index] && user[next->in[0]->index] &&
            user[next->in[1]->index])
            part /= 2; /* where several meet, each is assumed to pay its share */
        int unit = c->unit_of[next->index];
        if (unit >= 0 && (n_past == 0 || past[n_past - 1] != unit)) {
            if (n_past == OLY_CHOOSE_PAST || is_cut_over(c, &c->units[unit].greedy, u->greedy.summed))
                return;
            past[n_past++] = unit;
        }
        n = next;
    }
}

static bool has_sum(const oly_chooser *c, const oly_unit *u)
{
    return oly_cuts_parts(c->mesh, u->greedy.summed) > 1 && u->greedy.placed == u->greedy.work;
}

/* Which values may be partial sums that wait: those with a single reader that continues with them, or several that read
 * slices. */
static void find_partial(const oly_chooser *c, const oly_node *const *user, const double *sliced, bool *partial)
{
    for (int k = 0; k < c->f->graph->n_nodes; k++) {
        oly_graph_ahead(c->f->graph, k, 1);
        const oly_node *n = c->f->graph->nodes[k];
        int unit = c->unit_of[k];
        bool waits[2] = {false, false};
        for (int j = 0; j < 2 && j < n->n_in; j++) {
            int in = n->in[j]->index;
            waits[j] = partial[in] && (user[in] == n || sliced[in] > 0);
        }
        partial[k] = ((waits[0] || waits[1]) && goes_past(n, waits[0], waits[1])) ||
                     (unit >= 0 && c->units[unit].kind != OLY_UNIT_GROUP && c->units[unit].kind != OLY_UNIT_LOOKUP &&
                      has_sum(c, &c->units[unit]));
    }
}

oly_status oly_note_deferred(oly_chooser *c)
{
    const oly_graph *g = c->f->graph;
    bool any = false;
    for (int k = 0; k < c->n_units; k++) {
        c->units[k].deferred = 1;
        any = any || has_sum(c, &c->units[k]);
    }
    if (!any)
        return OLY_OK;
    const oly_node **user = OLY_ARENA_NEW(c->arena, const oly_node *, g->n_nodes + 1); /* the only one */
    double *sliced = OLY_ARENA_NEW(c->arena, double, g->n_nodes + 1); /* all users are slices: fraction read */
    int *uses = OLY_ARENA_NEW(c->arena, int, g->n_nodes + 1);
    bool *partial = OLY_ARENA_NEW(c->arena, bool, g->n_nodes + 1);
    OLY_PLAN_CHECK(user && sliced && partial ? uses : NULL);
    for (int k = 0; k < g->n_nodes; k++) {
        oly_graph_ahead(g, k, 1);
        const oly_node *n = g->nodes[k];
        for (int j = 0; j < n->n_in; j++) {
            int in = n->in[j]->index;
            user[in] = uses[in]++ == 0 || user[in] == n ? n : NULL;
            if (is_slice(n) && sliced[in] >= 0)
                sliced[in] += bytes_of(n) / bytes_of(n->in[j]);
            else
                sliced[in] = -1;
        }
    }
    for (int k = 0; k < g->n_outputs; k++)
        user[g->outputs[k]->index] = NULL;
    find_partial(c, user, sliced, partial);
    for (int k = 0; k < c->n_units; k++)
        if (has_sum(c, &c->units[k]))
            follow(c, &c->units[k], user, sliced, partial);
    return OLY_OK;
}

bool oly_may_defer(const oly_chooser *c, const oly_unit *u, const oly_decision *d)
{
    if (!oly_same_decision(d, &u->greedy))
        return false;
    for (int k = 0; c->whole && k < u->n_past; k++)
        if (!oly_same_decision(&c->whole[u->past[k]], &c->units[u->past[k]].greedy))
            return false;
    return true;
}
