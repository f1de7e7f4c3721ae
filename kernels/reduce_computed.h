/* SPDX-License-Identifier: BSD-3-Clause */
/* Reductions of operands that are not in memory: the elements are computed as they are needed, a part of the box at a time, into a window that fits
 * the cache, and each is computed once. Bits are those of oly_reduce_run over the same elements, since the order of a reduction follows
 * from extents alone. Called by the executor for CPUs (runtime/run/fused_reduction.c). */
#ifndef OLY_REDUCE_COMPUTED_H
#define OLY_REDUCE_COMPUTED_H
#include "kernel.h"

/* The operand. */
typedef struct oly_reduce_source {
    /* Computes elements low[d] to low[d] + extent[d] of the task's box to `out`: row-major, without gaps. */
    void (*compute)(const void *context, const int64_t *low, const int64_t *extent, void *out);
    /* The same box will be computed soon. NULL: that does not matter. */
    void (*expect)(const void *context, const int64_t *low, const int64_t *extent);
    const void *context;
} oly_reduce_source;

/* Can the operand be computed in parts that are large enough? From extents alone. */
bool oly_reduce_may_compute(const oly_reduce_task *t);
/* As oly_reduce_run, with the operand from `source`; the task's strides are not read. For tasks of which oly_reduce_may_compute is true. */
void oly_reduce_computed(const oly_reduce_task *t, const oly_reduce_source *source, void *out, void *scratch, int chunk,
                         int n_chunks);
#endif
