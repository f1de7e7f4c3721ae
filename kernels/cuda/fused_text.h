/* SPDX-License-Identifier: BSD-3-Clause */
/* The text of a fused kernel for an elementwise group, and its task. The text depends on the program and on how operands are spaced, but
 * not on extents, strides, constants and addresses: those are in the task. Called by launch_tile.c. */
#ifndef OLY_CUDA_FUSED_TEXT_H
#define OLY_CUDA_FUSED_TEXT_H
#include "core/text.h"
#include "cuda/launch.h"

/* A program and the box it runs over, with merged dimensions. */
typedef struct oly_cuda_group {
    const oly_tile_program *program;
    int n_operands; /* loads, stores, iotas */
    int rank;
    int64_t n, extent[OLY_MAX_RANK];
    const int64_t *origin; /* [iotas] */
    int64_t *stride;       /* [n_operands][OLY_MAX_RANK] */
    char *const *base;     /* [loads and stores] */
} oly_cuda_group;

/* Launches the group's own kernel (l->generated). *launched: false where there is none (yet), or its task would be too large: the group must
 * be interpreted. */
oly_status oly_cuda_fused(const oly_cuda_launcher *l, const oly_cuda_group *g, bool *launched);

/* For other generated kernels (field_text.c, row_chain_text.c): C++'s name of a type; an expression for an instruction (neither splat nor iota) on variables
 * r<register>; and for a whole number converted to a type. */
const char *oly_cuda_type_name(int dtype);
void oly_cuda_write_operation(oly_text *text, const oly_tile_instruction *c);
void oly_cuda_write_number(oly_text *text, int dtype, const char *number);
/* Roughly, the instructions for an element. */
int oly_cuda_work_of(const oly_tile_program *p);
/* For quotients of numbers below 2^31 by d: (high(n * multiplier) + n) >> shift; the shift in the upper half. */
uint64_t oly_cuda_divisor(int64_t d);
#endif
