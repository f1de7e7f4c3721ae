/* SPDX-License-Identifier: BSD-3-Clause */
/* The detour through the host: where kernels of the host cannot use the memory of a device (oly_platform_is_apart), a device's share
 * of a step for which the device has no kernel is computed on copies in host memory:
 *
 *      drain the device   read what the share uses   compute on the CPU   write back what it has written
 *
 * Copies are made of ranges of memory, not of slots: slots that share memory share a copy. Called by device_order.c, call_run.c and
 * the executor, in the thread that interprets the plan. */
#ifndef OLY_RUN_DETOUR_H
#define OLY_RUN_DETOUR_H
#include "plan/model/steps.h"

/* The cells that some work uses. */
typedef struct oly_cells {
    const oly_plan *plan;
    void *const *base; /* addresses of the devices */
    struct oly_range *range;
    int n, room;
    bool failed; /* out of memory */
} oly_cells;
/* Cells of -1, and those without memory here, are left out. A cell may be named several times. */
void oly_cells_use(oly_cells *c, int cell, bool written);

/* Of a step of kind TILE, REDUCE, LOCAL, CALL or GEMM on one device, of a copy, and of a reduction. */
void oly_cells_of_step(oly_cells *c, const oly_step *step, int device);
void oly_cells_of_copy(oly_cells *c, const oly_copy_work *copy);
void oly_cells_of_reduction(oly_cells *c, const oly_reduction_work *group);

/* Reads the cells into host memory. *host: a table of base addresses with the copies in place of the cells; others are as they were.
 * The devices' work on these cells is done. fails OLY_MEMORY, or as a device does; then there is nothing to end. */
typedef struct oly_detour {
    oly_cells cells;
    void **host;
    char *memory;
} oly_detour;
oly_status oly_detour_begin(oly_detour *d, void ***host);
oly_status oly_detour_end(oly_detour *d); /* writes back, and frees */
#endif
