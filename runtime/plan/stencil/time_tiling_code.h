/* SPDX-License-Identifier: BSD-3-Clause */
/* The program of one piece of a stage while it is built. Private to time_tiling_form.c, time_tiling_walk.c,
 * time_tiling_fuse.c, time_tiling_group.c and time_tiling_code.c. */
#ifndef OLY_PLAN_STENCIL_TIME_TILING_CODE_H
#define OLY_PLAN_STENCIL_TIME_TILING_CODE_H
#include "plan/stencil/time_tiling_plan.h"

enum { OLY_TILING_LOADS = 48, OLY_TILING_INSTRUCTIONS = 384 };

/* Values are numbered: loads from 0, results of instructions from OLY_TILING_LOADS. */
typedef struct oly_tiling_code {
    int n_loads, n_instructions;
    oly_tiling_load loads[OLY_TILING_LOADS];
    oly_dtype dtype[OLY_TILING_LOADS];
    oly_tile_instruction instructions[OLY_TILING_INSTRUCTIONS]; /* operands are numbers of values */
    const oly_node *of[OLY_TILING_INSTRUCTIONS];                /* the node it implements; NULL: a part of one */
} oly_tiling_code;

/* All return the number of the value; -1: too many. */
int oly_tiling_read(oly_tiling_code *c, const oly_tiling_load *load, oly_dtype dtype);
int oly_tiling_add(oly_tiling_code *c, const oly_tile_instruction *i, const oly_node *of);
/* The same instruction is computed once. */
int oly_tiling_add_once(oly_tiling_code *c, const oly_tile_instruction *i);
int oly_tiling_splat(oly_tiling_code *c, const oly_node *constant);
/* The node's operation on values in[]; an iota counts along `dimension`. */
int oly_tiling_operate(oly_tiling_code *c, const oly_node *n, const int *in, int dimension);
/* Builds the program that computes a value. taps: sums of weighted loads may be fused multiply-adds. *fits: there are enough registers. */
oly_status oly_tiling_finish(oly_planner *p, oly_tiling_code *c, int value, oly_dtype dtype, bool taps,
                             oly_tiling_piece *piece, bool *fits);
/* The program alone, with n results. *fits: there are enough registers. */
oly_status oly_tiling_program(oly_planner *p, oly_tiling_code *c, int n, const int *value, const oly_dtype *dtype,
                              oly_tile_program *program, const oly_tiling_load **loads, bool *fits);
/* -- of programs and stages that are finished -- */
/* Instructions other than constants. */
int oly_tiling_operations(const oly_tile_program *p);
/* Does a piece of the stage depend on where an element is? Then it cannot be computed for another element. */
bool oly_tiling_counts(const oly_tiling_stage *s);
bool oly_tiling_is_result(const oly_tiling_form *form, int stage);
/* Does the piece compute its stage for all elements of `at`, moved by shift? */
bool oly_tiling_covers(const oly_tiling_form *form, const oly_tiling_piece *piece, const oly_tiling_piece *at,
                       const int64_t *shift);
bool oly_tiling_same_program(const oly_tiling_piece *a, const oly_tiling_piece *b, int rank);
#endif
