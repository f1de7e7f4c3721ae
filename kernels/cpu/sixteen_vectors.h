/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies of operands for instructions that add several narrow products to each sum of 32 bits: 16 rows of a, or columns of b, with 64 bytes
 * of each, where the elements that one instruction adds (four bytes, two of bfloat16) are side by side. For gemm_bytes.c and
 * matrix_blocks.h; empty without AVX-512. */
#ifndef OLY_CPU_SIXTEEN_VECTORS_H
#define OLY_CPU_SIXTEEN_VECTORS_H
#include "cpu/gemm_registers.h"
#include "cpu/transpose.h"

#ifdef OLY_HAS_LONG_TILES
#define GROUPS 16 /* vectors, and groups of 4 bytes of each */

/* Lane x: bytes x of four rows of 16 bytes, the first row lowest. */
static inline __m512i quads(__m128i r0, __m128i r1, __m128i r2, __m128i r3)
{
    const __m512i lanes = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i bytes = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    __m512i v = _mm512_inserti32x4(_mm512_castsi128_si512(r0), r1, 1);
    v = _mm512_inserti32x4(_mm512_inserti32x4(v, r2, 2), r3, 3);
    return _mm512_shuffle_epi8(_mm512_permutexvar_epi32(lanes, v), bytes);
}

/* Lane x: elements x of two rows of 16 elements of 2 bytes, the first row lower. */
static inline __m512i pairs(__m256i r0, __m256i r1)
{
    const __m512i first = _mm512_cvtepu16_epi32(r0), second = _mm512_cvtepu16_epi32(r1);
    return _mm512_or_si512(first, _mm512_slli_epi32(second, 16));
}

static inline __m128i row_of_16(const uint8_t *from)
{
    return _mm_loadu_si128((const __m128i *)(const void *)from);
}

static inline __m256i row_of_32(const uint8_t *from)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)from);
}

/* Group q of the vectors, whose elements are side by side in rows. */
static inline __m512i group_of_rows(int size, const uint8_t *from, int64_t row)
{
    if (size == 2)
        return pairs(row_of_32(from), row_of_32(from + row));
    return quads(row_of_16(from), row_of_16(from + row), row_of_16(from + 2 * row), row_of_16(from + 3 * row));
}

/* The same where only some rows and vectors are there; others are zero. */
static inline __m512i group_of_some_rows(int size, const uint8_t *from, int64_t row, int64_t rows, __mmask16 some)
{
    if (size == 2) {
        const __m256i none = _mm256_setzero_si256();
        return pairs(rows > 0 ? _mm256_maskz_loadu_epi16(some, from) : none,
                     rows > 1 ? _mm256_maskz_loadu_epi16(some, from + row) : none);
    }
    __m128i r[4];
    for (int k = 0; k < 4; k++)
        r[k] = k < rows ? _mm_maskz_loadu_epi8(some, from + k * row) : _mm_setzero_si128();
    return quads(r[0], r[1], r[2], r[3]);
}

static inline __mmask16 first_16(int64_t n)
{
    return (__mmask16)(n >= 16 ? 0xffff : (1 << n) - 1);
}

static inline __mmask64 first_64(int64_t n)
{
    return n >= 64 ? ~(__mmask64)0 : ((__mmask64)1 << n) - 1;
}

/* 16 vectors of 64 bytes, elements of `size` bytes: `vector` bytes between vectors and `element` between the elements of one, of which one
 * is `size`. There are `vectors` and `bytes`; absent ones are zero. turned: lane x of out[q] has group q of vector x; else out[x] has all
 * of vector x. */
static inline __attribute__((always_inline)) void sixteen(__m512i out[GROUPS], const int size, bool turned,
                                                          int64_t vectors, int64_t bytes, const uint8_t *from,
                                                          int64_t vector, int64_t element)
{
    const bool dense = element == size;
    const int64_t rows = 4 / size; /* of a group */
    if (dense) {
        for (int64_t x = 0; x < GROUPS; x++)
            out[x] = x < vectors ? _mm512_maskz_loadu_epi8(first_64(bytes), from + x * vector) : _mm512_setzero_si512();
    } else if (vectors >= GROUPS && bytes >= 64) {
        for (int64_t q = 0; q < GROUPS; q++)
            out[q] = group_of_rows(size, from + q * rows * element, element);
    } else {
        for (int64_t q = 0; q < GROUPS; q++)
            out[q] = group_of_some_rows(size, from + q * rows * element, element, bytes / size - q * rows,
                                        first_16(vectors));
    }
    if (dense == turned) {
        __m512 v[GROUPS];
        for (int x = 0; x < GROUPS; x++)
            v[x] = _mm512_castsi512_ps(out[x]);
        transpose_vectors(v);
        for (int x = 0; x < GROUPS; x++)
            out[x] = _mm512_castps_si512(v[x]);
    }
}
#endif
#endif
