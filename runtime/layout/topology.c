/* SPDX-License-Identifier: BSD-3-Clause */
/* The order of devices by node, socket and links. See topology.h. */
#include "layout/topology.h"
#include "layout/node.h"
#include "core/error.h"
#include <stdlib.h>

static int *order;   /* owned; NULL: that of the ids */
static int *node_of; /* owned; by process; NULL: see node_of_process */
static int n_nodes;

/* A device and what it is sorted by. */
typedef struct spot {
    int node, socket, process, group, id;
} spot;

static int compare_spots(const void *a, const void *b)
{
    const spot *x = a, *y = b;
    const int by[][2] = {{x->node, y->node}, {x->socket, y->socket}, {x->process, y->process}, {x->group, y->group}};
    for (size_t k = 0; k < sizeof by / sizeof *by; k++)
        if (by[k][0] != by[k][1])
            return by[k][0] < by[k][1] ? -1 : 1;
    return x->id - y->id;
}

void oly_topology_forget(void)
{
    oly_release(order);
    oly_release(node_of);
    order = node_of = NULL;
    n_nodes = 0;
}

/* oly_node_of gives equal numbers to those who share a node; these count from 0, in the order of first processes. */
static oly_status number_nodes(int n)
{
    node_of = oly_malloc(sizeof *node_of * (size_t)n);
    int *seen = oly_malloc(sizeof *seen * (size_t)n); /* by the number of a node's first process */
    if (!node_of || !seen) {
        oly_release(seen);
        return oly_out_of_memory(sizeof *seen * (size_t)n, "the nodes of the job");
    }
    n_nodes = 0;
    for (int r = 0; r < n; r++) {
        int leader = oly_node_of(r); /* its first process, at most r */
        if (leader == r)
            seen[r] = n_nodes++;
        node_of[r] = seen[leader];
    }
    oly_release(seen);
    return OLY_OK;
}

static oly_status sort_devices(int n, const oly_location *location)
{
    int total = oly_mesh_total_devices(), first, k = 0;
    bool as_ids = true;
    spot *spots = oly_malloc(sizeof *spots * (size_t)total);
    order = oly_malloc(sizeof *order * (size_t)total);
    if (!spots || !order) {
        oly_release(spots);
        return oly_out_of_memory(sizeof *spots * (size_t)total, "the order of the devices");
    }
    for (int r = 0; r < n; r++)
        for (int d = 0, count = oly_mesh_devices_of(r, &first); d < count; d++)
            spots[k++] = (spot){node_of[r], location[r].socket, r, d < OLY_MOST_LINKED ? location[r].link_group[d] : 0,
                                first + d};
    qsort(spots, (size_t)total, sizeof *spots, compare_spots);
    for (int j = 0; j < total; j++) {
        order[j] = spots[j].id;
        as_ids = as_ids && order[j] == j;
    }
    oly_release(spots);
    if (as_ids) {
        oly_release(order);
        order = NULL;
    }
    return OLY_OK;
}

static bool has_groups(int n, const oly_location *location)
{
    for (int r = 0; r < n; r++)
        for (int d = 0; d < OLY_MOST_LINKED; d++)
            if (location[r].link_group[d])
                return true;
    return false;
}

oly_status oly_topology_set(int n_processes, const oly_location *location)
{
    oly_topology_forget();
    OLY_TRY(number_nodes(n_processes));
    return location && (n_nodes > 1 || has_groups(n_processes, location)) ? sort_devices(n_processes, location)
                                                                          : OLY_OK;
}

const int *oly_topology_order(void)
{
    return order;
}

/* A simulated job has no list: nodes of equally many processes, one after the other. */
int oly_topology_node_of(int device)
{
    int process = oly_mesh_process_of(device);
    return node_of ? node_of[process] : oly_node_of(process);
}

int oly_topology_nodes(void)
{
    return node_of ? n_nodes : oly_node_of(oly_mesh_processes() - 1) + 1;
}
