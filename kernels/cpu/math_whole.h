/* SPDX-License-Identifier: BSD-3-Clause */
/* Rounding, remainders, adjacent numbers and bits of one element. Used by elementwise_math.c and math_gamma.h. */
#ifndef OLY_MATH_WHOLE_H
#define OLY_MATH_WHOLE_H
#include "cpu/vector_math.h"

/* -- rounding ------------------------------------------------------------------------------------------------------ */
/* Ties to even. Without the instruction: adding 1.5 2^23 (2^52) rounds. */
INLINE float round_f32(float x)
{
#if defined(__x86_64__) && !defined(__SSE4_1__)
    float a = __builtin_fabsf(x), y = (a + 0x1p23f) - 0x1p23f;
    return a < 0x1p23f ? __builtin_copysignf(y, x) : x;
#else
    return __builtin_rintf(x);
#endif
}
INLINE double round_f64(double x)
{
#if defined(__x86_64__) && !defined(__SSE4_1__)
    double a = fabs(x), y = (a + 0x1p52) - 0x1p52;
    return a < 0x1p52 ? with_sign_of(y, x) : x;
#else
    return __builtin_rint(x);
#endif
}
/* Other roundings, from the nearest integer. */
#define FROM_ROUNDED(s, T, abs_of, copysign_of)                                                                        \
    INLINE T ceil_##s(T x)                                                                                             \
    {                                                                                                                  \
        T y = round_##s(x);                                                                                            \
        return copysign_of(y < x ? y + 1 : y, x);                                                                      \
    }                                                                                                                  \
    INLINE T round_away_##s(T x)                                                                                       \
    {                                                                                                                  \
        T a = abs_of(x), y = round_##s(a);                                                                             \
        return copysign_of(a - y == (T)0.5 ? y + 1 : y, x);                                                            \
    }
FROM_ROUNDED(f32, float, __builtin_fabsf, __builtin_copysignf)
FROM_ROUNDED(f64, double, __builtin_fabs, __builtin_copysign)

INLINE bool is_finite_f32(float x)
{
    return __builtin_fabsf(x) < (float)INFINITY;
}
INLINE bool is_finite_f64(double x)
{
    return fabs(x) < INFINITY;
}

/* -- remainders: exact, with the sign of x ---------------------------------------------------------------------------- */
/* Near forms: |x| below 2^28 |y| (2^50 |y|), where the product with the quotient, rounded to nearest, is exact. */
INLINE float remainder_f32(float number, float by)
{
    double x = fabs((double)number), y = fabs((double)by), r = x - ((x / y + ROUNDER) - ROUNDER) * y;
    r = r < 0 ? r + y : r;
    return (float)with_sign_of(x < y ? x : r, number);
}
INLINE bool remainder_far_f32(float x, float y)
{
    return !(fabs((double)x) < 0x1p28 * fabs((double)y)) | (y != y);
}
INLINE double remainder_f64(double number, double by)
{
    double x = fabs(number), y = fabs(by), q = (x / y + ROUNDER) - ROUNDER;
#ifdef __FP_FAST_FMA
    double r = __builtin_fma(-q, y, x);
#else
    double p = q * y, r = (x - p) - product_error(q, y, p);
#endif
    r = r < 0 ? r + y : r;
    return with_sign_of(x < y ? x : r, number);
}
INLINE bool remainder_far_f64(double x, double y)
{
    return !(fabs(x) * 0x1p-50 < fabs(y)) | !(fabs(x) < 0x1p990) | (fabs(y) < 0x1p-900) | (y != y);
}

/* -- adjacent numbers ---------------------------------------------------------------------------------------------- */
/* The next number from x towards y, in the order of the bits; infinity: the bits of infinity. */
#define NEXT_AFTER(s, T, U, I, bits, infinity)                                                                         \
    INLINE T next_after_##s(T number, T towards)                                                                       \
    {                                                                                                                  \
        const U sign = (U)1 << (bits - 1), nan = (U)(infinity | infinity >> 1);                                        \
        U x, y;                                                                                                        \
        memcpy(&x, &number, sizeof x);                                                                                 \
        memcpy(&y, &towards, sizeof y);                                                                                \
        U mx = (U)(x & (U)~sign), my = (U)(y & (U)~sign);                                                              \
        I a = (I)((x & sign) != 0 ? (I) - (I)mx : (I)mx), b = (I)((y & sign) != 0 ? (I) - (I)my : (I)my);              \
        I next = (I)(a < b ? a + 1 : a - 1);                                                                           \
        bool negative = next < 0 || (next == 0 && (x & sign) != 0);                                                    \
        U result = (U)((U)(next < 0 ? (I)-next : next) | (negative ? sign : 0));                                       \
        result = a == b ? y : result;                                                                                  \
        result = mx > infinity || my > infinity ? nan : result;                                                        \
        T value;                                                                                                       \
        memcpy(&value, &result, sizeof value);                                                                         \
        return value;                                                                                                  \
    }
NEXT_AFTER(f32, float, uint32_t, int32_t, 32, 0x7f800000u)
NEXT_AFTER(f64, double, uint64_t, int64_t, 64, 0x7ff0000000000000u)
#ifndef __cplusplus
/* Narrow types as their bits, each in a C type of its own, so that a formula can be selected by type. */
#define NARROW_NEXT_AFTER(a, number, name, s, T, of, to, top, ...)                                                     \
    typedef enum __attribute__((packed)) { largest_##s = (T)-1 } bits_##s;                                             \
    _Static_assert(sizeof(bits_##s) == sizeof(T), "bits of " name);                                                    \
    NEXT_AFTER(s, bits_##s, T,                                                                                         \
               __typeof__(_Generic((T)0, uint8_t                                                                       \
                                   : (int8_t)0, default                                                                \
                                   : (int16_t)0)),                                                                     \
               8 * sizeof(T), (T)(top))
OLY_NARROW_TYPES(NARROW_NEXT_AFTER, )
#endif
#endif
