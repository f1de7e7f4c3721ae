/* SPDX-License-Identifier: BSD-3-Clause */
/* Quotients and remainders of blocks of integers by way of floating-point numbers: processors divide vectors of those, but integers one
 * by one. Used by elementwise_integer.c and elementwise_math_integer.c, whose loops these are.
 *
 * Exact. Let |x| and |y| be below 2^p, and the significand have p bits or more. A quotient that is no integer is at least 1 / |y| away
 * from the next one, which is more than 2^-p of its own size: rounding does not get there. Where all are divided by one y, x is
 * multiplied by 1 / y, increased by a few units of its last digit: the product is never below the quotient in size, and above it by
 * less than 1 / |y|, as 2^16 * 2^-21, 2^32 * 2^-49 and 2^48 * 2^-49 are below 1. */
#ifndef OLY_INTEGER_DIVISION_H
#define OLY_INTEGER_DIVISION_H
#include "cpu/elementwise_integer.h"

enum { DIVIDED = 64 }; /* elements of a block */

/* By type: a floating type, the integer type of quotients by 2 or more, and the conversions to the first. */
#define REAL_OF_i8     float
#define REAL_OF_i16    float
#define REAL_OF_i32    double
#define REAL_OF_i64    double
#define REAL_OF_u8     float
#define REAL_OF_u16    float
#define REAL_OF_u32    double
#define REAL_OF_u64    double
#define WHOLE_OF_i8    int32_t
#define WHOLE_OF_i16   int32_t
#define WHOLE_OF_i32   int32_t
#define WHOLE_OF_i64   int64_t
#define WHOLE_OF_u8    int32_t
#define WHOLE_OF_u16   int32_t
#define WHOLE_OF_u32   int32_t
#define WHOLE_OF_u64   int64_t
#define AS_REAL_i8(x)  ((float)(int32_t)(x))
#define AS_REAL_i16(x) ((float)(int32_t)(x))
#define AS_REAL_i32(x) ((double)(x))
#define AS_REAL_i64(x) ((double)(x))
#define AS_REAL_u8(x)  ((float)(int32_t)(x))
#define AS_REAL_u16(x) ((float)(int32_t)(x))
#define AS_REAL_u32(x) ((double)(int32_t)((x) ^ 0x80000000u) + 0x1p31) /* AVX2 converts signed numbers only */
#define AS_REAL_u64(x) ((double)(int64_t)(x))
#define MORE_OF_float  0x1p-22f
#define MORE_OF_double 0x1p-50
#define MORE_THAN(R)   MORE_OF(R)
#define MORE_OF(R)     (1 + MORE_OF_##R)

/* Is x of a size below 2^bits? Asked of 64-bit types. */
#define IS_SIGNED(T) ((T)-1 < (T)1)
#define IS_BELOW(T, x, bits)                                                                                           \
    ((uint64_t)(x) + ((uint64_t)IS_SIGNED(T) << (bits)) < (uint64_t)1 << ((bits) + IS_SIGNED(T)))
/* By 0, 1 and -1: quotients that are known, and computed as if by 2. */
#define IS_TRIVIAL(is_negative, T, y) (((y) == 0) | ((y) == 1) | (is_negative(y) & ((y) == (T)-1)))

/* Quotients of n <= DIVIDED elements, or remainders. sx, sy: 1, or 0 where the operand is one element for all. out may be xs or ys. */
#define DIVISION(is_negative, number, name, s, T, UNSIGNED, S, U, ...)                                                 \
    static inline T quotient_or_##s(T x, T y, T quotient)                                                              \
    {                                                                                                                  \
        T known = y == 0 ? (T) ~(U)0 : y == 1 ? x : (T)(0 - (U)x);                                                     \
        return IS_TRIVIAL(is_negative, T, y) ? known : quotient;                                                       \
    }                                                                                                                  \
    static inline void divide_##s(int n, T *out, const T *xs, const T *ys, int sx, int sy, bool remainders)            \
    {                                                                                                                  \
        bool fits = true;                                                                                              \
        T quotient[DIVIDED];                                                                                           \
        for (int i = 0; i < n && sizeof(T) == 8; i++)                                                                  \
            fits &= IS_BELOW(T, xs[i * sx], sy ? 53 : 48) & IS_BELOW(T, ys[i * sy], 53);                               \
        if (!fits) {                                                                                                   \
            for (int i = 0; i < n; i++) {                                                                              \
                const T x = xs[i * sx], y = ys[i * sy];                                                                \
                quotient[i] = quotient_or_##s(x, y, (T)(x / (T)(IS_TRIVIAL(is_negative, T, y) ? 2 : y)));              \
            }                                                                                                          \
        } else if (sy) {                                                                                               \
            for (int i = 0; i < n; i++) {                                                                              \
                const T x = xs[i * sx], y = ys[i], by = (T)(IS_TRIVIAL(is_negative, T, y) ? 2 : y);                    \
                quotient[i] = quotient_or_##s(x, y, (T)(WHOLE_OF_##s)(AS_REAL_##s(x) / AS_REAL_##s(by)));              \
            }                                                                                                          \
        } else {                                                                                                       \
            const T y = ys[0], by = (T)(IS_TRIVIAL(is_negative, T, y) ? 2 : y);                                        \
            const REAL_OF_##s inverse = 1 / AS_REAL_##s(by) * MORE_THAN(REAL_OF_##s);                                  \
            for (int i = 0; i < n; i++)                                                                                \
                quotient[i] = quotient_or_##s(xs[i * sx], y, (T)(WHOLE_OF_##s)(AS_REAL_##s(xs[i * sx]) * inverse));    \
        }                                                                                                              \
        for (int i = 0; i < n; i++) {                                                                                  \
            const U x = (U)xs[i * sx], y = (U)ys[i * sy];                                                              \
            out[i] = remainders ? (T)(x - (U)quotient[i] * y) : quotient[i];                                           \
        }                                                                                                              \
    }
OLY_SIGNED_TYPES(DIVISION, BELOW_ZERO)
OLY_UNSIGNED_TYPES(DIVISION, NEVER)

#define DIVISION_LOOP(s, T, name, remainders, variant, sx, sy)                                                         \
    static void name##_##variant##_##s(int n, void *out, const void *px, const void *py, UNUSED_OPERAND)               \
    {                                                                                                                  \
        const T *xs = px, *ys = py, y0[1] = {ys[0]}, x0[1] = {xs[0]}; /* out may be the operand that is one for all */ \
        T *result = out;                                                                                               \
        for (int i = 0; i < n; i += DIVIDED)                                                                           \
            divide_##s(n - i < DIVIDED ? n - i : DIVIDED, result + i, sx ? xs + i : x0, sy ? ys + i : y0, sx, sy,      \
                       remainders);                                                                                    \
    }
#define DIVISION_LOOPS(s, T, name, remainders)                                                                         \
    DIVISION_LOOP(s, T, name, remainders, vv, 1, 1)                                                                    \
    DIVISION_LOOP(s, T, name, remainders, sv, 0, 1)                                                                    \
    DIVISION_LOOP(s, T, name, remainders, vs, 1, 0)
#endif
