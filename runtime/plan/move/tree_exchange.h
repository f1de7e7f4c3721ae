/* SPDX-License-Identifier: BSD-3-Clause */
/* Tree exchanges: all-gathers and broadcasts in stages. Shared by tree_exchange_match.c, which recognises them,
 * tree_exchange.c, which makes the step, tree_exchange_list.c, which lists the messages of a stage, and
 * listed_transfers.c; private to these. */
#ifndef OLY_PLAN_MOVE_TREE_EXCHANGE_H
#define OLY_PLAN_MOVE_TREE_EXCHANGE_H
#include "plan/move/messages.h"
#include "plan/move/transfers.h"

/* A mesh as a grid of processes. */
typedef struct oly_process_grid {
    const int *each;        /* coordinates per process along each axis */
    int size[OLY_MAX_RANK]; /* processes along each axis */
    int n;                  /* number of processes */
} oly_process_grid;

/* Movements over the same axes, which share one step. */
typedef struct oly_staged {
    oly_planner *p;
    int n;
    mover *movers;
    oly_mesh mesh;
    oly_process_grid grid;
    bool broadcast;
    oly_axis_list order; /* of a gather: the axes, one after the other */
    bool at_once;        /* directly between all processes, in one stage */
    int n_stages;
    int n_devices;
    int *at; /* [n_devices][OLY_MAX_RANK] coordinates of the devices here; at[d][0] is -1 outside the mesh */
} oly_staged;

/* One stage of a gather: a process receives what `count` processes had along an axis, from the one `distance` further
 * along; at once: from each up to the last. */
typedef struct oly_gather_stage {
    int axis, distance, count;
    unsigned gathered; /* axes gathered completely before */
} oly_gather_stage;

/* False: the mesh's processes do not form a grid. */
bool oly_process_grid_of(oly_mesh mesh, oly_process_grid *g);
/* The first coordinates of the process with this number. */
void oly_grid_corner(oly_mesh mesh, const oly_process_grid *g, int number, int *at);
/* Converts between a process and its row-major number in the grid; -1: it has no device of the mesh. */
int oly_grid_number(oly_mesh mesh, const oly_process_grid *g, int process);
int oly_grid_process(oly_mesh mesh, const oly_process_grid *g, int number);
/* The mesh axes (bits) that split the value before, and after. */
unsigned oly_axes_from(const mover *m);
unsigned oly_axes_to(const mover *m);
/* The number of stages that double 1 until it reaches n. */
int oly_stages_between(int n);

/* Is it a gather along lines of processes? Over which axes, in order? at_once: should few processes, each with
 * several devices in the line, do it in one stage? */
bool oly_is_gather(const mover *m, oly_process_grid *g, oly_axis_list *order, bool *at_once);
/* Does every device of a mesh of many processes get all of what one process has? */
bool oly_is_broadcast(const mover *m, oly_process_grid *g);

/* -- tree_exchange_list.c -- */
/* The number of leading axes of `order` with one process, which are gathered locally; adds them to *gathered. */
int oly_stages_own(const oly_staged *s, unsigned *gathered);
/* Is a device in the mesh (among: any device here)? Do two devices agree along some axes? Which is the first here
 * that agrees with this one? */
bool oly_staged_here(const oly_staged *s, int device);
bool oly_staged_among(const oly_staged *s);
bool oly_staged_agree(const oly_staged *s, int device, int other, unsigned axes);
int oly_staged_first_alike(const oly_staged *s, int device, unsigned axes);
/* The axes along which devices must differ to send different elements in a gather along `axis`. */
unsigned oly_senders_differ(const mover *m, int axis, unsigned gathered);
/* The messages of a stage, for all movements. Empty on processes without a device of the mesh. */
oly_status oly_list_messages(const oly_staged *s, int stage, oly_message_list *messages);
/* What arrives in messages, for overlap.c: at most two messages per device, each standing for those of all earlier
 * stages. */
oly_status oly_list_arrivals(const oly_staged *s, oly_message_list *messages);
/* Makes the exchange of a stage when it is first needed: the `list` function of the outline. */
oly_status oly_list_stage(const void *staged, int stage, oly_exchange **exchange);
#endif
