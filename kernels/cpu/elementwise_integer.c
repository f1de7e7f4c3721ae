/* SPDX-License-Identifier: BSD-3-Clause */
/* The formulas of elementwise.def for bool and integer elements, and their loops (elementwise_loops.h):
 * oly_elementwise_integer_<isa>. Compiled once per instruction set; used by the tile interpreter. */
#include "table.h"
#include "cpu/integer_division.h"

#define ELEMENTWISE_TABLE oly_elementwise_integer
#define OLY_INVERT(x)     inverted(x)
#define OLY_NEG(x)        BY_NUMBER(negative, x)(x)
#define OLY_ABS(x)        BY_TYPE(magnitude, x)(x)
#define OLY_SIGN(x)       BY_NUMBER(sign, x)(x)
#define OLY_ADD(x, y)     BY_TYPE(sum, x)(x, y)
#define OLY_SUB(x, y)     BY_NUMBER(difference, x)(x, y)
#define OLY_MUL(x, y)     BY_TYPE(product, x)(x, y)
#define OLY_DIV(x, y)     (x) /* not used: its loops are DIVISION_LOOPS */
#define OLY_MAX(x, y)     _Generic((x), bool : (x) | (y), default : (x) > (y) ? (x) : (y))
#define OLY_MIN(x, y)     _Generic((x), bool : (x) & (y), default : (x) < (y) ? (x) : (y))
#define OLY_LT(x, y)      ((x) < (y))
#define OLY_LE(x, y)      ((x) <= (y))
#define OLY_GT(x, y)      ((x) > (y))
#define OLY_GE(x, y)      ((x) >= (y))

/* -- formulas ------------------------------------------------------------------------------------------------------- */
/* Integers wrap: the arithmetic is that of U, an unsigned type of the same size or, for narrower ones, of 32 bits,
 * because they would be promoted to int. */
#define INTEGER_FORMULAS(is_negative, number, name, s, T, UNSIGNED, S, U, ...)                                         \
    static inline T negative_##s(T x)                                                                                  \
    {                                                                                                                  \
        return (T)(0 - (U)x);                                                                                          \
    }                                                                                                                  \
    static inline T magnitude_##s(T x)                                                                                 \
    {                                                                                                                  \
        return is_negative(x) ? (T)(0 - (U)x) : x;                                                                     \
    }                                                                                                                  \
    static inline T sign_##s(T x)                                                                                      \
    {                                                                                                                  \
        return (T)((x > 0) - is_negative(x));                                                                          \
    }                                                                                                                  \
    static inline T sum_##s(T x, T y)                                                                                  \
    {                                                                                                                  \
        return (T)((U)x + (U)y);                                                                                       \
    }                                                                                                                  \
    static inline T difference_##s(T x, T y)                                                                           \
    {                                                                                                                  \
        return (T)((U)x - (U)y);                                                                                       \
    }                                                                                                                  \
    static inline T product_##s(T x, T y)                                                                              \
    {                                                                                                                  \
        return (T)((U)x * (U)y);                                                                                       \
    }
OLY_SIGNED_TYPES(INTEGER_FORMULAS, BELOW_ZERO)
OLY_UNSIGNED_TYPES(INTEGER_FORMULAS, NEVER)

static inline bool magnitude_b8(bool x)
{
    return x;
}
static inline bool sum_b8(bool x, bool y)
{
    return x | y;
}
static inline bool product_b8(bool x, bool y)
{
    return x & y;
}

/* -- powers ----------------------------------------------------------------------------------------------------------- */
/* By squaring, a block at a time: each round is a loop over the block, which vectorises, and there are as many as the largest
 * exponent of the block needs. With a negative exponent, +-1 to an odd or even power, and 0 for all others. */
enum { POWERS = 64 };
#define POWER_FORMULAS(is_negative, number, name, s, T, UNSIGNED, S, U, ...)                                           \
    static inline void pow_block_##s(int n, T *out, const T *xs, const T *ys, int sx, int sy)                          \
    {                                                                                                                  \
        U base[POWERS], exponent[POWERS], result[POWERS], left = 0;                                                    \
        for (int i = 0; i < n; i++) {                                                                                  \
            const T x = xs[i * sx], y = ys[i * sy];                                                                    \
            bool inverse = is_negative(y), unit = (U)x + 1 <= 2 && x != 0;                                             \
            base[i] = (U)x;                                                                                            \
            exponent[i] = inverse ? (U)y & 1 : (U)y;                                                                   \
            result[i] = !inverse | unit;                                                                               \
            left |= exponent[i];                                                                                       \
        }                                                                                                              \
        for (; left != 0; left >>= 1)                                                                                  \
            for (int i = 0; i < n; i++) {                                                                              \
                result[i] *= exponent[i] & 1 ? base[i] : 1;                                                            \
                base[i] *= base[i];                                                                                    \
                exponent[i] >>= 1;                                                                                     \
            }                                                                                                          \
        for (int i = 0; i < n; i++)                                                                                    \
            out[i] = (T)result[i];                                                                                     \
    }
OLY_SIGNED_TYPES(POWER_FORMULAS, BELOW_ZERO)
OLY_UNSIGNED_TYPES(POWER_FORMULAS, NEVER)

#define POWER_LOOP(s, T, variant, sx, sy)                                                                              \
    static void pow_##variant##_##s(int n, void *out, const void *px, const void *py, UNUSED_OPERAND)                  \
    {                                                                                                                  \
        const T *xs = px, *ys = py;                                                                                    \
        T *result = out;                                                                                               \
        for (int i = 0; i < n; i += POWERS)                                                                            \
            pow_block_##s(n - i < POWERS ? n - i : POWERS, result + i, xs + i * sx, ys + i * sy, sx, sy);              \
    }
#define POWER_LOOPS(s, T, R, name, value)                                                                              \
    POWER_LOOP(s, T, vv, 1, 1)                                                                                         \
    POWER_LOOP(s, T, sv, 0, 1)                                                                                         \
    POWER_LOOP(s, T, vs, 1, 0)
#define OLY_LOOPS_OF_pow , POWER_LOOPS

#define QUOTIENT_LOOPS(s, T, R, name, value) DIVISION_LOOPS(s, T, name, false)
#define OLY_LOOPS_OF_div                     , QUOTIENT_LOOPS
#include "cpu/elementwise_loops.h"
