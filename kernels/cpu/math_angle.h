/* SPDX-License-Identifier: BSD-3-Clause */
/* Tangent and inverse trigonometric functions of one element, as vector_math.h: no branches, no tables; those of one float32
 * are in math_single_inverse.h. Used by elementwise_math.c. The float64 tangent has the coefficients and the scheme of FreeBSD's msun (k_tan.c). */
#ifndef OLY_MATH_ANGLE_H
#define OLY_MATH_ANGLE_H
#include "cpu/math_exponential.h"

#define QUARTER_PI    0x1.921fb54442d18p-1
#define QUARTER_PI_LO 0x1.1a62633145c07p-55
#define HALF_PI       0x1.921fb54442d18p+0
#define HALF_PI_LO    0x1.1a62633145c07p-54
#define TAN_PI_8      0x1.a827999fcef32p-2

/* -- tangent -------------------------------------------------------------------------------------------------------- */
/* sin(r) and cos(r) for |r| <= pi/4, error 2^-42: enough for float32. */
INLINE double quarter_sine(double r)
{
    double z = r * r, p = POLYNOMIAL(z, -0x1.aa283bea75579p-26, 0x1.71d9a9b87993fp-19, -0x1.a019fd9ae7168p-13,
                                     0x1.1111110fd3b3cp-7, -0x1.555555555516bp-3);
    return FMA(r * z, p, r);
}
INLINE double quarter_cosine(double r)
{
    double z = r * r;
    return POLYNOMIAL(z, 0x1.1b8adf447470bp-29, -0x1.27df3fbf5f4dcp-22, 0x1.a019f7fcca9e1p-16, -0x1.6c16c163c4cd9p-10,
                      0x1.555555554e7ddp-5, -0x1.fffffffffff79p-2, 1.0);
}
/* Near form, |x| below NEAR_F32. */
INLINE float tangent_f32(float x)
{
    double shifted = FMA((double)x, 0x1.45f306dc9c883p-1, ROUNDER); /* 2/pi */
    double r = minus_pi(x, 0.5 * (shifted - ROUNDER)), s = quarter_sine(r), c = quarter_cosine(r);
    bool odd = (bits_of(shifted) & 1) != 0;
    float y = (float)((odd ? -c : s) / (odd ? s : c));
    return x == 0 ? x : y;
}

/* tan(x + tail) for |x| <= pi/4; odd: -1 / that. */
INLINE double tangent_quadrant(double r, double tail, uint64_t quadrant)
{
    bool odd = (quadrant & 1) != 0, big = fabs(r) >= 0.67434;
    double sign = with_sign_of(1, r), a = sign * r, b = sign * tail;
    double x = big ? (QUARTER_PI - a) + (QUARTER_PI_LO - b) : a, y = big ? 0 : b;
    double z = x * x, w = z * z, s = z * x;
    double p = POLYNOMIAL(w, -1.85586374855275456654e-05, 7.81794442939557092300e-05, 5.88041240820264096874e-04,
                          3.59207910759131235356e-03, 2.18694882948595424599e-02, 1.33333333333201242699e-01);
    double q = POLYNOMIAL(w, 2.59073051863633712884e-05, 7.14072491382608190305e-05, 2.46463134818469906812e-04,
                          1.45620945432529025516e-03, 8.86323982359930005737e-03, 5.39682539762260521377e-02);
    double rest = FMA(z, FMA(s, FMA(z, q, p), y), y) + s * 3.33333333333334091986e-01;
    double t = x + rest;
    /* near pi/4: from tan(pi/4 - x) */
    double v = odd ? -1 : 1, of_big = v - 2 * (x - (t * t / (t + v) - rest));
    /* -1 / (x + rest), corrected for the rounding of the sum */
    double high = of_bits(bits_of(t) & 0xffffffff00000000), low = rest - (high - x), inverse = -1 / t;
    double i = of_bits(bits_of(inverse) & 0xffffffff00000000);
    double of_odd = FMA(inverse, FMA(i, low, 1 + i * high), i);
    return sign * (big ? of_big : odd ? of_odd : t);
}
/* Near form, |x| below NEAR_F64; reduced as for sine_shifted_f64. */
INLINE double tangent_f64(double x)
{
    double shifted = FMA(x, 0x1.45f306dc9c883p-1, ROUNDER), k = shifted - ROUNDER;
    double p = k * HALF_PI;
    double r = (x - p) - PRODUCT_ERROR(k, HALF_PI, p);
    double q = k * HALF_PI_LO, e = PRODUCT_ERROR(k, HALF_PI_LO, q);
    double high = r - q, back = r - high;
    double tail = ((back - q) - e) - k * -0x1.f1976b7ed8fbcp-110;
    double low = r - (high + back);
    double y = tangent_quadrant(high, tail + low, bits_of(shifted));
    return x == 0 ? x : y;
}
CAREFUL double tangent_far(double x)
{
    double tail;
    uint64_t quadrant;
    if (!(fabs(x) < INFINITY))
        return NAN;
    double r = reduce_far(x, &tail, &quadrant);
    return tangent_quadrant(r, tail, quadrant);
}

/* -- arc sine and arc cosine ---------------------------------------------------------------------------------------- */
/* asin(s) = s + s q(z), z = s^2 <= 1/4. Beyond 1/2: asin(a) = pi/2 - 2 asin(sqrt((1 - a) / 2)). */
INLINE double arc_sine_long(double z)
{
    return z * POLYNOMIAL(z, 0x1.f74bdb0d4b5bep-6, -0x1.898d77b6dddb2p-6, 0x1.7184808eff5eep-6, 0x1.8f5a75293b096p-12,
                          0x1.2031dbbbbad45p-7, 0x1.0a9849ba5937fp-7, 0x1.40e38d543d8d2p-7, 0x1.7a70c2a695fe0p-7,
                          0x1.c99afe79266f3p-7, 0x1.1c4ebd7735bf2p-6, 0x1.6e8ba31c9dc09p-6, 0x1.f1c71c70ee54ap-6,
                          0x1.6db6db6db7c7fp-5, 0x1.333333333332dp-4, 0x1.5555555555555p-3);
}
/* Returns s q(z) plus the rounding error of the square root; s in *s. */
INLINE double arc_sine_parts(double a, double near, double *s)
{
    bool big = a > 0.5;
    double z = big ? (1 - a) * 0.5 : a * a, root = __builtin_sqrt(z), p = root * root;
    double lost = ((z - p) - PRODUCT_ERROR(root, root, p)) / (2 * root);
    *s = big ? root : near;
    return FMA(*s, arc_sine_long(z), big & (root > 0) ? lost : 0);
}
INLINE double asin_f64(double x)
{
    double a = fabs(x), s, rest = arc_sine_parts(a, a, &s);
    return with_sign_of(a > 0.5 ? HALF_PI - (2 * s + (2 * rest - HALF_PI_LO)) : s + rest, x);
}
INLINE double acos_f64(double x)
{
    double s, rest = arc_sine_parts(fabs(x), x, &s);
    double middle = HALF_PI - (s - (HALF_PI_LO - rest)), negative = 2 * (HALF_PI - (s + (rest - HALF_PI_LO)));
    return x > 0.5 ? 2 * (s + rest) : x < -0.5 ? negative : middle;
}

/* -- arc tangent ---------------------------------------------------------------------------------------------------- */
/* The angle of (ax, ay), both >= 0, mirrored at the vertical axis if `negative`: eighths of the circle, and the arc
 * tangent of at most tan(pi/8) for the rest. */
typedef struct arc {
    double t, turn, sign; /* angle = turn pi/4 + sign atan(t) */
} arc;
INLINE arc arc_of(double ay, double ax, bool negative)
{
    double low = ay < ax ? ay : ax, high = ay < ax ? ax : ay;
    low = high < INFINITY ? low : low < INFINITY ? 0 : 1;
    high = high < INFINITY ? high : 1;
    high = high == 0 ? 1 : high;
    double half = high > 0x1p1000 ? 0.5 : 1; /* the sum must not overflow */
    low *= half, high *= half;
    bool eighth = low > TAN_PI_8 * high, steep = ay > ax;
    double t = (eighth ? low - high : low) / (eighth ? low + high : high);
    double turn = eighth ? 1 : 0, sign = 1;
    turn = steep ? 2 - turn : turn, sign = steep ? -1 : 1;
    turn = negative ? 4 - turn : turn, sign = negative ? -sign : sign;
    arc a = {t, turn, sign};
    return a;
}
INLINE double angle_long(double ay, double ax, bool negative)
{
    arc a = arc_of(ay, ax, negative);
    double z = a.t * a.t, t = a.sign * a.t;
    double q = POLYNOMIAL(z, 0x1.25426d227f8d3p-7, -0x1.66152cdec94f6p-6, 0x1.fcecd9671e82ep-6, -0x1.28ee77f0e7eb2p-5,
                          0x1.469905cb3af0ep-5, -0x1.640a7baf50664p-5, 0x1.86154942aafacp-5, -0x1.af283697aa326p-5,
                          0x1.e1e1df45c2708p-5, -0x1.1111110555c5cp-4, 0x1.3b13b13acaa8ep-4, -0x1.745d1745d0497p-4,
                          0x1.c71c71c71c6eep-4, -0x1.2492492492492p-3, 0x1.999999999999ap-3, -0x1.5555555555555p-2);
    double turn = a.turn * QUARTER_PI, rest = PRODUCT_ERROR(a.turn, QUARTER_PI, turn) + a.turn * QUARTER_PI_LO;
    return turn + (t + FMA(t * z, q, rest));
}
INLINE double atan_f64(double x)
{
    double y = angle_long(fabs(x), 1, false);
    return x == x ? with_sign_of(y, x) : x;
}
INLINE bool sign_of(double x)
{
    return bits_of(x) >> 63 != 0;
}
INLINE double atan2_f64(double y, double x)
{
    double angle = angle_long(fabs(y), fabs(x), sign_of(x));
    return (x != x) | (y != y) ? x + y : with_sign_of(angle, y);
}
#endif
