/* SPDX-License-Identifier: BSD-3-Clause */
/* Convolutions whose result only the step after them reads, which copies it into the order with the features last: the convolution is then
 * launched with that step, and writes that order. Private to runtime/run/cuda. */
#ifndef OLY_RUN_CUDA_FEATURES_LAST_H
#define OLY_RUN_CUDA_FEATURES_LAST_H
#include "cuda/launch.h"
#include "plan/model/steps.h"

/* Finds them in a prepared plan. fails OLY_MEMORY. */
oly_status oly_cuda_find_features_last(oly_plan *plan);

/* One device's convolution and copy. *launched: false where the kernel cannot write that order, or the memory of operands and result
 * overlaps. */
oly_status oly_cuda_launch_features_last(const oly_cuda_launcher *l, const oly_plan *plan, void *const *base,
                                         const oly_step *convolution, const oly_copy_work *copy, bool *launched);
#endif
