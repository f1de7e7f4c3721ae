/* SPDX-License-Identifier: BSD-3-Clause */
/* Which carries of a loop may keep their memory: those whose next value the body makes by writing into parts of the
 * old one, after all other readers of the old one. So the stacked results of a scan, and the sums of its gradient,
 * are not copied in every iteration. Called by lower_loop.c. */
#include "plan/lower/lower.h"
#include "core/optimisation.h"
#include <string.h>

/* Do its readers read its operand instead? */
static bool is_view(const oly_node *n)
{
    int d;
    int64_t start;
    return oly_ops[n->op].lowering == OLY_LOWER_VIEW || oly_is_cyclic_shift(n, &d, &start);
}

/* Marks what a node depends on, except through its first operand. */
static void mark_before(const oly_graph *g, const oly_node *node, bool *before)
{
    for (int j = 1; j < node->n_in; j++)
        before[node->in[j]->index] = true;
    for (int k = node->index - 1; k >= 0; k--)
        for (int j = 0; before[k] && j < g->nodes[k]->n_in; j++)
            before[g->nodes[k]->in[j]->index] = true;
}

/* Does every reader of x except the update run before the update? A view is read when its readers run. */
static bool is_read_before(const oly_graph *g, const oly_node *x, const oly_node *update, const bool *before)
{
    int seen = 0;
    for (int k = x->index + 1; k < g->n_nodes; k++) {
        const oly_node *reader = g->nodes[k];
        for (int j = 0; j < reader->n_in; j++) {
            if (reader->in[j] != x)
                continue;
            seen++;
            if (reader == update && j == 0)
                continue;
            if (reader == update || !before[k] || (is_view(reader) && !is_read_before(g, reader, update, before)))
                return false;
        }
    }
    return seen == x->n_uses; /* otherwise it is a result */
}

oly_status oly_is_written_over(oly_planner *p, const oly_graph *body, int carry, bool *yes)
{
    const oly_node *input = body->inputs[1 + carry], *made = body->outputs[carry];
    *yes = oly_enabled(OLY_OPTIMISATION_IN_PLACE_CARRY) && oly_writes_parts(made) && made->in[0] == input &&
           made->n_uses == 1;
    if (!*yes || input->n_uses == 1)
        return OLY_OK;
    bool *before = OLY_PLAN_NEW(p, bool, body->n_nodes + 1);
    OLY_PLAN_CHECK(before);
    mark_before(body, made, before);
    *yes = is_read_before(body, input, made, before);
    return OLY_OK;
}
