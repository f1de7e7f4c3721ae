/* SPDX-License-Identifier: BSD-3-Clause */
/* x^y of float32 in single precision, as math_single.h: 2^(y log2(x)), whose exponent is a sum of two numbers, because its absolute error
 * is the relative one of the power. 0.81 ulp. Used by elementwise.c. */
#ifndef OLY_MATH_SINGLE_POWER_H
#define OLY_MATH_SINGLE_POWER_H
#include "cpu/math_single.h"

/* log2((1 + s) / (1 - s)) = s (LOG2_1 + z LOG2_3 + z^2 p(z)), z = s^2 */
#define LOG2_1    0x1.715476p+1f
#define LOG2_1_LO 0x1.4ae0cp-25f
#define LOG2_3    0x1.ec709ep-1f
#define LOG2_3_LO -0x1.e2fe02p-28f
#define WHOLE_LN2 0x1.62e43p-1f
#define REST_LN2  -0x1.05c61p-29f

typedef struct two_floats {
    float high, low; /* the number is their sum */
} two_floats;

/* log2(a) + more, for normal a = m 2^k with m in [2/3, 4/3): s = (m - 1) / (m + 1). Error 2^-33. */
INLINE two_floats log2_in_two(float a, float more)
{
    uint32_t u = word_of(a) - 0x3f2aaaab;
    float k = (float)((int32_t)u >> 23) + more, f = of_word((u & 0x007fffff) + 0x3f2aaaab) - 1;
    float d = 2 + f, d_low = f - (d - 2), inverse = 1 / d;
    float s = f * inverse, s_low = fused(-s, d_low, fused(-s, d, f)) * inverse;
    float z = s * s, z_low = fused(s + s, s_low, fused(s, s, -z));
    float p = fused(z, 0x1.2036fcp-2f, 0x1.47c84p-2f);
    p = fused(z, p, 0x1.a61878p-2f);
    p = z * fused(z, p, 0x1.2776c4p-1f);
    float c = LOG2_3 + p, c_low = (LOG2_3 - c) + p + LOG2_3_LO;
    float g = z * c, g_low = fused(z, c, -g) + fused(z, c_low, z_low * c);
    float t = LOG2_1 + g, t_low = (LOG2_1 - t) + g + (g_low + LOG2_1_LO);
    float l = s * t, l_low = fused(s, t, -l) + fused(s, t_low, s_low * t);
    two_floats log = {k + l, 0};
    log.low = (k - log.high) + l + l_low;
    return log;
}
/* 2^(y log) */
INLINE float power_of_log(float y, two_floats log)
{
    float w = y * log.high, v = w > 160 ? 160 : w < -160 ? -160 : w;
    float v_low = v == w ? fused(y, log.low, fused(y, log.high, -w)) : 0;
    float shifted = v + SHORT_ROUNDER, r = v - (shifted - SHORT_ROUNDER), whole = r + v_low;
    float q = fused(whole, 0x1.44138ep-13f, 0x1.5ec86ep-10f);
    q = fused(whole, q, 0x1.3b2a54p-7f);
    q = fused(whole, q, 0x1.c6afeep-5f);
    q = fused(whole, q, 0x1.ebfbep-3f);
    q = fused(whole, q, REST_LN2);
    float step = r * WHOLE_LN2, e = 1 + step, lost = step - (e - 1) + fused(r, WHOLE_LN2, -step);
    e += fused(whole, q, fused(v_low, WHOLE_LN2, lost));
    int32_t n = (int32_t)(word_of(shifted) - word_of(SHORT_ROUNDER)), half = n >> 1;
    return e * of_word((uint32_t)(half + 127) << 23) * of_word((uint32_t)(n - half + 127) << 23);
}

/* The special cases of C's pow, given |x|^y. Conditions on y alone are masks: as branches they would be hoisted out of loops over x, which
 * then would not vectorise. */
INLINE float power_special_f32(float x, float y, float magnitude)
{
    const uint32_t nan = 0x7fc00000, one = word_of(1.0f);
    float a = __builtin_fabsf(x), half = y * 0.5f;
    uint32_t fraction = -(uint32_t)(__builtin_floorf(y) != y),
             odd = -(uint32_t)(__builtin_floorf(half) != half) & ~fraction;
    uint32_t is_one = -(uint32_t)((y == 0) | (x == 1)), negative = -(uint32_t)((x < 0) & (a < (float)INFINITY));
    uint32_t result = a == 1 ? one | (-(uint32_t)(y != y) & nan) : word_of(magnitude);
    result ^= word_of(x) & 0x80000000 & odd;
    result |= negative & fraction & nan;
    return of_word((result & ~is_one) | (one & is_one));
}
INLINE float pow_f32(float x, float y)
{
    float a = __builtin_fabsf(x);
    bool small = a < 0x1p-126f;
    two_floats log = log2_in_two(small ? a * 0x1p24f : a, small ? -24 : 0);
    log.high = a < (float)INFINITY ? log.high : a;
    log.high = a == 0 ? -(float)INFINITY : log.high;
    return power_special_f32(x, y, power_of_log(y, log));
}
/* The same for normal x > 0 and finite y, which need nothing special. */
INLINE float pow_ordinary_f32(float x, float y)
{
    return power_of_log(y, log2_in_two(x, 0));
}
INLINE bool is_ordinary_power(float x, float y)
{
    return (x >= 0x1p-126f) & (x < (float)INFINITY) & (__builtin_fabsf(y) < (float)INFINITY);
}
#endif
