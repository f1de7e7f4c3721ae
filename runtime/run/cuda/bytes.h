/* SPDX-License-Identifier: BSD-3-Clause */
/* Products that read bytes instead of converted copies (plan/schedule/fused_products.c) on GPUs: the steps that would have converted them
 * launch nothing, and the product is one of gemm_bytes.cu. Private to runtime/run/cuda. */
#ifndef OLY_RUN_CUDA_BYTES_H
#define OLY_RUN_CUDA_BYTES_H
#include "cuda/launch.h"
#include "plan/model/steps.h"

/* Finds them in a new plan. fails OLY_MEMORY. */
oly_status oly_cuda_find_byte_products(oly_plan *plan);
/* Does the product read bytes? Is the group the conversion for one? */
bool oly_cuda_reads_bytes(const oly_step *product);
bool oly_cuda_is_left_out(const oly_step *group);
oly_status oly_cuda_launch_byte_product(const oly_cuda_launcher *l, void *const *base, const oly_step *product,
                                        int device);
#endif
