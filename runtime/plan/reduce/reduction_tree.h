/* SPDX-License-Identifier: BSD-3-Clause */
/* Levels of a reduction that are listed when it first runs (reduction_tree.c). Called by those who plan them, and by
 * the interpreter. */
#ifndef OLY_PLAN_REDUCE_REDUCTION_TREE_H
#define OLY_PLAN_REDUCE_REDUCTION_TREE_H
#include "plan/model/steps.h"

/* What the exchange of a step with levels covers in a plan of several processes. FIRST: the first level only, so that
 * reductions are distributed over threads. ALL: all levels, each reduced as soon as its data has arrived, by the thread
 * that waits; for small ones. */
typedef enum { OLY_LEVELS_FIRST, OLY_LEVELS_ALL } oly_levels_way;
/* Makes step->exchange from step->reduction. buffers: n_buffers that are read, then as many that are written. */
oly_status oly_reduction_levels_exchange(oly_plan *plan, oly_step *step, oly_levels_way way, int n_buffers,
                                         const int *buffers);
/* Gets a level, listing it if necessary; those before it must be listed. */
oly_status oly_reduction_level_of(const oly_plan *plan, oly_reduction_levels *levels, int number,
                                  oly_reduction_level **level);
#endif
