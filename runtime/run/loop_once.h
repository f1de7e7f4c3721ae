/* SPDX-License-Identifier: BSD-3-Clause */
/* Loops that every CPU device of this process would run alike, such as iterations over replicated values: the first device runs them, with
 * all threads, and the others get copies of the carries at the end. Private to the executor for CPUs (prepare_cpu.c) and the
 * interpreter. */
#ifndef OLY_RUN_LOOP_ONCE_H
#define OLY_RUN_LOOP_ONCE_H
#include "run/interpret.h"

typedef struct oly_loop_once {
    oly_step step;       /* the loop, with a body whose steps have work for the first device alone */
    const bool *changes; /* [n_carry] in place */
} oly_loop_once;

/* Finds the outermost of them, once all steps are prepared. fails OLY_MEMORY. */
oly_status oly_find_loops_once(oly_plan *plan);
/* After the iterations, before the buffers of the carries are as they were. */
void oly_spread_carries(oly_run *r, const oly_loop_once *once);
#endif
