/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory in which loops over fields compute their tiles: a buffer for every thread that computes one, taken on first
 * use. A run that has started cannot fail for lack of memory, so one buffer is taken beforehand; threads that get no
 * other take turns with it. Private to runtime/run. */
#ifndef OLY_RUN_TILE_MEMORY_H
#define OLY_RUN_TILE_MEMORY_H
#include "run/interpret.h"

size_t oly_tile_bytes(const oly_plan *plan); /* the most that any step of the plan needs for a tile; 0: none */
oly_status oly_tiles_reserve(oly_run *r);    /* before a loop; fails OLY_MEMORY */
/* The calling thread's buffer, of oly_tile_bytes; *turn is for oly_tile_end. */
void *oly_tile_begin(oly_run *r, bool *turn);
void oly_tile_end(oly_run *r, bool turn);
void oly_tiles_drop(oly_run *r); /* after a step */
#endif
