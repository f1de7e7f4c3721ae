/* SPDX-License-Identifier: BSD-3-Clause */
/* Iterations of loops as CUDA graphs. Private to runtime/run/cuda. */
#ifndef OLY_RUN_CUDA_LOOP_GRAPHS_H
#define OLY_RUN_CUDA_LOOP_GRAPHS_H
#include "run/loop_replay.h"

/* oly_executor.iterate and forget_loop. */
oly_status oly_cuda_iterate(oly_run *r, oly_loop_replay *l, int64_t i, int64_t *done, bool *decided, bool *more);
void oly_cuda_forget_loop(oly_loop_replay *l);
#endif
