/* SPDX-License-Identifier: BSD-3-Clause */
/* Meshes of two levels: outer axes over nodes, inner axes within one. oly_make_hybrid_mesh, oly_node_count, oly_device_node. */
#include "layout/mesh.h"
#include "layout/topology.h"
#include "core/error.h"
#include <stdio.h>
#include <string.h>

/* The axes of the mesh: axis a has outer_size[a] * inner_size[a] coordinates. */
typedef struct levels {
    struct oly_mesh_impl outer, inner; /* as written */
    int n_axes, outer_size[OLY_MAX_RANK], inner_size[OLY_MAX_RANK];
    const char *name[OLY_MAX_RANK];
    oly_axis_type type[OLY_MAX_RANK];
} levels;

/* What an outer axis counts: nodes, or processes. */
typedef struct groups {
    const char *word; /* "node" */
    int n;
    int *first; /* owned, [n + 1]: of group g the devices in list[first[g]] to list[first[g + 1] - 1] */
    int *list;  /* owned */
} groups;

static int group_of(int device, bool by_process)
{
    return by_process ? oly_mesh_process_of(device) : oly_topology_node_of(device);
}

/* The devices by group, within a group in the order of the topology. */
static oly_status find_groups(bool by_process, groups *g)
{
    int total = oly_mesh_total_devices();
    const int *order = oly_topology_order();
    *g = (groups){.word = by_process ? "process" : "node",
                  .n = by_process ? oly_mesh_processes() : oly_topology_nodes()};
    g->first = oly_calloc((size_t)g->n + 2, sizeof *g->first);
    g->list = oly_malloc(sizeof *g->list * (size_t)total);
    if (!g->first || !g->list)
        return oly_out_of_memory(sizeof *g->list * (size_t)total, "the devices of a mesh");
    for (int id = 0; id < total; id++)
        g->first[group_of(id, by_process) + 2]++;
    for (int k = 2; k <= g->n + 1; k++)
        g->first[k] += g->first[k - 1];
    for (int j = 0; j < total; j++) { /* counts up to where the next group begins */
        int id = order ? order[j] : j;
        g->list[g->first[group_of(id, by_process) + 1]++] = id;
    }
    return OLY_OK;
}

static void forget_groups(groups *g)
{
    oly_release(g->first);
    oly_release(g->list);
}

static int devices_in(const groups *g, int k)
{
    return g->first[k + 1] - g->first[k];
}

/* -- sizes -------------------------------------------------------------------------------------------------------------------- */

/* The size written as -1: what is left of `all`. */
static oly_status fill(struct oly_mesh_impl *m, int unknown, int all, const char *what)
{
    if (unknown < 0)
        return OLY_OK;
    if (all == 0 || all % m->n_devices != 0)
        return oly_fail(
            OLY_INVALID,
            "the size of mesh axis '%s' is -1, but the axes beside it have %d %s, which does not divide all %d",
            m->name[unknown], m->n_devices, what, all);
    m->size[unknown] = all / m->n_devices;
    m->n_devices = all;
    return OLY_OK;
}

static oly_status read_sizes(const char *outer, const char *inner, const groups *g, levels *l)
{
    int unknown, least = devices_in(g, 0);
    char what[32];
    if (!outer || !inner)
        return oly_fail(OLY_INVALID, "the %s axes are NULL; give a notation such as \"data=2\"",
                        outer ? "inner" : "outer");
    for (int k = 1; k < g->n; k++)
        least = devices_in(g, k) < least ? devices_in(g, k) : least;
    OLY_TRY(oly_mesh_parse(&l->outer, outer, &unknown));
    OLY_TRY(fill(&l->outer, unknown, g->n, *g->word == 'n' ? "nodes" : "processes"));
    OLY_TRY(oly_mesh_parse(&l->inner, inner, &unknown));
    snprintf(what, sizeof what, "devices of a %s", g->word);
    return fill(&l->inner, unknown, least, what);
}

static oly_status check_sizes(const levels *l, const groups *g)
{
    const char *several = strcmp(g->word, "node") == 0 ? "nodes" : "processes";
    if (l->outer.n_devices > g->n)
        return oly_fail(
            OLY_INVALID, "the outer axes need %d %s, but the job runs on %d; make them smaller, start it on more%s",
            l->outer.n_devices, several, g->n,
            strcmp(g->word, "node") == 0 ? ", or let each process count as a node (.by_process = true)" : "");
    for (int k = 0; k < l->outer.n_devices; k++)
        if (devices_in(g, k) < l->inner.n_devices)
            return oly_fail(
                OLY_INVALID,
                "the inner axes need %d devices of each %s, but %s %d has %d; make them smaller, or give axes "
                "that may cross %s to the outer ones",
                l->inner.n_devices, g->word, g->word, k, devices_in(g, k), several);
    return OLY_OK;
}

/* -- axes ---------------------------------------------------------------------------------------------------------------------- */

static int find(const levels *l, const char *name)
{
    for (int a = 0; a < l->n_axes; a++)
        if (strcmp(l->name[a], name) == 0)
            return a;
    return -1;
}

static oly_status add_axes(levels *l, const struct oly_mesh_impl *m, bool outer)
{
    for (int k = 0; k < m->n_axes; k++) {
        int a = find(l, m->name[k]);
        if (a < 0 && l->n_axes == OLY_MAX_RANK)
            return oly_fail(OLY_INVALID, "a mesh has at most %d axes", OLY_MAX_RANK);
        if (a < 0) {
            a = l->n_axes++;
            l->name[a] = m->name[k];
            l->type[a] = m->explicit_axes >> k & 1 ? OLY_AXIS_EXPLICIT : OLY_AXIS_AUTO;
            l->outer_size[a] = l->inner_size[a] = 1;
        }
        (outer ? l->outer_size : l->inner_size)[a] = m->size[k];
    }
    return OLY_OK;
}

/* Row-major number of the outer (or inner) part of the coordinates, in the order of the axes as that text has them. */
static int part_number(const levels *l, const int *at, bool outer)
{
    const struct oly_mesh_impl *m = outer ? &l->outer : &l->inner;
    int number = 0;
    for (int k = 0; k < m->n_axes; k++) {
        int a = find(l, m->name[k]);
        number = number * m->size[k] + (outer ? at[a] / l->inner_size[a] : at[a] % l->inner_size[a]);
    }
    return number;
}

static void list_devices(const levels *l, const groups *g, int n, int *devices)
{
    int at[OLY_MAX_RANK] = {0};
    for (int p = 0; p < n; p++) {
        devices[p] = g->list[g->first[part_number(l, at, true)] + part_number(l, at, false)];
        for (int a = l->n_axes - 1; a >= 0 && ++at[a] == l->outer_size[a] * l->inner_size[a]; a--)
            at[a] = 0;
    }
}

static oly_status make(levels *l, const groups *g, oly_mesh *mesh)
{
    int n = l->outer.n_devices * l->inner.n_devices, sizes[OLY_MAX_RANK];
    OLY_TRY(add_axes(l, &l->outer, true));
    OLY_TRY(add_axes(l, &l->inner, false));
    for (int a = 0; a < l->n_axes; a++)
        sizes[a] = l->outer_size[a] * l->inner_size[a];
    int *devices = oly_malloc(sizeof *devices * (size_t)n);
    if (!devices)
        return oly_out_of_memory(sizeof *devices * (size_t)n, "the devices of a mesh");
    list_devices(l, g, n, devices);
    unsigned before = oly_raised_count();
    *mesh = (oly_mesh_from_devices)(l->n_axes, l->name, sizes, devices);
    oly_release(devices);
    if (*mesh && (l->outer.explicit_axes | l->inner.explicit_axes))
        *mesh = (oly_mesh_with_types)(*mesh, l->type);
    return oly_raised_since(before);
}

oly_mesh oly_make_hybrid_mesh_with(const char *outer, const char *inner, oly_hybrid_options options)
{
    OLY_ENTER(NULL);
    levels l = {0};
    groups g;
    oly_mesh mesh = NULL;
    oly_status st = find_groups(options.by_process, &g);
    if (st == OLY_OK)
        st = read_sizes(outer, inner, &g, &l);
    if (st == OLY_OK)
        st = check_sizes(&l, &g);
    if (st == OLY_OK)
        st = make(&l, &g, &mesh);
    forget_groups(&g);
    oly_raise(st);
    return mesh;
}

int oly_node_count(void)
{
    OLY_ENTER(0);
    return oly_topology_nodes();
}

int oly_device_node(oly_device d)
{
    OLY_ENTER(-1);
    if (oly_need(d, OLY_HANDLE_DEVICE) != OLY_OK)
        return -1;
    return oly_topology_node_of((oly_device_id)(d));
}
