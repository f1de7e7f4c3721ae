/* SPDX-License-Identifier: BSD-3-Clause */
/* Products whose bias is added in the library's epilogue: a product that only the elementwise step after it reads, and that step adds a vector
 * along the last dimension and does nothing else. The product is then launched with that step. Private to runtime/run/cuda. */
#ifndef OLY_RUN_CUDA_EPILOGUES_H
#define OLY_RUN_CUDA_EPILOGUES_H
#include "plan/model/steps.h"

/* Finds them in a prepared plan. fails OLY_MEMORY. */
oly_status oly_cuda_find_epilogues(oly_plan *plan);

typedef struct oly_epilogue {
    const oly_step *product; /* the step before */
    int bias;                /* the load that it is; the other is the product */
} oly_epilogue;

/* On a device: the bias, or NULL where the memory of operands and result overlaps, or the bias is not aligned. */
const void *oly_cuda_bias_of(const oly_plan *plan, const oly_epilogue *e, const oly_step *add, void *const *base,
                             int device);
#endif
