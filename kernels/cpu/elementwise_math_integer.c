/* SPDX-License-Identifier: BSD-3-Clause */
/* The formulas of elementwise_math.def for bool and integer elements, and their loops (elementwise_loops.h):
 * oly_math_integer_<isa>. Compiled once per instruction set; used by the tile interpreter. */
#include "cpu/integer_division.h"
#include <string.h>

#define ELEMENTWISE_TABLE oly_math_integer
#define ELEMENTWISE_ROWS  "elementwise_math.def"

#define OLY_SQUARE(x)                    BY_NUMBER(square, x)(x)
#define OLY_REM(x, y)                    (x) /* not used: its loops are DIVISION_LOOPS */
#define OLY_REM_FAR(x, y)                false
#define OLY_REM_CAREFUL(x, y)            (x)
#define OLY_NOT(x)                       _Generic((x), bool : inverted(x), default : (x) ^ -1)
#define OLY_POPULATION_COUNT(x)          BY_NUMBER(population_count, x)(x)
#define OLY_CLZ(x)                       BY_NUMBER(clz, x)(x)
#define OLY_SHIFT_LEFT(x, y)             BY_NUMBER(shift_left, x)(x, y)
#define OLY_SHIFT_RIGHT_LOGICAL(x, y)    BY_NUMBER(shift_right, x)(x, y)
#define OLY_SHIFT_RIGHT_ARITHMETIC(x, y) BY_NUMBER(shift_sign, x)(x, y)

/* -- formulas ------------------------------------------------------------------------------------------------------- */
/* Sums of neighbouring bits, pairs, fours, ...; the leading zeros are the zeros that remain when all bits below the
 * highest one are set. */
static inline uint32_t count_uint32_t(uint32_t x)
{
    x -= x >> 1 & 0x55555555u;
    x = (x & 0x33333333u) + (x >> 2 & 0x33333333u);
    x = (x + (x >> 4)) & 0x0f0f0f0fu;
    return x * 0x01010101u >> 24;
}
static inline uint64_t count_uint64_t(uint64_t x)
{
    x -= x >> 1 & 0x5555555555555555u;
    x = (x & 0x3333333333333333u) + (x >> 2 & 0x3333333333333333u);
    x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fu;
    x += x >> 8;
    x += x >> 16;
    return (x + (x >> 32)) & 127;
}
static inline uint32_t zeros_uint32_t(uint32_t x)
{
    x |= x >> 1;
    x |= x >> 2;
    x |= x >> 4;
    x |= x >> 8;
    x |= x >> 16;
    return count_uint32_t(~x);
}
static inline uint64_t zeros_uint64_t(uint64_t x)
{
    x |= x >> 1;
    x |= x >> 2;
    x |= x >> 4;
    x |= x >> 8;
    x |= x >> 16;
    x |= x >> 32;
    return count_uint64_t(~x);
}

#define BITS(T) ((int)(8 * sizeof(T)))
/* U: the unsigned type of T's size; S: the signed one; W: an unsigned type that is not promoted. */
#define INTEGER_FORMULAS(is_negative, number, name, s, T, U, S, W, ...)                                                \
    static inline T square_##s(T x)                                                                                    \
    {                                                                                                                  \
        return (T)((W)x * (W)x);                                                                                       \
    }                                                                                                                  \
    static inline T population_count_##s(T x)                                                                          \
    {                                                                                                                  \
        return (T)count_##W((U)x);                                                                                     \
    }                                                                                                                  \
    static inline T clz_##s(T x)                                                                                       \
    {                                                                                                                  \
        return (T)(zeros_##W((U)x) - (BITS(W) - BITS(T)));                                                             \
    }                                                                                                                  \
    static inline T shift_left_##s(T x, T y)                                                                           \
    {                                                                                                                  \
        return (U)y < BITS(T) ? (T)((W)x << ((U)y & (BITS(T) - 1))) : 0;                                               \
    }                                                                                                                  \
    static inline T shift_right_##s(T x, T y)                                                                          \
    {                                                                                                                  \
        return (U)y < BITS(T) ? (T)((U)x >> ((U)y & (BITS(T) - 1))) : 0;                                               \
    }                                                                                                                  \
    static inline T shift_sign_##s(T x, T y)                                                                           \
    {                                                                                                                  \
        return (T)((S)x >> ((U)y < BITS(T) ? (U)y : BITS(T) - 1));                                                     \
    }
OLY_SIGNED_TYPES(INTEGER_FORMULAS, BELOW_ZERO)
OLY_UNSIGNED_TYPES(INTEGER_FORMULAS, NEVER)

#define REMAINDER_LOOPS(s, T, name, near, is_far, careful) DIVISION_LOOPS(s, T, name, true)
#define OLY_LOOPS_OF_rem                                   , REMAINDER_LOOPS
#include "cpu/elementwise_loops.h"
