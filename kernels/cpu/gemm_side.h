/* SPDX-License-Identifier: BSD-3-Clause */
/* Products of a matrix whose rows are dense with at most four vectors, with AVX-512 or AVX2: the rows are transposed a few at a time, and their sums
 * computed side by side. The order of every sum is that of strip.h: one element after the other, each rounded once. For gemm.c alone. */
#ifndef OLY_CPU_GEMM_SIDE_H
#define OLY_CPU_GEMM_SIDE_H
#include "cpu/gemm_few.h"

#ifdef OLY_HAS_TILES
#define SIDE_VECTORS  4
#define SIDE_ELEMENTS 16 /* of a row at a time */

#define SIDE(s, T, V, M, lanes, SET, LOAD, STORE, MADD)                                                                \
    /* Two vectors of rows times n vectors: sums[v][r]. */                                                             \
    static inline                                                                                                      \
        __attribute__((always_inline)) void side_rows_##s(const int n, int64_t k, const T *matrix, int64_t row,        \
                                                          const T *vectors, int64_t vector, int64_t element, T *sums)  \
    {                                                                                                                  \
        T turned[SIDE_ELEMENTS * 2 * (lanes)] __attribute__((aligned(64)));                                            \
        V low[SIDE_VECTORS], high[SIDE_VECTORS];                                                                       \
        _Pragma("GCC unroll 4") for (int v = 0; v < n; v++) low[v] = high[v] = SET(BEGIN(T, k));                       \
        for (int64_t l = 0; l < k; l += SIDE_ELEMENTS) {                                                               \
            const int some = k - l < SIDE_ELEMENTS ? (int)(k - l) : SIDE_ELEMENTS;                                     \
            turn_##s(2 * (lanes), some, turned, 2 * (lanes), matrix + l, row);                                         \
            for (int e = 0; e < some; e++) {                                                                           \
                const V x = LOAD((M)TILE_ALL(lanes), turned + e * 2 * (lanes));                                        \
                const V y = LOAD((M)TILE_ALL(lanes), turned + e * 2 * (lanes) + (lanes));                              \
                _Pragma("GCC unroll 4") for (int v = 0; v < n; v++)                                                    \
                {                                                                                                      \
                    const V with = SET(vectors[v * vector + (l + e) * element]);                                       \
                    low[v] = MADD(low[v], x, with);                                                                    \
                    high[v] = MADD(high[v], y, with);                                                                  \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
        _Pragma("GCC unroll 4") for (int v = 0; v < n; v++)                                                            \
        {                                                                                                              \
            STORE(sums + v * 2 * (lanes), (M)TILE_ALL(lanes), low[v]);                                                 \
            STORE(sums + v * 2 * (lanes) + (lanes), (M)TILE_ALL(lanes), high[v]);                                      \
        }                                                                                                              \
    }                                                                                                                  \
    /* out[i * out_row + v * out_column] = row i of the matrix times vector v, element l of which is [v * vector + \
     * l * element]; the last rows together with some before. */   \
    static void side_##s(int64_t rows, int n, int64_t k, const T *matrix, int64_t row, const T *vectors,               \
                         int64_t vector, int64_t element, T *out, int64_t out_row, int64_t out_column)                 \
    {                                                                                                                  \
        for (int64_t i = 0; i < rows; i += 2 * (lanes)) {                                                              \
            T sums[SIDE_VECTORS * 2 * (lanes)] __attribute__((aligned(64)));                                           \
            const int64_t first = i + 2 * (lanes) <= rows ? i : rows - 2 * (lanes);                                    \
            const T *from = matrix + first * row;                                                                      \
            T *to = out + first * out_row;                                                                             \
            switch (n) {                                                                                               \
            case 1: side_rows_##s(1, k, from, row, vectors, vector, element, sums); break;                             \
            case 2: side_rows_##s(2, k, from, row, vectors, vector, element, sums); break;                             \
            case 3: side_rows_##s(3, k, from, row, vectors, vector, element, sums); break;                             \
            default: side_rows_##s(4, k, from, row, vectors, vector, element, sums);                                   \
            }                                                                                                          \
            for (int r = 0; r < 2 * (lanes); r++)                                                                      \
                for (int v = 0; v < n; v++)                                                                            \
                    to[r * out_row + v * out_column] = sums[v * 2 * (lanes) + r];                                      \
        }                                                                                                              \
    }                                                                                                                  \
    /* False: it is not such a product, or one that gemm_few.h computes. */                                            \
    static bool try_side_##s(const product *p, const T *a, const T *b, T *c)                                           \
    {                                                                                                                  \
        if (p->k < 2 || p->k >= FEW_LEAST(T))                                                                          \
            return false;                                                                                              \
        if (p->n <= SIDE_VECTORS && p->a_column == 1 && p->m >= 2 * (lanes))                                           \
            side_##s(p->m, (int)p->n, p->k, a, p->a_row, b, p->b_column, p->b_row, c, p->c_row, 1);                    \
        else if (p->m <= SIDE_VECTORS && p->b_row == 1 && p->b_column != 1 && p->n >= 2 * (lanes))                     \
            side_##s(p->n, (int)p->m, p->k, b, p->b_column, a, p->a_row, p->a_column, c, 1, p->c_row);                 \
        else                                                                                                           \
            return false;                                                                                              \
        return true;                                                                                                   \
    }
OLY_REAL_VECTORS(SIDE)
#endif
#endif
