/* SPDX-License-Identifier: BSD-3-Clause */
/* Large products of a matrix with few vectors, with AVX-512 or AVX2: they read the matrix once, as fast as memory allows. Dot products are
 * summed in lanes along the dense rows of the matrix, FEW_DEPTH elements at a time; lanes are added in a tree. Products with one vector, too, of
 * any size. For gemm.c alone. */
#ifndef OLY_CPU_GEMM_FEW_H
#define OLY_CPU_GEMM_FEW_H
#include "cpu/gemm_blocks.h"
#include "cpu/gemm_real_tiles.h"

#ifdef OLY_HAS_TILES
#define FEW_VECTORS  8
#define FEW_DEPTH(T) (FEW_BYTES / (int64_t)sizeof(T))

#define FEW_SUMS      16
#define FEW_ROWS_MOST 8
#define FEW_LEAST(T)  (512 / (int64_t)sizeof(T)) /* elements of a row: shorter ones are summed as on every processor */
#ifdef OLY_HAS_LONG_TILES
#define FEW_BYTES    4096 /* of a vector: a part of all stays in the first cache, but adding lanes takes time */
#define FEW_LANES    16   /* of float32 */
#define FEW_TOGETHER 8    /* vectors that two rows are multiplied with in registers */
#define ONE_TOGETHER 16   /* rows that one vector is multiplied with */
#define ONE_FEW      4    /* the same where there are few rows */
#else
#define FEW_BYTES    2048
#define FEW_LANES    8
#define FEW_TOGETHER 4
#define ONE_TOGETHER 8
#define ONE_FEW      4
#endif

/* The lanes of each of 16 sums, added in a tree. */
#define ADD_LANES(s, T, lanes)                                                                                         \
    static inline __attribute__((always_inline)) void add_lanes_##s(const T *lane, T *sums)                            \
    {                                                                                                                  \
        T turned[lanes][FEW_SUMS] __attribute__((aligned(64)));                                                        \
        turn_##s(FEW_SUMS, lanes, turned[0], FEW_SUMS, lane, lanes);                                                   \
        for (int half = (lanes) / 2; half > 0; half /= 2)                                                              \
            for (int j = 0; j < half; j++)                                                                             \
                for (int v = 0; v < FEW_SUMS; v++)                                                                     \
                    turned[j][v] = turned[2 * j][v] + turned[2 * j + 1][v];                                            \
        memcpy(sums, turned[0], sizeof turned[0]);                                                                     \
    }
ADD_LANES(f32, float, FEW_LANES)
ADD_LANES(f64, double, FEW_LANES / 2)

/* Some rows, `columns` elements of each, times some vectors: 16 sums, those of a row side by side. */
#define FEW(s, T, V, M, lanes, LOAD, FUSED, ZERO)                                                                        \
    static inline __attribute__((always_inline)) void few_columns_##s(const int rows, const int together,                \
                                                                      const M some, const T *const *at, int64_t l,       \
                                                                      const T *vectors, V sum[][FEW_TOGETHER])           \
    {                                                                                                                    \
        V of[FEW_ROWS_MOST];                                                                                             \
        _Pragma("GCC unroll 8") for (int r = 0; r < rows; r++) of[r] = LOAD(some, at[r] + l);                            \
        _Pragma("GCC unroll 8") for (int v = 0; v < together; v++)                                                       \
        {                                                                                                                \
            V with = LOAD((M)TILE_ALL(lanes), vectors + v * FEW_DEPTH(T) + l);                                           \
            __asm__("" : "+v"(with)); /* in a register: compilers would read it for each */                              \
            _Pragma("GCC unroll 8") for (int r = 0; r < rows; r++) sum[r][v] = FUSED(of[r], with, sum[r][v]);            \
        }                                                                                                                \
    }                                                                                                                    \
    static inline __attribute__((always_inline)) void some_rows_##s(                                                     \
        const int rows, int64_t columns, int n, int64_t row, const T *const *at, const T *vectors, T *sums)              \
    {                                                                                                                    \
        enum { MOST = FEW_TOGETHER };                                                                                    \
        const int of_row = FEW_SUMS / rows, together = 2 * MOST / rows < of_row ? 2 * MOST / rows : of_row;              \
        T lane[FEW_SUMS][lanes] __attribute__((aligned(64)));                                                            \
        memset(lane, 0, sizeof lane);                                                                                    \
        for (int from = 0; from < n; from += together) {                                                                 \
            V sum[FEW_ROWS_MOST][FEW_TOGETHER];                                                                          \
            int64_t l = 0;                                                                                               \
            _Pragma("GCC unroll 8") for (int r = 0; r < rows; r++)                                                       \
                _Pragma("GCC unroll 8") for (int v = 0; v < together; v++) sum[r][v] = ZERO();                           \
            for (; l + (lanes) <= columns; l += (lanes)) {                                                               \
                if (from == 0) /* the next rows: parts of rows are too short for the processor to find out */            \
                    _Pragma("GCC unroll 8") for (int r = 0; r < rows; r++) __builtin_prefetch(at[r] + rows * row + l);   \
                few_columns_##s(rows, together, (M)TILE_ALL(lanes), at, l, vectors + from * FEW_DEPTH(T), sum);          \
            }                                                                                                            \
            if (l < columns)                                                                                             \
                few_columns_##s(rows, together, (M)TILE_FIRST(lanes, columns - l), at, l,                                \
                                vectors + from * FEW_DEPTH(T), sum);                                                     \
            _Pragma("GCC unroll 8") for (int r = 0; r < rows; r++)                                                       \
                _Pragma("GCC unroll 8") for (int v = 0; v < together; v++)                                               \
                    memcpy(lane[r * of_row + from + v], &sum[r][v], sizeof(V));                                          \
        }                                                                                                                \
        add_lanes_##s(lane[0], sums);                                                                                    \
    }                                                                                                                    \
    /* out[i * out_row + v * out_column] = row i of the matrix times vector v; element l of which is [v * vector +     \
     * l * element]. */ \
    static void few_##s(int64_t rows, int n, int64_t k, const T *matrix, int64_t row, const T *vectors,                  \
                        int64_t vector, int64_t element, T *out, int64_t out_row, int64_t out_column)                    \
    {                                                                                                                    \
        T part[FEW_VECTORS * FEW_DEPTH(T)] __attribute__((aligned(64)));                                                 \
        T sums[FEW_SUMS];                                                                                                \
        memset(part, 0, sizeof part);                                                                                    \
        for (int64_t l = 0; l < k; l += FEW_DEPTH(T)) {                                                                  \
            const int64_t depth = k - l < FEW_DEPTH(T) ? k - l : FEW_DEPTH(T);                                           \
            const int64_t padded = (depth + (lanes)-1) / (lanes) * (lanes);                                              \
            for (int v = 0; v < n; v++) {                                                                                \
                for (int64_t q = 0; q < depth; q++)                                                                      \
                    part[v * FEW_DEPTH(T) + q] = vectors[v * vector + (l + q) * element];                                \
                memset(part + v * FEW_DEPTH(T) + depth, 0, (size_t)(padded - depth) * sizeof(T));                        \
            }                                                                                                            \
            const int group = n <= 2 ? 8 : n <= 4 ? 4 : 2, of_row = FEW_SUMS / group;                                    \
            for (int64_t i = 0; i < rows; i += group) {                                                                  \
                const int64_t left = rows - i, ahead = left >= 2 * group ? row : 0;                                      \
                const T *at[FEW_ROWS_MOST];                                                                              \
                for (int r = 0; r < group; r++)                                                                          \
                    at[r] = matrix + (i + (r < left ? r : left - 1)) * row + l;                                          \
                if (group == 8)                                                                                          \
                    some_rows_##s(8, depth, n, ahead, at, part, sums);                                                   \
                else if (group == 4)                                                                                     \
                    some_rows_##s(4, depth, n, ahead, at, part, sums);                                                   \
                else                                                                                                     \
                    some_rows_##s(2, depth, n, ahead, at, part, sums);                                                   \
                for (int r = 0; r < group && r < left; r++)                                                              \
                    for (int v = 0; v < n; v++) {                                                                        \
                        T *to = out + (i + r) * out_row + v * out_column;                                                \
                        *to = l == 0 ? sums[r * of_row + v] : *to + sums[r * of_row + v];                                \
                    }                                                                                                    \
            }                                                                                                            \
        }                                                                                                                \
    }                                                                                                                    \
    /* False: it is not such a product. */                                                                               \
    static bool try_few_##s(const product *p, const T *a, const T *b, T *c)                                              \
    {                                                                                                                    \
        if (p->k < FEW_LEAST(T))                                                                                         \
            return false;                                                                                                \
        if (p->n <= FEW_VECTORS && p->a_column == 1)                                                                     \
            few_##s(p->m, (int)p->n, p->k, a, p->a_row, b, p->b_column, p->b_row, c, p->c_row, 1);                       \
        else if (p->m <= FEW_VECTORS && p->b_row == 1)                                                                   \
            few_##s(p->n, (int)p->m, p->k, b, p->b_column, a, p->a_row, p->a_column, c, 1, p->c_row);                    \
        else                                                                                                             \
            return false;                                                                                                \
        return true;                                                                                                     \
    }
#ifdef OLY_HAS_LONG_TILES
FEW(f32, float, __m512, __mmask16, 16, _mm512_maskz_loadu_ps, _mm512_fmadd_ps, _mm512_setzero_ps)
FEW(f64, double, __m512d, __mmask8, 8, _mm512_maskz_loadu_pd, _mm512_fmadd_pd, _mm512_setzero_pd)
#else
FEW(f32, float, __m256, uint8_t, 8, tile_load_f32, _mm256_fmadd_ps, _mm256_setzero_ps)
FEW(f64, double, __m256d, uint8_t, 4, tile_load_f64, _mm256_fmadd_pd, _mm256_setzero_pd)
#endif

/* Dot products of one vector with dense rows, sixteen rows side by side, in lanes that are added in a tree. */
#define ONE_MOST 8192 /* elements of a vector that is not dense: it is copied */
#define ONE(s, T, V, M, lanes, LOAD, FUSED, ZERO)                                                                      \
    /* lane[r] of `together` rows, of which there may be fewer: the last one is repeated. */                           \
    static inline __attribute__((always_inline)) void rows_in_lanes_##s(                                               \
        const int together, int64_t k, int rows, const T *x, const T *y, int64_t row, T lane[][lanes])                 \
    {                                                                                                                  \
        enum { AHEAD = 256 / sizeof(T) }; /* sixteen streams are more than processors follow */                        \
        const T *at[ONE_TOGETHER];                                                                                     \
        V sum[ONE_TOGETHER];                                                                                           \
        _Pragma("GCC unroll 16") for (int r = 0; r < together; r++)                                                    \
        {                                                                                                              \
            at[r] = y + (r < rows ? r : rows - 1) * row;                                                               \
            sum[r] = ZERO();                                                                                           \
        }                                                                                                              \
        for (int64_t l = 0; l < k; l += (lanes)) {                                                                     \
            const M some = (M)TILE_FIRST(lanes, k - l);                                                                \
            const V with = LOAD(some, x + l);                                                                          \
            _Pragma("GCC unroll 16") for (int r = 0; r < together; r++)                                                \
            {                                                                                                          \
                sum[r] = FUSED(LOAD(some, at[r] + l), with, sum[r]);                                                   \
                if (together > ONE_FEW)                                                                                \
                    __builtin_prefetch(at[r] + l + AHEAD);                                                             \
            }                                                                                                          \
        }                                                                                                              \
        memcpy(lane, sum, sizeof(V) * (size_t)together);                                                               \
    }                                                                                                                  \
    static void sixteen_rows_##s(int64_t k, int rows, const T *x, const T *y, int64_t row, T *out, int64_t step)       \
    {                                                                                                                  \
        T lane[FEW_SUMS][lanes] __attribute__((aligned(64))) = {{0}}, sums[FEW_SUMS];                                  \
        for (int from = 0; from < FEW_SUMS && from < rows; from += ONE_TOGETHER)                                       \
            rows_in_lanes_##s(ONE_TOGETHER, k, rows - from, x, y + from * row, row, lane + from);                      \
        add_lanes_##s(lane[0], sums);                                                                                  \
        for (int r = 0; r < rows; r++)                                                                                 \
            out[r * step] = sums[r];                                                                                   \
    }                                                                                                                  \
    /* What is left over, or all there is: no more than is asked for, with the same bits. */                           \
    static void few_rows_##s(int64_t k, int rows, const T *x, const T *y, int64_t row, T *out, int64_t step)           \
    {                                                                                                                  \
        T lane[FEW_SUMS][lanes] __attribute__((aligned(64)));                                                          \
        int done = 0;                                                                                                  \
        for (; rows - done >= ONE_FEW; done += ONE_FEW)                                                                \
            rows_in_lanes_##s(ONE_FEW, k, ONE_FEW, x, y + done * row, row, lane + done);                               \
        for (; done < rows; done++)                                                                                    \
            rows_in_lanes_##s(1, k, 1, x, y + done * row, row, lane + done);                                           \
        for (int r = 0; r < rows; r++) {                                                                               \
            for (int half = (lanes) / 2; half > 0; half /= 2)                                                          \
                for (int j = 0; j < half; j++)                                                                         \
                    lane[r][j] = lane[r][2 * j] + lane[r][2 * j + 1];                                                  \
            out[r * step] = lane[r][0];                                                                                \
        }                                                                                                              \
    }                                                                                                                  \
    /* False: there are too few elements, or too many that are not dense. */                                           \
    static bool try_one_##s(int64_t count, int64_t k, const T *x, int64_t x_stride, const T *y, int64_t row, T *out,   \
                            int64_t step)                                                                              \
    {                                                                                                                  \
        T dense[ONE_MOST];                                                                                             \
        if (k < FEW_LEAST(T) || (x_stride != 1 && k > ONE_MOST))                                                       \
            return false;                                                                                              \
        for (int64_t l = 0; l < k && x_stride != 1; l++)                                                               \
            dense[l] = x[l * x_stride];                                                                                \
        for (int64_t i = 0; i < count; i += FEW_SUMS) {                                                                \
            const int rows = (int)(count - i < FEW_SUMS ? count - i : FEW_SUMS);                                       \
            (rows > 2 * ONE_FEW ? sixteen_rows_##s : few_rows_##s)(k, rows, x_stride == 1 ? x : dense, y + i * row,    \
                                                                   row, out + i * step, step);                         \
        }                                                                                                              \
        return true;                                                                                                   \
    }
#ifdef OLY_HAS_LONG_TILES
ONE(f32, float, __m512, __mmask16, 16, _mm512_maskz_loadu_ps, _mm512_fmadd_ps, _mm512_setzero_ps)
ONE(f64, double, __m512d, __mmask8, 8, _mm512_maskz_loadu_pd, _mm512_fmadd_pd, _mm512_setzero_pd)
#else
ONE(f32, float, __m256, uint8_t, 8, tile_load_f32, _mm256_fmadd_ps, _mm256_setzero_ps)
ONE(f64, double, __m256d, uint8_t, 4, tile_load_f64, _mm256_fmadd_pd, _mm256_setzero_pd)
#endif

/* One vector times a matrix with few columns, whose rows are dense: the sums stay in registers. Their order is that of strip.h. */
#define ROW_VECTORS 8
#define ROW_SUMS(s, T, V, M, lanes, SET, LOAD, STORE, MADD)                                                            \
    static inline __attribute__((always_inline)) void row_sums_##s(const int vectors, const product *p, const T *a,    \
                                                                   const T *b, T *c)                                   \
    {                                                                                                                  \
        const M last = (M)TILE_FIRST(lanes, p->n - (vectors - 1) * (lanes));                                           \
        const int64_t k = p->k, a_column = p->a_column, b_row = p->b_row;                                              \
        V sum[ROW_VECTORS];                                                                                            \
        _Pragma("GCC unroll 8") for (int v = 0; v < vectors; v++) sum[v] = SET(BEGIN(T, k));                           \
        for (int64_t l = 0; l < k; l++) {                                                                              \
            const V with = SET(a[l * a_column]);                                                                       \
            _Pragma("GCC unroll 8") for (int v = 0; v < vectors; v++) sum[v] =                                         \
                MADD(sum[v], LOAD(v == vectors - 1 ? last : (M)TILE_ALL(lanes), b + l * b_row + v * (lanes)), with);   \
        }                                                                                                              \
        _Pragma("GCC unroll 8") for (int v = 0; v < vectors; v++)                                                      \
            STORE(c + v * (lanes), v == vectors - 1 ? last : (M)TILE_ALL(lanes), sum[v]);                              \
    }                                                                                                                  \
    /* False: it is not such a product. */                                                                             \
    static bool try_row_##s(const product *p, const T *a, const T *b, T *c)                                            \
    {                                                                                                                  \
        if (p->m != 1 || p->b_column != 1 || p->n > ROW_VECTORS * (lanes))                                             \
            return false;                                                                                              \
        switch ((p->n + (lanes)-1) / (lanes)) {                                                                        \
        case 0: break;                                                                                                 \
        case 1: row_sums_##s(1, p, a, b, c); break;                                                                    \
        case 2: row_sums_##s(2, p, a, b, c); break;                                                                    \
        case 3: row_sums_##s(3, p, a, b, c); break;                                                                    \
        case 4: row_sums_##s(4, p, a, b, c); break;                                                                    \
        case 5: row_sums_##s(5, p, a, b, c); break;                                                                    \
        case 6: row_sums_##s(6, p, a, b, c); break;                                                                    \
        case 7: row_sums_##s(7, p, a, b, c); break;                                                                    \
        default: row_sums_##s(8, p, a, b, c);                                                                          \
        }                                                                                                              \
        return true;                                                                                                   \
    }
OLY_REAL_VECTORS(ROW_SUMS)
#endif
#endif
