/* SPDX-License-Identifier: BSD-3-Clause */
/* The faster kernel for several steps of a loop over fields (field_text.h): a thread computes several rows of a column at once, with what is
 * constant in the body and in the layout of shared memory constant in the text. Called by runtime/run/cuda/blocked_fields.c. */
#ifndef OLY_CUDA_FIELD_STRIPS_H
#define OLY_CUDA_FIELD_STRIPS_H
#include "cuda/field_text.h"

/* As oly_cuda_fields. *can false: the text would be too long, and nothing is launched. Rows of buffers have a multiple of 32 elements.
 * sharing: blocks that a processor has shared memory for. */
oly_status oly_cuda_field_strips(const oly_cuda_launcher *l, const oly_field_body *body,
                                 const oly_field_schedule *schedule, int sharing, char *const *bases, int n_bases,
                                 int64_t counter, bool *can, bool *launched);
#endif
