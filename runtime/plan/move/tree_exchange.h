/* Gathers and broadcasts in stages: between tree_exchange_match.c, which finds them, tree_exchange.c, which makes a step of them, and
 * tree_exchange_list.c, which lists the messages of a stage; private to these. */
#ifndef OLY_PLAN_MOVE_TREE_EXCHANGE_H
#define OLY_PLAN_MOVE_TREE_EXCHANGE_H
#include "plan/move/messages.h"
#include "plan/move/transfers.h"

/* A mesh as a grid of processes. */
typedef struct oly_process_grid {
    const int *each;        /* coordinates of an axis that a process has */
    int size[OLY_MAX_RANK]; /* processes along an axis */
    int n;                  /* in all */
} oly_process_grid;

/* Movements over the same axes, which go together. */
typedef struct oly_staged {
    oly_planner *p;
    int n;
    mover *movers;
    oly_mesh mesh;
    oly_process_grid grid;
    bool broadcast;
    oly_axis_list order; /* else a gather: over these axes, one after the other */
    bool at_once;        /* all with all, in one stage */
    int n_stages;
    int n_devices;
    int *
        at; /* [n_devices][OLY_MAX_RANK] coordinates of this process's devices; the first is -1 where one is not in the mesh */
} oly_staged;

/* One stage of a gather: what `count` processes had along an axis, from the one `distance` further along it; at once: from each of
 * those up to the last. */
typedef struct oly_gather_stage {
    int axis, distance, count;
    unsigned gathered; /* the axes over which that is done */
} oly_gather_stage;

/* False: its processes are no grid in it. */
bool oly_process_grid_of(oly_mesh mesh, oly_process_grid *g);
/* The first coordinates of the process at a place. */
void oly_grid_corner(oly_mesh mesh, const oly_process_grid *g, int number, int *at);
/* Row-major place in the grid <-> process; -1: it has no device of the mesh. */
int oly_grid_number(oly_mesh mesh, const oly_process_grid *g, int process);
int oly_grid_process(oly_mesh mesh, const oly_process_grid *g, int number);
/* The mesh axes (bits) that cut the value before, and after. */
unsigned oly_axes_from(const mover *m);
unsigned oly_axes_to(const mover *m);
/* Stages that double from one to n. */
int oly_stages_between(int n);

/* Is it a gather along lines of processes? Over which axes, one after the other; and do few processes, each with several devices
 * in the line, do it in one stage? */
bool oly_is_gather(const mover *m, oly_process_grid *g, oly_axis_list *order, bool *at_once);
/* Does every device of a mesh of many processes get all of what one process has? */
bool oly_is_broadcast(const mover *m, oly_process_grid *g);

/* -- tree_exchange_list.c -- */
/* The axes of `order` along which there is one process are gathered over first: their number. */
int oly_stages_own(const oly_staged *s, unsigned *gathered);
/* Is a device in the mesh; do two agree along some axes; which is the first here that agrees with this one? */
bool oly_staged_here(const oly_staged *s, int device);
bool oly_staged_among(const oly_staged *s); /* is any? */
bool oly_staged_agree(const oly_staged *s, int device, int other, unsigned axes);
int oly_staged_first_alike(const oly_staged *s, int device, unsigned axes);
/* The axes that tell devices apart which send something else along `axis`. */
unsigned oly_senders_differ(const mover *m, int axis, unsigned gathered);
/* The messages of a stage, the same for all movements. Nothing on processes without a device of the mesh. */
oly_status oly_list_wires(const oly_staged *s, int stage, oly_wires *wires);
/* What comes by messages, for overlap.c: at most two messages a device, each standing for those before it. */
oly_status oly_list_arrivals(const oly_staged *s, oly_wires *wires);
/* The exchange of a stage, when it is first needed: an outline's list. */
oly_status oly_list_stage(const void *staged, int stage, oly_exchange **exchange);
#endif
