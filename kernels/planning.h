/* SPDX-License-Identifier: BSD-3-Clause */
/* What plans ask of a platform's kernels: which parts a product divides into, scratch memory, stencil passes. The answers are
 * properties of the kernels; these are the CPU's, and another platform gives its own. They follow from shapes and options alone,
 * so every process gets the same ones and plans agree. How a kernel's work is divided among threads is not asked here: that is the
 * executor's (runtime/run/prepare_cpu.c), and plans do not depend on it (tests/project/test_layers.sh). Included by kernel.h. */
#ifndef OLY_PLANNING_H
#define OLY_PLANNING_H
#include "kernel.h"

/* Parts of a product's result that can be computed at different times: disjoint, together all of it. A part has the bits that it has
 * when the whole product is computed at once; other divisions would give others. 0 parts: the product is computed at once (it
 * consists of several matrix products, or is empty). */
typedef struct oly_gemm_part {
    int64_t row, rows, column, columns;
} oly_gemm_part;
int oly_gemm_parts(const oly_gemm_task *t);
oly_gemm_part oly_gemm_part_at(const oly_gemm_task *t, int k);

/* Bytes that a device needs beside operands and result; 0: none. */
size_t oly_reduce_scratch(const oly_reduce_task *t);
size_t oly_local_scratch(const oly_local_task *t);

/* Is there a kernel for this stencil (dtype, rank, taps, radius up to 4)? */
bool oly_stencil_supported(const oly_stencil *s);
/* The most time steps of one pass over a block of this extent (its margin is steps * radius), from the cache sizes. */
int oly_stencil_steps(const oly_stencil *s, const int64_t *extent);
/* The work of one pass, in points times steps: all of it, and what can be computed before the margins on these sides are there (bit
 * 2d: below in dimension d, bit 2d + 1: above). */
typedef struct oly_stencil_points {
    double all, early;
} oly_stencil_points;
oly_stencil_points oly_stencil_points_of(const oly_stencil *s, const oly_stencil_field *f, int steps, unsigned sides);
#endif
