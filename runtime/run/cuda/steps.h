/* SPDX-License-Identifier: BSD-3-Clause */
/* Which kernels compute a device's share of a step. Private to runtime/run/cuda. */
#ifndef OLY_RUN_CUDA_STEPS_H
#define OLY_RUN_CUDA_STEPS_H
#include "cuda/launch.h"
#include "run/executor.h"

/* oly_executor.launch: false where a kernel is missing, before anything is launched. */
bool oly_cuda_has(const oly_plan *plan, const oly_step *s, int device); /* oly_executor.has */
bool oly_cuda_launch_share(const oly_device_work *w, oly_work_of of, oly_status *st);

/* Does the memory of two cells overlap? A result that is written before all is read must not have that of an operand. */
bool oly_cells_overlap(const oly_plan *plan, void *const *base, int a, int b);

/* A family of steps: is there a kernel for a device's share, and its launches (steps.c calls them). local_steps.c: operations of
 * kernels/local.h. */
bool oly_cuda_has_local_step(const oly_step *step, int device);
oly_status oly_cuda_launch_local(const oly_cuda_launcher *l, void *const *base, const oly_step *step, int device);
#endif
