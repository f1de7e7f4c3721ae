/* SPDX-License-Identifier: BSD-3-Clause */
/* The order of devices in which neighbours are close: node by node, on a node socket by socket, in a process by groups of linked
 * devices. Set at start (runtime/array/start.c) from what MPI, hwloc and the platform say; read where meshes are made. The same on every
 * process. In a job on one node without such groups, and wherever ranks follow one another on nodes and sockets, it is the order of ids. */
#ifndef OLY_LAYOUT_TOPOLOGY_H
#define OLY_LAYOUT_TOPOLOGY_H
#include "layout/mesh.h"

enum { OLY_MOST_LINKED = 16 };
/* Where a process is. */
typedef struct oly_location {
    int32_t socket; /* of the node; -1: on several, or unknown */
    /* Number of the group of directly linked devices that local device k belongs to; those beyond belong to group 0. */
    uint8_t link_group[OLY_MOST_LINKED];
} oly_location;

/* After oly_mesh_set_devices and oly_nodes_set. location[r]: of process r. NULL: everything is in the order of ids. */
oly_status oly_topology_set(int n_processes, const oly_location *location);
void oly_topology_forget(void);
/* All devices in that order; NULL: it is that of their ids. */
const int *oly_topology_order(void);
/* The number of the node of a device: nodes are numbered in the order of their first processes; and how many nodes there are. */
int oly_topology_node_of(int device);
int oly_topology_nodes(void);
#endif
