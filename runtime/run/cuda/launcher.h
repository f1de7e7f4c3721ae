/* SPDX-License-Identifier: BSD-3-Clause */
/* What the families of kernels (kernels/cuda/launch.h) need to launch: a device, its stream, memory. Private to runtime/run/cuda. */
#ifndef OLY_RUN_CUDA_LAUNCHER_H
#define OLY_RUN_CUDA_LAUNCHER_H
#include "cuda/launch.h"
#include "device/cuda/gpus.h"

typedef struct oly_cuda_launching {
    oly_cuda_launcher launcher; /* for the families */
    int number;                 /* of the local device */
    const oly_cuda_device *device;
    size_t scratch;           /* bytes taken of the device's block of scratch memory */
    CUdeviceptr outgrown[48]; /* blocks that were too small: given back after the launches */
    int n_outgrown;
} oly_cuda_launching;

/* Between them the GPU's context is current. Scratch memory of a device is one block, which its steps use one after the other. */
oly_status oly_cuda_launching_begin(oly_cuda_launching *l, int device);
void oly_cuda_launching_end(oly_cuda_launching *l);

/* What is taken between mark and return is given to who asks next: of launches that follow in the stream. */
typedef struct oly_cuda_mark {
    size_t scratch;
    int n_outgrown;
} oly_cuda_mark;
oly_cuda_mark oly_cuda_scratch_mark(const oly_cuda_launching *l);
void oly_cuda_scratch_return(oly_cuda_launching *l, oly_cuda_mark before);
#endif
