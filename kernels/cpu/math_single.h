/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions of one float32 in single precision, with twice the lanes of the double formulas of vector_math.h: no
 * branches, no tables. Used by elementwise*.c. The same operations in the same order on every instruction set, each
 * multiply-add fused, so the bits are the same. Errors are the largest over all 2^32 arguments (EVERY_FLOAT=1
 * build/tests/test_every_float). */
#ifndef OLY_MATH_SINGLE_H
#define OLY_MATH_SINGLE_H
#include "cpu/vector_math.h"

/* a * b + c rounded once, on every CPU. Without the instruction: the product is exact in double, and the sum is rounded
 * to odd there, which makes the second rounding correct. */
INLINE float fused(float a, float b, float c)
{
#ifdef __FP_FAST_FMAF
    return __builtin_fmaf(a, b, c);
#else
    double p = (double)a * b, s = p + c, back = s - p, lost = (p - (s - back)) + (c - back);
    uint64_t odd = bits_of(s), step = bits_of(lost) >> 63 == odd >> 63 ? 1 : -(uint64_t)1;
    bool exact = (lost == 0) | (lost != lost) | ((odd & 1) != 0);
    return (float)of_bits(exact ? odd : odd + step);
#endif
}
INLINE uint32_t word_of(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}
INLINE float of_word(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* Adding it rounds to an integer and leaves that integer in the low bits; WITH_BIAS: plus 127, so that a shift gives
 * 2^k. */
#define SHORT_ROUNDER 0x1.8p23f
#define WITH_BIAS     (SHORT_ROUNDER + 127)
#define SHORT_LOG2_E  0x1.715476p+0f
#define SHORT_LN2_HI  0x1.62e4p-1f /* k * SHORT_LN2_HI is exact for |k| < 512 */
#define SHORT_LN2_LO  0x1.7f7d1cp-20f

/* -- exp: 0.91 ulp ------------------------------------------------------------------------------------------------------- */
/* (e^r - 1) / r for |r| <= ln(2)/2: error of e^r 2^-28. */
INLINE float exponential_slope(float r)
{
    float h = fused(r, 0x1.6b7796p-10f, 0x1.12305ep-7f);
    h = fused(r, h, 0x1.55567ep-5f);
    h = fused(r, h, 0x1.5554a2p-3f);
    h = fused(r, h, 0.5f);
    return fused(r, h, 1);
}
/* For |x| up to this, e^x and its reciprocal are far from overflow and underflow. */
#define NEAR_EXP_F32 87.0f
INLINE float exp_f32(float x)
{
    float shifted = fused(x, SHORT_LOG2_E, WITH_BIAS), k = shifted - WITH_BIAS;
    float r = fused(-k, SHORT_LN2_LO, fused(-k, SHORT_LN2_HI, x)), power = of_word(word_of(shifted) << 23);
    return fused(r, exponential_slope(r), 1) * power;
}
/* For every x: multiplies by the power of two in two steps. */
INLINE float exp_whole_f32(float x)
{
    float low = x < -104.5f ? -104.5f : x, y = low > 89 ? 89 : low;
    float shifted = fused(y, SHORT_LOG2_E, SHORT_ROUNDER), k = shifted - SHORT_ROUNDER;
    float r = fused(-k, SHORT_LN2_LO, fused(-k, SHORT_LN2_HI, y)), p = fused(r, exponential_slope(r), 1);
    int32_t n = (int32_t)(word_of(shifted) - word_of(SHORT_ROUNDER)), half = n >> 1;
    return p * of_word((uint32_t)(half + 127) << 23) * of_word((uint32_t)(n - half + 127) << 23);
}

/* -- sigmoid: 2.5 ulp ---------------------------------------------------------------------------------------------------- */
/* Rounded after each step, as XLA's 1 / (1 + exp(-x)): the last digits printed by JAX programs depend on it. Far below
 * zero, where that exp overflows, exp(x) itself. */
INLINE float sigmoid_f32(float x)
{
    return 1 / (1 + exp_f32(-x));
}
INLINE float sigmoid_whole_f32(float x)
{
    bool low = x < -88;
    float e = exp_whole_f32(low ? x : -x);
    return low ? e : 1 / (1 + e);
}

/* -- tanh: 0.999 ulp ----------------------------------------------------------------------------------------------------- */
/* An odd polynomial near zero (2^-26), else 1 - 1 / (e^(2|x|) / 2 + 1/2). */
INLINE float tanh_f32(float x)
{
    float a = __builtin_fabsf(x), y = a > 9.1f ? 9.1f : a, z = a * a;
    float shifted = fused(y, 2 * SHORT_LOG2_E, WITH_BIAS), k = shifted - WITH_BIAS;
    float r = fused(-k, SHORT_LN2_LO / 2, fused(-k, SHORT_LN2_HI / 2, y)), power = of_word(word_of(shifted) << 23);
    float half = 0.5f * power;
    float far = 1 - 1 / fused(power * r, exponential_slope(r + r), half + 0.5f);
    float p = fused(z, 0x1.63369ep-10f, -0x1.c8c758p-8f);
    p = fused(z, p, 0x1.57ec22p-6f);
    p = fused(z, p, -0x1.b85782p-5f);
    p = fused(z, p, 0x1.1104p-3f);
    p = fused(z, p, -0x1.555514p-2f);
    float t = a < 0.88f ? fused(a * z, p, a) : far;
    return of_word(word_of(t) | (word_of(x) & 0x80000000));
}

/* -- logarithm: 0.88 ulp -------------------------------------------------------------------------------------------------- */
/* (log(1 + f) - f) / f^2 for 1 + f in [2/3, 4/3). */
INLINE float log_quotient(float f)
{
    float q = fused(f, -0x1.07c894p-3f, 0x1.1e678cp-3f);
    q = fused(f, q, -0x1.f332f8p-4f);
    q = fused(f, q, 0x1.1ed662p-3f);
    q = fused(f, q, -0x1.559c44p-3f);
    q = fused(f, q, 0x1.99d044p-3f);
    q = fused(f, q, -0x1.fffefcp-3f);
    q = fused(f, q, 0x1.555506p-2f);
    return fused(f, q, -0.5f);
}
/* x = m 2^k with m in [2/3, 4/3), for normal x: log(x) = k ln(2) + log(1 + f) with f = m - 1. */
INLINE float log_of_normal(float x, float more)
{
    uint32_t u = word_of(x) - 0x3f2aaaab;
    float k = (float)((int32_t)u >> 23) + more, f = of_word((u & 0x007fffff) + 0x3f2aaaab) - 1;
    /* the rounding error of k ln(2) + f, and the bits of ln(2) beyond 17, are added to the small terms */
    float sum = fused(k, 0x1.62e4p-1f, f), lost = fused(k, 0x1.62e4p-1f, -sum) + f;
    return sum + fused(f * f, log_quotient(f), fused(k, 0x1.7f7d1cp-20f, lost));
}
INLINE float log_f32(float x)
{
    bool small = x < 0x1p-126f;
    float y = log_of_normal(small ? x * 0x1p24f : x, small ? -24 : 0);
    y = x < INFINITY ? y : x;
    y = x < 0 ? NAN : y;
    return x == 0 ? -INFINITY : y;
}

/* -- error function: 0.99 ulp --------------------------------------------------------------------------------------------- */
/* x + x P(x^2) near zero, else 1 - e^(-|x| Q(|x|)); 1 from 3.93 on. The product |x| Q(|x|) is not rounded: its error
 * would be visible. */
INLINE float erf_f32(float x)
{
    float a = __builtin_fabsf(x), b = a > 3.93f ? 3.93f : a, z = a * a;
    float q = fused(b, -0x1.b8c71ap-13f, 0x1.a136ecp-9f);
    q = fused(b, q, -0x1.755376p-6f);
    q = fused(b, q, 0x1.ae79b8p-4f);
    q = fused(b, q, 0x1.458dacp-1f);
    q = fused(b, q, 0x1.20e3c6p+0f);
    float shifted = fused(-b * q, SHORT_LOG2_E, WITH_BIAS), k = shifted - WITH_BIAS;
    float r = fused(-k, SHORT_LN2_LO, fused(-b, q, -k * SHORT_LN2_HI)), power = of_word(word_of(shifted) << 23);
    float far = fused(-fused(r, exponential_slope(r), 1), power, 1);
    float p = fused(z, 0x1.4771fcp-14f, -0x1.a3515ep-11f);
    p = fused(z, p, 0x1.53f224p-8f);
    p = fused(z, p, -0x1.b7f71ap-6f);
    p = fused(z, p, 0x1.ce2ce6p-4f);
    p = fused(z, p, -0x1.81273ep-2f);
    p = fused(z, p, 0x1.06eba8p-3f);
    float e = a < 1 ? fused(a, p, a) : far;
    return of_word(word_of(e) | (word_of(x) & 0x80000000));
}
/* Its complement: 3.7 ulp. 1 - x - x P(x^2) near zero, else e^(-a^2) R(t) / (a + 2) with t = (a - 2) / (a + 2), 2^-26, for a = |x|, and
 * 2 minus it below zero. The square is not rounded, and neither is the quotient before it is multiplied. 2^64 times the power of two
 * is normal where the result is not. */
INLINE float erfc_f32(float x)
{
    float b = __builtin_fabsf(x), a = b > 10.2f ? 10.2f : b, u = 1 / (a + 2), t = (a - 2) * u;
    t = fused(u, fused(-t, a + 2, a - 2), t);
    float p = fused(t, -0x1.f5b82ep-12f, -0x1.a49bd0p-11f);
    p = fused(t, p, 0x1.8a3718p-9f);
    p = fused(t, p, 0x1.a80bb0p-8f);
    p = fused(t, p, -0x1.6030p-6f);
    p = fused(t, p, -0x1.2a876ep-5f);
    p = fused(t, p, 0x1.1e2db2p-2f);
    p = fused(t, p, -0x1.5fd386p-1f);
    p = fused(t, p, 0x1.058672p+0f);
    float shifted = fused(-a * a, SHORT_LOG2_E, WITH_BIAS + 64), k = shifted - (WITH_BIAS + 64);
    float r = fused(-k, SHORT_LN2_LO, fused(-a, a, -k * SHORT_LN2_HI)), power = of_word(word_of(shifted) << 23);
    float g = p * u, far = (g + fused(g, r * exponential_slope(r), fused(p, u, -g))) * power * 0x1p-64f;
    float z = a * a, q = fused(z, 0x1.32d88ap-8f, -0x1.b61fc8p-6f);
    q = fused(z, q, 0x1.ce22a2p-4f);
    q = fused(z, q, -0x1.81272cp-2f);
    q = fused(z, q, 0x1.06eba8p-3f);
    float near = 1 - fused(x, q, x);
    return a < 0.5f ? near : x < 0 ? 2 - far : far;
}
#endif
