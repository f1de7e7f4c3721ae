/* SPDX-License-Identifier: BSD-3-Clause */
/* Exponential functions and their inverses of one element: exp2, expm1, log1p, logaddexp, and of float64 sinh, cosh, asinh,
 * acosh, atanh, cbrt. As vector_math.h: no branches, no tables; float32 is computed in double and rounded once (except
 * log1p and expm1), float64 is within about 2 ulp. Used by elementwise_math.c. */
#ifndef OLY_MATH_EXPONENTIAL_H
#define OLY_MATH_EXPONENTIAL_H
#include "cpu/math_single_inverse.h"

/* Horner's rule, from the highest power down. */
#ifdef __cplusplus
template <class... C> INLINE double polynomial(double x, double highest, C... rest)
{
    double p = highest;
    ((p = FMA(x, p, (double)rest)), ...);
    return p;
}
#define POLYNOMIAL polynomial
#else
INLINE double polynomial(double x, int n, const double *c)
{
    double p = c[0];
    UNROLLED
    for (int i = 1; i < n; i++)
        p = FMA(x, p, c[i]);
    return p;
}
#define POLYNOMIAL(x, ...)                                                                                             \
    polynomial(x, (int)(sizeof((const double[]){__VA_ARGS__}) / sizeof(double)), (const double[]){__VA_ARGS__})
#endif

#define LN2 0x1.62e42fefa39efp-1

/* -- exponentials --------------------------------------------------------------------------------------------------- */
INLINE float exp2_f32(float x)
{
    double y = clamp(x, -160, 140), k = (y + ROUNDER) - ROUNDER;
    return (float)((1 + expm1_short((y - k) * LN2)) * power_of_two(k));
}
INLINE double exp2_f64(double x)
{
    double y = clamp(x, -1080, 1030), k = (y + ROUNDER) - ROUNDER;
    return scaled(1 + expm1_long((y - k) * LN2), k);
}

/* e^x - 1 = 2^k ((e^r - 1) + (1 - 2^-k)); for -60 <= x < 710. */
typedef struct exponential {
    double k, p; /* e^x = 2^k (1 + p) */
} exponential;
INLINE exponential exponential_of(double x)
{
    double k = FMA(x, LOG2_E, ROUNDER) - ROUNDER;
    double high = FMA(-k, LN2_HI, x), low = k * LN2_LO, r = high - low;
    double tail = (high - r) - low, p = expm1_long(r);
    exponential e = {k, p + FMA(tail, p, tail)};
    return e;
}
INLINE double expm1_of(exponential e)
{
    double rest = 1 - power_of_two(e.k > 60 ? -60 : -e.k);
    return scaled(rest + e.p, e.k);
}
INLINE double expm1_f64(double x)
{
    double y = expm1_of(exponential_of(clamp(x, -60, 710)));
    return x == 0 ? x : y;
}
/* In single precision: 0.984 ulp. 2^k (e^r - 1) + (2^k - 1); k = 0 extends to 0.6 because k = 1 would cancel there. */
#define NEAR_EXPM1_F32 16.6f /* beyond, 2^k - 1 rounds to 2^k */
INLINE float expm1_f32(float x)
{
    float y = x < -20 ? -20 : x, shifted = fused(y, SHORT_LOG2_E, WITH_BIAS);
    shifted = (x > 0) & (x < 0.6f) ? WITH_BIAS : shifted;
    float k = shifted - WITH_BIAS, r = fused(-k, SHORT_LN2_LO, fused(-k, SHORT_LN2_HI, y));
    float q = fused(r, 0x1.ceae7ap-13f, 0x1.6ca3b4p-10f), power = of_word(word_of(shifted) << 23);
    q = fused(r, q, 0x1.10ee3ap-7f);
    q = fused(r, q, 0x1.555574p-5f);
    q = fused(r, q, 0x1.55556ep-3f);
    q = fused(r, q, 0.5f);
    float e = fused(power, fused(r * r, q, r), power - 1);
    return of_word(word_of(e) | (word_of(x) & 0x80000000));
}
INLINE float expm1_whole_f32(float x)
{
    float far = (float)(exp_short(clamp(x, 0, 100)) - 1), near = expm1_f32(x);
    return x > NEAR_EXPM1_F32 ? far : near;
}

/* sinh a = (t + t / (1 + t)) / 2 with t = e^a - 1; cosh a = e^a / 2 + 1 / (2 e^a). For large a e^a / 2 as one scaling,
 * which overflows later than e^a. */
INLINE double sinh_f64(double x)
{
    double a = clamp(fabs(x), 0, 712);
    exponential e = exponential_of(a);
    exponential near_one = {a > 30 ? 0 : e.k, e.p};
    double t = expm1_of(near_one);
    double near = a < 1 ? 2 * t - t * t / (t + 1) : t + t / (t + 1);
    double y = a > 30 ? scaled(1 + e.p, e.k - 1) : 0.5 * near;
    return with_sign_of(y, x);
}
INLINE double cosh_f64(double x)
{
    double a = clamp(fabs(x), 0, 712);
    exponential e = exponential_of(a);
    double half = scaled(1 + e.p, e.k - 1);
    return half + 0.25 / half;
}

/* -- logarithms ----------------------------------------------------------------------------------------------------- */
/* log(1 + x): the logarithm of the rounded sum u, plus the rounding error of the sum over u. */
INLINE double log1p_f64(double x)
{
    double u = 1 + x, back = u - 1, lost = (1 - (u - back)) + (x - back);
    double k, f = split_exponent(u, &k) - 1;
    double s = f / (2 + f), z = s * s, half = 0.5 * f * f;
    double r = z * POLYNOMIAL(z, 1.479819860511658591e-01, 1.531383769920937332e-01, 1.818357216161805012e-01,
                              2.222219843214978396e-01, 2.857142874366239149e-01, 3.999999999940941908e-01,
                              6.666666666666735130e-01);
    double y = k * LN2_HI - ((half - FMA(s, half + r, FMA(k, LN2_LO, lost / u))) - f);
    y = x < INFINITY ? y : x;
    y = x < -1 ? NAN : y;
    y = x == -1 ? -INFINITY : y;
    return x == 0 ? x : y;
}

/* JAX's formulas in float32, bit for bit on normal numbers: normal random numbers depend on them. */
INLINE float log_as_jax(float number)
{
    const float infinity = INFINITY;
    int32_t bits, one = 0x3f000000;
    bool small = number < 0x1p-126f;
    float scaled_up = small ? number * 0x1p24f : number, m;
    memcpy(&bits, &scaled_up, sizeof bits);
    float e = (float)((bits >> 23) - 126) - (small ? 24 : 0);
    bits = (bits & 0x007fffff) | one;
    memcpy(&m, &bits, sizeof m);
    bool low = m < 0.707106781186547524f;
    e = low ? e - 1 : e;
    m = low ? (m - 1) + m : m - 1;
    float z = m * m, q = z * m;
    float a = fused(fused(7.0376836292e-2f, m, -1.1514610310e-1f), m, 1.1676998740e-1f);
    float b = fused(fused(-1.2420140846e-1f, m, 1.4249322787e-1f), m, -1.6668057665e-1f);
    float c = fused(fused(2.0000714765e-1f, m, -2.4999993993e-1f), m, 3.3333331174e-1f);
    float y = fused(fused(fused(a, q, b), q, c), q, -2.12194440e-4f * e);
    y = fused(0.693359375f, e, fused(-0.5f, z, m) + y);
    y = number < infinity ? y : number;
    y = number < 0 ? NAN : y;
    return number == 0 ? -infinity : y;
}
INLINE float log1p_f32(float x)
{
    float x2 = x * x, far = log_as_jax(1 + x);
    float n = fused(4.5270000862445199635e-5f, x, 0.49854102823193375972f);
    float d = x + 15.062909083469192043f;
    n = fused(n, x, 6.5787325942061044847f), d = fused(d, x, 83.047565967967209469f);
    n = fused(n, x, 29.911919328553073277f), d = fused(d, x, 221.76239823732856465f);
    n = fused(n, x, 60.949667980987787058f), d = fused(d, x, 309.09872225312059774f);
    n = fused(n, x, 57.112963590585538103f), d = fused(d, x, 216.42788614495947685f);
    n = fused(n, x, 20.039553499201281259f), d = fused(d, x, 60.118660497603843919f);
    float near = x + fused(-0.5f, x2, (x * x2) * (n / d));
    near = x == 0 ? x : near;
    return __builtin_fabsf(x) >= 0.41421356237309504880f ? far : near;
}

INLINE double asinh_f64(double x)
{
    double a = fabs(x), square = a * a;
    bool big = a > 0x1p60;
    double y = log1p_f64(big ? a : a + square / (1 + __builtin_sqrt(1 + square)));
    return with_sign_of(big ? y + LN2 : y, x);
}
INLINE double acosh_f64(double x)
{
    double t = x - 1;
    bool big = x > 0x1p60;
    double y = log1p_f64(big ? x : t + __builtin_sqrt(t * (t + 2)));
    y = big ? y + LN2 : y;
    return x < 1 ? NAN : y;
}
INLINE double atanh_f64(double x)
{
    double a = fabs(x);
    return with_sign_of(0.5 * log1p_f64(2 * a / (1 - a)), x);
}

/* log(e^x + e^y) */
INLINE double logaddexp_f64(double x, double y)
{
    double d = x - y, larger = (x != x) | (x > y) ? x : y;
    return d != d ? x + y : larger + log1p_f64(exp_f64(-fabs(d)));
}
/* log(1 + e) / e for 0 <= e <= 1 to 2^-38: interpolation at Chebyshev's points. */
INLINE double log1p_short(double e)
{
    return e * POLYNOMIAL(e, -5.209272155449987552e-04, 4.201929782657218629e-03, -1.591538797765984156e-02,
                          3.825170379612154170e-02, -6.720117745855307134e-02, 9.543435242396905438e-02,
                          -1.194219009530260722e-01, 1.414240479122463867e-01, -1.664107648718482491e-01,
                          1.999699059880426788e-01, -2.499978549117155280e-01, 3.333332528487701341e-01,
                          -4.999999988026889719e-01, 9.999999999970313747e-01);
}
INLINE float logaddexp_f32(float x, float y)
{
    double d = (double)x - y, larger = (x != x) | (x > y) ? x : y;
    double e = exp_short(clamp(-fabs(d), -110, 0));
    return (float)(d != d ? (double)x + y : larger + log1p_short(e));
}

/* -- cube root ------------------------------------------------------------------------------------------------------ */
/* |x| = m 2^k, k = 3 q + r; a polynomial in m (2^-27), truncated to 26 bits so that its square is exact, and one step
 * of Halley's method. */
INLINE double cbrt_f64(double x)
{
    double a = fabs(x), k;
    bool small = a < 0x1p-1022;
    double m = split_exponent(small ? a * 0x1p54 : a, &k);
    double q = FMA(k, 0x1.5555555555555p-2, ROUNDER) - ROUNDER, r = k - 3 * q;
    double t = POLYNOMIAL(m, -0x1.904397ce8d7ccp-7, 0x1.e7c2c19942b94p-4, -0x1.082d04d5e857ap-1, 0x1.4f2712b5611c8p+0,
                          -0x1.1485e9b3932d1p+1, 0x1.392ded25764c9p+1, -0x1.000a30687809ep+1, 0x1.72fc8b5f54dafp+0,
                          0x1.756e65a1ed036p-2);
    t *= r == 0 ? 1 : r > 0 ? 0x1.428a2f98d728bp+0 : 0x1.965fea53d6e3dp-1;
    t = of_bits((bits_of(t) + 0x4000000) & 0xfffffffff8000000);
    double s = m * power_of_two(r) / (t * t);
    t = FMA(t, (s - t) / (2 * t + s), t) * power_of_two(small ? q - 18 : q);
    return (a > 0) & (a < INFINITY) ? with_sign_of(t, x) : x;
}

/* -- definitions, except for rounding ------------------------------------------------------------------------------ */
INLINE float rsqrt_f32(float x)
{
    return (float)(1 / __builtin_sqrt((double)x));
}
INLINE double rsqrt_f64(double x)
{
    return 1 / __builtin_sqrt(x);
}
#endif
