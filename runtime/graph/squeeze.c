/* SPDX-License-Identifier: BSD-3-Clause */
/* Reshapes that only drop or insert dimensions of size 1, of a slice or another view of part of a value (x[k], the rows of a stack):
 * they become views themselves (`squeeze`), so that what reads them reads the value, instead of a copy. Only where neighbours of the
 * last dimension are neighbours in memory: a column is better copied once than read with long steps many times. See graph.h. */
#include "graph/graph.h"
#include "graph/view.h"

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

/* Is x, a view, one of part of a value, whose rows are parts of rows in memory? */
static bool shows_rows(const oly_node *x)
{
    bool part = false;
    int last = last_long(&x->type);
    for (; is_view(x); x = x->in[0]) {
        oly_view_dim dims[OLY_MAX_RANK];
        int how = oly_ops[x->op].detail;
        if (x->params.sharding)
            return false;
        oly_view_of(x, dims);
        part = part || how == OLY_VIEW_SLICE || how == OLY_VIEW_REV || how == OLY_VIEW_TRANSPOSE;
        if (last < 0)
            continue;
        if (dims[last].from < 0 || dims[last].step != 1)
            return false;
        last = dims[last].from;
    }
    return part && (last < 0 || last == last_long(&x->type));
}

oly_status oly_graph_squeeze(oly_graph *g)
{
    for (int k = 0; k < g->n_nodes; k++) {
        oly_node *n = g->nodes[k];
        oly_graph *const *graphs;
        int8_t from[OLY_MAX_RANK];
        oly_graph_ahead(g, k, 1);
        for (int j = oly_node_graphs(n, &graphs) - 1; j >= 0; j--)
            OLY_TRY(oly_graph_squeeze(graphs[j]));
        if (oly_is_thin(n, from) && is_view(n->in[0]) && !n->params.sharding && shows_rows(n->in[0]))
            n->op = OLY_OP_squeeze;
    }
    return OLY_OK;
}
