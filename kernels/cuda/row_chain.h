/* SPDX-License-Identifier: BSD-3-Clause */
/* Several steps as one generated kernel: elementwise groups over a box, reductions along its last dimensions, groups over their results, and
 * groups that read those results again, as in softmax and layer normalisation. A unit of threads computes a row, at most 4096 elements
 * of it; what later steps read stays in shared memory. Longer rows, and whole arrays, are computed in pieces, and their results
 * cannot be read by the same kernel. Bits are those of the separate launches. row_chain.c looks at the steps, row_chain_text.c writes
 * the text. Called by runtime/run/cuda/row_chains.c. */
#ifndef OLY_CUDA_ROW_CHAIN_H
#define OLY_CUDA_ROW_CHAIN_H
#include "cuda/launch.h"

enum { OLY_ROW_PARTS = 12 };

/* A step. Addresses may be any numbers that are equal, and overlap, where the memory does (oly_cuda_row_chain_fits). */
typedef struct oly_cuda_row_part {
    const oly_tile_program *program; /* of a group; NULL: a reduction */
    const oly_tile_box *box;
    const oly_tile_operand *loads, *stores;
    const oly_reduce_task *task; /* of a reduction */
    char *in, *out;
    uint64_t needed; /* bit k: store k (a reduction's result: bit 0) is read by others, and must be written */
} oly_cuda_row_part;

/* Can they be one kernel? */
bool oly_cuda_row_chain_fits(int n, const oly_cuda_row_part *parts);
/* Launches the kernel. *launched: false where there is none (yet), or the memory of results overlaps that of operands: the caller launches the
 * steps one by one. */
oly_status oly_cuda_row_chain(const oly_cuda_launcher *l, int n, const oly_cuda_row_part *parts, bool *launched);
#endif
