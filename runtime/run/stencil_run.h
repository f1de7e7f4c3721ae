/* SPDX-License-Identifier: BSD-3-Clause */
/* Running recognised stencil loops, and declarations that the interpreter's files share. Private to runtime/run. */
#ifndef OLY_RUN_STENCIL_RUN_H
#define OLY_RUN_STENCIL_RUN_H
#include "run/tile_passes.h"

oly_status oly_run_stencil(oly_run *r, const oly_step *step);

/* A device's share of a pass under way, for executors that compute it as a few boxes and not in tiles (tile_passes.h): the field with
 * each box as its written part. base: of the device's work. False: another kind of loop. */
typedef struct oly_stencil_share_now {
    const oly_stencil *stencil;
    int steps;
    const void *from;
    void *to;
    int n;
    oly_stencil_field field[OLY_PART_BOXES];
} oly_stencil_share_now;
bool oly_stencil_now(const oly_passes *p, void *const *base, int device, oly_stencil_share_now *now);

size_t oly_stencil_tile_bytes(const oly_plan *plan, const oly_step *step); /* see tile_memory.h */

/* time_tiling_run.c */
oly_status oly_run_time_tiling(oly_run *r, const oly_step *step);
size_t oly_tiling_tile_bytes(const oly_plan *plan, const oly_step *step);

/* interpret.c */
oly_status oly_run_block(oly_run *r, const oly_block *b);
#endif
