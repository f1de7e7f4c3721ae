/* SPDX-License-Identifier: BSD-3-Clause */
/* Which kernels compute a device's share of a step. Private to runtime/run/cuda. */
#ifndef OLY_RUN_CUDA_STEPS_H
#define OLY_RUN_CUDA_STEPS_H
#include "run/executor.h"

/* oly_executor.launch: false where a kernel is missing, before anything is launched. */
bool oly_cuda_launch_share(const oly_device_work *w, oly_work_of of, oly_status *st);
#endif
