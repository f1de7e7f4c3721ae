/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes and levels. See node.h. */
#include "layout/node.h"
#include "core/error.h"
#include <string.h>

static int *leaders; /* owned; NULL: nodes of `per_node` processes each */
static int n_leaders, per_node;
static unsigned generation = 1; /* of these settings */

oly_status oly_nodes_set(int n_processes, const int *leader)
{
    oly_nodes_forget();
    leaders = oly_malloc(sizeof *leaders * (size_t)n_processes);
    if (!leaders)
        return oly_out_of_memory(sizeof *leaders * (size_t)n_processes, "the nodes of the job");
    memcpy(leaders, leader, sizeof *leaders * (size_t)n_processes);
    n_leaders = n_processes;
    return OLY_OK;
}

void oly_nodes_uniform(int processes_per_node)
{
    oly_nodes_forget();
    per_node = processes_per_node;
}

void oly_nodes_forget(void)
{
    generation++;
    oly_release(leaders);
    leaders = NULL;
    n_leaders = per_node = 0;
}

int oly_node_of(int process)
{
    if (leaders)
        return process < n_leaders ? leaders[process] : -1;
    return per_node > 0 ? process / per_node : 0;
}

oly_level oly_level_between(int device_id, int other_device_id)
{
    int a = oly_mesh_process_of(device_id), b = oly_mesh_process_of(other_device_id);
    if (a == b)
        return OLY_LEVEL_PROCESS;
    return oly_node_of(a) == oly_node_of(b) ? OLY_LEVEL_NODE : OLY_LEVEL_NETWORK;
}

/* Rows of a mesh along an axis that are examined, evenly spaced. */
enum { MOST_ROWS = 64 };

static oly_level widest_gap(oly_mesh mesh, int axis)
{
    int stride = 1, size = mesh->size[axis];
    oly_level level = OLY_LEVEL_PROCESS;
    for (int a = axis + 1; a < mesh->n_axes; a++)
        stride *= mesh->size[a];
    int rows = mesh->n_devices / size, looked_at = rows < MOST_ROWS ? rows : MOST_ROWS;
    for (int k = 0; k < looked_at; k++) {
        int row = (int)((int64_t)k * rows / looked_at);
        int first = row / stride * stride * size + row % stride;
        /* in the order of the devices' ids the ends of a row are furthest apart */
        for (int c = mesh->devices ? 1 : size - 1; c < size && level < OLY_LEVEL_NETWORK; c++) {
            oly_level l =
                oly_level_between(oly_mesh_device_id(mesh, first), oly_mesh_device_id(mesh, first + c * stride));
            level = l > level ? l : level;
        }
    }
    return level;
}

/* Computed once: for a mesh that lists its devices this takes time proportional to the list. */
oly_level oly_axis_level(oly_mesh mesh, int axis)
{
    if (mesh->everywhere || mesh->size[axis] == 1 || mesh->together[axis] >= mesh->size[axis])
        return OLY_LEVEL_PROCESS;
    unsigned noted = mesh->level[axis];
    if (noted / OLY_N_LEVELS == generation)
        return (oly_level)(noted % OLY_N_LEVELS);
    oly_level level = widest_gap(mesh, axis);
    ((struct oly_mesh_impl *)(uintptr_t)mesh)->level[axis] = generation * OLY_N_LEVELS + (unsigned)level;
    return level;
}

oly_level oly_axes_level(oly_mesh mesh, const oly_axis_list *axes)
{
    oly_level level = OLY_LEVEL_PROCESS;
    for (int k = 0; k < axes->n; k++) {
        oly_level l = oly_axis_level(mesh, axes->axis[k]);
        level = l > level ? l : level;
    }
    return level;
}

oly_level oly_mesh_level(oly_mesh mesh)
{
    oly_level level = OLY_LEVEL_PROCESS;
    for (int a = 0; a < mesh->n_axes; a++) {
        oly_level l = oly_axis_level(mesh, a);
        level = l > level ? l : level;
    }
    return level;
}

const char *oly_level_name(oly_level level)
{
    static const char *const names[OLY_N_LEVELS] = {"process", "node", "network"};
    return names[level];
}
