/* SPDX-License-Identifier: BSD-3-Clause */
/* Counted loops of small steps in which no device uses the memory of another: sweeps and recurrences along a dimension that is not split.
 * Each device runs all iterations on one thread, instead of all devices step by step. The same kernels and chunks, so the same bits.
 * Private to the executor for CPUs (prepare_cpu.c) and the interpreter. */
#ifndef OLY_RUN_LOOP_BY_DEVICE_H
#define OLY_RUN_LOOP_BY_DEVICE_H
#include "run/interpret.h"

/* Notes at loops that may be run so; once all else is prepared. fails OLY_MEMORY. */
oly_status oly_find_loops_by_device(oly_plan *plan);
/* Is the loop run so in this run? Not if its steps are timed. */
bool oly_runs_by_device(const oly_run *r, const oly_step *loop);
/* False: there is no memory for the tables of base pointers, and nothing has been done. */
bool oly_loop_by_device(oly_run *r, const oly_step *loop);
#endif
