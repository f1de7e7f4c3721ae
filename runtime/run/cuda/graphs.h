/* SPDX-License-Identifier: BSD-3-Clause */
/* Segments of plans as CUDA graphs. Private to runtime/run/cuda. */
#ifndef OLY_RUN_CUDA_GRAPHS_H
#define OLY_RUN_CUDA_GRAPHS_H
#include "run/replay.h"

/* oly_executor.replay and forget. */
oly_status oly_cuda_replay(oly_run *r, oly_segment *s, bool *done);
void oly_cuda_forget(oly_segment *s);
#endif
