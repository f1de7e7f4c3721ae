/* SPDX-License-Identifier: BSD-3-Clause */
/* The task of the kernels that pack and unpack boxes of messages (kernels/cuda/pack.cu), launched by device/cuda/messages.c. Plain data, read
 * as C and as CUDA C++. */
#ifndef OLY_CORE_GPU_PACK_H
#define OLY_CORE_GPU_PACK_H

enum { OLY_GPU_PACK_LOOPS = 12 };

/* Part of a box: units of 1, 2, 4, 8 or 16 bytes, in which all numbers are. Packed, runs of `run` units follow each other; in the box they
 * are at the points of extent[], innermost last. */
typedef struct oly_gpu_pack_task {
    char *box, *packed; /* its first unit; the unit `begin` of the packed ones */
    int64_t begin, n;   /* of the packed units: begin to begin + n - 1 */
    int64_t run;
    int32_t loops, unpacks;
    int64_t extent[OLY_GPU_PACK_LOOPS], stride[OLY_GPU_PACK_LOOPS];
} oly_gpu_pack_task;
#endif
