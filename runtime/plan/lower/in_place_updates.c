/* SPDX-License-Identifier: BSD-3-Clause */
/* Which updates may write into the memory of what they update, although others read it, too: those that run after all other
 * readers, because they depend on them. So the carries of a loop whose next value the body makes by writing into parts of the
 * old one keep their memory: the stacked results of a scan, and the sums of its gradient, are not copied in every iteration.
 * Called by lower_loop.c, lower_local.c and lower_write.c. */
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

/* Nodes from x on; marked[k]: the update depends on node `first` + k, not through its first operand. */
typedef struct marks {
    int first;
    bool *marked;
} marks;

static bool is_marked(const marks *m, const oly_node *n)
{
    return n->index >= m->first && m->marked[n->index - m->first];
}

static void mark(const marks *m, const oly_node *n)
{
    if (n->index >= m->first)
        m->marked[n->index - m->first] = true;
}

static void mark_before(const oly_graph *g, const oly_node *update, const marks *m)
{
    for (int j = 1; j < update->n_in; j++)
        mark(m, update->in[j]);
    for (int k = update->index - 1; k > m->first; k--)
        for (int j = 0; is_marked(m, g->nodes[k]) && j < g->nodes[k]->n_in; j++)
            mark(m, g->nodes[k]->in[j]);
}

/* Does every reader of x except the update run before the update? A view is read when its readers run. */
static bool is_read_before(const oly_graph *g, const oly_node *x, const oly_node *update, const marks *before)
{
    int seen = 0;
    for (int k = x->index + 1; k <= update->index; k++) {
        const oly_node *reader = g->nodes[k];
        for (int j = 0; j < reader->n_in; j++) {
            if (reader->in[j] != x)
                continue;
            seen++;
            if (reader == update && j == 0)
                continue;
            if (reader == update || !is_marked(before, reader) ||
                (is_view(reader) && !is_read_before(g, reader, update, before)))
                return false;
        }
    }
    return seen == x->n_uses; /* otherwise it is a result */
}

/* Do all other readers of what is updated run before the update, whatever the order? */
static oly_status is_last_reader(oly_planner *p, const oly_graph *g, const oly_node *update, bool *yes)
{
    const oly_node *x = update->in[0];
    *yes = x->n_uses == 1;
    if (*yes)
        return OLY_OK;
    marks m = {x->index, OLY_PLAN_NEW(p, bool, update->index - x->index + 1)};
    OLY_PLAN_CHECK(m.marked);
    mark_before(g, update, &m);
    *yes = is_read_before(g, x, update, &m);
    return OLY_OK;
}

oly_status oly_is_written_over(oly_planner *p, const oly_graph *body, int carry, bool *yes)
{
    const oly_node *input = body->inputs[1 + carry], *made = body->outputs[carry];
    *yes = oly_enabled(OLY_OPTIMISATION_IN_PLACE_CARRY) && oly_writes_parts(made) && made->in[0] == input &&
           made->n_uses == 1;
    return *yes ? is_last_reader(p, body, made, yes) : OLY_OK;
}

/* For a carry that is written in place: is the node its last reader, and does it make its next value? Others write
 * to copies. */
static bool makes_next(const oly_frame *f, const oly_node *n)
{
    for (int k = 0; k < f->loop->params.n_carry; k++)
        if (f->graph->inputs[1 + k] == n->in[0])
            return f->graph->outputs[k] == n;
    return false;
}

oly_status oly_may_overwrite(oly_planner *p, oly_frame *f, const oly_node *n, const oly_layout *l, bool *yes)
{
    enum { FAR = 4096 }; /* nodes between an operand that others read, too, and the update: what looking takes */
    const oly_node *u = n->in[0];
    const oly_value *v = oly_value_of(f, u);
    *yes = false;
    if (oly_captured(f, u) || v->slot < 0 || !oly_layout_equal(v->layout, l))
        return OLY_OK;
    *yes = v->written_over && makes_next(f, n);
    const oly_slot *s = &p->plan->slots[v->slot];
    if (v->written_over || v->replicas || !oly_enabled(OLY_OPTIMISATION_IN_PLACE_UPDATE) ||
        s->kind != OLY_SLOT_SCRATCH || s->claimed || s->shared || s->block != f->block ||
        (u->n_uses != 1 && n->index - u->index > FAR))
        return OLY_OK;
    return is_last_reader(p, f->graph, n, yes);
}
