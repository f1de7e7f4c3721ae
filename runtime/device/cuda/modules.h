/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels on GPUs: modules loaded at first use, and their functions by name. For runtime/device/cuda and runtime/run/cuda only. */
#ifndef OLY_DEVICE_CUDA_MODULES_H
#define OLY_DEVICE_CUDA_MODULES_H
#include "device/cuda/gpus.h"

/* The kernel of this name in the image of kernels/cuda/MODULE.cu, with `shared` bytes of dynamic shared memory allowed. The GPU's context is
 * current. Any thread. fails OLY_NO_KERNEL: there is no such image, or none for this GPU; as the driver does. */
oly_status oly_cuda_function(const oly_gpu *g, const char *module, const char *kernel, unsigned shared,
                             CUfunction *function);
/* The same bytes in the device's memory, kept until the platform stops or until there are too many: 16-byte aligned. fails OLY_MEMORY. */
oly_status oly_cuda_constant(int device, const void *data, size_t bytes, const void **at);
/* A number that changes whenever recorded launches (runtime/run/cuda/graphs.h) may name memory that is not there any more, or a kernel that
 * is not the best any more. */
uint64_t oly_cuda_epoch(void);
void oly_cuda_new_epoch(void);
/* This thread records launches instead of making them: nothing may wait for the device or take memory in its stream. */
extern _Thread_local bool oly_cuda_capturing;
void oly_cuda_modules_stop(void);
void oly_cuda_constants_stop(void);
#endif
