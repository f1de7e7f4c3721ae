/* SPDX-License-Identifier: BSD-3-Clause */
/* Products by blocks that stay in registers: up to 8 rows of the result and 3 vectors of 512 bits of its columns. The order
 * of every sum is that of strip.h: one element after the other, each rounded once. Integers of 32 bits whose values fit 16
 * are multiplied in pairs. For gemm.c alone; empty where the instruction set has no such vectors. */
#ifndef OLY_CPU_GEMM_TILE_H
#define OLY_CPU_GEMM_TILE_H
#include <stdbool.h>
#include <stdint.h>

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
} tiles;

/* T: an element, V: a vector of `lanes` of them, M: its mask. MADD(sum, x, y): sum + x * y. */
#define OLY_TILES(s, T, V, M, lanes, SET, LOAD, STORE, MADD)                                                           \
    static inline __attribute__((always_inline)) void tile_##s(const int rows, const int vectors, const tiles *p,      \
                                                               const T *a, const T *b, T *c, M last)                   \
    {                                                                                                                  \
        V sum[TILE_ROWS][TILE_VECTORS], x[TILE_VECTORS];                                                               \
        const V begin = SET((T)p->begin);                                                                              \
        if (p->first) {                                                                                                \
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

#define TILE_FUSED_F32(sum, x, y) _mm512_fmadd_ps(x, y, sum)
#define TILE_FUSED_F64(sum, x, y) _mm512_fmadd_pd(x, y, sum)
#define TILE_WRAPPED(sum, x, y)   _mm512_add_epi32(sum, _mm512_mullo_epi32(x, y))
#define TILE_PAIRS(sum, x, y)     _mm512_add_epi32(sum, _mm512_madd_epi16(x, y))
#define TILE_SET_32(x)            _mm512_set1_epi32((int)(x))
OLY_TILES(f32, float, __m512, __mmask16, 16, _mm512_set1_ps, _mm512_maskz_loadu_ps, _mm512_mask_storeu_ps,
          TILE_FUSED_F32)
OLY_TILES(f64, double, __m512d, __mmask8, 8, _mm512_set1_pd, _mm512_maskz_loadu_pd, _mm512_mask_storeu_pd,
          TILE_FUSED_F64)
OLY_TILES(uint32_t, uint32_t, __m512i, __mmask16, 16, TILE_SET_32, _mm512_maskz_loadu_epi32, _mm512_mask_storeu_epi32,
          TILE_WRAPPED)
OLY_TILES(pairs, uint32_t, __m512i, __mmask16, 16, TILE_SET_32, _mm512_maskz_loadu_epi32, _mm512_mask_storeu_epi32,
          TILE_PAIRS)

/* The same with the instruction for it, where the processor has it. Not its intrinsic: compilers then spill the sums. */
#define TILE_DOT_PAIRS(sum, x, y)                                                                                      \
    ({                                                                                                                 \
        __asm__("vpdpwssd %2, %1, %0" : "+v"(sum) : "v"(x), "v"(y));                                                   \
        sum;                                                                                                           \
    })
OLY_TILES(dot_pairs, uint32_t, __m512i, __mmask16, 16, TILE_SET_32, _mm512_maskz_loadu_epi32, _mm512_mask_storeu_epi32,
          TILE_DOT_PAIRS)
static void tiles_of_pairs(const tiles *p, const uint32_t *a, const uint32_t *b, uint32_t *c)
{
    (__builtin_cpu_supports("avx512vnni") ? tiles_dot_pairs : tiles_pairs)(p, a, b, c);
}

/* A piece of a matrix, dense: to[y * width + x] = from[y * row + x * column]. */
#define OLY_PACK(s, T)                                                                                                 \
    static void pack_##s(int64_t depth, int64_t width, T *to, int64_t to_row, const T *from, int64_t row,              \
                         int64_t column)                                                                               \
    {                                                                                                                  \
        if (column == 1)                                                                                               \
            for (int64_t y = 0; y < depth; y++)                                                                        \
                for (int64_t x = 0; x < width; x++)                                                                    \
                    to[y * to_row + x] = from[y * row + x];                                                            \
        else                                                                                                           \
            for (int64_t x = 0; x < width; x++)                                                                        \
                for (int64_t y = 0; y < depth; y++)                                                                    \
                    to[y * to_row + x] = from[y * row + x * column];                                                   \
    }
OLY_PACK(f32, float)
OLY_PACK(f64, double)
OLY_PACK(uint32_t, uint32_t)

/* Elements 2y and 2y + 1 of each row side by side in 16 bits each, the one after the last as zero: to[x * to_row + y *
 * to_column]. False: a value does not fit. */
#define PAIR(high, even, odd) ((high) |= ((even) + 0x8000u) | ((odd) + 0x8000u), ((even)&0xffffu) | (odd) << 16)
static bool pack_pairs(int64_t depth, int64_t width, uint32_t *to, int64_t to_row, int64_t to_column,
                       const uint32_t *from, int64_t row, int64_t column)
{
    uint32_t high = 0;
    if (row == 1 && to_row == 1) { /* rows of b */
        for (int64_t y = 0; y + 2 <= depth; y += 2)
            for (int64_t x = 0; x < width; x++)
                to[y / 2 * to_column + x] = PAIR(high, from[y * column + x], from[(y + 1) * column + x]);
    } else if (column == 1 && to_column == 1) { /* rows of a */
        for (int64_t x = 0; x < width; x++)
            for (int64_t y = 0; y + 2 <= depth; y += 2)
                to[x * to_row + y / 2] = PAIR(high, from[x * row + y], from[x * row + y + 1]);
    } else {
        for (int64_t x = 0; x < width; x++)
            for (int64_t y = 0; y + 2 <= depth; y += 2)
                to[x * to_row + y / 2 * to_column] =
                    PAIR(high, from[x * row + y * column], from[x * row + (y + 1) * column]);
    }
    for (int64_t x = 0; x < width && depth % 2; x++)
        to[x * to_row + depth / 2 * to_column] = PAIR(high, from[x * row + (depth - 1) * column], 0u);
    return high < 0x10000u;
}
#endif
#endif
