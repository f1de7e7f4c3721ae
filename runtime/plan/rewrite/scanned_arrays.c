/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays that a loop goes through row by row, as oly_scan does, and whose rows are on different devices: a sweep along a dimension that is
 * split. Each iteration would bring one row to all devices, which then compute the same. The array is split along another dimension
 * instead, before the loop: one exchange of all rows, after which each device sweeps through its part of them. A placement in the graph
 * says so; propagation, which then begins anew, gives the carries and results of the loop the same split. Likewise what a loop writes row
 * by row: where its readers have the rows on different devices and the body computes parts of every row, the whole is exchanged once, after
 * the loop, not a row in each iteration. Called by plan.c. */
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

static oly_sharding sharding_of(const oly_planner *p, const oly_layout *l)
{
    oly_spec spec = oly_layout_spec(l);
    return oly_sharding_intern(p->mesh, &spec, 0);
}

static oly_status add_place(oly_graph *g, const oly_node *loop, oly_node *x, oly_sharding sharding, oly_node **made)
{
    oly_params params;
    if (!sharding)
        return OLY_MEMORY;
    memset(&params, 0, sizeof params);
    params.sharding = sharding;
    OLY_TRY(oly_graph_add(g, OLY_OP_place, 1, &x, &params, made));
    (*made)->site = loop->site;
    return OLY_OK;
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
    OLY_TRY(add_place(f->graph, loop, x, sharding_of(p, &l), &made));
    x->n_uses--;
    made->n_uses++;
    loop->in[k] = made;
    return OLY_OK;
}

/* -- what is written row by row -------------------------------------------------------------------------------------------------- */

/* The rows that the body writes into carry j, one in each iteration, if it does nothing else with it; NULL: it does. */
static const oly_node *rows_written(const oly_node *loop, int j)
{
    const oly_graph *body = loop->params.body;
    const oly_node *write = body->outputs[j], *carry = body->inputs[1 + j];
    oly_counted form;
    bool writes = oly_ops[write->op].lowering == OLY_LOWER_LOCAL &&
                  oly_ops[write->op].detail == OLY_LOCAL_DYNAMIC_UPDATE && write->params.n_batch == 0 &&
                  write->in[0] == carry && carry->n_uses == 1 && oly_counted_of(loop, write->in[2], &form);
    for (int d = 1; writes && d < write->type.rank; d++)
        writes = write->in[1]->type.shape[d] == write->type.shape[d];
    return writes && write->type.rank > 1 ? write->in[1] : NULL;
}

/* The split of the whole if it follows that of a row: the row's axes are taken from the first dimension. False: they share none. */
static bool follow_rows(oly_planner *p, const oly_value *row, oly_layout *l)
{
    oly_axis_list *first = &l->split[0].axes, kept = {.n = 0};
    for (int k = 0; k < first->n; k++) {
        bool used = false;
        for (int d = 1; d < l->rank; d++)
            for (int j = 0; j < row->axes[d].n; j++)
                used = used || row->axes[d].axis[j] == first->axis[k];
        if (!used)
            kept.axis[kept.n++] = first->axis[k];
    }
    if (kept.n == first->n)
        return false;
    l->split[0] = oly_split_canonical(p->mesh, &kept, l->shape[0]);
    for (int d = 1; d < l->rank; d++)
        l->split[d] = oly_split_canonical(p->mesh, &row->axes[d], l->shape[d]);
    return true;
}

static bool is_placed_so(const oly_graph *g, const oly_node *x, oly_sharding sharding)
{
    bool any = false;
    for (int k = 0; k < g->n_nodes; k++)
        any =
            any || (oly_is_placed(g->nodes[k]) && g->nodes[k]->in[0] == x && g->nodes[k]->params.sharding == sharding);
    return any;
}

/* All that reads `from` but `made`, which takes its place, reads that. */
static void read_instead(oly_graph *g, const oly_node *from, oly_node *made)
{
    for (int k = 0; k < g->n_nodes; k++)
        for (int j = 0; j < g->nodes[k]->n_in && g->nodes[k] != made; j++)
            if (g->nodes[k]->in[j] == from) {
                g->nodes[k]->in[j] = made;
                made->n_uses++;
            }
    for (int k = 0; k < g->n_outputs; k++)
        if (g->outputs[k] == from) {
            g->outputs[k] = made;
            made->n_uses++;
        }
}

/* Places result j of the loop as its rows are computed, if its readers have these on different devices. */
static oly_status place_result(oly_planner *p, oly_frame *f, oly_node *loop, int j)
{
    oly_graph *g = f->graph;
    const oly_node *rows = rows_written(loop, j);
    oly_node *result = NULL, *made;
    for (int k = loop->index + 1; rows && k < g->n_nodes; k++)
        if (oly_ops[g->nodes[k]->op].lowering == OLY_LOWER_RESULT && g->nodes[k]->in[0] == loop &&
            g->nodes[k]->params.dimension == j)
            result = g->nodes[k];
    if (!result || result->type.mesh || oly_value_of(f, result)->axes[0].n == 0 ||
        oly_type_size(&result->type) * (int64_t)oly_dtype_size(result->type.dtype) < LEAST_BYTES)
        return OLY_OK;
    oly_layout l = oly_node_layout(p, f, result);
    if (!follow_rows(p, oly_value_of(f->bodies[loop->index], rows), &l))
        return OLY_OK;
    oly_sharding sharding = sharding_of(p, &l);
    if (is_placed_so(g, result, sharding)) /* by the sweep before, or by the program */
        return OLY_OK;
    OLY_TRY(add_place(g, loop, result, sharding, &made));
    read_instead(g, result, made);
    result->n_uses = 1;
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
        for (int j = 0; j < loop->params.n_carry; j++)
            OLY_TRY(place_result(p, f, loop, j));
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
