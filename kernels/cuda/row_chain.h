/* SPDX-License-Identifier: BSD-3-Clause */
/* Several steps as one generated kernel: elementwise groups over a box, reductions along its last dimensions, groups over their results, and
 * groups that read those results again, as in softmax and layer normalisation. A unit of threads computes a row, at most 4096 elements
 * of it, or a thread one of fewer than 64; what later steps read stays in shared memory. Longer rows, and whole arrays, are computed in pieces, and their results
 * cannot be read by the same kernel. Bits are those of the separate launches. row_chain.c looks at the steps, row_chain_text.c writes
 * the text. Called by runtime/run/cuda/row_chains.c. */
#ifndef OLY_CUDA_ROW_CHAIN_H
#define OLY_CUDA_ROW_CHAIN_H
#include "cuda/launch.h"

enum { OLY_ROW_PARTS = 12, OLY_ROW_PADS = 4 };

/* A step. Addresses may be any numbers that are equal, and overlap, where the memory does (oly_cuda_row_chain_fits). */
typedef struct oly_cuda_row_part {
    const oly_tile_program *program; /* of a group; NULL: a reduction */
    const oly_tile_box *box;
    const oly_tile_operand *loads, *stores;
    const oly_reduce_task *task; /* of a reduction */
    char *in, *out;
    uint64_t needed; /* bit k: store k (a reduction's result: bit 0) is read by others, and must be written */
} oly_cuda_row_part;

/* A padded array that only the steps read, and that is not written: they read the operand where it is, and the padding value elsewhere. */
typedef struct oly_cuda_row_pad {
    char *to;    /* the padded array's first element */
    char *from;  /* of the part of the operand that is in it */
    char *value; /* of the padding */
    int parts;   /* how many steps are before it */
    uint8_t dtype;
    int64_t n;                                          /* elements of the padded array */
    int rank;                                           /* at least 1 */
    int64_t extent[OLY_MAX_RANK], stride[OLY_MAX_RANK]; /* of the padded array, which is dense */
    int64_t begin[OLY_MAX_RANK], count[OLY_MAX_RANK], from_stride[OLY_MAX_RANK]; /* of the operand in it */
} oly_cuda_row_pad;

typedef struct oly_cuda_row_steps {
    int n, n_pads;
    oly_cuda_row_part part[OLY_ROW_PARTS];
    oly_cuda_row_pad pad[OLY_ROW_PADS];
} oly_cuda_row_steps;

/* Can they be one kernel? */
bool oly_cuda_row_chain_fits(const oly_cuda_row_steps *steps);
/* Launches the kernel. *launched: false where there is none (yet), or the memory of results overlaps that of operands: the caller launches the
 * steps one by one. */
oly_status oly_cuda_row_chain(const oly_cuda_launcher *l, const oly_cuda_row_steps *steps, bool *launched);
#endif
