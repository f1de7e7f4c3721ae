/* SPDX-License-Identifier: BSD-3-Clause */
/* Reshapes that only drop or insert dimensions of size 1, of a slice or another view of part of a value (x[k], the rows of a stack):
 * they become views themselves (`squeeze`), so that what reads them reads the value, instead of a copy. Only where neighbours of the
 * last dimension are neighbours in memory: a column is better copied once than read with long steps many times. And only where each
 * device has its part of the slice: what comes from another device is a copy in any case, of which all readers should have the same.
 * Called by plan.c after propagation, whose axes this needs and leaves as they are. */
#include "core/optimisation.h"
#include "graph/view.h"
#include "plan/rewrite/rewrite.h"

static bool is_view(const oly_node *n)
{
    return oly_ops[n->op].lowering == OLY_LOWER_VIEW;
}

static int last_long(const oly_type *t)
{
    int d = t->rank - 1;
    while (d >= 0 && t->shape[d] == 1)
        d--;
    return d;
}

/* Does a view show all of each dimension of its operand that is split over devices? */
static bool shows_parts(oly_frame *f, const oly_node *x, const oly_view_dim *dims)
{
    const oly_value *v = oly_value_of(f, x->in[0]);
    for (int e = 0; e < x->in[0]->type.rank; e++) {
        bool all = v->axes[e].n == 0;
        for (int d = 0; d < x->type.rank && !all; d++)
            all = dims[d].from == e && dims[d].start == 0 && dims[d].step == 1 &&
                  x->type.shape[d] == x->in[0]->type.shape[e];
        if (!all)
            return false;
    }
    return true;
}

/* Is x, a view, one of part of a value, whose rows are parts of rows in memory? */
static bool shows_rows(oly_frame *f, const oly_node *x)
{
    bool part = false;
    int last = last_long(&x->type);
    for (; is_view(x); x = x->in[0]) {
        oly_view_dim dims[OLY_MAX_RANK];
        int how = oly_ops[x->op].detail;
        oly_view_of(x, dims);
        if (x->params.sharding || !shows_parts(f, x, dims))
            return false;
        part = part || how == OLY_VIEW_SLICE || how == OLY_VIEW_REV || how == OLY_VIEW_TRANSPOSE;
        if (last < 0)
            continue;
        if (dims[last].from < 0 || dims[last].step != 1)
            return false;
        last = dims[last].from;
    }
    return part && (last < 0 || last == last_long(&x->type));
}

static void visit(oly_frame *f)
{
    for (int k = 0; k < f->graph->n_nodes; k++) {
        oly_node *n = f->graph->nodes[k];
        int8_t from[OLY_MAX_RANK];
        oly_graph_ahead(f->graph, k, 1);
        for (oly_frame *body = f->bodies[k]; body; body = body->next)
            visit(body);
        if (oly_is_thin(n, from) && is_view(n->in[0]) && !n->params.sharding && shows_rows(f, n->in[0]))
            n->op = OLY_OP_squeeze;
    }
}

void oly_squeeze_views(oly_frame *f)
{
    if (oly_enabled(OLY_OPTIMISATION_SQUEEZED_VIEWS))
        visit(f);
}
