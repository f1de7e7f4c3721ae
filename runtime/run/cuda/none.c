/* SPDX-License-Identifier: BSD-3-Clause */
/* In place of the executor for GPUs where the library is built without CUDA. See executor_cuda.h. */
#include "run/cuda/executor_cuda.h"

const oly_executor *oly_executor_cuda(void)
{
    return &oly_executor_cpu;
}
