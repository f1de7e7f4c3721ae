/* SPDX-License-Identifier: BSD-3-Clause */
/* The struct that the kernels of convolve_blocks.cu take, filled by launch_convolve.c. As those of tasks.h.
 *
 * A place of the result lies at v[d] = stride * place - lo in the dilated operand, counted from the first element that is here, and a tap
 * reads v[d] + dilation * tap, which is inside if it is in [0, extent) of the dilated operand and divisible by the dilation. All
 * dimensions are lanes of one word: lane d holds v + 2^k, where 2^k is larger than any |v| and any |v - extent|. With place + tap = a and
 * a - extent = b, which carry from no lane into the next, the element is inside if bit k of every lane is set in a and clear in b. */
#ifndef OLY_CUDA_CONVOLVE_TASK_H
#define OLY_CUDA_CONVOLVE_TASK_H
#include "tasks.h"

enum {
    OLY_CUDA_CONVOLVE_DEPTH = 8,   /* elements of a sum that a block holds in shared memory */
    OLY_CUDA_CONVOLVE_TABLE = 256, /* of which it knows where they are; a multiple */
    OLY_CUDA_CONVOLVE_EACH = 4,    /* places of a thread where groups have few features */
};
typedef struct oly_cuda_convolve_task {
    const char *x,
        *w; /* x: what feature 0 of the kernel reads in group 0, at place 0 of the whole window's first element */
    char *out, *partial;             /* partial: of more than one part, the sums [parts][elements of the result] */
    int64_t x_batch, x_group, w_row; /* elements between batch elements, groups, and rows of the kernel */
    int32_t begin, end;              /* features of the result that are here, of all */
    int32_t per_group, first, groups, row_blocks, strips;
    int32_t out_last; /* the result, and its parts, are [batch][places][features], not [batch][features][places] */
    int32_t columns, places;      /* of all batch elements, of one */
    int32_t n, depth, parts;      /* elements of a sum; of a part of it, a multiple of what a block holds */
    int32_t rank, taps, features; /* of the kernel */
    int32_t
        feature_last; /* the order of a sum: its features one after the other for each tap, not taps for each feature */
    int32_t x_together,
        w_by_row; /* vectors of features of x can be read; neighbouring threads read rows of w, not elements of one */
    int32_t x_feature, w_feature, shift;                  /* offsets in x are shifted right by `shift` */
    int32_t extent[OLY_MAX_WINDOW], size[OLY_MAX_WINDOW]; /* of the result; taps */
    int32_t x_place[OLY_MAX_WINDOW], x_tap[OLY_MAX_WINDOW], w_tap[OLY_MAX_WINDOW]; /* offsets */
    uint32_t lane_place[OLY_MAX_WINDOW], lane_tap[OLY_MAX_WINDOW];                 /* in lanes, as above */
    uint32_t lane_start, lane_extent, inside, divisible,
        beyond; /* of place 0; bits k; bits that are clear; added: inside of nothing */
    int32_t x_start;
} oly_cuda_convolve_task;
#endif
