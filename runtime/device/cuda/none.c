/* SPDX-License-Identifier: BSD-3-Clause */
/* In place of the platform "cuda" where the library is built without nvcc or with CUDA=0. See cuda.h. */
#include "device/cuda/cuda.h"

static const char reason[] = "this library was built without CUDA (make with nvcc, and without CUDA=0)";

oly_status oly_cuda_platform(const oly_platform **platform, const char **why)
{
    *platform = NULL;
    *why = reason;
    return OLY_OK;
}

bool oly_cuda_is_there(const char **why)
{
    *why = reason;
    return false;
}
