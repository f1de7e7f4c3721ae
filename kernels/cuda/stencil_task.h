/* SPDX-License-Identifier: BSD-3-Clause */
/* The struct that the kernels of stencil.cu take, filled by launch_stencil.c. As those of tasks.h. */
#ifndef OLY_CUDA_STENCIL_TASK_H
#define OLY_CUDA_STENCIL_TASK_H
#include "tasks.h"

/* Some steps of the part [lo, hi) of a field; dimensions are slab, row, column, columns are 1 apart. */
typedef struct oly_cuda_stencil_task {
    const char *source; /* element (0, 0, 0) of the field, in both */
    char *destination;
    int64_t source_stride[3], destination_stride[3], lo[3], hi[3];
    int64_t fixed_lo[3], fixed_hi[3];                /* the update region */
    int32_t below[3], above[3];                      /* how far taps reach */
    int32_t tile[3], tiles[3];                       /* points of a tile, tiles */
    int32_t pitch[2], points;                        /* of a window in shared memory: distance of slabs and rows; all */
    int32_t steps, n_taps, offset[OLY_STENCIL_TAPS]; /* in a window */
    double coefficient[OLY_STENCIL_TAPS];
} oly_cuda_stencil_task;
#endif
