/* SPDX-License-Identifier: BSD-3-Clause */
/* The innermost loop of products: sums along a row of the result. Shared by gemm.c and convolve.c; inside
 * kernels/cpu. */
#ifndef OLY_CPU_STRIP_H
#define OLY_CPU_STRIP_H
#include "table.h"
#include "cpu/vector_math.h"

/* acc + a * b for each kind of element; unsigned types represent the signed ones: the same bits, and wrapping is
 * defined. */
#define FUSED_F32(acc, a, b) FMAF(a, b, acc)
#define FUSED_F64(acc, a, b) FMA(a, b, acc)
#define LOGICAL(acc, a, b)   ((acc) | ((a) & (b)))
/* By the type in which integers wrap (core/dtype_list.h): narrow ones would be promoted to int, which must not
 * overflow. */
#define WRAPPED_uint32_t(acc, a, b) ((uint32_t)(acc) + (uint32_t)(a) * (uint32_t)(b))
#define WRAPPED_uint64_t(acc, a, b) ((acc) + (a) * (b))
#define FUSED_C64(acc, a, b)        COMPLEX_FUSED(acc, a, b, FMAF)
#define FUSED_C128(acc, a, b)       COMPLEX_FUSED(acc, a, b, FMA)

/* strip_<s>: T is the element type. */
#define OLY_STRIP(s, T, MADD)                                                                                          \
    /* sums[j] += a[l] * b[l][j] for the depth l, b's rows dense */                                                    \
    static void strip_##s(int64_t depth, int64_t n, T *sums, const T *a, int64_t a_column, const T *b, int64_t b_row)  \
    {                                                                                                                  \
        int64_t l = 0;                                                                                                 \
        for (; l + 4 <= depth; l += 4) {                                                                               \
            const T a0 = a[l * a_column], a1 = a[(l + 1) * a_column];                                                  \
            const T a2 = a[(l + 2) * a_column], a3 = a[(l + 3) * a_column];                                            \
            const T *b0 = b + l * b_row, *b1 = b0 + b_row, *b2 = b1 + b_row, *b3 = b2 + b_row;                         \
            _Pragma("GCC ivdep") for (int64_t j = 0; j < n; j++)                                                       \
            {                                                                                                          \
                T sum = MADD(sums[j], a0, b0[j]);                                                                      \
                sum = MADD(sum, a1, b1[j]);                                                                            \
                sum = MADD(sum, a2, b2[j]);                                                                            \
                sums[j] = MADD(sum, a3, b3[j]);                                                                        \
            }                                                                                                          \
        }                                                                                                              \
        for (; l < depth; l++) {                                                                                       \
            const T a0 = a[l * a_column], *b0 = b + l * b_row;                                                         \
            _Pragma("GCC ivdep") for (int64_t j = 0; j < n; j++) sums[j] = MADD(sums[j], a0, b0[j]);                   \
        }                                                                                                              \
    }
#endif
