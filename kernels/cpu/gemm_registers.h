/* SPDX-License-Identifier: BSD-3-Clause */
/* The loops of products in registers: up to 8 rows of the result and 3 vectors of 512 bits of its columns. The order of every sum is that
 * of strip.h: one element after the other, each rounded once. OLY_TILES makes them for an element type. For gemm_tile.h and
 * gemm_bytes.c; empty where the instruction set has no such vectors. */
#ifndef OLY_CPU_GEMM_REGISTERS_H
#define OLY_CPU_GEMM_REGISTERS_H
#include <stdbool.h>
#include <stdint.h>

/* One matrix of a batch, strides in elements. */
typedef struct product {
    int64_t m, n, k, a_row, a_column, b_row, b_column, c_row;
} product;

#if defined(__AVX512F__) && defined(__AVX512BW__)
#define OLY_HAS_TILES 1
#include <immintrin.h>

#define TILE_ROWS    8
#define TILE_VECTORS 3
#define TILE_DEPTH   64
#define TILE_STRIP   240 /* most columns of a packed piece of b: whole blocks of float32 */

/* The part of a product that is computed from packed pieces. Strides in elements. */
typedef struct tiles {
    int64_t rows, columns, depth, a_row, a_column, b_row, c_row;
    bool first; /* c is not read: sums begin with this */
    double begin;
    bool
        apart; /* unless first: what is summed is added to c at the end, so that long sums are as accurate as short ones */
} tiles;

/* T: an element, V: a vector of `lanes` of them, M: its mask. MADD(sum, x, y): sum + x * y. */
#define OLY_TILES(s, T, V, M, lanes, SET, LOAD, STORE, MADD)                                                           \
    static inline __attribute__((always_inline)) void tile_##s(const int rows, const int vectors, const tiles *p,      \
                                                               const T *a, const T *b, T *c, M last)                   \
    {                                                                                                                  \
        V sum[TILE_ROWS][TILE_VECTORS], x[TILE_VECTORS];                                                               \
        const V begin = SET((T)p->begin);                                                                              \
        if (p->first || p->apart) {                                                                                    \
            _Pragma("GCC unroll 8") for (int r = 0; r < rows; r++)                                                     \
                _Pragma("GCC unroll 3") for (int v = 0; v < vectors; v++) sum[r][v] = begin;                           \
        } else {                                                                                                       \
            _Pragma("GCC unroll 8") for (int r = 0; r < rows; r++)                                                     \
                _Pragma("GCC unroll 3") for (int v = 0; v < vectors; v++) sum[r][v] =                                  \
                    LOAD(v == vectors - 1 ? last : (M)-1, c + r * p->c_row + v * (lanes));                             \
        }                                                                                                              \
        const int64_t depth = p->depth, a_row = p->a_row, a_column = p->a_column, b_row = p->b_row;                    \
        for (int64_t l = 0; l < depth; l++) {                                                                          \
            _Pragma("GCC unroll 3") for (int v = 0; v < vectors; v++) x[v] =                                           \
                LOAD(v == vectors - 1 ? last : (M)-1, b + v * (lanes));                                                \
            _Pragma("GCC unroll 8") for (int r = 0; r < rows; r++)                                                     \
            {                                                                                                          \
                const V y = SET(a[r * a_row]);                                                                         \
                _Pragma("GCC unroll 3") for (int v = 0; v < vectors; v++) sum[r][v] = MADD(sum[r][v], y, x[v]);        \
            }                                                                                                          \
            a += a_column;                                                                                             \
            b += b_row;                                                                                                \
        }                                                                                                              \
        if (p->apart && !p->first)                                                                                     \
            _Pragma("GCC unroll 8") for (int r = 0; r < rows; r++)                                                     \
                _Pragma("GCC unroll 3") for (int v = 0; v < vectors; v++)                                              \
            {                                                                                                          \
                V before = LOAD(v == vectors - 1 ? last : (M)-1, c + r * p->c_row + v * (lanes));                      \
                sum[r][v] = MADD(before, SET((T)1), sum[r][v]);                                                        \
            }                                                                                                          \
        _Pragma("GCC unroll 8") for (int r = 0; r < rows; r++)                                                         \
            _Pragma("GCC unroll 3") for (int v = 0; v < vectors; v++)                                                  \
                STORE(c + r * p->c_row + v * (lanes), v == vectors - 1 ? last : (M)-1, sum[r][v]);                     \
    }                                                                                                                  \
    static inline __attribute__((always_inline)) void tile_rows_##s(const int vectors, const tiles *p, const T *a,     \
                                                                    const T *b, T *c, M last)                          \
    {                                                                                                                  \
        int64_t i = 0;                                                                                                 \
        for (; i + 8 <= p->rows; i += 8)                                                                               \
            tile_##s(8, vectors, p, a + i * p->a_row, b, c + i * p->c_row, last);                                      \
        if (p->rows & 4) {                                                                                             \
            tile_##s(4, vectors, p, a + i * p->a_row, b, c + i * p->c_row, last);                                      \
            i += 4;                                                                                                    \
        }                                                                                                              \
        if (p->rows & 2) {                                                                                             \
            tile_##s(2, vectors, p, a + i * p->a_row, b, c + i * p->c_row, last);                                      \
            i += 2;                                                                                                    \
        }                                                                                                              \
        if (p->rows & 1)                                                                                               \
            tile_##s(1, vectors, p, a + i * p->a_row, b, c + i * p->c_row, last);                                      \
    }                                                                                                                  \
    static __attribute__((noinline)) void tile_three_##s(const tiles *p, const T *a, const T *b, T *c, M last)         \
    {                                                                                                                  \
        tile_rows_##s(3, p, a, b, c, last);                                                                            \
    }                                                                                                                  \
    static __attribute__((noinline)) void tile_two_##s(const tiles *p, const T *a, const T *b, T *c, M last)           \
    {                                                                                                                  \
        tile_rows_##s(2, p, a, b, c, last);                                                                            \
    }                                                                                                                  \
    static __attribute__((noinline)) void tile_one_##s(const tiles *p, const T *a, const T *b, T *c, M last)           \
    {                                                                                                                  \
        tile_rows_##s(1, p, a, b, c, last);                                                                            \
    }                                                                                                                  \
    /* c += a b, b's rows dense */                                                                                     \
    static void tiles_##s(const tiles *p, const T *a, const T *b, T *c)                                                \
    {                                                                                                                  \
        for (int64_t j = 0; j < p->columns; j += TILE_VECTORS * (lanes)) {                                             \
            int64_t width = p->columns - j;                                                                            \
            if (width > TILE_VECTORS * (lanes))                                                                        \
                width = TILE_VECTORS * (lanes);                                                                        \
            int over = (int)((width + (lanes)-1) / (lanes) * (lanes)-width);                                           \
            M last = (M)((M)-1 >> over);                                                                               \
            (width > 2 * (lanes)   ? tile_three_##s                                                                    \
             : width > 1 * (lanes) ? tile_two_##s                                                                      \
                                   : tile_one_##s)(p, a, b + j, c + j, last);                                          \
        }                                                                                                              \
    }
#define TILE_SET_32(x) _mm512_set1_epi32((int)(x))
#endif
#endif
