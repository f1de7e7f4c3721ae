/* SPDX-License-Identifier: BSD-3-Clause */
/* Transposes of matrices of 4-byte and 8-byte elements in registers, for copies and for kernels that compute several rows side by side.
 * Inside kernels/cpu. */
#ifndef OLY_CPU_TRANSPOSE_H
#define OLY_CPU_TRANSPOSE_H
#include <stdint.h>

#if defined(__AVX512F__)
#include <immintrin.h>
#define OLY_HAS_TRANSPOSE        1
#define OLY_HAS_VECTOR_TRANSPOSE 1 /* transpose_vectors */

/* Columns c of 16 rows, 16 of each, into x[c]. */
static inline __attribute__((always_inline)) void transpose_vectors(__m512 x[16])
{
    __m512 t[16], u[16];
#pragma GCC unroll 8
    for (int k = 0; k < 16; k += 2) {
        t[k] = _mm512_unpacklo_ps(x[k], x[k + 1]);
        t[k + 1] = _mm512_unpackhi_ps(x[k], x[k + 1]);
    }
#define PAIRS(half, a, b) _mm512_castpd_ps(_mm512_unpack##half##_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)))
#pragma GCC unroll 4
    for (int k = 0; k < 16; k += 4) { /* u[k + j], lane b: column 4 b + j of rows k to k + 3 */
        u[k] = PAIRS(lo, t[k], t[k + 2]);
        u[k + 1] = PAIRS(hi, t[k], t[k + 2]);
        u[k + 2] = PAIRS(lo, t[k + 1], t[k + 3]);
        u[k + 3] = PAIRS(hi, t[k + 1], t[k + 3]);
    }
#undef PAIRS
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
        const __m512 even = _mm512_shuffle_f32x4(u[j], u[4 + j], 0x88),
                     odd = _mm512_shuffle_f32x4(u[j], u[4 + j], 0xdd);
        const __m512 even2 = _mm512_shuffle_f32x4(u[8 + j], u[12 + j], 0x88),
                     odd2 = _mm512_shuffle_f32x4(u[8 + j], u[12 + j], 0xdd);
        x[j] = _mm512_shuffle_f32x4(even, even2, 0x88);
        x[4 + j] = _mm512_shuffle_f32x4(odd, odd2, 0x88);
        x[8 + j] = _mm512_shuffle_f32x4(even, even2, 0xdd);
        x[12 + j] = _mm512_shuffle_f32x4(odd, odd2, 0xdd);
    }
}

/* to[c * to_row + r] = from[r * from_row + c] for 16 rows and at most 16 columns. */
static inline void transpose_16(int columns, uint32_t *to, int64_t to_row, const uint32_t *from, int64_t from_row)
{
    __m512 x[16];
    const __mmask16 some = (__mmask16)(0xffff >> (16 - columns));
#pragma GCC unroll 16
    for (int r = 0; r < 16; r++)
        x[r] = _mm512_maskz_loadu_ps(some, from + r * from_row);
    transpose_vectors(x);
#pragma GCC unroll 16
    for (int c = 0; c < 16; c++)
        if (c < columns)
            _mm512_storeu_ps(to + c * to_row, x[c]);
}

/* Four vectors of which lane b of the k-th is row 4 b + k: the columns. Columns give back rows so. */
static inline __attribute__((always_inline)) void transpose_fours(__m512 x[4])
{
    const __m512 low = _mm512_unpacklo_ps(x[0], x[1]), high = _mm512_unpackhi_ps(x[0], x[1]);
    const __m512 low2 = _mm512_unpacklo_ps(x[2], x[3]), high2 = _mm512_unpackhi_ps(x[2], x[3]);
#define PAIRS(half, a, b) _mm512_castpd_ps(_mm512_unpack##half##_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)))
    x[0] = PAIRS(lo, low, low2);
    x[1] = PAIRS(hi, low, low2);
    x[2] = PAIRS(lo, high, high2);
    x[3] = PAIRS(hi, high, high2);
#undef PAIRS
}

/* transpose_16 for at most 4 columns, and back: 16 rows of at most 4 elements of `from`, each column of 16 elements. */
static inline void transpose_16_to_4(int columns, float *to, int64_t to_row, const float *from, int64_t from_row)
{
    __m512 x[4];
    const __mmask8 some = (__mmask8)(0xf >> (4 - columns));
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) {
        __m128 row[4];
#pragma GCC unroll 4
        for (int b = 0; b < 4; b++)
            row[b] = _mm_maskz_loadu_ps(some, from + (4 * b + k) * from_row);
        x[k] =
            _mm512_insertf32x8(_mm512_castps256_ps512(_mm256_insertf128_ps(_mm256_castps128_ps256(row[0]), row[1], 1)),
                               _mm256_insertf128_ps(_mm256_castps128_ps256(row[2]), row[3], 1), 1);
    }
    transpose_fours(x);
#pragma GCC unroll 4
    for (int c = 0; c < 4; c++)
        if (c < columns)
            _mm512_storeu_ps(to + c * to_row, x[c]);
}
static inline void transpose_4_to_16(int columns, float *to, int64_t to_row, const float *from, int64_t from_row)
{
    __m512 x[4];
    const __mmask8 some = (__mmask8)(0xf >> (4 - columns));
#pragma GCC unroll 4
    for (int c = 0; c < 4; c++)
        x[c] = _mm512_loadu_ps(from + (c < columns ? c : 0) * from_row);
    transpose_fours(x);
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) {
        _mm_mask_storeu_ps(to + k * to_row, some, _mm512_castps512_ps128(x[k]));
        _mm_mask_storeu_ps(to + (4 + k) * to_row, some, _mm512_extractf32x4_ps(x[k], 1));
        _mm_mask_storeu_ps(to + (8 + k) * to_row, some, _mm512_extractf32x4_ps(x[k], 2));
        _mm_mask_storeu_ps(to + (12 + k) * to_row, some, _mm512_extractf32x4_ps(x[k], 3));
    }
}

/* The same for 8 rows and at most 8 columns of 8-byte elements. */
static inline void transpose_8x8(int columns, uint64_t *to, int64_t to_row, const uint64_t *from, int64_t from_row)
{
    __m512d x[8], t[8];
    const __mmask8 some = (__mmask8)(0xff >> (8 - columns));
#pragma GCC unroll 8
    for (int r = 0; r < 8; r++)
        x[r] = _mm512_maskz_loadu_pd(some, from + r * from_row);
#pragma GCC unroll 4
    for (int k = 0; k < 8; k += 2) { /* t[k + q], lane b: column 2 b + q of rows k and k + 1 */
        t[k] = _mm512_unpacklo_pd(x[k], x[k + 1]);
        t[k + 1] = _mm512_unpackhi_pd(x[k], x[k + 1]);
    }
#pragma GCC unroll 2
    for (int q = 0; q < 2; q++) {
        const __m512d even = _mm512_shuffle_f64x2(t[q], t[2 + q], 0x88),
                      odd = _mm512_shuffle_f64x2(t[q], t[2 + q], 0xdd);
        const __m512d even2 = _mm512_shuffle_f64x2(t[4 + q], t[6 + q], 0x88),
                      odd2 = _mm512_shuffle_f64x2(t[4 + q], t[6 + q], 0xdd);
        x[q] = _mm512_shuffle_f64x2(even, even2, 0x88);
        x[2 + q] = _mm512_shuffle_f64x2(odd, odd2, 0x88);
        x[4 + q] = _mm512_shuffle_f64x2(even, even2, 0xdd);
        x[6 + q] = _mm512_shuffle_f64x2(odd, odd2, 0xdd);
    }
#pragma GCC unroll 8
    for (int c = 0; c < 8; c++)
        if (c < columns)
            _mm512_storeu_pd(to + c * to_row, x[c]);
}
#elif defined(__AVX2__)
#include <immintrin.h>
#define OLY_HAS_TRANSPOSE 1

/* The first `columns` of 8, for masked loads. */
static inline __m256i first_of_8(int columns)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(columns), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

/* to[c * to_row + r] = from[r * from_row + c] for 8 rows and at most 8 columns. */
static inline __attribute__((always_inline)) void transpose_8x8_w4(int columns, float *to, int64_t to_row,
                                                                   const float *from, int64_t from_row)
{
    __m256 x[8], t[8], u[8];
    if (columns == 8) {
#pragma GCC unroll 8
        for (int r = 0; r < 8; r++)
            x[r] = _mm256_loadu_ps(from + r * from_row);
    } else {
        const __m256i some = first_of_8(columns);
#pragma GCC unroll 8
        for (int r = 0; r < 8; r++)
            x[r] = _mm256_maskload_ps(from + r * from_row, some);
    }
#pragma GCC unroll 4
    for (int k = 0; k < 8; k += 2) {
        t[k] = _mm256_unpacklo_ps(x[k], x[k + 1]);
        t[k + 1] = _mm256_unpackhi_ps(x[k], x[k + 1]);
    }
#define PAIRS(half, a, b) _mm256_castpd_ps(_mm256_unpack##half##_pd(_mm256_castps_pd(a), _mm256_castps_pd(b)))
#pragma GCC unroll 2
    for (int k = 0; k < 8; k += 4) { /* u[k + j], lane b: column 4 b + j of rows k to k + 3 */
        u[k] = PAIRS(lo, t[k], t[k + 2]);
        u[k + 1] = PAIRS(hi, t[k], t[k + 2]);
        u[k + 2] = PAIRS(lo, t[k + 1], t[k + 3]);
        u[k + 3] = PAIRS(hi, t[k + 1], t[k + 3]);
    }
#undef PAIRS
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
        x[j] = _mm256_permute2f128_ps(u[j], u[4 + j], 0x20);
        x[4 + j] = _mm256_permute2f128_ps(u[j], u[4 + j], 0x31);
    }
#pragma GCC unroll 8
    for (int c = 0; c < 8; c++)
        if (c < columns)
            _mm256_storeu_ps(to + c * to_row, x[c]);
}

/* The same for 16 rows and at most 16 columns. */
static inline void transpose_16(int columns, uint32_t *to, int64_t to_row, const uint32_t *from, int64_t from_row)
{
    for (int c = 0; c < columns; c += 8)
        for (int r = 0; r < 16; r += 8)
            transpose_8x8_w4(columns - c < 8 ? columns - c : 8, (float *)to + c * to_row + r, to_row,
                             (const float *)from + r * from_row + c, from_row);
}

/* The same for 8 rows and at most 8 columns of 8-byte elements, by blocks of 4 x 4. */
static inline void transpose_8x8(int columns, uint64_t *to, int64_t to_row, const uint64_t *from, int64_t from_row)
{
    for (int c = 0; c < columns; c += 4) {
        const int n = columns - c < 4 ? columns - c : 4;
        const __m256i some = _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), _mm256_setr_epi64x(0, 1, 2, 3));
#pragma GCC unroll 2
        for (int r = 0; r < 8; r += 4) {
            const double *at = (const double *)from + r * from_row + c;
            double *out = (double *)to + c * to_row + r;
            __m256d x[4], t[4];
#pragma GCC unroll 4
            for (int k = 0; k < 4; k++)
                x[k] = n == 4 ? _mm256_loadu_pd(at + k * from_row) : _mm256_maskload_pd(at + k * from_row, some);
            t[0] = _mm256_unpacklo_pd(x[0], x[1]);
            t[1] = _mm256_unpackhi_pd(x[0], x[1]);
            t[2] = _mm256_unpacklo_pd(x[2], x[3]);
            t[3] = _mm256_unpackhi_pd(x[2], x[3]);
            x[0] = _mm256_permute2f128_pd(t[0], t[2], 0x20);
            x[1] = _mm256_permute2f128_pd(t[1], t[3], 0x20);
            x[2] = _mm256_permute2f128_pd(t[0], t[2], 0x31);
            x[3] = _mm256_permute2f128_pd(t[1], t[3], 0x31);
#pragma GCC unroll 4
            for (int k = 0; k < 4; k++)
                if (k < n)
                    _mm256_storeu_pd(out + k * to_row, x[k]);
        }
    }
}
#endif

#ifdef OLY_HAS_TRANSPOSE
/* turn_<s>: to[x * to_row + y] = from[y * from_row + x], blocks of side x side elements of type T in registers, as `bits`. */
#define OLY_TURN(s, T, side, block, bits)                                                                              \
    static void turn_##s(int64_t rows, int64_t columns, T *to, int64_t to_row, const T *from, int64_t from_row)        \
    {                                                                                                                  \
        if (rows < (side)) {                                                                                           \
            for (int64_t y = 0; y < rows; y++)                                                                         \
                for (int64_t x = 0; x < columns; x++)                                                                  \
                    to[x * to_row + y] = from[y * from_row + x];                                                       \
            return;                                                                                                    \
        }                                                                                                              \
        for (int64_t y = 0; y < rows; y += (side)) {                                                                   \
            y = y + (side) <= rows ? y : rows - (side); /* some of the last ones a second time */                      \
            for (int64_t x = 0; x < columns; x += (side))                                                              \
                block(columns - x < (side) ? (int)(columns - x) : (side), (bits *)(to + x * to_row + y), to_row,       \
                      (const bits *)(from + y * from_row + x), from_row);                                              \
        }                                                                                                              \
    }
#endif

/* The same for any numbers of rows and columns. */
static inline void transpose_w4(int rows, int columns, uint32_t *to, int64_t to_row, const uint32_t *from,
                                int64_t from_row)
{
    int r = 0;
#ifdef OLY_HAS_TRANSPOSE
    for (; r + 16 <= rows; r += 16)
        for (int c = 0; c < columns; c += 16)
            transpose_16(columns - c < 16 ? columns - c : 16, to + (int64_t)c * to_row + r, to_row,
                         from + (int64_t)r * from_row + c, from_row);
#endif
    for (; r < rows; r++)
        for (int c = 0; c < columns; c++)
            to[(int64_t)c * to_row + r] = from[(int64_t)r * from_row + c];
}

static inline void transpose_w8(int rows, int columns, uint64_t *to, int64_t to_row, const uint64_t *from,
                                int64_t from_row)
{
    int r = 0;
#ifdef OLY_HAS_TRANSPOSE
    for (; r + 8 <= rows; r += 8)
        for (int c = 0; c < columns; c += 8)
            transpose_8x8(columns - c < 8 ? columns - c : 8, to + (int64_t)c * to_row + r, to_row,
                          from + (int64_t)r * from_row + c, from_row);
#endif
    for (; r < rows; r++)
        for (int c = 0; c < columns; c++)
            to[(int64_t)c * to_row + r] = from[(int64_t)r * from_row + c];
}

/* The same of 1-byte and 2-byte elements: `side` vectors, each of as many elements. Interleaving the first half with the second, log2(side) times,
 * transposes them. */
#if defined(__SSE2__)
#include <immintrin.h>
#define OLY_TRANSPOSE_NARROW(size, T, side, bits, times)                                                               \
    static inline void transpose_square_w##size(T *to, int64_t to_row, const T *from, int64_t from_row)                \
    {                                                                                                                  \
        __m128i x[side], y[side];                                                                                      \
        for (int k = 0; k < (side); k++)                                                                               \
            x[k] = _mm_loadu_si128((const __m128i *)(const void *)(from + k * from_row));                              \
        _Pragma("GCC unroll 4") for (int s = 0; s < (times); s++)                                                      \
        {                                                                                                              \
            _Pragma("GCC unroll 8") for (int k = 0; k < (side) / 2; k++)                                               \
            {                                                                                                          \
                y[2 * k] = _mm_unpacklo_epi##bits(x[k], x[k + (side) / 2]);                                            \
                y[2 * k + 1] = _mm_unpackhi_epi##bits(x[k], x[k + (side) / 2]);                                        \
            }                                                                                                          \
            for (int k = 0; k < (side); k++)                                                                           \
                x[k] = y[k];                                                                                           \
        }                                                                                                              \
        for (int k = 0; k < (side); k++)                                                                               \
            _mm_storeu_si128((__m128i *)(void *)(to + k * to_row), x[k]);                                              \
    }
OLY_TRANSPOSE_NARROW(1, uint8_t, 16, 8, 4)
OLY_TRANSPOSE_NARROW(2, uint16_t, 8, 16, 3)
#define OLY_SQUARES(size, side) (side)
#else
#define transpose_square_w1(to, to_row, from, from_row) (void)0
#define transpose_square_w2(to, to_row, from, from_row) (void)0
#define OLY_SQUARES(size, side)                         (INT64_MAX / 4) /* none */
#endif
#define OLY_TRANSPOSE_SQUARES(size, T, side)                                                                           \
    static inline void transpose_w##size(int rows, int columns, T *to, int64_t to_row, const T *from,                  \
                                         int64_t from_row)                                                             \
    {                                                                                                                  \
        const int64_t step = OLY_SQUARES(size, side);                                                                  \
        int64_t r = 0;                                                                                                 \
        for (; r + step <= rows; r += step) {                                                                          \
            int64_t c = 0;                                                                                             \
            for (; c + step <= columns; c += step)                                                                     \
                transpose_square_w##size(to + c * to_row + r, to_row, from + r * from_row + c, from_row);              \
            for (; c < columns; c++)                                                                                   \
                for (int64_t k = r; k < r + step; k++)                                                                 \
                    to[c * to_row + k] = from[k * from_row + c];                                                       \
        }                                                                                                              \
        for (; r < rows; r++)                                                                                          \
            for (int64_t c = 0; c < columns; c++)                                                                      \
                to[c * to_row + r] = from[r * from_row + c];                                                           \
    }
OLY_TRANSPOSE_SQUARES(1, uint8_t, 16)
OLY_TRANSPOSE_SQUARES(2, uint16_t, 8)
#endif
