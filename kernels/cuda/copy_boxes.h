/* SPDX-License-Identifier: BSD-3-Clause */
/* The task of copy_boxes.cu, filled by launch_copy.c: boxes of elements of one size, whose numbers and offsets fit 31 bits. Plain data, read as C
 * and as CUDA C++. */
#ifndef OLY_CUDA_COPY_BOXES_H
#define OLY_CUDA_COPY_BOXES_H
#include "tasks.h"

enum { OLY_CUDA_BOXES = 12, OLY_CUDA_BOX_DIMS = 4, OLY_CUDA_BOX_CHUNK = 4 * OLY_CUDA_THREADS };

typedef struct oly_cuda_copied_box {
    char *to;
    const char *from;
    int64_t first; /* chunk of all */
    int32_t n, rank;
    int32_t extent[OLY_CUDA_BOX_DIMS], to_stride[OLY_CUDA_BOX_DIMS], from_stride[OLY_CUDA_BOX_DIMS];
    uint64_t divisor[OLY_CUDA_BOX_DIMS]; /* oly_cuda_divisor of extents (fused_text.h) */
} oly_cuda_copied_box;

typedef struct oly_cuda_boxes_task {
    int64_t n_boxes, chunks; /* of all boxes */
    oly_cuda_copied_box box[OLY_CUDA_BOXES];
} oly_cuda_boxes_task;
#endif
