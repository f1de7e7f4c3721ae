/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions of the program described by factors: what oly_callback and kernels share. Private to runtime/array/inside. */
#ifndef OLY_ARRAY_INSIDE_PROGRAM_H
#define OLY_ARRAY_INSIDE_PROGRAM_H
#include "array/inside/inside.h"

/* Reads "ij,jk->ik" into the letters of the call's operands, from operand `first`, and its n_out results; "" of an operand of rank 0.
 * fails OLY_PARSE; OLY_SHAPE: other numbers of dimensions than the operands have. */
oly_status oly_factors_read(oly_user_call *c, const char *factors, int first, int n_in, oly_node *const *in, int n_out);
/* The letters that are never split. fails OLY_PARSE */
oly_status oly_factors_whole(oly_user_call *c, const char *letters);
/* The extents of results by their letters. fails OLY_SHAPE: sizes that differ, a letter that no operand has. */
oly_status oly_factors_results(oly_user_call *c, int first, int n_in, oly_node *const *in, int n_out);

/* What a function of the program is told, and its parts: without the operands and results of the library's own. */
typedef struct oly_program_call {
    oly_inside called;
    oly_shard_part in[OLY_CALL_MOST], out[OLY_CALL_MOST];
} oly_program_call;
void oly_program_fill(const oly_call_frame *f, int first, int n_out, oly_program_call *p);
#endif
