/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by tests of the kernels of matrix products: tasks. */
#ifndef CHECK_PRODUCTS_H
#define CHECK_PRODUCTS_H
#include "kernel.h"

/* Rows or columns of the operands are dense, with `gap` elements after each. */
static inline void lay_out_operands(oly_gemm_task *t, bool a_turned, bool b_turned, int64_t gap)
{
    t->a_row = a_turned ? 1 : t->k + gap;
    t->a_column = a_turned ? t->m + gap : 1;
    t->b_row = b_turned ? 1 : t->n + gap;
    t->b_column = b_turned ? t->k + gap : 1;
}

/* One product of dense matrices. */
static inline oly_gemm_task dense_product(oly_dtype dtype, int64_t m, int64_t n, int64_t k)
{
    oly_gemm_task t = {.dtype = dtype, .batch = 1, .m = m, .n = n, .k = k, .c_row = n, .c_batch = m * n};
    lay_out_operands(&t, false, false, 0);
    return t;
}
#endif
