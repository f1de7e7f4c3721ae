/* SPDX-License-Identifier: BSD-3-Clause */
/* Padded arrays that only the steps of a row chain read: a step that copies the operand and fills what is outside it, which the chain does without: it
 * reads the operand with bounds. Private to row_chains.c. */
#ifndef OLY_RUN_CUDA_ROW_PADS_H
#define OLY_RUN_CUDA_ROW_PADS_H
#include "cuda/row_chain.h"
#include "plan/model/steps.h"

/* Copies for which nothing is awaited or sent, all of them in a device's own memory. */
bool oly_cuda_is_own_copy(const oly_plan *plan, const oly_step *s);
bool oly_cuda_has_copies(const oly_plan *plan, const oly_step *s, int device);
/* Is it the step of an array that nothing reads after step number `last`? */
bool oly_cuda_is_row_pad(const oly_plan *plan, const oly_block *b, const oly_step *pad, int last);
/* The array as it is on a device. base: NULL: as without memory (row_chains.c). False: of another form. */
bool oly_cuda_row_pad_of(char *(*address)(void *const *base, int cell, int64_t offset), void *const *base,
                         const oly_plan *plan, const oly_step *pad, int device, oly_cuda_row_pad *made);
#endif
