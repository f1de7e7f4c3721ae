/* SPDX-License-Identifier: BSD-3-Clause */
/* Tile operations that move or create elements: conversion between element types, select, counting, and strided loads
 * and stores. Compiled once per instruction set; gives oly_convert_<isa>, used by tile.c and copy.c. */
#include "cpu/short_rows.h"
#include "cpu/transpose.h"
#include "table.h"
#include <string.h>

/* A 16-byte element with the alignment of the program's complex128. */
typedef struct sixteen {
    uint64_t low, high;
} sixteen;

#define UNUSED(name) const void *name __attribute__((unused))

/* -- conversions ----------------------------------------------------------------------------------------------------
 * Directly between bool, integers, float32 and float64; narrow floating types from and to these two, complex numbers from and to
 * their parts. The others are two such steps. In macros `from` and `to` are suffixes of types, x is the element. */
#define ELEMENT(a, number, name, s, T, ...) typedef T element_##s;
typedef uint8_t element_b8;
OLY_REAL_TYPES(ELEMENT, )
OLY_COMPLEX_TYPES(ELEMENT, )
#define NUMBER(a, number, name, s, ...) number_##s = OLY_##number,
enum { OLY_NARROW_TYPES(NUMBER, ) };

#define LOOP(from, to, value)                                                                                          \
    static void from##_to_##to(int n, void *out, const void *in, UNUSED(y), UNUSED(z))                                 \
    {                                                                                                                  \
        const element_##from *elements = in;                                                                           \
        element_##to *result = out;                                                                                    \
        _Pragma("GCC ivdep") for (int i = 0; i < n; i++)                                                               \
        {                                                                                                              \
            const element_##from x = elements[i];                                                                      \
            result[i] = value;                                                                                         \
        }                                                                                                              \
    }
#define TO_PLAIN(from, number, name, to, ...) LOOP(from, to, (element_##to)x)
/* The first float that is too large, 2^7 for int8. Conversions truncate and saturate; NaN gives 0. Conversions to
 * unsigned types go through int64: CPUs convert to signed types. */
#define BEYOND(most) ((float)(((most) >> 1) + 1) * 2)
#define TO_SIGNED(from, number, name, to, T, U, S, W, least, most)                                                     \
    LOOP(from, to, x >= BEYOND(most) ? most : x <= -BEYOND(most) ? least : x != x ? 0 : (T)x)
#define TO_UNSIGNED(from, number, name, to, T, U, S, W, least, most)                                                   \
    LOOP(from, to, x >= BEYOND(most) ? most : x > 0 ? (sizeof(T) < 8 ? (T)(int64_t)x : (T)x) : 0)
#define TO_NARROW(from, number, name, to, T, of_bits, to_bits, ...) LOOP(from, to, to_bits(float_of_##from(x)))
#define float_of_f32(x)                                             (x)
#define float_of_f64(x)                                             oly_float_rounded_to_odd(x)

#define OF_WHOLE(a, number, name, from, ...)                                                                           \
    LOOP(from, b8, (uint8_t)(x != 0))                                                                                  \
    OLY_LATER(OLY_INTEGER_TYPES)(TO_PLAIN, from) OLY_WIDE_TYPES(TO_PLAIN, from)
#define OF_WIDE(a, number, name, from, ...)                                                                            \
    LOOP(from, b8, (uint8_t)(x != 0))                                                                                  \
    OLY_SIGNED_TYPES(TO_SIGNED, from)                                                                                  \
    OLY_UNSIGNED_TYPES(TO_UNSIGNED, from) OLY_NARROW_TYPES(TO_NARROW, from) OLY_LATER(OLY_WIDE_TYPES)(TO_PLAIN, from)
#define OF_NARROW(a, number, name, from, T, of_bits, ...)                                                              \
    LOOP(from, f32, of_bits(x))                                                                                        \
    LOOP(from, f64, (double)of_bits(x))
/* float16 by the processor's instructions, whose NaN have other bits: vectors that have some are computed by formula. */
#ifdef __F16C__
#include <immintrin.h>
#define f16_to_f32 f16_to_f32_by_formula
#define f32_to_f16 f32_to_f16_by_formula
#endif
#define OF_COMPLEX(a, number, name, from, T, real, part, R)                                                            \
    LOOP(from, b8, (uint8_t)(__real__(x) != 0))                                                                        \
    LOOP(from, part, __real__(x))                                                                                      \
    LOOP(part, from, (T)x)                                                                                             \
    OLY_LATER(OLY_COMPLEX_TYPES)(TO_PLAIN, from)
OLY_AGAIN(OLY_BOOL_TYPES(OF_WHOLE, ))
OLY_AGAIN(OLY_INTEGER_TYPES(OF_WHOLE, ))
OLY_AGAIN(OLY_WIDE_TYPES(OF_WIDE, ))
OLY_NARROW_TYPES(OF_NARROW, )
#ifdef __F16C__
#undef f16_to_f32
#undef f32_to_f16
static void f16_to_f32(int n, void *out, const void *in, UNUSED(y), UNUSED(z))
{
    const __m128i magnitude = _mm_set1_epi16(0x7fff), infinity = _mm_set1_epi16(0x7c00);
    const uint16_t *x = in;
    float *to = out;
    int i = 0;
#ifdef __AVX512BW__
    const __m512i magnitudes = _mm512_set1_epi16(0x7fff), infinities = _mm512_set1_epi16(0x7c00);
    for (; i + 32 <= n; i += 32) {
        const __m512i h = _mm512_loadu_si512(x + i);
        if (_mm512_cmpgt_epi16_mask(_mm512_and_si512(h, magnitudes), infinities)) {
            f16_to_f32_by_formula(32, to + i, x + i, NULL, NULL);
            continue;
        }
        _mm512_storeu_ps(to + i, _mm512_cvtph_ps(_mm512_castsi512_si256(h)));
        _mm512_storeu_ps(to + i + 16, _mm512_cvtph_ps(_mm512_extracti64x4_epi64(h, 1)));
    }
#endif
    for (; i + 8 <= n; i += 8) {
        __m128i h = _mm_loadu_si128((const __m128i *)(x + i));
        if (_mm_movemask_epi8(_mm_cmpgt_epi16(_mm_and_si128(h, magnitude), infinity)))
            f16_to_f32_by_formula(8, to + i, x + i, NULL, NULL);
        else
            _mm256_storeu_ps(to + i, _mm256_cvtph_ps(h));
    }
    f16_to_f32_by_formula(n - i, to + i, x + i, NULL, NULL);
}

static void f32_to_f16(int n, void *out, const void *in, UNUSED(y), UNUSED(z))
{
    const float *x = in;
    uint16_t *to = out;
    int i = 0;
    for (; i + 8 <= n; i += 8) {
        __m256 f = _mm256_loadu_ps(x + i);
        if (_mm256_movemask_ps(_mm256_cmp_ps(f, f, _CMP_UNORD_Q)))
            f32_to_f16_by_formula(8, to + i, x + i, NULL, NULL);
        else
            _mm_storeu_si128((__m128i *)(to + i), _mm256_cvtps_ph(f, _MM_FROUND_TO_NEAREST_INT));
    }
    f32_to_f16_by_formula(n - i, to + i, x + i, NULL, NULL);
}
#endif
OLY_AGAIN(OLY_COMPLEX_TYPES(OF_COMPLEX, ))

/* In two steps through the type `by`, a piece at a time; the type to itself as a copy. */
#define TWO_STEPS(from, by, to, same)                                                                                  \
    static void from##_to_##to(int n, void *out, const void *in, UNUSED(y), UNUSED(z))                                 \
    {                                                                                                                  \
        element_##by between[256];                                                                                     \
        if (same) {                                                                                                    \
            memmove(out, in, sizeof(element_##to) * (size_t)n);                                                        \
            return;                                                                                                    \
        }                                                                                                              \
        for (int done = 0; done < n; done += 256) {                                                                    \
            int m = n - done < 256 ? n - done : 256;                                                                   \
            from##_to_##by(m, between, (const element_##from *)in + done, NULL, NULL);                                 \
            by##_to_##to(m, (element_##to *)out + done, between, NULL, NULL);                                          \
        }                                                                                                              \
    }
#define BY_F32(from, number, name, to, ...)         TWO_STEPS(from, f32, to, false)
#define BY_F64(from, number, name, to, ...)         TWO_STEPS(from, f64, to, false)
#define BETWEEN_NARROW(from, number, name, to, ...) TWO_STEPS(from, f32, to, number_##from == number_##to)
#define WHOLE_STEPS(a, number, name, from, ...)                                                                        \
    OLY_NARROW_TYPES(BY_F32, from)                                                                                     \
    TWO_STEPS(from, f32, c64, false)                                                                                   \
    TWO_STEPS(from, f64, c128, false)
#define NARROW_STEPS(a, number, name, from, ...)                                                                       \
    TWO_STEPS(from, f32, b8, false)                                                                                    \
    OLY_INTEGER_TYPES(BY_F32, from)                                                                                    \
    OLY_LATER(OLY_NARROW_TYPES)                                                                                        \
    (BETWEEN_NARROW, from) TWO_STEPS(from, f32, c64, false) TWO_STEPS(from, f64, c128, false)
OLY_BOOL_TYPES(WHOLE_STEPS, )
OLY_INTEGER_TYPES(WHOLE_STEPS, )
OLY_AGAIN(OLY_NARROW_TYPES(NARROW_STEPS, ))
TWO_STEPS(f32, f64, c128, false)
TWO_STEPS(f64, f32, c64, false)
TWO_STEPS(c64, f32, f64, false)
TWO_STEPS(c128, f64, f32, false)
OLY_INTEGER_TYPES(BY_F32, c64)
OLY_NARROW_TYPES(BY_F32, c64)
OLY_INTEGER_TYPES(BY_F64, c128)
OLY_NARROW_TYPES(BY_F64, c128)

/* -- select --------------------------------------------------------------------------------------------------------- */
/* By element size alone. sc, sx, sy: 1, or 0 where the operand is one element for all. */
#define SELECT(size, T, mask)                                                                                          \
    static void select_##size##_##mask(int n, void *out, const void *pc, const void *px, const void *py)               \
    {                                                                                                                  \
        const uint8_t *c = pc;                                                                                         \
        const T *x = px, *y = py;                                                                                      \
        const uint8_t c0 = c[0];                                                                                       \
        const T x0 = x[0], y0 = y[0];                                                                                  \
        T *result = out;                                                                                               \
        _Pragma("GCC ivdep") for (int i = 0; i < n; i++)                                                               \
        {                                                                                                              \
            const T a = (mask)&2 ? x0 : x[i], b = (mask)&4 ? y0 : y[i];                                                \
            result[i] = ((mask)&1 ? c0 : c[i]) != 0 ? a : b;                                                           \
        }                                                                                                              \
    }
#define SELECTS(size, T)                                                                                               \
    SELECT(size, T, 0)                                                                                                 \
    SELECT(size, T, 1)                                                                                                 \
    SELECT(size, T, 2)                                                                                                 \
    SELECT(size, T, 3)                                                                                                 \
    SELECT(size, T, 4)                                                                                                 \
    SELECT(size, T, 5)                                                                                                 \
    SELECT(size, T, 6)                                                                                                 \
    SELECT(size, T, 7)
SELECTS(1, uint8_t)
SELECTS(2, uint16_t)
SELECTS(4, uint32_t)
SELECTS(8, uint64_t)
SELECTS(16, sixteen)

/* -- copies of bits ------------------------------------------------------------------------------------------------ */
#define COPY(size)                                                                                                     \
    static void copy_##size(int n, void *out, const void *x, const void *unused __attribute__((unused)),               \
                            const void *unused2 __attribute__((unused)))                                               \
    {                                                                                                                  \
        memmove(out, x, size *(size_t)n);                                                                              \
    }
COPY(1)
COPY(2)
COPY(4)
COPY(8)
COPY(16)

/* -- counting ------------------------------------------------------------------------------------------------------- */
#define COUNT(s, T, of)                                                                                                \
    static void count_##s(int n, void *out, int64_t start, int64_t step)                                               \
    {                                                                                                                  \
        T *result = out;                                                                                               \
        for (int i = 0; i < n; i++)                                                                                    \
            result[i] = of(start + i * step);                                                                          \
    }
#define COUNT_INTEGER(a, number, name, s, T, U, ...)     COUNT(s, U, (U))
#define COUNT_NARROW(a, number, name, s, T, of, to, ...) COUNT(s, T, to)
#define COUNT_FLOATING(a, number, name, s, T, ...)       COUNT(s, T, (T))
OLY_INTEGER_TYPES(COUNT_INTEGER, )
OLY_NARROW_TYPES(COUNT_NARROW, )
OLY_WIDE_TYPES(COUNT_FLOATING, )
OLY_COMPLEX_TYPES(COUNT_FLOATING, )

/* -- strided loads and stores --------------------------------------------------------------------------------------- */
/* The row that often, by copies of ever more rows: single ones may be very short. */
static void repeat(char *out, const char *row, size_t times, size_t bytes)
{
    size_t done = 1;
    if (times > 0)
        memcpy(out, row, bytes);
    for (size_t more; done < times; done += more) {
        more = done < times - done ? done : times - done;
        memcpy(out + done * bytes, out, more * bytes);
    }
}

enum { MOST_REPEATED = 16 }; /* times that a row of MOST_FEW elements is repeated by such a loop */

/* As those of transpose.h. */
static void transpose_w16(int rows, int columns, sixteen *to, int64_t to_row, const sixteen *from, int64_t from_row)
{
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++)
            to[c * to_row + r] = from[r * from_row + c];
}

#define MOVES(size, T)                                                                                                 \
    static void fill_##size(int64_t n, void *out, const void *element)                                                 \
    {                                                                                                                  \
        T *result = out;                                                                                               \
        const T value = *(const T *)element;                                                                           \
        for (int64_t i = 0; i < n; i++)                                                                                \
            result[i] = value;                                                                                         \
    }                                                                                                                  \
    static void gather_##size(int64_t rows, int64_t columns, void *out, const void *in, int64_t row_stride,            \
                              int64_t column_stride)                                                                   \
    {                                                                                                                  \
        T *to = out;                                                                                                   \
        const T *from = in;                                                                                            \
        if (row_stride == 0 && column_stride == 1 && (rows > MOST_REPEATED || columns > MOST_FEW)) {                   \
            repeat(out, in, (size_t)rows, sizeof(T) * (size_t)columns);                                                \
            return;                                                                                                    \
        }                                                                                                              \
        if (row_stride == 1 && column_stride > 1 && rows > 1) {                                                        \
            transpose_w##size((int)columns, (int)rows, to, columns, from, column_stride);                              \
            return;                                                                                                    \
        }                                                                                                              \
        if (column_stride == 1)                                                                                        \
            switch (columns) {                                                                                         \
                EACH_FEW(FEW_ELEMENTS, columns, row_stride)                                                            \
            default: break;                                                                                            \
            }                                                                                                          \
        else if (column_stride == 0)                                                                                   \
            switch (columns) {                                                                                         \
                EACH_FEW(FEW_TIMES, columns, row_stride)                                                               \
            default: break;                                                                                            \
            }                                                                                                          \
        for (int64_t r = 0; r < rows; r++, to += columns, from += row_stride)                                          \
            if (column_stride == 1)                                                                                    \
                memcpy(to, from, sizeof(T) * (size_t)columns);                                                         \
            else if (column_stride == 0)                                                                               \
                fill_##size(columns, to, from);                                                                        \
            else                                                                                                       \
                switch (column_stride) {                                                                               \
                    EVERY_NTH(2)                                                                                       \
                    EVERY_NTH(3)                                                                                       \
                    EVERY_NTH(4)                                                                                       \
                default:                                                                                               \
                    for (int64_t c = 0; c < columns; c++)                                                              \
                        to[c] = from[c * column_stride];                                                               \
                }                                                                                                      \
    }                                                                                                                  \
    static void scatter_##size(int64_t rows, int64_t columns, void *out, const void *in, int64_t row_stride,           \
                               int64_t column_stride)                                                                  \
    {                                                                                                                  \
        T *to = out;                                                                                                   \
        const T *from = in;                                                                                            \
        if (row_stride == 1 && column_stride > 1 && rows > 1) {                                                        \
            transpose_w##size((int)rows, (int)columns, to, column_stride, from, columns);                              \
            return;                                                                                                    \
        }                                                                                                              \
        if (column_stride == 1)                                                                                        \
            switch (columns) {                                                                                         \
                EACH_FEW(FEW_ELEMENTS, row_stride, columns)                                                            \
            default: break;                                                                                            \
            }                                                                                                          \
        for (int64_t r = 0; r < rows; r++, from += columns, to += row_stride)                                          \
            if (column_stride == 1)                                                                                    \
                memcpy(to, from, sizeof(T) * (size_t)columns);                                                         \
            else                                                                                                       \
                for (int64_t c = 0; c < columns; c++)                                                                  \
                    to[c * column_stride] = from[c];                                                                   \
    }
MOVES(1, uint8_t)
MOVES(2, uint16_t)
MOVES(4, uint32_t)
MOVES(8, uint64_t)
MOVES(16, sixteen)

/* -- table ---------------------------------------------------------------------------------------------------------- */
#define TO_CELL(from, number, name, to, ...)      [OLY_##number] = from##_to_##to,
#define CONVERT_CELLS(a, number, name, from, ...) [OLY_##number] = {OLY_LATER(OLY_EVERY_TYPE)(TO_CELL, from)},
#define ALL_MASKS(f)                                                                                                   \
    {                                                                                                                  \
        f##_0, f##_1, f##_2, f##_3, f##_4, f##_5, f##_6, f##_7                                                         \
    }
#define BY_SIZE(f)                                                                                                     \
    {                                                                                                                  \
        [1] = f##_1, [2] = f##_2, [4] = f##_4, [8] = f##_8, [16] = f##_16                                              \
    }

const oly_convert_table OLY_ISA_NAME(oly_convert) = {
    .convert = {OLY_AGAIN(OLY_EVERY_TYPE(CONVERT_CELLS, ))},
    .select = {[1] = ALL_MASKS(select_1),
               [2] = ALL_MASKS(select_2),
               [4] = ALL_MASKS(select_4),
               [8] = ALL_MASKS(select_8),
               [16] = ALL_MASKS(select_16)},
    .iota = {OLY_REAL_TYPES(OLY_CELL, count) OLY_COMPLEX_TYPES(OLY_CELL, count)}, /* bools are converted */
    .copy = BY_SIZE(copy),
    .gather = BY_SIZE(gather),
    .scatter = BY_SIZE(scatter),
    .fill = BY_SIZE(fill),
};
