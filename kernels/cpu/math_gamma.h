/* SPDX-License-Identifier: BSD-3-Clause */
/* The logarithm of the gamma function and its derivative of one element. float32: in double, without branches,
 * vectorisable; float64: element by element. Used by elementwise_math.c. */
#ifndef OLY_MATH_GAMMA_H
#define OLY_MATH_GAMMA_H
#include "cpu/math_angle.h"
#include "cpu/math_whole.h"

/* |sin(pi x)|, and |cos(pi x)| with the sign that makes the quotient cot(pi x). */
INLINE double sine_of_turns(double x, double *cosine)
{
    double f = x - round_f64(x), a = fabs(f), r = a > 0.25 ? 0.5 - a : a; /* exact */
    double s = sine_kernel(r * (4 * QUARTER_PI), r * (4 * QUARTER_PI_LO));
    double c = cosine_kernel(r * (4 * QUARTER_PI), r * (4 * QUARTER_PI_LO));
    *cosine = with_sign_of(a > 0.25 ? s : c, f);
    return a > 0.25 ? c : s;
}

/* For x >= 1/2: between 1.5 and 2.5 a polynomial with the zero at 2 factored out; below, from x + 1; above, Stirling's
 * series at 8 or more, from x + 6 if necessary. For x < 1/2 by reflection: log(pi / |sin(pi x)|) - lgamma(1 - x). */
INLINE float lgamma_f32(float number)
{
    double x = number, cosine;
    bool reflect = x < 0.5;
    double z = reflect ? 1 - x : x;
    bool central = z < 2.5, up = z < 1.5, shift = z < 8;
    double w = (up ? z + 1 : z) - 2;
    double middle =
        w * POLYNOMIAL(w, 0x1.64f93f6c2ee83p-18, -0x1.8054a022a9fa0p-17, 0x1.5264935b98a80p-16, -0x1.72d540ed7812dp-15,
                       0x1.a16698ccea354p-14, -0x1.d4405b48fe6b9p-13, 0x1.0b35fd95343fbp-11, -0x1.38ab9e7fd91bdp-10,
                       0x1.7add708afc7b6p-9, -0x1.e404fe1e4653ep-8, 0x1.51322ac6e8f31p-6, -0x1.13e001a4d7d46p-4,
                       0x1.4a34cc4a61043p-2, 0x1.b0ee607209281p-2);
    double y = shift ? z + 6 : z, i = 1 / y;
    double series =
        i * POLYNOMIAL(i * i, 1 / 156.0, -691 / 360360.0, 1 / 1188.0, -1 / 1680.0, 1 / 1260.0, -1 / 360.0, 1 / 12.0);
    double far = ((y - 0.5) * log_f64(y) - y) + (0x1.d67f1c864beb5p-1 + series);
    double product = z * (z + 1) * (z + 2) * (z + 3) * (z + 4) * (z + 5);
    double factor = central ? up ? z : 1 : shift ? product : 1; /* subtracted as a logarithm */
    double sine = sine_of_turns(x, &cosine);
    factor = reflect ? 4 * QUARTER_PI * factor / sine : 1 / factor;
    double value = central ? middle : far, result = (reflect ? -value : value) + log_f64(factor);
    result = fabs(x) < INFINITY ? result : fabs(x);
    return (float)((x <= 0) & (round_f64(x) == x) ? INFINITY : result);
}

/* For x >= 1/2 the asymptotic series at 8 or more, from x + 8 if necessary: digamma(x) = digamma(x + 8) - sum of 1 / (x
 * + i). For x < 1/2 by reflection: digamma(1 - x) - pi cot(pi x). */
INLINE float digamma_f32(float number)
{
    double x = number, cosine;
    bool reflect = x < 0.5;
    double z = reflect ? 1 - x : x;
    bool shift = z < 8;
    double product = 1, derivative = 0;
    UNROLLED
    for (int k = 0; k < 8; k++) {
        derivative = FMA(derivative, z + k, product);
        product *= z + k;
    }
    double y = shift ? z + 8 : z, i = 1 / y;
    double series =
        i * i * POLYNOMIAL(i * i, -1 / 12.0, 691 / 32760.0, -1 / 132.0, 1 / 240.0, -1 / 252.0, 1 / 120.0, -1 / 12.0);
    double value = log_f64(y) - 0.5 * i + series;
    value = shift ? value - derivative / product : value;
    double sine = sine_of_turns(x, &cosine), turned = value - 4 * QUARTER_PI * cosine / sine;
    value = reflect ? turned : value;
    return (float)((x <= 0) & (round_f64(x) == x) ? NAN : value);
}

CAREFUL double lgamma_f64(double x)
{
#ifdef OLY_DEVICE_LGAMMA
    return OLY_DEVICE_LGAMMA(x);
#else
    int sign;
    return lgamma_r(x, &sign);
#endif
}

/* digamma on [1, 2]: its zero factored out; the other factor: 2^-53. */
CAREFUL double digamma_central(double x)
{
    double p = POLYNOMIAL(x - 1.5, -0x1.6b107f71aa124p-13, 0x1.104c9d0897b58p-12, -0x1.3db05b36d9a48p-13,
                          0x1.dc8ae08af0fc4p-13, -0x1.f99f529bd0771p-12, 0x1.7b3b41b0b38cdp-11, -0x1.1002aaf6255f5p-10,
                          0x1.980fc9c9f0be8p-10, -0x1.33661f9073563p-9, 0x1.cd3e42d157015p-9, -0x1.5a071c746535bp-8,
                          0x1.03c00801ba958p-7, -0x1.86355f6f68797p-7, 0x1.256475e5ac975p-6, -0x1.b9f8b1367959dp-6,
                          0x1.4de9aa05d3418p-5, -0x1.fb442029cdbf4p-5, 0x1.8512e5905d180p-4, -0x1.2feeeb98a7cd8p-3,
                          0x1.eca189b8e6da1p-3, -0x1.b1cb63005ee97p-2, 0x1.e6f0cbb873617p-1);
    return p * ((x - 0x1.762d86356be3fp+0) - 0x1.b86a722197829p-54);
}
CAREFUL double digamma_f64(double x)
{
    double value = 0, cosine;
    if (!(x > -INFINITY) || (x <= 0 && round_f64(x) == x))
        return NAN;
    if (x < 0) {
        double sine = sine_of_turns(x, &cosine);
        value = -4 * QUARTER_PI * cosine / sine;
        x = 1 - x;
    }
    if (x >= 10) {
        double i = 1 / x;
        double series =
            i * i *
            POLYNOMIAL(i * i, -1 / 12.0, 691 / 32760.0, -1 / 132.0, 1 / 240.0, -1 / 252.0, 1 / 120.0, -1 / 12.0);
        return value + (log(x) + (series - 0.5 * i));
    }
    while (x > 2) {
        x -= 1;
        value += 1 / x;
    }
    while (x < 1) {
        value -= 1 / x;
        x += 1;
    }
    return value + digamma_central(x);
}
#endif
