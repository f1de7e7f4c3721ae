/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays that a loop goes through row by row, as oly_scan does, and whose rows are on different devices: a sweep along a dimension that is
 * split. Each iteration would bring one row to all devices, which then compute the same. The array is split along another dimension
 * instead, before the loop: one exchange of all rows, after which each device sweeps through its part of them. A placement in the graph
 * says so; propagation, which then begins anew, gives the carries and results of the loop the same split. Called by plan.c. */
#include "core/optimisation.h"
#include "graph/counters.h"
#include "plan/rewrite/rewrite.h"
#include <string.h>

enum { LEAST_ROWS = 8, LEAST_BYTES = 1 << 12 /* of the array */ };

/* Does the loop's body read this input only as rows that follow the counter, and compute nothing that sums over products or windows of
 * them? Those would need whole rows, or a reduction over devices, in every iteration. */
static bool is_scanned(const oly_node *loop, const oly_node *input)
{
    const oly_graph *body = loop->params.body;
    int reads = 0;
    for (int k = 0; k < body->n_nodes; k++) {
        const oly_node *n = body->nodes[k];
        int how = oly_ops[n->op].lowering;
        if (how == OLY_LOWER_CONTRACT || how == OLY_LOWER_WINDOW)
            return false;
        oly_counted form;
        bool slices = oly_ops[n->op].lowering == OLY_LOWER_LOCAL && oly_ops[n->op].detail == OLY_LOCAL_DYNAMIC_SLICE &&
                      n->params.n_batch == 0 && n->in[0] == input && oly_counted_of(loop, n->in[1], &form);
        for (int d = 1; slices && d < n->type.rank; d++)
            slices = n->type.shape[d] == input->type.shape[d];
        reads += slices;
    }
    return reads > 0 && reads == input->n_uses;
}

/* The dimension, other than the first, of which the axes leave each device most; -1: there is none with an element for each. */
static int other_dimension(const oly_layout *l)
{
    int best = -1, parts = l->split[0].parts;
    int64_t most = 0;
    for (int d = 1; d < l->rank; d++) {
        int64_t each = l->shape[d] / ((int64_t)l->split[d].parts * parts);
        bool even = l->shape[d] % ((int64_t)l->split[d].parts * parts) == 0;
        if (each > 0 && 2 * each + even > most) {
            most = 2 * each + even;
            best = d;
        }
    }
    return best;
}

/* Places operand k of the loop, if it is split along its first dimension, along another one. */
static oly_status place(oly_planner *p, oly_frame *f, oly_node *loop, int k)
{
    oly_node *x = loop->in[k], *made;
    const oly_value *v = oly_captured(f, x) ? NULL : oly_value_of(f, x);
    if (!v || oly_is_constant(x) || x->type.rank < 2 || x->type.mesh || v->axes[0].n == 0 ||
        oly_type_size(&x->type) * (int64_t)oly_dtype_size(x->type.dtype) < LEAST_BYTES)
        return OLY_OK;
    oly_layout l = oly_node_layout(p, f, x);
    int d = other_dimension(&l);
    if (l.split[0].parts < 2 || d < 0)
        return OLY_OK;
    oly_axis_list axes = l.split[d].axes;
    for (int j = 0; j < l.split[0].axes.n; j++)
        axes.axis[axes.n++] = l.split[0].axes.axis[j];
    l.split[d] = oly_split_canonical(p->mesh, &axes, l.shape[d]);
    l.split[0] = oly_split_whole(l.shape[0]);
    oly_spec spec = oly_layout_spec(&l);
    oly_params params;
    memset(&params, 0, sizeof params);
    params.sharding = oly_sharding_intern(p->mesh, &spec, 0);
    if (!params.sharding)
        return OLY_MEMORY;
    OLY_TRY(oly_graph_add(f->graph, OLY_OP_place, 1, &x, &params, &made));
    made->site = loop->site;
    x->n_uses--;
    made->n_uses++;
    loop->in[k] = made;
    return OLY_OK;
}

static oly_status visit(oly_planner *p, oly_frame *f, bool *changed)
{
    oly_graph *g = f->graph;
    int n = g->n_nodes;
    for (int k = 0; k < n; k++) {
        oly_node *loop = g->nodes[k];
        oly_graph_ahead(g, k, 1);
        for (oly_frame *body = f->bodies[k]; body; body = body->next)
            OLY_TRY(visit(p, body, changed));
        if (!loop->params.body || loop->params.predicate || loop->params.upper - loop->params.lower < LEAST_ROWS)
            continue;
        for (int j = loop->params.n_carry; j < loop->n_in; j++)
            if (is_scanned(loop, loop->params.body->inputs[1 + j]))
                OLY_TRY(place(p, f, loop, j));
    }
    *changed = *changed || g->n_nodes > n;
    return g->n_nodes > n ? oly_graph_sort(g) : OLY_OK;
}

oly_status oly_place_scanned(oly_planner *p, oly_frame *f, bool *changed)
{
    *changed = false;
    if (!oly_enabled(OLY_OPTIMISATION_SCANNED_ARRAYS) || p->mesh->n_devices == 1 || p->mesh->explicit_axes ||
        p->mesh->manual_axes || p->n_meshes > 1)
        return OLY_OK;
    OLY_TRY(visit(p, f, changed));
    if (*changed)
        oly_graph_prune(f->graph);
    return OLY_OK;
}
