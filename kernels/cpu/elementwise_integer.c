/* SPDX-License-Identifier: BSD-3-Clause */
/* The formulas of elementwise.def for bool and integer elements, and their loops (elementwise_loops.h):
 * oly_elementwise_integer_<isa>. Compiled once per instruction set; used by the tile interpreter. */
#include "table.h"
#include "cpu/elementwise_integer.h"

#define ELEMENTWISE_TABLE oly_elementwise_integer
#define OLY_NEG(x)        BY_NUMBER(negative, x)(x)
#define OLY_ABS(x)        BY_TYPE(magnitude, x)(x)
#define OLY_SIGN(x)       BY_NUMBER(sign, x)(x)
#define OLY_ADD(x, y)     BY_TYPE(sum, x)(x, y)
#define OLY_SUB(x, y)     BY_NUMBER(difference, x)(x, y)
#define OLY_MUL(x, y)     BY_TYPE(product, x)(x, y)
#define OLY_DIV(x, y)     BY_NUMBER(quotient, x)(x, y)
#define OLY_POW(x, y)     BY_NUMBER(pow, x)(x, y)
#define OLY_MAX(x, y)     ((x) > (y) ? (x) : (y))
#define OLY_MIN(x, y)     ((x) < (y) ? (x) : (y))
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
    }                                                                                                                  \
    static inline T quotient_##s(T x, T y)                                                                             \
    {                                                                                                                  \
        if (y == 0)                                                                                                    \
            return (T) ~(U)0;                                                                                          \
        return is_negative(y) && y == (T) ~(U)0 ? (T)(0 - (U)x) : x / y;                                               \
    }                                                                                                                  \
    static inline T pow_##s(T x, T y)                                                                                  \
    {                                                                                                                  \
        U result = 1, base = (U)x;                                                                                     \
        if (is_negative(y))                                                                                            \
            return x == 1 ? 1 : is_negative(x) && x == (T) ~(U)0 ? ((U)y & 1 ? x : 1) : 0;                             \
        for (U e = (U)y; e != 0; e >>= 1) {                                                                            \
            result = e & 1 ? result * base : result;                                                                   \
            base *= base;                                                                                              \
        }                                                                                                              \
        return (T)result;                                                                                              \
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
#include "cpu/elementwise_loops.h"
