/* SPDX-License-Identifier: BSD-3-Clause */
/* Sub-axes: a reshape may divide a dimension inside a mesh axis. 32 rows over x = 8, reshaped to [2, 16], are
 * split in 2 over the major part of x, and in 4 over its minor part. Nothing moves if the plan treats x as two axes,
 * "x/0" of size 2 and "x/1" of size 4. This finds the positions at which axes must be divided, only for dimensions
 * that the program splits: those for which an input, a constraint or a result has the same number of elements along a
 * dimension that is split over the axis. Shardy's sub-axes. Called by common_mesh.c. */
#include "plan/propagate/propagate.h"
#include "core/optimisation.h"
#include "graph/factors.h"
#include <string.h>

enum { MOST_USES = 64 };

/* A dimension that the program splits: its extent and its axes. */
typedef struct use {
    int64_t elements;
    oly_axis_list axes;
} use;

typedef struct uses {
    oly_mesh mesh;
    int n;
    use use[MOST_USES];
} uses;

static void note(uses *u, const oly_type *type, oly_sharding s)
{
    for (int d = 0; s && s->mesh == u->mesh && d < s->spec.n_dims && d < type->rank; d++) {
        const oly_axis_list *axes = &s->spec.dim[d];
        bool known = axes->n == 0 || u->n == MOST_USES;
        for (int k = 0; k < u->n && !known; k++)
            known = u->use[k].elements == type->shape[d] && u->use[k].axes.n == axes->n &&
                    memcmp(u->use[k].axes.axis, axes->axis, sizeof axes->axis[0] * axes->n) == 0;
        if (!known)
            u->use[u->n++] = (use){type->shape[d], *axes};
    }
}

static void note_places(uses *u, const oly_graph *g)
{
    for (int k = 0; k < g->n_nodes; k++) {
        oly_graph *const *graphs;
        oly_graph_ahead(g, k, 1);
        note(u, &g->nodes[k]->type, g->nodes[k]->params.sharding);
        for (int j = oly_node_graphs(g->nodes[k], &graphs) - 1; j >= 0; j--)
            note_places(u, graphs[j]);
    }
}

static void add(oly_axis_cuts *cuts, int64_t distance)
{
    for (int k = 0; k < cuts->n; k++)
        if (cuts->distance[k] == distance)
            return;
    if (cuts->n < OLY_MAX_RANK)
        cuts->distance[cuts->n++] = distance;
}

/* Assigns the axes to the factors of a dimension, major first; every factor but the last is split into single elements
 * before the next gets any. */
static void cut_axes(oly_mesh m, const oly_axis_list *axes, const oly_factors *f, const oly_dim_factors *dim,
                     oly_axis_cuts *cuts)
{
    int factor = 0;
    int64_t left = f->size[dim->factor[0]];
    for (int k = 0; k < axes->n; k++) {
        int64_t distance = 1, parts = m->size[axes->axis[k]];
        for (int a = axes->axis[k] + 1; a < m->n_axes; a++)
            distance *= m->size[a];
        while (factor < dim->n - 1 && parts % left == 0) {
            parts /= left;
            if (parts > 1 && left > 1)
                add(cuts, distance * parts);
            left = f->size[dim->factor[++factor]];
        }
        if (left % parts != 0)
            return;
        left /= parts;
    }
}

static void cut_dim(const uses *u, const oly_type *type, int d, const oly_factors *f, const oly_dim_factors *dim,
                    oly_axis_cuts *cuts)
{
    for (int k = 0; dim->n > 1 && k < u->n; k++)
        if (u->use[k].elements == type->shape[d])
            cut_axes(u->mesh, &u->use[k].axes, f, dim, cuts);
}

static oly_status cut_reshapes(const uses *u, const oly_graph *g, oly_axis_cuts *cuts)
{
    for (int k = 0; k < g->n_nodes; k++) {
        const oly_node *n = g->nodes[k];
        oly_graph *const *graphs;
        oly_graph_ahead(g, k, 1);
        for (int j = oly_node_graphs(n, &graphs) - 1; j >= 0; j--)
            OLY_TRY(cut_reshapes(u, graphs[j], cuts));
        if (oly_ops[n->op].lowering != OLY_LOWER_RESHAPE || n->n_in != 1)
            continue;
        oly_factors f;
        OLY_TRY(oly_factors_of(n, &f));
        for (int d = 0; d < n->in[0]->type.rank; d++)
            cut_dim(u, &n->in[0]->type, d, &f, &f.operand[0][d], cuts);
        for (int d = 0; d < n->type.rank; d++)
            cut_dim(u, &n->type, d, &f, &f.result[d], cuts);
    }
    return OLY_OK;
}

oly_status oly_find_axis_cuts(const oly_planner *p, oly_axis_cuts *cuts)
{
    const oly_plan_request *r = p->request;
    uses u = {.mesh = p->mesh};
    cuts->n = 0;
    if (!oly_enabled(OLY_OPTIMISATION_SUB_AXES))
        return OLY_OK;
    for (int k = 0; k < r->graph->n_inputs; k++)
        if (r->inputs[k].committed)
            note(&u, &r->inputs[k].type, r->inputs[k].sharding);
    for (int k = 0; r->outputs && k < r->graph->n_outputs; k++)
        note(&u, &r->graph->outputs[k]->type, r->outputs[k]);
    note_places(&u, r->graph);
    return u.n > 0 ? cut_reshapes(&u, r->graph, cuts) : OLY_OK;
}
