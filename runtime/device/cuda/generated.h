/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels whose text is made at run time: found by a key, compiled by NVRTC in a thread of their own when they have been asked for often enough
 * (OLYMPUS_COMPILE_AFTER), kept in memory and on disk (kernel_cache.h), loaded by each GPU that uses them. Until then, and where there is no
 * NVRTC, whoever asks does without. For runtime/device/cuda and runtime/run/cuda only. */
#ifndef OLY_DEVICE_CUDA_GENERATED_H
#define OLY_DEVICE_CUDA_GENERATED_H
#include "device/cuda/gpus.h"

typedef struct oly_cuda_source {
    const void *key; /* equal keys have equal texts */
    size_t key_bytes;
    double work;                   /* operations on elements of the launch that asks */
    unsigned shared;               /* bytes of dynamic shared memory of this launch */
    const char *kernel;            /* its name in the text */
    char *(*text)(const void *of); /* the text, to be freed; NULL: out of memory */
    const void *of;
} oly_cuda_source;

/* The kernel, or NULL: not now. The GPU's context is current. Any thread. Waits for the compiler only if OLYMPUS_COMPILE_AFTER is 0. */
CUfunction oly_cuda_generated_function(const oly_gpu *g, const oly_cuda_source *s);
/* Before contexts are given back: waits for the kernel being compiled, and forgets all. */
void oly_cuda_generated_stop(void);

typedef struct oly_cuda_generated_counts {
    int64_t compiled, read, failed, used; /* by NVRTC; from disk; kernels that cannot be compiled or loaded; launches */
} oly_cuda_generated_counts;
oly_cuda_generated_counts oly_cuda_generated_counted(void);
#endif
