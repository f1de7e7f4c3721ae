/* SPDX-License-Identifier: BSD-3-Clause */
/* Mathematical functions of one element, written so that loops over them vectorise on every instruction set: no
 * branches, no tables. Used by elementwise.c. float32 functions compute in double and round once, so they are (nearly
 * always) correctly rounded, except those of math_single.h; float64 functions are within about 1 ulp. Polynomials are
 * Chebyshev interpolations on the reduced interval with the relative errors noted; sine and cosine kernels and the
 * logarithm of float64 have the coefficients of FreeBSD's msun (k_sin.c, k_cos.c, e_log.c). Arithmetic must not be
 * contracted or reassociated. */
#ifndef OLY_VECTOR_MATH_H
#define OLY_VECTOR_MATH_H
#ifndef __CUDACC_RTC__
#include <math.h>
#include <stdint.h>
#include <string.h>
#endif

/* Loops vectorise only if everything in them is inlined. Compiled as C++ for GPUs, formulas have other qualifiers
 * (kernels/cuda/formulas.h). */
#ifndef INLINE
#define INLINE   static inline __attribute__((always_inline))
#define CAREFUL  static inline /* elements of which there are few */
#define TABLE    static const
#define UNROLLED _Pragma("GCC unroll 32")
#endif

/* a * b + c, rounded once if the instruction set can. */
#ifdef __FP_FAST_FMA
#define FMA(a, b, c)  __builtin_fma(a, b, c)
#define FMAF(a, b, c) __builtin_fmaf(a, b, c)
/* The rounding error of p = a * b: exact. */
#define PRODUCT_ERROR(a, b, p) __builtin_fma(a, b, -(p))
#else
#define FMA(a, b, c)           ((a) * (b) + (c))
#define FMAF(a, b, c)          ((a) * (b) + (c))
#define PRODUCT_ERROR(a, b, p) product_error(a, b, p)
/* Dekker's product; |a| and |b| below 2^996. */
INLINE double product_error(double a, double b, double p)
{
    double sa = a * 134217729.0, ah = sa - (sa - a), al = a - ah;
    double sb = b * 134217729.0, bh = sb - (sb - b), bl = b - bh;
    return ((ah * bh - p) + ah * bl + al * bh) + al * bl;
}
#endif

/* x y of complex numbers. Which products are fused is explicit: GCC 12 would fuse them in vector code alone, whatever
 * its option for contraction. */
#define COMPLEX_PRODUCT(x, y, fma_of)                                                                                  \
    __builtin_complex(fma_of(__real__(x), __real__(y), -(__imag__(x) * __imag__(y))),                                  \
                      fma_of(__real__(x), __imag__(y), __imag__(x) * __real__(y)))
/* sum + x y */
#define COMPLEX_FUSED(sum, x, y, fma_of)                                                                               \
    __builtin_complex(fma_of(-__imag__(x), __imag__(y), fma_of(__real__(x), __real__(y), __real__(sum))),              \
                      fma_of(__imag__(x), __real__(y), fma_of(__real__(x), __imag__(y), __imag__(sum))))

INLINE uint64_t bits_of(double x)
{
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}
INLINE double of_bits(uint64_t u)
{
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* Adding it rounds to an integer (|x| < 2^51) and leaves that integer in the low bits. */
#define ROUNDER  0x1.8p52
#define SIGN_BIT 0x8000000000000000u

/* 2^k for integers -1022 <= k <= 1023. */
INLINE double power_of_two(double k)
{
    return of_bits(bits_of(k + (ROUNDER + 1023)) << 52);
}
/* Keeps NaN. */
INLINE double clamp(double x, double low, double high)
{
    x = x < low ? low : x;
    return x > high ? high : x;
}

/* -- exponential ---------------------------------------------------------------------------------------------------- */
#define LOG2_E 0x1.71547652b82fep+0
#define LN2_HI 0x1.62e42fee00000p-1 /* k * LN2_HI is exact for |k| < 2^20 */
#define LN2_LO 0x1.a39ef35793c76p-33

/* e^r - 1 for |r| <= ln(2)/2: 2^-48. */
INLINE double expm1_short(double r)
{
    double q = FMA(r, 0x1.2880411bad1aap-22, 0x1.72c72ca338df0p-19);
    q = FMA(r, q, 0x1.a019c9a5652d3p-16);
    q = FMA(r, q, 0x1.a019ada3609f3p-13);
    q = FMA(r, q, 0x1.6c16c1738ff55p-10);
    q = FMA(r, q, 0x1.1111111c478ebp-7);
    q = FMA(r, q, 0x1.5555555554cb7p-5);
    q = FMA(r, q, 0x1.5555555553b78p-3);
    q = FMA(r, q, 0.5);
    return FMA(r * r, q, r);
}
/* The same: 2^-60. */
INLINE double expm1_long(double r)
{
    double q = FMA(r, 0x1.1f730349868cep-29, 0x1.af4de97ca4194p-26);
    q = FMA(r, q, 0x1.27e4db646b17ep-22);
    q = FMA(r, q, 0x1.71de0231960ebp-19);
    q = FMA(r, q, 0x1.a01a01a6d889cp-16);
    q = FMA(r, q, 0x1.a01a01abe7fe1p-13);
    q = FMA(r, q, 0x1.6c16c16c162d4p-10);
    q = FMA(r, q, 0x1.11111111100dcp-7);
    q = FMA(r, q, 0x1.5555555555556p-5);
    q = FMA(r, q, 0x1.5555555555557p-3);
    q = FMA(r, q, 0.5);
    return FMA(r * r, q, r);
}
/* e^x for -700 < x < 700, accurate enough for float32. */
INLINE double exp_short(double x)
{
    double k = FMA(x, LOG2_E, ROUNDER) - ROUNDER;
    double r = FMA(-k, LN2_LO, FMA(-k, LN2_HI, x));
    return (1 + expm1_short(r)) * power_of_two(k);
}

/* p * 2^k for -2000 < k < 2000 with one rounding. */
INLINE double scaled(double p, double k)
{
    double half = (k * 0.5 + ROUNDER) - ROUNDER;
    return p * power_of_two(half) * power_of_two(k - half);
}
INLINE double exp_f64(double x)
{
    x = clamp(x, -746, 710);
    double k = FMA(x, LOG2_E, ROUNDER) - ROUNDER;
    double r = FMA(-k, LN2_LO, FMA(-k, LN2_HI, x));
    return scaled(1 + expm1_long(r), k);
}

/* -- logarithm ------------------------------------------------------------------------------------------------------ */
/* x = m * 2^k with m in [sqrt(1/2), sqrt(2)), for normal x > 0. */
INLINE double split_exponent(double x, double *k)
{
    const uint64_t root_half = 0x3fe6a09e667f3bcd, one = 0x3ff0000000000000;
    uint64_t u = bits_of(x) + (one - root_half);
    *k = of_bits((u >> 52) | 0x4330000000000000) - (0x1p52 + 1023);
    return of_bits((u & 0x000fffffffffffff) + root_half);
}
INLINE double log_f64(double x)
{
    bool small = x < 0x1p-1022;
    double k, f = split_exponent(small ? x * 0x1p54 : x, &k) - 1;
    k = small ? k - 54 : k;
    double s = f / (2 + f), z = s * s, half = 0.5 * f * f;
    double r = FMA(z, 1.479819860511658591e-01, 1.531383769920937332e-01);
    r = FMA(z, r, 1.818357216161805012e-01);
    r = FMA(z, r, 2.222219843214978396e-01);
    r = FMA(z, r, 2.857142874366239149e-01);
    r = FMA(z, r, 3.999999999940941908e-01);
    r = FMA(z, r, 6.666666666666735130e-01) * z;
    double y = k * LN2_HI - ((half - FMA(s, half + r, k * LN2_LO)) - f);
    y = x < INFINITY ? y : x;
    y = x < 0 ? NAN : y;
    return x == 0 ? -INFINITY : y;
}

/* -- sine and cosine ------------------------------------------------------------------------------------------------
 * Near forms, for |x| below the bounds; beyond, sine_far and cosine_far (any size, not vectorised). */
#define NEAR_F32 0x1p40f
#define NEAR_F64 0x1p30

/* x - k * pi with |k| < 2^41 a multiple of 1/2: the first difference is exact. */
INLINE double minus_pi(double x, double k)
{
    const double pi = 0x1.921fb54442d18p+1, pi_rest = 0x1.1a62633145c07p-53;
#ifdef __FP_FAST_FMA
    return FMA(-k, pi_rest, FMA(-k, pi, x));
#else
    double p = k * pi;
    return ((x - p) - product_error(k, pi, p)) - k * pi_rest;
#endif
}
/* sin(r) for |r| <= pi/2: 2^-41. */
INLINE double sine_short(double r)
{
    double z = r * r, p = FMA(z, 0x1.54e6c056fb132p-33, -0x1.ae20be07c247fp-26);
    p = FMA(z, p, 0x1.71dd8dc8b3d86p-19);
    p = FMA(z, p, -0x1.a01a00116c309p-13);
    p = FMA(z, p, 0x1.1111110fbff38p-7);
    p = FMA(z, p, -0x1.55555555549c8p-3);
    return r * FMA(z, p, 1);
}
/* Of a float32, not rounded to one. */
INLINE double sine_of_single(double x)
{
    double shifted = FMA(x, 0x1.45f306dc9c883p-2, ROUNDER); /* 1/pi */
    double r = minus_pi(x, shifted - ROUNDER);
    return sine_short(of_bits(bits_of(r) ^ bits_of(shifted) << 63)); /* sine is odd: the sign is applied first */
}
INLINE double cosine_of_single(double x)
{
    double shifted = FMA(x, 0x1.45f306dc9c883p-2, -0.5) + ROUNDER;
    double r = minus_pi(x, (shifted - ROUNDER) + 0.5); /* cos(x) = -(-1)^k sin(x - (k + 1/2) pi) */
    return sine_short(of_bits(bits_of(r) ^ ~bits_of(shifted) << 63));
}
INLINE float sine_f32(float x)
{
    return (float)sine_of_single(x);
}
INLINE float cosine_f32(float x)
{
    return (float)cosine_of_single(x);
}

/* sin(x + tail) and cos(x + tail) for |x| <= pi/4. */
INLINE double sine_kernel(double x, double tail)
{
    double z = x * x, v = z * x;
    double r = FMA(z, 1.58969099521155010221e-10, -2.50507602534068634195e-08);
    r = FMA(z, r, 2.75573137070700676789e-06);
    r = FMA(z, r, -1.98412698298579493134e-04);
    r = FMA(z, r, 8.33333333332248946124e-03);
    return x - ((z * (0.5 * tail - v * r) - tail) - v * -1.66666666666666324348e-01);
}
INLINE double cosine_kernel(double x, double tail)
{
    double z = x * x, half = 0.5 * z, w = 1 - half;
    double r = FMA(z, -1.13596475577881948265e-11, 2.08757232129817482790e-09);
    r = FMA(z, r, -2.75573143513906633035e-07);
    r = FMA(z, r, 2.48015872894767294178e-05);
    r = FMA(z, r, -1.38888888888741095749e-03);
    r = FMA(z, r, 4.16666666666666019037e-02) * z;
    return w + (((1 - w) - half) + (z * r - x * tail));
}
/* sin(r + tail + quadrant * pi/2) */
INLINE double sine_quadrant(double r, double tail, uint64_t quadrant)
{
    double s = sine_kernel(r, tail), c = cosine_kernel(r, tail);
    double y = (quadrant & 1) != 0 ? c : s;
    return of_bits(bits_of(y) ^ (quadrant & 2) << 62);
}
INLINE double sine_shifted_f64(double x, uint64_t shift)
{
    double shifted = FMA(x, 0x1.45f306dc9c883p-1, ROUNDER), k = shifted - ROUNDER; /* 2/pi */
    double p = k * 0x1.921fb54442d18p+0;
    double r = (x - p) - PRODUCT_ERROR(k, 0x1.921fb54442d18p+0, p); /* exact */
    double q = k * 0x1.1a62633145c07p-54, e = PRODUCT_ERROR(k, 0x1.1a62633145c07p-54, q);
    double high = r - q, back = r - high;
    double tail = ((back - q) - e) - k * -0x1.f1976b7ed8fbcp-110;
    double low = r - (high + back); /* both rounding errors of the difference: |r| may be below |q| */
    return sine_quadrant(high, tail + low, bits_of(shifted) + shift);
}
INLINE double sine_f64(double x)
{
    return x == 0 ? x : sine_shifted_f64(x, 0);
}
INLINE double cosine_f64(double x)
{
    return sine_shifted_f64(x, 1);
}

/* Payne and Hanek: multiplies by the relevant bits of 2/pi. 64 zero bits precede 2/pi, so that small exponents can read
 * bits left of the binary point. */
TABLE uint32_t two_over_pi[] = {0,          0,          0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599,
                                0x3c439041, 0xfe5163ab, 0xdebbc561, 0xb7246e3a, 0x424dd2e0, 0x06492eea, 0x09d1921c,
                                0xfe1deb1c, 0xb129a73e, 0xe88235f5, 0x2ebb4484, 0xe99c7026, 0xb45f7e41, 0x3991d639,
                                0x835339f4, 0x9c845f8b, 0xbdf9283b, 0x1ff897ff, 0xde05980f, 0xef2f118b, 0x5a0a6d1f,
                                0x6d367ecf, 0x27cb09b7, 0x4f463f66, 0x9e5fea2d, 0x7527bac7, 0xebe5f17b, 0x3d0739f7,
                                0x8a5292ea, 0x6bfb5fb1, 0x1f8d5d08, 0x56033046, 0xfc7b6bab};

CAREFUL uint64_t two_over_pi_bits(int from)
{
    int word = from / 32, shift = from % 32;
    uint64_t head = (uint64_t)two_over_pi[word] << 32 | two_over_pi[word + 1];
    return shift == 0 ? head : head << shift | two_over_pi[word + 2] >> (32 - shift);
}
/* |x| >= 2^30, finite, as r + tail + quadrant * pi/2. */
CAREFUL double reduce_far(double x, double *tail, uint64_t *quadrant)
{
    uint64_t u = bits_of(x), m = (u & 0x000fffffffffffff) | 0x0010000000000000;
    int from = (int)(u >> 52 & 2047) - 1075 - 2 + 64; /* bits with weight 4 and above after the product are dropped */
    unsigned __int128 a = (unsigned __int128)m * two_over_pi_bits(from + 64);
    unsigned __int128 b = (unsigned __int128)m * two_over_pi_bits(from + 128);
    uint64_t top = m * two_over_pi_bits(from) + (uint64_t)(a >> 64), middle = (uint64_t)a;
    uint64_t carry = middle + (uint64_t)(b >> 64) < middle, low = (uint64_t)b;
    middle += (uint64_t)(b >> 64);
    top += carry;
    *quadrant = top >> 62;
    top = top << 2 | middle >> 62; /* the fraction: 192 bits */
    middle = middle << 2 | low >> 62;
    bool negative = top >> 63 != 0;
    if (negative) { /* closer to the next quadrant */
        top = ~top;
        middle = ~middle;
        *quadrant += 1;
    }
    int zeros = top == 0 ? 64 : __builtin_clzll(top);
    if (zeros > 0 && zeros < 64)
        top = top << zeros | middle >> (64 - zeros), middle <<= zeros;
    else if (zeros == 64)
        top = middle, middle = 0;
    double scale = of_bits((uint64_t)(1023 - 64 - zeros) << 52);
    double high = (double)(top >> 11 << 11) * scale, rest = ((double)(top & 2047) + (double)middle * 0x1p-64) * scale;
    double r = high * 0x1.921fb54442d18p+0;
    double t = fma(high, 0x1.921fb54442d18p+0, -r) + (high * 0x1.1a62633145c07p-54 + rest * 0x1.921fb54442d18p+0);
    double sum = r + t;
    *tail = t - (sum - r);
    if (negative != (x < 0)) {
        *tail = -*tail;
        sum = -sum;
    }
    if (x < 0)
        *quadrant = -*quadrant;
    return sum;
}
CAREFUL double sine_far(double x)
{
    double tail;
    uint64_t quadrant;
    if (!(fabs(x) < INFINITY))
        return NAN;
    double r = reduce_far(x, &tail, &quadrant);
    return sine_quadrant(r, tail, quadrant);
}
CAREFUL double cosine_far(double x)
{
    double tail;
    uint64_t quadrant;
    if (!(fabs(x) < INFINITY))
        return NAN;
    double r = reduce_far(x, &tail, &quadrant);
    return sine_quadrant(r, tail, quadrant + 1);
}

/* -- tanh, sigmoid -------------------------------------------------------------------------------------------------- */
INLINE double with_sign_of(double magnitude, double x)
{
    return of_bits((bits_of(magnitude) & ~SIGN_BIT) | (bits_of(x) & SIGN_BIT));
}
/* tanh|x| = -t / (2 + t) with t = e^(-2|x|) - 1 = 2^k (e^r - 1) + (2^k - 1). */
INLINE double tanh_f64(double x)
{
    double a = -2 * fabs(x), y = a < -44 ? -44 : a;
    double k = FMA(y, LOG2_E, ROUNDER) - ROUNDER, power = power_of_two(k);
    double p = expm1_long(FMA(-k, LN2_LO, FMA(-k, LN2_HI, y)));
    double t = FMA(power, p, power - 1), e = FMA(power, p, power);
    bool near_one = y < -2; /* there 1 - 2e / (1 + e) loses less */
    double quotient = (near_one ? -2 * e : -t) / (2 + t);
    return with_sign_of(near_one ? 1 + quotient : quotient, x);
}
INLINE double sigmoid_f64(double x)
{
    double e = exp_f64(-fabs(x)); /* on the side that does not overflow */
    return (x >= 0 ? 1 : e) / (1 + e);
}

/* -- power ---------------------------------------------------------------------------------------------------------- */
/* The special cases of C's pow, given the magnitude |x|^y that is right for 0 < |x| < inf, |x| != 1. Conditions on y
 * alone are masks: as branches they would be hoisted out of loops over x, which then would not vectorise. */
INLINE double power_special(double x, double y, double magnitude)
{
    const uint64_t nan = 0x7ff8000000000000;
    double a = fabs(x), half = y * 0.5;
    uint64_t fraction = -(uint64_t)(floor(y) != y), odd = -(uint64_t)(floor(half) != half) & ~fraction;
    uint64_t power_of_one = bits_of(1.0) | (-(uint64_t)(y != y) & nan), is_zero = -(uint64_t)(y == 0);
    uint64_t negative = -(uint64_t)((x < 0) & (a < INFINITY));
    uint64_t result = a == 1 ? power_of_one : bits_of(magnitude);
    result ^= bits_of(x) & SIGN_BIT & odd;
    result |= negative & fraction & nan;
    is_zero |= -(uint64_t)(x == 1);
    return of_bits((result & ~is_zero) | (bits_of(1.0) & is_zero));
}
/* log of 0, infinity and NaN. */
INLINE double log_special(double a, double log)
{
    log = a < INFINITY ? log : a;
    return a == 0 ? -INFINITY : log;
}
/* log(a) for normal a as a sum of two doubles (2^-66): first terms of 2 atanh(s) in double-double. */
INLINE double log_double_double(double a, double k, double *tail)
{
    double m = a, f = m - 1, u = 1 + m, u_low = m - (u - 1), s = f / u, p = s * u;
    double s_low = (((f - p) - PRODUCT_ERROR(s, u, p)) - s * u_low) / u;
    double z = s * s, z_low = PRODUCT_ERROR(s, s, z) + 2 * s * s_low;
    double c = FMA(z, 0x1.e03a7acf0f7e3p-4, 0x1.df7ba1f47fc77p-4);
    c = FMA(z, c, 0x1.1118cd6725210p-3);
    c = FMA(z, c, 0x1.3b1395b82701cp-3);
    c = FMA(z, c, 0x1.745d177ad436ap-3);
    c = FMA(z, c, 0x1.c71c71c6ea5acp-3);
    c = FMA(z, c, 0x1.2492492492522p-2);
    c = FMA(z, c, 0x1.999999999999ap-2) * z;
    double q = 0x1.5555555555555p-1 + c, q_low = (0x1.5555555555555p-1 - q) + c + 0x1.5555555555555p-55;
    double v = z * q, v_low = PRODUCT_ERROR(z, q, v) + (z * q_low + z_low * q);
    double t = 2 + v, t_low = (2 - t) + v + v_low;
    double l = s * t, l_low = PRODUCT_ERROR(s, t, l) + (s * t_low + s_low * t);
    double kl = k * 0x1.62e42fefa3800p-1, sum = kl + l, back = sum - kl;
    *tail = (kl - (sum - back)) + (l - back) + (l_low + k * 0x1.ef35793c76730p-45);
    return sum;
}
INLINE double pow_f64(double x, double y)
{
    double a = fabs(x), k, tail;
    bool small = a < 0x1p-1022;
    double m = split_exponent(small ? a * 0x1p54 : a, &k);
    double log = log_special(a, log_double_double(m, small ? k - 54 : k, &tail));
    double w = y * log, c = clamp(w, -800, 800);
    double w_low = c == w ? PRODUCT_ERROR(y, log, w) + y * tail : 0;
    double n = FMA(c, LOG2_E, ROUNDER) - ROUNDER;
    double r = FMA(-n, LN2_HI, c) + FMA(-n, LN2_LO, w_low);
    return power_special(x, y, scaled(1 + expm1_long(r), n));
}
#endif
