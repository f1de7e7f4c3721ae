/* SPDX-License-Identifier: BSD-3-Clause */
/* The executor for GPUs: a table of what they compute with kernels of their own (run/executor.h). What they have no kernel for is computed on
 * the host (run/detour.h). Where the library is built without CUDA, none.c. Private to runtime/run. */
#ifndef OLY_RUN_CUDA_EXECUTOR_CUDA_H
#define OLY_RUN_CUDA_EXECUTOR_CUDA_H
#include "run/executor.h"

const oly_executor *oly_executor_cuda(void);
#endif
