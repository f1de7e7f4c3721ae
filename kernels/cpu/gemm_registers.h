/* SPDX-License-Identifier: BSD-3-Clause */
/* The loops of products in registers: up to 8 rows of the result and 3 vectors of 512 bits of its columns, with AVX2 6 rows and 2 vectors of
 * 256 bits. The order of every sum is that of strip.h: one element after the other, each rounded once. OLY_TILES makes them for an element
 * type. For gemm_tile.h and gemm_bytes.c; empty where the instruction set has no such vectors. */
#ifndef OLY_CPU_GEMM_REGISTERS_H
#define OLY_CPU_GEMM_REGISTERS_H
#include <stdbool.h>
#include <stdint.h>

/* One matrix of a batch, strides in elements. */
typedef struct product {
    int64_t m, n, k, a_row, a_column, b_row, b_column, c_row;
} product;

#if defined(__AVX512F__) && defined(__AVX512BW__)
#define OLY_HAS_TILES      1
#define OLY_HAS_LONG_TILES 1 /* of 512 bits */
#define TILE_ROWS          8
#define TILE_VECTORS       3
#elif defined(__AVX2__) && defined(__FMA__)
#define OLY_HAS_TILES 1
#define TILE_ROWS     6
#define TILE_VECTORS  2
#endif

#ifdef OLY_HAS_TILES
#include <immintrin.h>

/* Masks: bit k for lane k. */
#define TILE_ALL(lanes)      ((1u << (lanes)) - 1)
#define TILE_FIRST(lanes, n) ((n) >= (lanes) ? TILE_ALL(lanes) : (1u << (n)) - 1)
#define TILE_DEPTH           64
#define TILE_STRIP           240 /* most columns of a packed piece of b: whole blocks of float32 */

/* The part of a product that is computed from packed pieces. Strides in elements. */
typedef struct tiles {
    int64_t rows, columns, depth, a_row, a_column, b_row, c_row;
    bool first; /* c is not read: sums begin with this */
    double begin;
    bool
        apart; /* unless first: what is summed is added to c at the end, so that long sums are as accurate as short ones */
} tiles;

/* Of so many rows of the result, those that are computed together next: two tiles of four take less time than one of six and one of two. */
static inline int64_t rows_together(int64_t left)
{
    return left >= TILE_ROWS && (TILE_ROWS == 8 || left != 8) ? TILE_ROWS : left >= 4 ? 4 : left >= 2 ? 2 : 1;
}

/* T: an element, V: a vector of `lanes` of them, M: its mask. MADD(sum, x, y): sum + x * y. */
#define OLY_TILES(s, T, V, M, lanes, SET, LOAD, STORE, MADD)                                                           \
    static inline __attribute__((always_inline)) void tile_##s(const int rows, const int vectors, const tiles *p,      \
                                                               const T *a, const T *b, T *c, M last)                   \
    {                                                                                                                  \
        V sum[TILE_ROWS][3], x[3];                                                                                     \
        const V begin = SET((T)p->begin);                                                                              \
        if (p->first || p->apart) {                                                                                    \
            _Pragma("GCC unroll 8") for (int r = 0; r < rows; r++)                                                     \
                _Pragma("GCC unroll 3") for (int v = 0; v < vectors; v++) sum[r][v] = begin;                           \
        } else {                                                                                                       \
            _Pragma("GCC unroll 8") for (int r = 0; r < rows; r++)                                                     \
                _Pragma("GCC unroll 3") for (int v = 0; v < vectors; v++) sum[r][v] =                                  \
                    LOAD(v == vectors - 1 ? last : (M)TILE_ALL(lanes), c + r * p->c_row + v * (lanes));                \
        }                                                                                                              \
        const int64_t depth = p->depth, a_row = p->a_row, a_column = p->a_column, b_row = p->b_row;                    \
        for (int64_t l = 0; l < depth; l++) {                                                                          \
            _Pragma("GCC unroll 3") for (int v = 0; v < vectors; v++) x[v] =                                           \
                LOAD(v == vectors - 1 ? last : (M)TILE_ALL(lanes), b + v * (lanes));                                   \
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
                V before = LOAD(v == vectors - 1 ? last : (M)TILE_ALL(lanes), c + r * p->c_row + v * (lanes));         \
                sum[r][v] = MADD(before, SET((T)1), sum[r][v]);                                                        \
            }                                                                                                          \
        _Pragma("GCC unroll 8") for (int r = 0; r < rows; r++)                                                         \
            _Pragma("GCC unroll 3") for (int v = 0; v < vectors; v++)                                                  \
                STORE(c + r * p->c_row + v * (lanes), v == vectors - 1 ? last : (M)TILE_ALL(lanes), sum[r][v]);        \
    }                                                                                                                  \
    static inline __attribute__((always_inline)) void tile_rows_##s(const int vectors, const tiles *p, const T *a,     \
                                                                    const T *b, T *c, M last)                          \
    {                                                                                                                  \
        int64_t i = 0;                                                                                                 \
        for (int64_t n; i < p->rows; i += n) {                                                                         \
            n = rows_together(p->rows - i);                                                                            \
            if (n == TILE_ROWS)                                                                                        \
                tile_##s(TILE_ROWS, vectors, p, a + i * p->a_row, b, c + i * p->c_row, last);                          \
            else if (n == 4)                                                                                           \
                tile_##s(4, vectors, p, a + i * p->a_row, b, c + i * p->c_row, last);                                  \
            else if (n == 2)                                                                                           \
                tile_##s(2, vectors, p, a + i * p->a_row, b, c + i * p->c_row, last);                                  \
            else                                                                                                       \
                tile_##s(1, vectors, p, a + i * p->a_row, b, c + i * p->c_row, last);                                  \
        }                                                                                                              \
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
            M last = (M)(TILE_ALL(lanes) >> over);                                                                     \
            (width > 2 * (lanes)   ? tile_three_##s                                                                    \
             : width > 1 * (lanes) ? tile_two_##s                                                                      \
                                   : tile_one_##s)(p, a, b + j, c + j, last);                                          \
        }                                                                                                              \
    }

#ifdef OLY_HAS_LONG_TILES
#define TILE_SET_32(x) _mm512_set1_epi32((int)(x))
#else
/* Some lanes of a vector of 256 bits. `m` is usually the same for many: then so is the vector made of it. */
static inline __attribute__((always_inline)) __m256i tile_mask_4(unsigned m)
{
    const __m256i bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    return _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32((int)m), bits), bits);
}
static inline __attribute__((always_inline)) __m256i tile_mask_8(unsigned m)
{
    const __m256i bits = _mm256_setr_epi64x(1, 2, 4, 8);
    return _mm256_cmpeq_epi64(_mm256_and_si256(_mm256_set1_epi64x((int64_t)m), bits), bits);
}
#define TILE_WHOLE(m, lanes) (__builtin_constant_p(m) && (m) == TILE_ALL(lanes))
static inline __attribute__((always_inline)) __m256 tile_load_f32(unsigned m, const float *from)
{
    return TILE_WHOLE(m, 8) ? _mm256_loadu_ps(from) : _mm256_maskload_ps(from, tile_mask_4(m));
}
static inline __attribute__((always_inline)) void tile_store_f32(float *to, unsigned m, __m256 x)
{
    if (m == TILE_ALL(8))
        _mm256_storeu_ps(to, x);
    else
        _mm256_maskstore_ps(to, tile_mask_4(m), x);
}
static inline __attribute__((always_inline)) __m256d tile_load_f64(unsigned m, const double *from)
{
    return TILE_WHOLE(m, 4) ? _mm256_loadu_pd(from) : _mm256_maskload_pd(from, tile_mask_8(m));
}
static inline __attribute__((always_inline)) void tile_store_f64(double *to, unsigned m, __m256d x)
{
    if (m == TILE_ALL(4))
        _mm256_storeu_pd(to, x);
    else
        _mm256_maskstore_pd(to, tile_mask_8(m), x);
}
static inline __attribute__((always_inline)) __m256i tile_load_32(unsigned m, const uint32_t *from)
{
    return TILE_WHOLE(m, 8) ? _mm256_loadu_si256((const __m256i *)(const void *)from)
                            : _mm256_maskload_epi32((const int *)from, tile_mask_4(m));
}
static inline __attribute__((always_inline)) void tile_store_32(uint32_t *to, unsigned m, __m256i x)
{
    if (m == TILE_ALL(8))
        _mm256_storeu_si256((__m256i *)(void *)to, x);
    else
        _mm256_maskstore_epi32((int *)to, tile_mask_4(m), x);
}
#define TILE_SET_32(x)       _mm256_set1_epi32((int)(x))
#endif
#endif
#endif
