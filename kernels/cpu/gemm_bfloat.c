/* SPDX-License-Identifier: BSD-3-Clause */
/* Products of matrices of bfloat16: see gemm_bfloat.h. Compiled once per instruction set; gives oly_gemm_bfloat_run_<isa>, which only
 * AVX-512 has (the others are never called: oly_bfloat_products). */
#include "gemm_bfloat.h"
#include "table.h"
#include "cpu/gemm_division.h"
#include "cpu/matrix_blocks.h"

#ifdef OLY_HAS_MATRIX_BLOCKS
/* Of c computed together: MATRIX_ROWS rows of their sums, and those rows of a, fit the second cache. */
#define COLUMNS 256

/* A block of one product, bytes of c's elements. */
static void run_block(const product *p, int64_t bytes, const uint16_t *a, const uint16_t *b, char *c)
{
    uint32_t between[MATRIX_ROWS * COLUMNS] __attribute__((aligned(64)));
    matrix_block part = {*p, MATRIX_BFLOATS, bytes == sizeof *a ? between : NULL};
    for (int64_t j = 0; j < p->n; j += COLUMNS) {
        part.p.n = p->n - j < COLUMNS ? p->n - j : COLUMNS;
        multiply_in_matrices(sizeof *a, &part, (const uint8_t *)a, (const uint8_t *)(b + j * p->b_column),
                             c + j * bytes);
    }
}

void OLY_ISA_NAME(oly_gemm_bfloat_run)(const oly_gemm_task *t, const void *a, const void *b, void *c, int chunk,
                                       int n_chunks)
{
    const oly_gemm_shape s = oly_gemm_bfloat_divide(t);
    const int64_t blocks = product_blocks(t, &s), bytes = oly_element_bytes[t->dtype];
    matrix_registers_begin();
    for (int64_t k = blocks * chunk / n_chunks; k < blocks * (chunk + 1) / n_chunks; k++) {
        const product_block one = product_block_at(t, &s, k);
        run_block(&one.p, bytes, (const uint16_t *)a + one.a, (const uint16_t *)b + one.b, (char *)c + one.c * bytes);
    }
    matrix_registers_end();
}
#else
void OLY_ISA_NAME(oly_gemm_bfloat_run)(const oly_gemm_task *t, const void *a, const void *b, void *c, int chunk,
                                       int n_chunks)
{
    (void)t, (void)a, (void)b, (void)c, (void)chunk, (void)n_chunks;
}
#endif
