/* SPDX-License-Identifier: BSD-3-Clause */
/* Products of matrices of bfloat16 with sums of float32, in the matrix registers of AMX. As every product of narrow elements each result is
 * rounded once, and its sum takes its terms in an order that follows from k alone: the bits do not depend on how a product is divided. They are
 * not those of oly_gemm_run, which adds the terms one by one: here terms with even and with odd numbers have sums of their own, and
 * subnormal elements and sums are zero, as in JAX. Called by the executor for CPUs
 * (runtime/run/narrow_product.c). */
#ifndef OLY_GEMM_BFLOAT_H
#define OLY_GEMM_BFLOAT_H
#include "kernel.h"

/* Does this processor have the registers, and the chosen instruction set kernels for them? Asks the system for them when it is first
 * called. */
bool oly_bfloat_products(void);

/* Sums of fewer terms fill the registers with zeros: they are for oly_gemm_run. A matter of k alone, as the bits are. */
enum { OLY_BFLOAT_TERMS = 16 };

/* As oly_gemm_run of a task of bfloat16, with its chunks, or of float32, whose operands are bfloat16 here. At least OLY_BFLOAT_TERMS terms. */
int oly_gemm_bfloat_chunks(const oly_gemm_task *t);
void oly_gemm_bfloat_run(const oly_gemm_task *t, const void *a, const void *b, void *c, int chunk, int n_chunks);
#endif
