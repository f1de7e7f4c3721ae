/* SPDX-License-Identifier: BSD-3-Clause */
/* Products of matrices of bytes with sums of 32 bits, which wrap: what the product of the converted operands gives, to the bit, with the
 * instructions that processors have for it. Called by the executor for CPUs (runtime/run/narrow_product.c). */
#ifndef OLY_GEMM_BYTES_H
#define OLY_GEMM_BYTES_H
#include "kernel.h"

typedef enum oly_byte_way {
    OLY_BYTES_NONE,  /* this processor has none: convert the operands */
    OLY_BYTES_QUADS, /* AVX-512 VNNI: four products at a time in each lane */
    OLY_BYTES_TILES, /* AMX: matrices in registers */
} oly_byte_way;

/* The fastest way of this processor and of the chosen instruction set. Asks the system for the matrix registers when it is first
 * called with them. */
oly_byte_way oly_byte_products(bool with_tiles);

/* As oly_gemm_run of a task of 32-bit integers, whose operands are bytes here, with or without a sign. */
int oly_gemm_bytes_chunks(const oly_gemm_task *t);
void oly_gemm_bytes_run(oly_byte_way way, const oly_gemm_task *t, bool a_signed, bool b_signed, const void *a,
                        const void *b, void *c, int chunk, int n_chunks);
#endif
