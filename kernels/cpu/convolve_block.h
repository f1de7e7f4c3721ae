/* SPDX-License-Identifier: BSD-3-Clause */
/* A block of a convolution's result, and the kernel's elements that it is made of. For convolve.c and convolve_batches.h. */
#ifndef OLY_CPU_CONVOLVE_BLOCK_H
#define OLY_CPU_CONVOLVE_BLOCK_H
#include "cpu/window_line.h"

#define DEPTH 128 /* rows of operand elements written at a time */
#define ROWS  OLY_CONVOLVE_ROWS

/* One block of the result: features [row, row + rows) of one group, positions [place, place + width) of one batch
 * element. */
typedef struct block {
    const oly_local_task *t;
    oly_slide slide;
    int64_t batch, row, rows, place, width; /* in the result's box */
    int64_t seen_batch, seen_feature;       /* in the operand's box: those that feature 0 of the kernel belongs to */
    int64_t depth;                          /* features of the kernel times taps */
    bool blas;
} block;

/* Offset in the kernel of each element of one of its rows: those of taps that follow each other in the last dimension at once, since divisions take
 * long. */
static void kernel_offsets(const block *b, int64_t from, int64_t depth, int64_t *offset)
{
    const oly_local_operand *w = &b->t->in[1];
    const int rank = (int)b->t->window->rank, last = b->slide.rank - 1;
    for (int64_t l = 0, length; l < depth; l += length) {
        int64_t tap[OLY_MAX_WINDOW] = {0}, at = from + l;
        oly_slide_indexes(&b->slide, b->slide.size, at % b->slide.taps, tap);
        length = b->slide.size[last] - tap[last] < depth - l ? b->slide.size[last] - tap[last] : depth - l;
        int64_t first = at / b->slide.taps * w->stride[1];
        for (int d = 0; d < rank; d++)
            first += tap[d] * w->stride[2 + d];
        for (int64_t k = 0; k < length; k++)
            offset[l + k] = first + (rank > 0 ? k * w->stride[1 + rank] : 0);
    }
}
#endif
