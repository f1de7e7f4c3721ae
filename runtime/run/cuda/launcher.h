/* SPDX-License-Identifier: BSD-3-Clause */
/* What the families of kernels (kernels/cuda/launch.h) need to launch: a device, its stream, memory. Private to runtime/run/cuda. */
#ifndef OLY_RUN_CUDA_LAUNCHER_H
#define OLY_RUN_CUDA_LAUNCHER_H
#include "cuda/launch.h"
#include "device/cuda/gpus.h"

enum { OLY_CUDA_SCRATCHES = 8 };
typedef struct oly_cuda_launching {
    oly_cuda_launcher launcher; /* for the families */
    int number;                 /* of the local device */
    const oly_cuda_device *device;
    CUdeviceptr scratch[OLY_CUDA_SCRATCHES]; /* taken for these launches, in the stream */
    int n_scratch;
} oly_cuda_launching;

/* Between them the GPU's context is current. */
oly_status oly_cuda_launching_begin(oly_cuda_launching *l, int device);
void oly_cuda_launching_end(oly_cuda_launching *l);
#endif
