/* SPDX-License-Identifier: BSD-3-Clause */
/* The blocks that the products of a task are divided into (oly_gemm_divide and its like in chunks.c). For gemm.c, gemm_bytes.c and
 * gemm_bfloat.c. */
#ifndef OLY_CPU_GEMM_DIVISION_H
#define OLY_CPU_GEMM_DIVISION_H
#include "table.h"
#include "cpu/gemm_registers.h"

/* a, b, c: its first elements. */
typedef struct product_block {
    product p;
    int64_t a, b, c;
} product_block;

static inline int64_t product_blocks(const oly_gemm_task *t, const oly_gemm_shape *s)
{
    return oly_gemm_batches(t) * s->row_blocks * s->column_blocks;
}

/* Columns first, then rows, then products. */
static inline product_block product_block_at(const oly_gemm_task *t, const oly_gemm_shape *s, int64_t number)
{
    const int64_t column = number % s->column_blocks * s->columns, rest = number / s->column_blocks;
    const int64_t row = rest % s->row_blocks * s->rows;
    const oly_gemm_start at = oly_gemm_start_of(t, rest / s->row_blocks);
    return (product_block){{t->m - row < s->rows ? t->m - row : s->rows,
                            t->n - column < s->columns ? t->n - column : s->columns, t->k, t->a_row, t->a_column,
                            t->b_row, t->b_column, t->c_row},
                           at.a + row * t->a_row,
                           at.b + column * t->b_column,
                           at.c + row * t->c_row + column};
}
#endif
