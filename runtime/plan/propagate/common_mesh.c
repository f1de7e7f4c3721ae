/* SPDX-License-Identifier: BSD-3-Clause */
/* Common mesh: programs over several meshes of the same devices, such as {x: 8} and {p: 2, q: 4}. If every axis of each
 * mesh is a run of axes of one finer grid, the plan is made on that grid, and a dimension split over x is split over
 * the axes of its run: nothing moves between the meshes. Shardings that are shown or returned name the meshes of the
 * program. The same grid holds the sub-axes of reshapes (sub_axes.c). Called by plan.c and propagate.c. */
#include "plan/propagate/propagate.h"
#include "core/optimisation.h"
#include <stdio.h>
#include <string.h>

typedef struct grids {
    oly_planner *p;
    bool impossible; /* Explicit axes, or axes of size 1 */
    int n;
    oly_mesh mesh[OLY_MOST_MESHES];
} grids;

static void collect(grids *g, oly_mesh m)
{
    if (m == g->p->mesh || m->n_axes == 0 || !oly_mesh_same_devices(m, g->p->mesh))
        return;
    for (int k = 0; k < g->n; k++)
        if (g->mesh[k] == m)
            return;
    g->impossible = g->impossible || g->n == OLY_MOST_MESHES || m->explicit_axes || m->manual_axes;
    for (int k = 0; k < m->n_axes; k++)
        g->impossible = g->impossible || m->size[k] < 2;
    if (!g->impossible)
        g->mesh[g->n++] = m;
}

static void collect_places(grids *g, const oly_graph *graph)
{
    for (int k = 0; k < graph->n_nodes; k++) {
        oly_graph *const *graphs;
        if (graph->nodes[k]->params.sharding)
            collect(g, graph->nodes[k]->params.sharding->mesh);
        for (int j = oly_node_graphs(graph->nodes[k], &graphs) - 1; j >= 0; j--)
            collect_places(g, graphs[j]);
    }
}

/* The number of axes of the finer grid that make up axis k of the mesh, and the first of them; 0: no run does. */
static int run_of(oly_mesh fine, oly_mesh m, int k, int *first)
{
    int64_t before = 1, passed = 1;
    int n = 0, at = 0;
    for (int j = 0; j < k; j++)
        before *= m->size[j];
    for (; at < fine->n_axes && passed < before; at++)
        passed *= fine->size[at];
    *first = at;
    if (passed != before)
        return 0;
    for (passed = 1; at + n < fine->n_axes && passed < m->size[k]; n++)
        passed *= fine->size[at + n];
    return passed == m->size[k] ? n : 0;
}

typedef struct distances {
    int n;
    bool too_many;
    int64_t at[OLY_MAX_RANK + 2];
} distances;

static void add_distance(distances *all, int64_t d)
{
    int at = 0;
    while (at < all->n && all->at[at] < d)
        at++;
    if (at < all->n && all->at[at] == d)
        return;
    all->too_many = all->too_many || all->n == OLY_MAX_RANK + 1;
    if (all->too_many)
        return;
    memmove(&all->at[at + 1], &all->at[at], sizeof d * (size_t)(all->n - at));
    all->at[at] = d;
    all->n++;
}

/* Distances between neighbours along all axes of all meshes, and the number of devices: ascending, without duplicates.
 * False if they do not divide one another: then there is no common mesh. */
static bool all_distances(const grids *g, const oly_axis_cuts *cuts, distances *all)
{
    *all = (distances){0};
    for (int k = 0; k < g->n; k++) {
        int64_t d = 1;
        for (int a = g->mesh[k]->n_axes; a >= 0; a--) {
            add_distance(all, d);
            d *= a > 0 ? g->mesh[k]->size[a - 1] : 1;
        }
    }
    for (int k = 0; k < cuts->n; k++)
        add_distance(all, cuts->distance[k]);
    for (int k = 1; k < all->n; k++)
        if (all->at[k] % all->at[k - 1] != 0)
            return false;
    return !all->too_many;
}

/* One of the meshes if none is finer; otherwise a mesh with axes "x/0", "x/1" in place of x. */
static oly_mesh common_grid(const grids *g, const int64_t *distance, int n)
{
    int size[OLY_MAX_RANK], axes = 0;
    char name[OLY_MAX_RANK][OLY_AXIS_NAME];
    for (int k = 0; k < g->n; k++)
        if (g->mesh[k]->n_axes == n - 1)
            return g->mesh[k];
    oly_mesh m = g->mesh[0];
    for (int k = 0, at = n - 1; k < m->n_axes; k++) {
        int64_t left = m->size[k];
        for (int piece = 0; left > 1; piece++, at--, axes++) {
            size[axes] = (int)(distance[at] / distance[at - 1]);
            left /= size[axes];
            memcpy(name[axes], m->name[k], sizeof name[axes]);
            if (piece > 0 || left > 1) /* at most 31 pieces */
                snprintf(name[axes], sizeof name[axes], "%.28s/%d", m->name[k], piece & 31);
        }
    }
    return oly_mesh_regrouped(m, axes, size, name);
}

oly_sharding oly_on_common_mesh(const oly_planner *p, oly_sharding s)
{
    oly_spec spec = s->spec;
    if (p->n_meshes == 0 || s->mesh == p->mesh || s->mesh->n_axes == 0 || !oly_mesh_same_devices(s->mesh, p->mesh))
        return s;
    for (int d = 0; d < spec.n_dims; d++) {
        spec.dim[d].n = 0;
        for (int k = 0; k < s->spec.dim[d].n; k++) {
            int first, n = run_of(p->mesh, s->mesh, s->spec.dim[d].axis[k], &first);
            for (int j = 0; j < n; j++)
                spec.dim[d].axis[spec.dim[d].n++] = (uint8_t)(first + j);
            if (n == 0)
                return s;
        }
    }
    return oly_sharding_intern(p->mesh, &spec, s->written_dims);
}

/* The axes of `list` as whole axes of the mesh m. `complete`: the leading sub-axis of an axis stands for the whole
 * axis, and the others are dropped. */
static bool whole_axes(oly_mesh fine, oly_mesh m, const oly_axis_list *list, bool complete, oly_axis_list *whole)
{
    whole->n = 0;
    for (int at = 0; at < list->n;) {
        int found = 0;
        for (int k = 0; k < m->n_axes && !found; k++) {
            int first, n = run_of(fine, m, k, &first);
            for (int j = 0; j < n && at + j < list->n && list->axis[at + j] == first + j; j++)
                found = j == n - 1 ? n : 0;
            if (complete && !found && n > 0 && list->axis[at] == first)
                found = 1;
            if (found)
                whole->axis[whole->n++] = (uint8_t)k;
        }
        if (!found && !complete)
            return false;
        at += found ? found : 1;
    }
    return true;
}

oly_sharding oly_off_common_mesh(const oly_planner *p, oly_sharding s)
{
    for (int k = 0; s && s->mesh == p->mesh && k < p->n_meshes; k++) {
        oly_spec spec = s->spec;
        bool whole = true;
        for (int d = 0; whole && d < spec.n_dims; d++)
            whole = whole_axes(p->mesh, p->meshes[k], &s->spec.dim[d], p->n_meshes == 1, &spec.dim[d]);
        if (whole)
            return oly_sharding_intern(p->meshes[k], &spec, s->written_dims);
    }
    return s;
}

static oly_status move_places(oly_planner *p, oly_graph *graph)
{
    for (int k = 0; k < graph->n_nodes; k++) {
        oly_params *n = &graph->nodes[k]->params;
        oly_graph *const *graphs;
        oly_sharding s = n->sharding ? oly_on_common_mesh(p, n->sharding) : NULL;
        if (n->sharding && !s)
            return OLY_MEMORY;
        uint32_t settled = 0;
        for (int a = 0; s != n->sharding && a < n->sharding->mesh->n_axes; a++) {
            int first, count = run_of(p->mesh, n->sharding->mesh, a, &first);
            if (n->settled >> a & 1)
                settled |= ((1u << count) - 1) << first;
        }
        n->settled = s != n->sharding ? settled : n->settled;
        n->sharding = s;
        for (int j = oly_node_graphs(graph->nodes[k], &graphs) - 1; j >= 0; j--)
            OLY_TRY(move_places(p, graphs[j]));
    }
    return OLY_OK;
}

static oly_status keep_placed_results(oly_planner *p)
{
    const oly_graph *graph = p->request->graph;
    p->placed = OLY_PLAN_NEW(p, oly_sharding, graph->n_outputs + 1);
    OLY_PLAN_CHECK(p->placed);
    for (int k = 0; k < graph->n_outputs; k++) {
        const oly_node *n = graph->outputs[k];
        if (oly_is_placed(n) && oly_settles_all(&n->params) && !n->params.sharding->spec.open)
            p->placed[k] = n->params.sharding;
    }
    return OLY_OK;
}

oly_status oly_find_common_mesh(oly_planner *p)
{
    grids g = {.p = p, .n = 1, .mesh = {p->mesh}};
    distances all;
    oly_axis_cuts cuts;
    const oly_plan_request *r = p->request;
    bool unite = oly_enabled(OLY_OPTIMISATION_COMMON_MESH);
    for (int k = 0; unite && k < r->graph->n_inputs; k++)
        if (r->inputs[k].committed)
            collect(&g, r->inputs[k].sharding->mesh);
    for (int k = 0; unite && r->outputs && k < r->graph->n_outputs; k++)
        if (r->outputs[k])
            collect(&g, r->outputs[k]->mesh);
    if (unite)
        collect_places(&g, r->graph);
    for (int k = 0; k < p->mesh->n_axes; k++)
        g.impossible = g.impossible || p->mesh->size[k] < 2;
    if (g.impossible || p->mesh->explicit_axes || p->mesh->manual_axes || p->mesh->n_axes == 0)
        return OLY_OK;
    OLY_TRY(oly_find_axis_cuts(p, &cuts));
    if ((g.n == 1 && cuts.n == 0) || !all_distances(&g, &cuts, &all))
        return OLY_OK;
    oly_mesh fine = common_grid(&g, all.at, all.n);
    if (!fine)
        return OLY_MEMORY;
    OLY_TRY(keep_placed_results(p));
    memcpy(p->meshes, g.mesh, sizeof g.mesh);
    p->n_meshes = g.n;
    p->mesh = fine;
    return move_places(p, r->graph);
}
