/* SPDX-License-Identifier: BSD-3-Clause */
/* Which processes share a node, and how far apart the devices along a mesh axis are. Set at start
 * (runtime/array/start.c), read by the planner's costs. Pure arithmetic; the same answers on every process. */
#ifndef OLY_LAYOUT_NODE_H
#define OLY_LAYOUT_NODE_H
#include "layout/sharding.h"

/* The level between two devices. */
typedef enum oly_level {
    OLY_LEVEL_PROCESS, /* one process's memory */
    OLY_LEVEL_NODE,    /* other processes of the node */
    OLY_LEVEL_NETWORK, /* other nodes */
    OLY_N_LEVELS
} oly_level;

/* leader[r]: the first process of the node of process r. Copied. */
oly_status oly_nodes_set(int n_processes, const int *leader);
/* Nodes of this many processes each, in order: a simulated machine. 0: one node has all processes. */
void oly_nodes_uniform(int processes_per_node);
/* A number for the node of a process: equal for those that share one. */
int oly_node_of(int process);
void oly_nodes_forget(void);

oly_level oly_level_between(int device_id, int other_device_id);
/* The widest level between two devices whose positions differ only along this axis, or these axes. Takes time proportional to the
 * axis at most, not to the mesh: of a large mesh some rows are examined. */
oly_level oly_axis_level(oly_mesh mesh, int axis);
oly_level oly_axes_level(oly_mesh mesh, const oly_axis_list *axes);
oly_level oly_mesh_level(oly_mesh mesh);
/* Its name, for people: "process", "node", "network". */
const char *oly_level_name(oly_level level);
#endif
