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

/* dense_into_lanes_<s>: elements that follow each other in each matrix: to[e * TOGETHER + product] = from[product * matrix + e].
 * lanes_into_dense_<s>: the reverse; may read the 15 elements of each lane behind those.
 * `block` transposes side x side elements in registers, as `bits`. */
#ifdef OLY_HAS_TRANSPOSE
#define OLY_LANES(s, T, side, block, bits)                                                                             \
    static void dense_into_lanes_##s(int64_t n, T *to, const T *from, int64_t matrix)                                  \
    {                                                                                                                  \
        for (int64_t e = 0; e < n; e += (side))                                                                        \
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
    static void products_together_##s(const oly_gemm_task *t, const T *a, const T *b, T *c)                            \
    {                                                                                                                  \
        T x[TOGETHER_MOST * TOGETHER] __attribute__((aligned(64)));                                                    \
        T y[TOGETHER_MOST * TOGETHER] __attribute__((aligned(64)));                                                    \
        T z[(TOGETHER_MOST + 16) * TOGETHER] __attribute__((aligned(64)));                                             \
        const T begin = BEGIN(T, t->k);                                                                                \
        into_lanes_##s(t->m, t->k, x, a, t->a_batch, t->a_row, t->a_column);                                           \
        into_lanes_##s(t->k, t->n, y, b, t->b_batch, t->b_row, t->b_column);                                           \
        for (int64_t i = 0; i < t->m; i++)                                                                             \
            for (int64_t j = 0; j < t->n; j++) {                                                                       \
                const T *of_a = x + i * t->k * TOGETHER, *of_b = y + j * TOGETHER;                                     \
                T sum[TOGETHER];                                                                                       \
                for (int q = 0; q < TOGETHER; q++)                                                                     \
                    sum[q] = begin;                                                                                    \
                for (int64_t l = 0; l < t->k; l++, of_a += TOGETHER, of_b += t->n * TOGETHER)                          \
                    for (int q = 0; q < TOGETHER; q++)                                                                 \
                        sum[q] = MADD(sum[q], of_a[q], of_b[q]);                                                       \
                memcpy(z + (i * t->n + j) * TOGETHER, sum, sizeof sum);                                                \
            }                                                                                                          \
        if (t->c_row == t->n)                                                                                          \
            lanes_into_dense_##s(t->m * t->n, c, t->c_batch, z);                                                       \
        else                                                                                                           \
            for (int64_t i = 0; i < t->m; i++)                                                                         \
                lanes_into_dense_##s(t->n, c + i * t->c_row, t->c_batch, z + i * t->n * TOGETHER);                     \
    }
OLY_PRODUCTS_TOGETHER(f32, float, FUSED_F32)
OLY_PRODUCTS_TOGETHER(f64, double, FUSED_F64)
#endif
