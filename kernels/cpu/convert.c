/* Tile operations that move or make elements: conversion between element types, select, counting, and strided loads and
 * stores. Compiled once per instruction set; gives oly_convert_<isa>, used by tile.c and copy.c. */
#include "table.h"
#include <string.h>

#define UNUSED(name) const void *name __attribute__((unused))

/* -- conversions ---------------------------------------------------------------------------------------------------- */
#define PLAIN(To, x)   ((To)(x))
#define NONZERO(To, x) ((To)((x) != 0))
/* Truncates, saturates, NaN gives 0. The upper bounds are the first floats beyond the type. */
#define TO_INT32(To, x)  ((x) >= 0x1p31f ? INT32_MAX : (x) <= -0x1p31f ? INT32_MIN : (x) != (x) ? 0 : (int32_t)(x))
#define TO_INT64(To, x)  ((x) >= 0x1p63f ? INT64_MAX : (x) <= -0x1p63f ? INT64_MIN : (x) != (x) ? 0 : (int64_t)(x))
#define TO_UINT32(To, x) ((x) >= 0x1p32f ? UINT32_MAX : (x) > 0 ? (uint32_t)(int64_t)(x) : 0)

#define CONVERT(from, From, to, To, rule)                                                                              \
    static void from##_to_##to(int n, void *out, const void *in, UNUSED(y), UNUSED(z))                                 \
    {                                                                                                                  \
        const From *x = in;                                                                                            \
        To *result = out;                                                                                              \
        _Pragma("GCC ivdep") for (int i = 0; i < n; i++) result[i] = rule(To, x[i]);                                   \
    }
#define CONVERT_INTEGER(from, From)                                                                                    \
    CONVERT(from, From, b8, uint8_t, NONZERO)                                                                          \
    CONVERT(from, From, i32, int32_t, PLAIN)                                                                           \
    CONVERT(from, From, i64, int64_t, PLAIN)                                                                           \
    CONVERT(from, From, u32, uint32_t, PLAIN)                                                                          \
    CONVERT(from, From, f32, float, PLAIN)                                                                             \
    CONVERT(from, From, f64, double, PLAIN)
#define CONVERT_FLOAT(from, From)                                                                                      \
    CONVERT(from, From, b8, uint8_t, NONZERO)                                                                          \
    CONVERT(from, From, i32, int32_t, TO_INT32)                                                                        \
    CONVERT(from, From, i64, int64_t, TO_INT64)                                                                        \
    CONVERT(from, From, u32, uint32_t, TO_UINT32)                                                                      \
    CONVERT(from, From, f32, float, PLAIN)                                                                             \
    CONVERT(from, From, f64, double, PLAIN)
CONVERT_INTEGER(b8, uint8_t)
CONVERT_INTEGER(i32, int32_t)
CONVERT_INTEGER(i64, int64_t)
CONVERT_INTEGER(u32, uint32_t)
CONVERT_FLOAT(f32, float)
CONVERT_FLOAT(f64, double)

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
SELECTS(4, uint32_t)
SELECTS(8, uint64_t)

/* -- counting ------------------------------------------------------------------------------------------------------- */
#define COUNT(s, T)                                                                                                    \
    static void count_##s(int n, void *out, int64_t start, int64_t step)                                               \
    {                                                                                                                  \
        T *result = out;                                                                                               \
        for (int i = 0; i < n; i++)                                                                                    \
            result[i] = (T)(start + i * step);                                                                         \
    }
COUNT(i32, int32_t)
COUNT(i64, int64_t)
COUNT(u32, uint32_t)
COUNT(f32, float)
COUNT(f64, double)
static void count_b8(int n, void *out, int64_t start, int64_t step)
{
    uint8_t *result = out;
    for (int i = 0; i < n; i++)
        result[i] = start + i * step != 0;
}

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
MOVES(4, uint32_t)
MOVES(8, uint64_t)

/* -- table ---------------------------------------------------------------------------------------------------------- */
#define TO_ALL(from)                                                                                                   \
    {                                                                                                                  \
        [OLY_BOOL] = from##_to_b8, [OLY_INT32] = from##_to_i32, [OLY_INT64] = from##_to_i64,                           \
        [OLY_UINT32] = from##_to_u32, [OLY_FLOAT32] = from##_to_f32, [OLY_FLOAT64] = from##_to_f64                     \
    }
#define ALL_MASKS(f)                                                                                                   \
    {                                                                                                                  \
        f##_0, f##_1, f##_2, f##_3, f##_4, f##_5, f##_6, f##_7                                                         \
    }
#define BY_SIZE(f)                                                                                                     \
    {                                                                                                                  \
        [1] = f##_1, [4] = f##_4, [8] = f##_8                                                                          \
    }

const oly_convert_table OLY_ISA_NAME(oly_convert) = {
    .convert = {[OLY_BOOL] = TO_ALL(b8),
                [OLY_INT32] = TO_ALL(i32),
                [OLY_INT64] = TO_ALL(i64),
                [OLY_UINT32] = TO_ALL(u32),
                [OLY_FLOAT32] = TO_ALL(f32),
                [OLY_FLOAT64] = TO_ALL(f64)},
    .select = {[1] = ALL_MASKS(select_1), [4] = ALL_MASKS(select_4), [8] = ALL_MASKS(select_8)},
    .iota = {[OLY_BOOL] = count_b8,
             [OLY_INT32] = count_i32,
             [OLY_INT64] = count_i64,
             [OLY_UINT32] = count_u32,
             [OLY_FLOAT32] = count_f32,
             [OLY_FLOAT64] = count_f64},
    .gather = BY_SIZE(gather),
    .scatter = BY_SIZE(scatter),
    .fill = BY_SIZE(fill),
};
