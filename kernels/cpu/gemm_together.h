/* SPDX-License-Identifier: BSD-3-Clause */
/* Products of many small matrices, such as one of 3 x 3 for every cell of a grid: TOGETHER of them side by side, one in each lane, since a row of one
 * fills no vector. Elements are summed from left to right over k as in every other small product, so bits are the same. For gemm.c alone. */
#ifndef OLY_CPU_GEMM_TOGETHER_H
#define OLY_CPU_GEMM_TOGETHER_H
#include "cpu/gemm_blocks.h"
#include "cpu/strip.h"

#define TOGETHER      16
#define TOGETHER_MOST 49 /* elements of each matrix: rows of 8 fill half a vector by themselves, which is faster */

static bool is_together(const oly_gemm_task *t)
{
    return t->batch >= TOGETHER && t->k > 0 && t->m * t->k <= TOGETHER_MOST && t->k * t->n <= TOGETHER_MOST &&
           t->m * t->n <= TOGETHER_MOST;
}

/* Elements that are transposed four at a time: for more, a block of 16 takes fewer instructions. */
#define FEW_IN_LANES 12

/* few_into_lanes_<s>: the same as below for few elements; returns how many it has moved: all or none. few_from_lanes_<s>: the reverse. */
static inline int64_t few_into_lanes_f32(int64_t n, float *to, const float *from, int64_t matrix)
{
#ifdef OLY_HAS_VECTOR_TRANSPOSE
    for (int64_t e = 0; e < n && n <= FEW_IN_LANES; e += 4)
        transpose_16_to_4(n - e < 4 ? (int)(n - e) : 4, to + e * TOGETHER, TOGETHER, from + e, matrix);
    return n <= FEW_IN_LANES ? n : 0;
#else
    (void)n, (void)to, (void)from, (void)matrix;
    return 0;
#endif
}
static inline int64_t few_from_lanes_f32(int64_t n, float *to, int64_t matrix, const float *from)
{
#ifdef OLY_HAS_VECTOR_TRANSPOSE
    for (int64_t e = 0; e < n && n <= FEW_IN_LANES; e += 4)
        transpose_4_to_16(n - e < 4 ? (int)(n - e) : 4, to + e, matrix, from + e * TOGETHER, TOGETHER);
    return n <= FEW_IN_LANES ? n : 0;
#else
    (void)n, (void)to, (void)matrix, (void)from;
    return 0;
#endif
}
#define few_into_lanes_f64(n, to, from, matrix) 0
#define few_from_lanes_f64(n, to, matrix, from) 0

/* dense_into_lanes_<s>: elements that follow each other in each matrix: to[e * TOGETHER + product] = from[product * matrix + e].
 * lanes_into_dense_<s>: the reverse; may read the 15 elements of each lane behind those.
 * `block` transposes side x side elements in registers, as `bits`. */
#ifdef OLY_HAS_TRANSPOSE
#define OLY_LANES(s, T, side, block, bits)                                                                             \
    static void dense_into_lanes_##s(int64_t n, T *to, const T *from, int64_t matrix)                                  \
    {                                                                                                                  \
        int64_t e = few_into_lanes_##s(n, to, from, matrix);                                                           \
        for (; e < n; e += (side))                                                                                     \
            for (int q = 0; q < TOGETHER; q += (side))                                                                 \
                block(n - e < (side) ? (int)(n - e) : (side), (bits *)(to + e * TOGETHER + q), TOGETHER,               \
                      (const bits *)(from + q * matrix + e), matrix);                                                  \
    }                                                                                                                  \
    static void lanes_into_dense_##s(int64_t n, T *to, int64_t matrix, const T *from)                                  \
    {                                                                                                                  \
        T rest[TOGETHER * (side)];                                                                                     \
        int64_t e = 0;                                                                                                 \
        for (; e + (side) <= n; e += (side))                                                                           \
            for (int q = 0; q < TOGETHER; q += (side))                                                                 \
                block(side, (bits *)(to + q * matrix + e), matrix, (const bits *)(from + e * TOGETHER + q), TOGETHER); \
        e += few_from_lanes_##s(n - e, to + e, matrix, from + e * TOGETHER);                                           \
        if (e == n)                                                                                                    \
            return;                                                                                                    \
        for (int q = 0; q < TOGETHER; q += (side))                                                                     \
            block(side, (bits *)(rest + q * (side)), side, (const bits *)(from + e * TOGETHER + q), TOGETHER);         \
        for (int q = 0; q < TOGETHER; q++)                                                                             \
            for (int64_t i = e; i < n; i++)                                                                            \
                to[q * matrix + i] = rest[q * (side) + i - e];                                                         \
    }
#else
#define OLY_LANES(s, T, side, block, bits)                                                                             \
    static void dense_into_lanes_##s(int64_t n, T *to, const T *from, int64_t matrix)                                  \
    {                                                                                                                  \
        for (int64_t e = 0; e < n; e++)                                                                                \
            for (int q = 0; q < TOGETHER; q++)                                                                         \
                to[e * TOGETHER + q] = from[q * matrix + e];                                                           \
    }                                                                                                                  \
    static void lanes_into_dense_##s(int64_t n, T *to, int64_t matrix, const T *from)                                  \
    {                                                                                                                  \
        for (int q = 0; q < TOGETHER; q++)                                                                             \
            for (int64_t e = 0; e < n; e++)                                                                            \
                to[q * matrix + e] = from[e * TOGETHER + q];                                                           \
    }
#endif
OLY_LANES(f32, float, 16, transpose_16, uint32_t)
OLY_LANES(f64, double, 8, transpose_8x8, uint64_t)

#define OLY_PRODUCTS_TOGETHER(s, T, MADD)                                                                              \
    /* A matrix of each product into lanes: to[(i * columns + j) * TOGETHER + product]. */                             \
    static void into_lanes_##s(int64_t rows, int64_t columns, T *to, const T *from, int64_t matrix, int64_t row,       \
                               int64_t column)                                                                         \
    {                                                                                                                  \
        if (columns == 1 && row == 1) /* a column in order */                                                          \
            column = 1;                                                                                                \
        if (column == 1 && row == columns) {                                                                           \
            columns *= rows;                                                                                           \
            rows = 1;                                                                                                  \
        }                                                                                                              \
        for (int64_t i = 0; i < rows; i++, to += columns * TOGETHER, from += row) {                                    \
            if (column == 1) {                                                                                         \
                dense_into_lanes_##s(columns, to, from, matrix);                                                       \
                continue;                                                                                              \
            }                                                                                                          \
            for (int64_t j = 0; j < columns; j++)                                                                      \
                for (int q = 0; q < TOGETHER; q++)                                                                     \
                    to[j * TOGETHER + q] = from[q * matrix + j * column];                                              \
        }                                                                                                              \
    }                                                                                                                  \
    /* Sums of k products, in registers where k is known to compilers. */                                              \
    static inline                                                                                                      \
        __attribute__((always_inline)) void line_of_##s(int64_t k, int64_t n, T *z, const T *x, const T *y, T begin)   \
    {                                                                                                                  \
        T sum[TOGETHER];                                                                                               \
        for (int q = 0; q < TOGETHER; q++)                                                                             \
            sum[q] = begin;                                                                                            \
        _Pragma("GCC unroll 8") for (int64_t l = 0; l < k; l++) for (int q = 0; q < TOGETHER; q++) sum[q] =            \
            MADD(sum[q], x[l * TOGETHER + q], y[l * n * TOGETHER + q]);                                                \
        for (int q = 0; q < TOGETHER; q++)                                                                             \
            z[q] = sum[q];                                                                                             \
    }                                                                                                                  \
    static void line_by_column_##s(int64_t k, int64_t n, T *z, const T *x, const T *y, T begin)                        \
    {                                                                                                                  \
        switch (k) {                                                                                                   \
        case 1: line_of_##s(1, n, z, x, y, begin); return;                                                             \
        case 2: line_of_##s(2, n, z, x, y, begin); return;                                                             \
        case 3: line_of_##s(3, n, z, x, y, begin); return;                                                             \
        case 4: line_of_##s(4, n, z, x, y, begin); return;                                                             \
        case 5: line_of_##s(5, n, z, x, y, begin); return;                                                             \
        case 6: line_of_##s(6, n, z, x, y, begin); return;                                                             \
        default: line_of_##s(k, n, z, x, y, begin);                                                                    \
        }                                                                                                              \
    }                                                                                                                  \
    static void products_together_##s(const oly_gemm_task *t, const T *a, const T *b, T *c)                            \
    {                                                                                                                  \
        T x[TOGETHER_MOST * TOGETHER] __attribute__((aligned(64)));                                                    \
        T y[TOGETHER_MOST * TOGETHER] __attribute__((aligned(64)));                                                    \
        T z[(TOGETHER_MOST + 16) * TOGETHER] __attribute__((aligned(64)));                                             \
        const T begin = BEGIN(T, t->k);                                                                                \
        into_lanes_##s(t->m, t->k, x, a, t->a_batch, t->a_row, t->a_column);                                           \
        into_lanes_##s(t->k, t->n, y, b, t->b_batch, t->b_row, t->b_column);                                           \
        for (int64_t i = 0; i < t->m; i++)                                                                             \
            for (int64_t j = 0; j < t->n; j++)                                                                         \
                line_by_column_##s(t->k, t->n, z + (i * t->n + j) * TOGETHER, x + i * t->k * TOGETHER,                 \
                                   y + j * TOGETHER, begin);                                                           \
        if (t->c_row == t->n)                                                                                          \
            lanes_into_dense_##s(t->m * t->n, c, t->c_batch, z);                                                       \
        else                                                                                                           \
            for (int64_t i = 0; i < t->m; i++)                                                                         \
                lanes_into_dense_##s(t->n, c + i * t->c_row, t->c_batch, z + i * t->n * TOGETHER);                     \
    }
OLY_PRODUCTS_TOGETHER(f32, float, FUSED_F32)
OLY_PRODUCTS_TOGETHER(f64, double, FUSED_F64)
#endif
