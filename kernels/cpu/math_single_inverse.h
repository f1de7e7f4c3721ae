/* SPDX-License-Identifier: BSD-3-Clause */
/* More functions of one float32 in single precision, as math_single.h: hyperbolic functions, inverse functions and the cube
 * root. Where a rounding error of an intermediate result would be visible, that error is computed and added to the small terms.
 * Included by math_exponential.h. */
#ifndef OLY_MATH_SINGLE_INVERSE_H
#define OLY_MATH_SINGLE_INVERSE_H
#include "cpu/math_single.h"

INLINE float with_sign_of_f32(float magnitude, float x)
{
    return of_word((word_of(magnitude) & 0x7fffffff) | (word_of(x) & 0x80000000));
}
/* 1 / x within 13 %, for positive x of moderate size: enough for corrections. For 0 it is finite. */
INLINE float rough_inverse(float x)
{
    return of_word(0x7ef311c7 - word_of(x));
}

/* What the rounded sum of two positive numbers lacks. */
INLINE float lost_by_sum(float sum, float a, float b)
{
    float high = a > b ? a : b, low = a > b ? b : a;
    return (high - sum) + low;
}

/* -- sinh: 1.5 ulp; cosh: 1.9 ulp ------------------------------------------------------------------------------------------------ */
/* With |x| = k ln(2) + r, h = 2^k / 2 and g = 2^-k / 2: cosh x = (h + g) cosh r + (h - g) sinh r, sinh x = (h - g) cosh r +
 * (h + g) sinh r. h and g are halved again, so that they do not overflow before the result does. */
typedef struct hyperbolic {
    float r, sum, less; /* the last two of h and g */
} hyperbolic;
#define WITH_SHORT_BIAS (SHORT_ROUNDER + 125)
INLINE hyperbolic hyperbolic_of(float a, float shifted)
{
    float k = shifted - WITH_SHORT_BIAS, r = fused(-k, SHORT_LN2_LO, fused(-k, SHORT_LN2_HI, a));
    uint32_t power = word_of(shifted) << 23, inverse = 0x7d000000 - power;
    float h = of_word(power), g = of_word(power > 0x7d000000 ? 0 : inverse);
    hyperbolic p = {r, h + g, h - g};
    return p;
}
/* a cosh r + b sinh r for |r| <= ln(2)/2, or 1 if a = 0: the cosh within 2^-33, the sinh within 2^-31. */
INLINE float combined(float r, float a, float b)
{
    float z = r * r, c = fused(z, 0x1.6d4f1p-10f, 0x1.5554e6p-5f); /* (cosh r - 1) / r^2 */
    c = z * fused(z, c, 0.5f);
    float s = fused(z, 0x1.75a6f4p-19f, 0x1.a02156p-13f); /* (sinh r - r) / r^3 */
    s = fused(z, s, 0x1.1110e2p-7f);
    s = z * fused(z, s, 0x1.555556p-3f);
    float step = b * r;
    return a + fused(step, s, fused(a, c, step));
}
INLINE float sinh_f32(float x)
{
    float a = __builtin_fabsf(x), y = a > 89.5f ? 89.5f : a;
    /* k = 0 extends to 1 because k = 1 would cancel there */
    hyperbolic p = hyperbolic_of(y, y < 1 ? WITH_SHORT_BIAS : fused(y, SHORT_LOG2_E, WITH_SHORT_BIAS));
    return with_sign_of_f32(a < 0x1p-12f ? a : 2 * combined(p.r, p.less, p.sum), x);
}
INLINE float cosh_f32(float x)
{
    float a = __builtin_fabsf(x), y = a > 89.5f ? 89.5f : a;
    hyperbolic p = hyperbolic_of(y, fused(y, SHORT_LOG2_E, WITH_SHORT_BIAS));
    return 2 * combined(p.r, p.sum, p.less);
}

/* -- arc sine: 0.65 ulp; arc cosine: 0.62 ulp -------------------------------------------------------------------------------- */
#define SHORT_HALF_PI    0x1.921fb6p+0f
#define SHORT_HALF_PI_LO -0x1.777a5cp-25f
/* asin(s) = s + s z q(z), z = s^2 <= 1/4. Beyond 1/2: asin(a) = pi/2 - 2 asin(sqrt((1 - a) / 2)). */
typedef struct arc_parts {
    float s, rest; /* their sum is the angle */
} arc_parts;
INLINE arc_parts arc_sine_of(float a, float near, bool big)
{
    float z = big ? (1 - a) * 0.5f : a * a, root = __builtin_sqrtf(z), s = big ? root : near;
    float lost = big ? 0.5f * fused(-root, root, z) * rough_inverse(root) : 0;
    float q = fused(z, 0x1.342870p-5f, 0x1.d6a41ap-7f);
    q = fused(z, q, 0x1.04be64p-5f);
    q = fused(z, q, 0x1.6ca912p-5f);
    q = fused(z, q, 0x1.3338a6p-4f);
    q = fused(z, q, 0x1.55554cp-3f);
    arc_parts y = {s, fused(s * z, q, lost)};
    return y;
}
/* turn pi/2 + sign (s + rest): turn is 0, 1/2, 1, 3/2 or 2, sign a small integer. */
INLINE float turned(float turn, float sign, arc_parts y)
{
    float base = turn * SHORT_HALF_PI, step = sign * y.s, sum = base + step, lost = (base - sum) + step;
    return sum + fused(sign, y.rest, fused(turn, SHORT_HALF_PI_LO, lost));
}
INLINE float asin_f32(float x)
{
    float a = __builtin_fabsf(x);
    bool big = a > 0.5f;
    return with_sign_of_f32(turned(big ? 1 : 0, big ? -2 : 1, arc_sine_of(a, a, big)), x);
}
INLINE float acos_f32(float x)
{
    float a = __builtin_fabsf(x);
    bool big = a > 0.5f, left = x < 0;
    return turned(big ? left ? 2 : 0 : 1, big ? left ? -2 : 2 : -1, arc_sine_of(a, x, big));
}

/* -- arc tangent: 0.72 ulp ----------------------------------------------------------------------------------------------------- */
/* q of atan(t) = t + t z q(z), z = t^2 <= 1/4 */
INLINE float arc_tangent_slope(float z)
{
    float q = fused(z, 0x1.400c3p-5f, -0x1.481fdap-4f);
    q = fused(z, q, 0x1.c076e8p-4f);
    q = fused(z, q, -0x1.24506ap-3f);
    q = fused(z, q, 0x1.999746p-3f);
    return fused(z, q, -0x1.555552p-2f);
}
/* From 1/2 on pi/4 + atan((a - 1) / (a + 1)), from 2 on pi/2 + atan(-1 / a). */
INLINE float atan_f32(float x)
{
    float a = __builtin_fabsf(x), b = a > 0x1p60f ? 0x1p60f : a, more = a + 1;
    bool middle = (a > 0.5f) & (a < 2), big = a >= 2;
    float n = middle ? a - 1 : big ? -1 : a, d = middle ? more : big ? b : 1, t = n / d, z = t * t;
    float lost = middle ? a - (more - 1) : 0; /* by d; n is exact */
    lost = fused(-t, lost, fused(-t, d, n)) * rough_inverse(d);
    arc_parts y = {t, fused(t * z, arc_tangent_slope(z), lost)};
    float angle = turned(middle ? 0.5f : big ? 1 : 0, 1, y);
    return x == x ? with_sign_of_f32(angle, x) : x;
}
/* Of two arguments: 0.87 ulp. The quotient of the smaller by the larger magnitude, from 1/2 on as above, and the eighth of the circle. */
INLINE float atan2_f32(float y, float x)
{
    float ay = __builtin_fabsf(y), ax = __builtin_fabsf(x);
    bool steep = ay > ax, left = word_of(x) >> 31 != 0;
    float low = steep ? ax : ay, high = steep ? ay : ax;
    float scale = high > 0x1p90f    ? 0x1p-30f
                  : high < 0x1p-90f ? 0x1p60f
                                    : 1; /* far from overflow and from lost digits */
    low = high < (float)INFINITY ? low * scale : low < (float)INFINITY ? 0 : 1;
    high = high < (float)INFINITY ? high * scale : 1;
    high = high == 0 ? 1 : high;
    bool middle = low > 0.5f * high;
    float n = middle ? low - high : low, d = middle ? low + high : high, t = n / d, z = t * t;
    float lost = middle ? low - (d - high) : 0; /* by d; n is exact */
    lost = fused(-t, lost, fused(-t, d, n)) * rough_inverse(d);
    float turn = middle ? 0.5f : 0, sign = steep ? -1 : 1;
    turn = steep ? 1 - turn : turn;
    turn = left ? 2 - turn : turn, sign = left ? -sign : sign;
    /* 3/2 of SHORT_HALF_PI is rounded, unlike the others */
    arc_parts parts = {
        t, fused(sign, fused(turn, SHORT_HALF_PI, -turn * SHORT_HALF_PI), fused(t * z, arc_tangent_slope(z), lost))};
    float angle = turned(turn, sign, parts);
    return (x != x) | (y != y) ? x + y : with_sign_of_f32(angle, y);
}

/* -- inverse hyperbolic functions ------------------------------------------------------------------------------------------- */
/* log(x) + more ln(2) + correction, for normal x. */
INLINE float log_corrected(float x, float correction, float more)
{
    uint32_t u = word_of(x) - 0x3f2aaaab;
    float k = (float)((int32_t)u >> 23) + more, f = of_word((u & 0x007fffff) + 0x3f2aaaab) - 1;
    float sum = fused(k, 0x1.62e4p-1f, f), lost = fused(k, 0x1.62e4p-1f, -sum) + f;
    return sum + fused(f * f, log_quotient(f), fused(k, 0x1.7f7d1cp-20f, lost + correction));
}
/* What the rounded square root of x + more lacks. */
INLINE float lost_by_root(float root, float x, float more)
{
    return 0.5f * (fused(-root, root, x) + more) * rough_inverse(root);
}
/* asinh: a polynomial up to 1/2, then log(a + sqrt(a^2 + 1)): 0.74 ulp */
INLINE float asinh_f32(float x)
{
    float a = __builtin_fabsf(x), z = a * a, w = z + 1, root = __builtin_sqrtf(w), u = a + root;
    float lost = lost_by_root(root, w, lost_by_sum(w, z, 1) + fused(a, a, -z)) + ((root - u) + a);
    bool big = a > 4096; /* a^2 + 1 = a^2 */
    float far = log_corrected(big ? a : u, big ? 0 : lost * rough_inverse(u), big ? 1 : 0);
    float q = fused(z, 0x1.2f5742p-7f, -0x1.487f7ep-6f);
    q = fused(z, q, 0x1.ec1230p-6f);
    q = fused(z, q, -0x1.6d7ebep-5f);
    q = fused(z, q, 0x1.33323ap-4f);
    q = fused(z, q, -0x1.555554p-3f);
    float y = a < 0.5f ? fused(a * z, q, a) : far;
    return with_sign_of_f32(a < INFINITY ? y : a, x);
}
/* acosh: log(1 + d) with d = t + sqrt(t (t + 2)), t = x - 1: 0.91 ulp */
INLINE float acosh_f32(float x)
{
    float t = x - 1, w = fused(t, t, 2 * t), root = __builtin_sqrtf(w), d = t + root, u = 1 + d;
    float lost = lost_by_root(root, w, fused(t, t, 2 * t - w)) + ((root - d) + t) + lost_by_sum(u, 1, d);
    float f = u - 1,
          inverse = u < 1.4f ? fused(f, f - 1, 1) : rough_inverse(u); /* near 1, where the loss counts, 1 - f + f^2 */
    bool big = x > 4096;
    float y = log_corrected(big ? x : u, big ? 0 : lost * inverse, big ? 1 : 0);
    y = x < INFINITY ? y : x;
    return x < 1 ? NAN : y;
}
/* atanh: a polynomial up to 1/2, then log((1 + a) / (1 - a)) / 2: 0.64 ulp */
INLINE float atanh_f32(float x)
{
    float a = __builtin_fabsf(x), z = a * a, sum = 1 + a, left = 1 - a, u = sum / left;
    float lost = fused(-u, left, sum) + (a - (sum - 1));
    float far = 0.5f * log_corrected(u, lost * fused(sum, -0x1.555556p-2f, 0x1.2aaaaap+0f), 0);
    float q = fused(z, 0x1.7a35p-3f, 0x1.1b9e0ap-6f);
    q = fused(z, q, 0x1.aead96p-4f);
    q = fused(z, q, 0x1.bfb88p-4f);
    q = fused(z, q, 0x1.24d156p-3f);
    q = fused(z, q, 0x1.9997ap-3f);
    q = fused(z, q, 0x1.555558p-2f);
    float y = a < 0.5f ? fused(a * z, q, a) : far;
    y = a < 1 ? y : NAN;
    return with_sign_of_f32(a == 1 ? (float)INFINITY : y, x);
}

/* -- cube root: 0.51 ulp ----------------------------------------------------------------------------------------------------- */
/* |x| = m 2^k, k = 3 q + r. y = s^(-1/3), s = m 2^r, by a polynomial in m (2^-17); s y^2 is nearly the root, and one step of
 * Newton's method, whose cube is not rounded, is divided by three times its square by way of y. */
INLINE float cbrt_f32(float x)
{
    float a = __builtin_fabsf(x);
    bool small = a < 0x1p-126f;
    uint32_t u = word_of(small ? a * 0x1p24f : a) - 0x3f2aaaab;
    float m = of_word((u & 0x007fffff) + 0x3f2aaaab), k = (float)((int32_t)u >> 23);
    float shifted = fused(k, 0x1.555556p-2f, WITH_BIAS), r = fused(-3, shifted - WITH_BIAS, k);
    float power = of_word(word_of(shifted) << 23) * (small ? 0x1p-8f : 1);
    float y = fused(m, -0x1.2efa6cp-3f, 0x1.cf13p-1f);
    y = fused(m, y, -0x1.27a7c6p+1f);
    y = fused(m, y, 0x1.9a0bcp+1f);
    y = fused(m, y, -0x1.58304ep+1f);
    y = fused(m, y, 0x1.04f76ap+1f);
    y *= r == 0 ? 1 : r > 0 ? 0x1.965feap-1f : 0x1.428a30p+0f;
    float s = m * (r == 0 ? 1 : r > 0 ? 2 : 0.5f), y2 = y * y, t = s * y2, square = t * t, cube = square * t;
    float left = (s - cube) - fused(fused(t, t, -square), t, fused(square, t, -cube));
    t = fused(left, y2 * 0x1.555556p-2f, t) * power;
    return (a > 0) & (a < (float)INFINITY) ? with_sign_of_f32(t, x) : x;
}
#endif
