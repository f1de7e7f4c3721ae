/* SPDX-License-Identifier: BSD-3-Clause */
/* Steps that follow each other and are one kernel of their own: reductions along the last dimensions, and the elementwise groups before, between and
 * after them (kernels/cuda/row_chain.h). They are launched with the last of them, together where that kernel has been compiled, else one
 * by one. Private to runtime/run/cuda. */
#ifndef OLY_RUN_CUDA_ROW_CHAINS_H
#define OLY_RUN_CUDA_ROW_CHAINS_H
#include "cuda/launch.h"
#include "plan/model/steps.h"

/* Finds them in a prepared plan, after epilogues. fails OLY_MEMORY. */
oly_status oly_cuda_find_row_chains(oly_plan *plan);

typedef struct oly_row_steps {
    int n;
    const oly_step *steps;  /* [n] */
    const uint64_t *needed; /* [n] bit k: store k of the step is read after the chain */
} oly_row_steps;

oly_status oly_cuda_launch_row_chain(const oly_cuda_launcher *l, const oly_plan *plan, void *const *base,
                                     const oly_row_steps *rows, int device, bool *launched);
#endif
