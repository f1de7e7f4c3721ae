/* Gathers and broadcasts in stages: between stages_match.c, which finds them, and stages.c, which makes steps of them; private to
 * both. */
#ifndef OLY_PLAN_STAGES_H
#define OLY_PLAN_STAGES_H
#include "plan/pieces.h"

/* A mesh as a grid of processes. */
typedef struct oly_process_grid {
    const int *each;        /* coordinates of an axis that a process has */
    int size[OLY_MAX_RANK]; /* processes along an axis */
    int n;                  /* in all */
} oly_process_grid;

/* Row-major place in the grid <-> process; -1: it has no device of the mesh. */
int oly_grid_number(oly_mesh mesh, const oly_process_grid *g, int process);
int oly_grid_process(oly_mesh mesh, const oly_process_grid *g, int number);
/* The mesh axes (bits) that cut the value before, and after. */
unsigned oly_axes_from(const mover *m);
unsigned oly_axes_to(const mover *m);
/* Stages that double from one to n. */
int oly_stages_between(int n);

/* Is it a gather along lines of processes? Over which axes, one after the other; and do few processes, each with several devices in the
 * line, do it in one stage? */
bool oly_is_gather(const mover *m, oly_process_grid *g, oly_axis_list *order, bool *at_once);
/* Does every device of a mesh of many processes get all of what one process has? */
bool oly_is_broadcast(const mover *m, oly_process_grid *g);
#endif
