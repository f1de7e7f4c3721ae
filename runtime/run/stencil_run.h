/* SPDX-License-Identifier: BSD-3-Clause */
/* Running recognised stencil loops, and declarations that the interpreter's files share. Private to runtime/run. */
#ifndef OLY_RUN_STENCIL_RUN_H
#define OLY_RUN_STENCIL_RUN_H
#include "run/interpret.h"

oly_status oly_run_stencil(oly_run *r, const oly_step *step);

size_t oly_stencil_tile_bytes(const oly_plan *plan, const oly_step *step); /* see tile_memory.h */

/* time_tiling_run.c */
oly_status oly_run_time_tiling(oly_run *r, const oly_step *step);
size_t oly_tiling_tile_bytes(const oly_plan *plan, const oly_step *step);

/* interpret.c */
oly_status oly_run_block(oly_run *r, const oly_block *b);
#endif
