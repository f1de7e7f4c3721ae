/* Which processes share a node, and how far apart the devices along a mesh axis are. Told at start (runtime/array/start.c),
 * asked by the planner's prices. Pure arithmetic; the same answers on every process. */
#ifndef OLY_LAYOUT_NODE_H
#define OLY_LAYOUT_NODE_H
#include "layout/sharding.h"

/* What two devices have between them. */
typedef enum oly_level {
    OLY_LEVEL_PROCESS, /* one process's memory */
    OLY_LEVEL_NODE,    /* other processes of the node */
    OLY_LEVEL_NETWORK, /* other nodes */
    OLY_N_LEVELS
} oly_level;

/* leader[r]: the first process of the node of process r. Copied. */
oly_status oly_nodes_set(int n_processes, const int *leader);
/* Nodes of so many processes each, in order: all of a machine that is only thought of. 0: one node has all. */
void oly_nodes_uniform(int processes_per_node);
/* A number for the node of a process: equal for those that share one. */
int oly_node_of(int process);
void oly_nodes_forget(void);

oly_level oly_level_between(int device_id, int other_device_id);
/* The widest gap between two devices whose positions differ along this axis, or along these axes, only. Costs the axis's length
 * at most, not the mesh's size: of a large mesh some rows are looked at. */
oly_level oly_axis_level(oly_mesh mesh, int axis);
oly_level oly_axes_level(oly_mesh mesh, const oly_axis_list *axes);
oly_level oly_mesh_level(oly_mesh mesh);
/* Its name, for people: "process", "node", "network". */
const char *oly_level_name(oly_level level);
#endif
