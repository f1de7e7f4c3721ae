/* Tile operations that move or make elements: conversion between element types, select, counting, and strided loads and
 * stores. Compiled once per instruction set; gives oly_convert_<isa>, used by tile.c and copy.c. */
#include "table.h"
#include "core/half.h"
#include <string.h>

/* An element of 16 bytes, aligned as a complex128 of the program may be. */
typedef struct sixteen {
    uint64_t low, high;
} sixteen;

#define UNUSED(name) const void *name __attribute__((unused))

/* -- conversions ----------------------------------------------------------------------------------------------------
 * Directly between bool, integers, float32 and float64; float16 and bfloat16 from and to these two, complex numbers from and to
 * their parts. The others are two such steps. */
#define PLAIN(To, x)   ((To)(x))
#define NONZERO(To, x) ((To)((x) != 0))
/* Truncates, saturates, NaN gives 0. The upper bounds are the first floats beyond the type. */
#define SIGNED(To, x, top, MOST)   ((x) >= top ? MOST : (x) <= -top ? -MOST - 1 : (x) != (x) ? 0 : (To)(x))
#define UNSIGNED(To, x, top, MOST) ((x) >= top ? MOST : (x) > 0 ? (To)(int64_t)(x) : 0)
#define TO_INT8(To, x)             SIGNED(To, x, 0x1p7f, INT8_MAX)
#define TO_INT16(To, x)            SIGNED(To, x, 0x1p15f, INT16_MAX)
#define TO_INT32(To, x)            SIGNED(To, x, 0x1p31f, INT32_MAX)
#define TO_INT64(To, x)            SIGNED(To, x, 0x1p63f, INT64_MAX)
#define TO_UINT8(To, x)            UNSIGNED(To, x, 0x1p8f, UINT8_MAX)
#define TO_UINT16(To, x)           UNSIGNED(To, x, 0x1p16f, UINT16_MAX)
#define TO_UINT32(To, x)           UNSIGNED(To, x, 0x1p32f, UINT32_MAX)
#define TO_UINT64(To, x)           ((x) >= 0x1p64f ? UINT64_MAX : (x) > 0 ? (uint64_t)(x) : 0)
#define OF_F16(To, x)              ((To)oly_float_of_half(x))
#define OF_BF16(To, x)             ((To)oly_float_of_bfloat(x))
#define TO_F16(To, x)              oly_half_of_float(x)
#define TO_BF16(To, x)             oly_bfloat_of_float(x)
#define DOUBLE_TO_F16(To, x)       oly_half_of_float(oly_float_rounded_to_odd(x))
#define DOUBLE_TO_BF16(To, x)      oly_bfloat_of_float(oly_float_rounded_to_odd(x))
#define REAL_NONZERO(To, x)        ((To)(__real__(x) != 0))
#define REAL_PART(To, x)           (__real__(x))

#define CONVERT(from, From, to, To, rule)                                                                              \
    static void from##_to_##to(int n, void *out, const void *in, UNUSED(y), UNUSED(z))                                 \
    {                                                                                                                  \
        const From *x = in;                                                                                            \
        To *result = out;                                                                                              \
        _Pragma("GCC ivdep") for (int i = 0; i < n; i++) result[i] = rule(To, x[i]);                                   \
    }
/* A row of the table but for float16, bfloat16 and complex numbers; I: the rule for integers of a type. */
#define CONVERT_ROW(from, From, I8, I16, I32, I64, U8, U16, U32, U64)                                                  \
    CONVERT(from, From, b8, uint8_t, NONZERO)                                                                          \
    CONVERT(from, From, i8, int8_t, I8)                                                                                \
    CONVERT(from, From, i16, int16_t, I16)                                                                             \
    CONVERT(from, From, i32, int32_t, I32)                                                                             \
    CONVERT(from, From, i64, int64_t, I64)                                                                             \
    CONVERT(from, From, u8, uint8_t, U8)                                                                               \
    CONVERT(from, From, u16, uint16_t, U16)                                                                            \
    CONVERT(from, From, u32, uint32_t, U32)                                                                            \
    CONVERT(from, From, u64, uint64_t, U64)                                                                            \
    CONVERT(from, From, f32, float, PLAIN)                                                                             \
    CONVERT(from, From, f64, double, PLAIN)
#define CONVERT_INTEGER(from, From) CONVERT_ROW(from, From, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN)
#define CONVERT_FLOAT(from, From)                                                                                      \
    CONVERT_ROW(from, From, TO_INT8, TO_INT16, TO_INT32, TO_INT64, TO_UINT8, TO_UINT16, TO_UINT32, TO_UINT64)
CONVERT_INTEGER(b8, uint8_t)
CONVERT_INTEGER(i8, int8_t)
CONVERT_INTEGER(i16, int16_t)
CONVERT_INTEGER(i32, int32_t)
CONVERT_INTEGER(i64, int64_t)
CONVERT_INTEGER(u8, uint8_t)
CONVERT_INTEGER(u16, uint16_t)
CONVERT_INTEGER(u32, uint32_t)
CONVERT_INTEGER(u64, uint64_t)
CONVERT_FLOAT(f32, float)
CONVERT_FLOAT(f64, double)
CONVERT(f16, uint16_t, f16, uint16_t, PLAIN)
CONVERT(f16, uint16_t, f32, float, OF_F16)
CONVERT(f16, uint16_t, f64, double, OF_F16)
CONVERT(f32, float, f16, uint16_t, TO_F16)
CONVERT(f64, double, f16, uint16_t, DOUBLE_TO_F16)
CONVERT(bf16, uint16_t, bf16, uint16_t, PLAIN)
CONVERT(bf16, uint16_t, f32, float, OF_BF16)
CONVERT(bf16, uint16_t, f64, double, OF_BF16)
CONVERT(f32, float, bf16, uint16_t, TO_BF16)
CONVERT(f64, double, bf16, uint16_t, DOUBLE_TO_BF16)
CONVERT(c64, float _Complex, c64, float _Complex, PLAIN)
CONVERT(c64, float _Complex, c128, double _Complex, PLAIN)
CONVERT(c64, float _Complex, b8, uint8_t, REAL_NONZERO)
CONVERT(c64, float _Complex, f32, float, REAL_PART)
CONVERT(f32, float, c64, float _Complex, PLAIN)
CONVERT(c128, double _Complex, c128, double _Complex, PLAIN)
CONVERT(c128, double _Complex, c64, float _Complex, PLAIN)
CONVERT(c128, double _Complex, b8, uint8_t, REAL_NONZERO)
CONVERT(c128, double _Complex, f64, double, REAL_PART)
CONVERT(f64, double, c128, double _Complex, PLAIN)

/* In two steps, a piece at a time; Middle: the type between. */
#define TWO_STEPS(from, From, middle, Middle, to, To)                                                                  \
    static void from##_to_##to(int n, void *out, const void *in, UNUSED(y), UNUSED(z))                                 \
    {                                                                                                                  \
        Middle between[256];                                                                                           \
        for (int done = 0; done < n; done += 256) {                                                                    \
            int m = n - done < 256 ? n - done : 256;                                                                   \
            from##_to_##middle(m, between, (const From *)in + done, NULL, NULL);                                       \
            middle##_to_##to(m, (To *)out + done, between, NULL, NULL);                                                \
        }                                                                                                              \
    }
#define INTEGERS_OF(from, From, middle, Middle)                                                                        \
    TWO_STEPS(from, From, middle, Middle, i8, int8_t)                                                                  \
    TWO_STEPS(from, From, middle, Middle, i16, int16_t)                                                                \
    TWO_STEPS(from, From, middle, Middle, i32, int32_t)                                                                \
    TWO_STEPS(from, From, middle, Middle, i64, int64_t)                                                                \
    TWO_STEPS(from, From, middle, Middle, u8, uint8_t)                                                                 \
    TWO_STEPS(from, From, middle, Middle, u16, uint16_t)                                                               \
    TWO_STEPS(from, From, middle, Middle, u32, uint32_t)                                                               \
    TWO_STEPS(from, From, middle, Middle, u64, uint64_t)
#define OF_INTEGER(from, From)                                                                                         \
    TWO_STEPS(from, From, f32, float, f16, uint16_t)                                                                   \
    TWO_STEPS(from, From, f32, float, bf16, uint16_t)                                                                  \
    TWO_STEPS(from, From, f32, float, c64, float _Complex)                                                             \
    TWO_STEPS(from, From, f64, double, c128, double _Complex)
#define OF_HALF(from, other)                                                                                           \
    TWO_STEPS(from, uint16_t, f32, float, b8, uint8_t)                                                                 \
    INTEGERS_OF(from, uint16_t, f32, float)                                                                            \
    TWO_STEPS(from, uint16_t, f32, float, other, uint16_t)                                                             \
    TWO_STEPS(from, uint16_t, f32, float, c64, float _Complex)                                                         \
    TWO_STEPS(from, uint16_t, f64, double, c128, double _Complex)
OF_INTEGER(b8, uint8_t)
OF_INTEGER(i8, int8_t)
OF_INTEGER(i16, int16_t)
OF_INTEGER(i32, int32_t)
OF_INTEGER(i64, int64_t)
OF_INTEGER(u8, uint8_t)
OF_INTEGER(u16, uint16_t)
OF_INTEGER(u32, uint32_t)
OF_INTEGER(u64, uint64_t)
OF_HALF(f16, bf16)
OF_HALF(bf16, f16)
TWO_STEPS(f32, float, f64, double, c128, double _Complex)
TWO_STEPS(f64, double, f32, float, c64, float _Complex)
INTEGERS_OF(c64, float _Complex, f32, float)
TWO_STEPS(c64, float _Complex, f32, float, f16, uint16_t)
TWO_STEPS(c64, float _Complex, f32, float, bf16, uint16_t)
TWO_STEPS(c64, float _Complex, f32, float, f64, double)
INTEGERS_OF(c128, double _Complex, f64, double)
TWO_STEPS(c128, double _Complex, f64, double, f16, uint16_t)
TWO_STEPS(c128, double _Complex, f64, double, bf16, uint16_t)
TWO_STEPS(c128, double _Complex, f64, double, f32, float)

/* -- select --------------------------------------------------------------------------------------------------------- */
/* Element types do not matter, only their sizes. sc, sx, sy: 1, or 0 where the operand is one element for all. */
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

/* -- bits as they are ------------------------------------------------------------------------------------------------ */
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
#define COUNT(s, T)                                                                                                    \
    static void count_##s(int n, void *out, int64_t start, int64_t step)                                               \
    {                                                                                                                  \
        T *result = out;                                                                                               \
        for (int i = 0; i < n; i++)                                                                                    \
            result[i] = (T)(start + i * step);                                                                         \
    }
COUNT(8, uint8_t)
COUNT(16, uint16_t)
COUNT(32, uint32_t)
COUNT(64, uint64_t)
COUNT(f32, float)
COUNT(f64, double)
COUNT(c64, float _Complex)
COUNT(c128, double _Complex)
#define COUNT_HALF(s, of_float)                                                                                        \
    static void count_##s(int n, void *out, int64_t start, int64_t step)                                               \
    {                                                                                                                  \
        uint16_t *result = out;                                                                                        \
        for (int i = 0; i < n; i++)                                                                                    \
            result[i] = of_float((float)(start + i * step));                                                           \
    }
COUNT_HALF(f16, oly_half_of_float)
COUNT_HALF(bf16, oly_bfloat_of_float)

/* -- strided loads and stores --------------------------------------------------------------------------------------- */
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
        for (int64_t r = 0; r < rows; r++, to += columns, from += row_stride)                                          \
            if (column_stride == 1)                                                                                    \
                memcpy(to, from, sizeof(T) * (size_t)columns);                                                         \
            else if (column_stride == 0)                                                                               \
                fill_##size(columns, to, from);                                                                        \
            else                                                                                                       \
                for (int64_t c = 0; c < columns; c++)                                                                  \
                    to[c] = from[c * column_stride];                                                                   \
    }                                                                                                                  \
    static void scatter_##size(int64_t rows, int64_t columns, void *out, const void *in, int64_t row_stride,           \
                               int64_t column_stride)                                                                  \
    {                                                                                                                  \
        T *to = out;                                                                                                   \
        const T *from = in;                                                                                            \
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
#define TO_ALL(from)                                                                                                   \
    {                                                                                                                  \
        from##_to_b8, from##_to_i8, from##_to_i16, from##_to_i32, from##_to_i64, from##_to_u8, from##_to_u16,          \
            from##_to_u32, from##_to_u64, from##_to_f16, from##_to_bf16, from##_to_f32, from##_to_f64, from##_to_c64,  \
            from##_to_c128                                                                                             \
    }
#define ALL_MASKS(f)                                                                                                   \
    {                                                                                                                  \
        f##_0, f##_1, f##_2, f##_3, f##_4, f##_5, f##_6, f##_7                                                         \
    }
#define BY_SIZE(f)                                                                                                     \
    {                                                                                                                  \
        [1] = f##_1, [2] = f##_2, [4] = f##_4, [8] = f##_8, [16] = f##_16                                              \
    }

/* In the order of dtype.def. */
const oly_convert_table OLY_ISA_NAME(oly_convert) = {
    .convert = {TO_ALL(b8), TO_ALL(i8), TO_ALL(i16), TO_ALL(i32), TO_ALL(i64), TO_ALL(u8), TO_ALL(u16), TO_ALL(u32),
                TO_ALL(u64), TO_ALL(f16), TO_ALL(bf16), TO_ALL(f32), TO_ALL(f64), TO_ALL(c64), TO_ALL(c128)},
    .select = {[1] = ALL_MASKS(select_1),
               [2] = ALL_MASKS(select_2),
               [4] = ALL_MASKS(select_4),
               [8] = ALL_MASKS(select_8),
               [16] = ALL_MASKS(select_16)},
    .iota = {NULL /* bools are converted */, count_8, count_16, count_32, count_64, count_8, count_16, count_32,
             count_64, count_f16, count_bf16, count_f32, count_f64, count_c64, count_c128},
    .copy = BY_SIZE(copy),
    .gather = BY_SIZE(gather),
    .scatter = BY_SIZE(scatter),
    .fill = BY_SIZE(fill),
};
