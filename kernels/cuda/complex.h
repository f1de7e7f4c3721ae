/* SPDX-License-Identifier: BSD-3-Clause */
/* Elementwise operations of complex numbers for kernels: oly_op_<operation>_c64, _c128. Sums, products and comparisons have the CPU's
 * bits. Functions are computed in double precision from their real and imaginary parts (complex64 is rounded once); the CPU uses
 * other ones, so the last bits may differ. Part of the text of generated kernels. */
#ifndef OLY_CUDA_COMPLEX_H
#define OLY_CUDA_COMPLEX_H
#include "formulas.h"

typedef oly_c128 oly_z;
OLY_DEVICE oly_z oly_z_of(double re, double im)
{
    oly_z z;
    z.re = re, z.im = im;
    return z;
}
OLY_DEVICE oly_c64 oly_w_of(float re, float im)
{
    oly_c64 z;
    z.re = re, z.im = im;
    return z;
}
OLY_DEVICE oly_z oly_z_times(oly_z x, oly_z y)
{
    return oly_z_of(oly_fma(x.re, y.re, -(x.im * y.im)), oly_fma(x.re, y.im, x.im * y.re));
}
OLY_DEVICE oly_c64 oly_w_times(oly_c64 x, oly_c64 y)
{
    return oly_w_of(oly_fma(x.re, y.re, -(x.im * y.im)), oly_fma(x.re, y.im, x.im * y.re));
}
/* Scaled by a power of two, so that it overflows only where the quotient does. */
OLY_CALLED oly_z oly_z_over(oly_z x, oly_z y)
{
    double size = fmax(fabs(y.re), fabs(y.im)), scale = 1;
    if (size > 0x1p1000)
        scale = 0x1p-100;
    else if (size < 0x1p-900 && size > 0)
        scale = 0x1p100;
    y.re *= scale, y.im *= scale;
    oly_z q;
    if (fabs(y.re) >= fabs(y.im)) {
        double r = y.im / y.re, d = y.re + y.im * r;
        if (y.re == 0) /* both parts are zero, or NaN */
            return oly_z_of(x.re / fabs(y.re), x.im / fabs(y.re));
        q = r != 0 ? oly_z_of((x.re + x.im * r) / d, (x.im - x.re * r) / d)
                   : oly_z_of((x.re + y.im * (x.im / y.re)) / d, (x.im - y.im * (x.re / y.re)) / d);
    } else {
        double r = y.re / y.im, d = y.re * r + y.im;
        q = r != 0 ? oly_z_of((x.re * r + x.im) / d, (x.im * r - x.re) / d)
                   : oly_z_of((y.re * (x.re / y.im) + x.im) / d, (y.re * (x.im / y.im) - x.re) / d);
    }
    return oly_z_of(q.re * scale, q.im * scale);
}
OLY_DEVICE oly_c64 oly_w_over(oly_c64 x, oly_c64 y)
{
    double a = x.re, b = x.im, c = y.re, d = y.im, size = c * c + d * d;
    if (size == 0)
        return oly_w_of(x.re / fabsf(y.re), x.im / fabsf(y.re));
    return oly_w_of((float)((a * c + b * d) / size), (float)((b * c - a * d) / size));
}

/* -- functions of real numbers, of which those of complex ones are made ------------------------------------------------------------ */
#define OLY_REAL_FUNCTION(name, of)                                                                                    \
    OLY_CALLED double oly_d_##name(double x)                                                                           \
    {                                                                                                                  \
        return of(x);                                                                                                  \
    }
OLY_REAL_FUNCTION(exp, exp_f64)
OLY_REAL_FUNCTION(log, log_f64)
OLY_REAL_FUNCTION(log1p, log1p_f64)
OLY_REAL_FUNCTION(expm1, expm1_f64)
OLY_REAL_FUNCTION(sinh, sinh_f64)
OLY_REAL_FUNCTION(cosh, cosh_f64)
OLY_REAL_FUNCTION(asinh, asinh_f64)
OLY_REAL_FUNCTION(sin, oly_sine)
OLY_REAL_FUNCTION(cos, oly_cosine)
OLY_REAL_FUNCTION(tan, oly_tangent)
OLY_CALLED double oly_d_atan2(double y, double x)
{
    return atan2_f64(y, x);
}
OLY_CALLED double oly_d_hypot(double x, double y)
{
    return hypot(x, y);
}

/* -- functions ------------------------------------------------------------------------------------------------------------------ */
OLY_CALLED oly_z oly_z_exp(oly_z z)
{
    double e = oly_d_exp(z.re);
    if (z.im == 0)
        return oly_z_of(e, z.im);
    if (e == 0 && !(fabs(z.im) < INFINITY))
        return oly_z_of(0, 0);
    if (z.re > 709 && z.re < 1400) { /* e^a overflows, perhaps not its products */
        double half = oly_d_exp(z.re * 0.5);
        return oly_z_of(half * oly_d_cos(z.im) * half, half * oly_d_sin(z.im) * half);
    }
    return oly_z_of(e * oly_d_cos(z.im), e * oly_d_sin(z.im));
}
OLY_CALLED double oly_z_abs(oly_z z)
{
    return oly_d_hypot(z.re, z.im);
}
OLY_CALLED oly_z oly_z_log(oly_z z)
{
    double a = fmax(fabs(z.re), fabs(z.im)), b = fmin(fabs(z.re), fabs(z.im)), real;
    if (a > 0.5 && a < 2 && b == b)
        real = 0.5 * oly_d_log1p((a - 1) * (a + 1) + b * b);
    else
        real = a > 0x1p1000 || a < 0x1p-1000 ? oly_d_log(oly_d_hypot(a * 0x1p-10, b * 0x1p-10)) + 10 * LN2
                                             : oly_d_log(oly_d_hypot(a, b));
    if (a < 0x1p-1000)
        real = a == 0 ? -INFINITY : oly_d_log(oly_d_hypot(a * 0x1p60, b * 0x1p60)) - 60 * LN2;
    return oly_z_of(real, oly_d_atan2(z.im, z.re));
}
OLY_CALLED oly_z oly_z_sqrt(oly_z z)
{
    if (z.re == 0 && z.im == 0)
        return oly_z_of(0, z.im);
    if (!(fabs(z.im) < INFINITY) && z.im == z.im)
        return oly_z_of(INFINITY, z.im);
    double scale = 1, back = 1;
    if (fmax(fabs(z.re), fabs(z.im)) > 0x1p1000)
        scale = 0x1p-4, back = 4;
    else if (fmax(fabs(z.re), fabs(z.im)) < 0x1p-900)
        scale = 0x1p200, back = 0x1p-100;
    double a = z.re * scale, b = z.im * scale, t = sqrt((fabs(a) + oly_d_hypot(a, b)) * 0.5);
    oly_z r = a >= 0 ? oly_z_of(t, b / (2 * t)) : oly_z_of(fabs(b) / (2 * t), copysign(t, b));
    return oly_z_of(r.re * back, r.im * back);
}
OLY_CALLED oly_z oly_z_sinh(oly_z z)
{
    if (z.im == 0)
        return oly_z_of(oly_d_sinh(z.re), z.im);
    return oly_z_of(oly_d_sinh(z.re) * oly_d_cos(z.im), oly_d_cosh(z.re) * oly_d_sin(z.im));
}
OLY_CALLED oly_z oly_z_cosh(oly_z z)
{
    double s = oly_d_sinh(z.re), i = oly_d_sin(z.im);
    return oly_z_of(oly_d_cosh(z.re) * oly_d_cos(z.im), s == 0 || i == 0 ? copysign(0., s) * copysign(1., i) : s * i);
}
OLY_CALLED oly_z oly_z_tanh(oly_z z)
{
    if (fabs(z.re) > 22) {
        double e = oly_d_exp(-2 * fabs(z.re));
        return oly_z_of(copysign(1., z.re), 4 * oly_d_sin(z.im) * oly_d_cos(z.im) * e);
    }
    double t = oly_d_tan(z.im), beta = 1 + t * t, s = oly_d_sinh(z.re), rho = sqrt(1 + s * s), d = 1 + beta * s * s;
    return oly_z_of(beta * rho * s / d, t / d);
}
OLY_DEVICE oly_z oly_z_turned(oly_z z) /* i z */
{
    return oly_z_of(-z.im, z.re);
}
OLY_DEVICE oly_z oly_z_back(oly_z z) /* -i z */
{
    return oly_z_of(z.im, -z.re);
}
OLY_CALLED oly_z oly_z_asin(oly_z z)
{
    oly_z a = oly_z_sqrt(oly_z_of(1 - z.re, -z.im)), b = oly_z_sqrt(oly_z_of(1 + z.re, z.im));
    return oly_z_of(oly_d_atan2(z.re, a.re * b.re - a.im * b.im), oly_d_asinh(a.re * b.im - a.im * b.re));
}
OLY_CALLED oly_z oly_z_acos(oly_z z)
{
    oly_z a = oly_z_sqrt(oly_z_of(1 - z.re, -z.im)), b = oly_z_sqrt(oly_z_of(1 + z.re, z.im));
    return oly_z_of(2 * oly_d_atan2(a.re, b.re), oly_d_asinh(b.re * a.im - b.im * a.re));
}
OLY_CALLED oly_z oly_z_acosh(oly_z z)
{
    oly_z a = oly_z_sqrt(oly_z_of(z.re - 1, z.im)), b = oly_z_sqrt(oly_z_of(z.re + 1, z.im));
    return oly_z_of(oly_d_asinh(a.re * b.re + a.im * b.im), 2 * oly_d_atan2(a.im, b.re));
}
OLY_CALLED oly_z oly_z_atanh(oly_z z)
{
    double x = z.re, y = z.im, d = (1 - x) * (1 - x) + y * y;
    return oly_z_of(0.25 * oly_d_log1p(4 * x / d), 0.5 * oly_d_atan2(2 * y, (1 - x) * (1 + x) - y * y));
}
OLY_CALLED oly_z oly_z_expm1(oly_z z)
{
    double half = oly_d_sin(z.im / 2);
    if (z.im == 0)
        return oly_z_of(oly_d_expm1(z.re), z.im);
    return oly_z_of(oly_d_expm1(z.re) * oly_d_cos(z.im) - 2 * half * half, oly_d_exp(z.re) * oly_d_sin(z.im));
}
OLY_CALLED oly_z oly_z_log1p(oly_z z)
{
    double a = z.re, b = z.im;
    double real = fabs(a) + fabs(b) < 0.5 ? oly_d_log1p(a * (2 + a) + b * b) / 2 : oly_d_log(oly_d_hypot(1 + a, b));
    return oly_z_of(real, oly_d_atan2(b, 1 + a));
}
OLY_CALLED oly_z oly_z_pow(oly_z x, oly_z y)
{
    if (y.re == 0 && y.im == 0)
        return oly_z_of(1, 0);
    if (x.re == 0 && x.im == 0)
        return oly_z_of(y.re > 0 ? 0 : y.re < 0 ? INFINITY : NAN, 0);
    return oly_z_exp(oly_z_times(y, oly_z_log(x)));
}
OLY_CALLED oly_z oly_z_sign(oly_z x)
{
    double a = oly_z_abs(x);
    return x.re == 0 && x.im == 0 ? oly_z_of(0, 0) : oly_z_of(x.re / a, x.im / a);
}
OLY_CALLED oly_z oly_z_sigmoid(oly_z x)
{
    oly_z e = oly_z_exp(oly_z_of(-x.re, -x.im));
    return oly_z_over(oly_z_of(1, 0), oly_z_of(1 + e.re, e.im));
}

/* -- operations ------------------------------------------------------------------------------------------------------------------- */
OLY_DEVICE oly_z oly_z_widened(oly_c64 x)
{
    return oly_z_of(x.re, x.im);
}
OLY_DEVICE oly_z oly_z_widened(oly_c128 x)
{
    return x;
}
OLY_DEVICE oly_c64 oly_z_as_c64(oly_z x)
{
    return oly_w_of((float)x.re, (float)x.im);
}
OLY_DEVICE oly_c128 oly_z_as_c128(oly_z x)
{
    return x;
}
#define OLY_Z_FUNCTION(name, s, T, value)                                                                              \
    OLY_DEVICE T oly_op_##name##_##s(T given)                                                                          \
    {                                                                                                                  \
        const oly_z x = oly_z_widened(given);                                                                          \
        return oly_z_as_##s(value);                                                                                    \
    }
#define OLY_BEFORE(x, y)  ((x).re == (y).re ? (x).im < (y).im : (x).re < (y).re)
#define OLY_AT_MOST(x, y) ((x).re == (y).re ? (x).im <= (y).im : (x).re <= (y).re)
#define OLY_COMPLEX_OPS(s, T, R, of, times, over)                                                                      \
    OLY_DEF1(neg, s, T, T, of(-x.re, -x.im))                                                                           \
    OLY_DEF1(abs, s, R, T, oly_z_abs(oly_z_widened(x)))                                                                \
    OLY_DEF1(real, s, R, T, x.re)                                                                                      \
    OLY_DEF1(imag, s, R, T, x.im)                                                                                      \
    OLY_DEF1(conj, s, T, T, of(x.re, -x.im))                                                                           \
    OLY_DEF1(square, s, T, T, of((x.re - x.im) * (x.re + x.im), 2 * x.re * x.im))                                      \
    OLY_DEF2(add, s, T, T, of(x.re + y.re, x.im + y.im))                                                               \
    OLY_DEF2(sub, s, T, T, of(x.re - y.re, x.im - y.im))                                                               \
    OLY_DEF2(mul, s, T, T, times(x, y))                                                                                \
    OLY_DEF2(div, s, T, T, over(x, y))                                                                                 \
    OLY_DEF2(max, s, T, T, OLY_BEFORE(y, x) ? x : y)                                                                   \
    OLY_DEF2(min, s, T, T, OLY_BEFORE(x, y) ? x : y)                                                                   \
    OLY_DEF2(eq, s, oly_b8, T, (x.re == y.re) & (x.im == y.im))                                                        \
    OLY_DEF2(ne, s, oly_b8, T, (x.re != y.re) | (x.im != y.im))                                                        \
    OLY_DEF2(lt, s, oly_b8, T, OLY_BEFORE(x, y))                                                                       \
    OLY_DEF2(le, s, oly_b8, T, OLY_AT_MOST(x, y))                                                                      \
    OLY_DEF2(gt, s, oly_b8, T, OLY_BEFORE(y, x))                                                                       \
    OLY_DEF2(ge, s, oly_b8, T, OLY_AT_MOST(y, x))                                                                      \
    OLY_DEF2(pow, s, T, T, oly_z_as_##s(oly_z_pow(oly_z_widened(x), oly_z_widened(y))))                                \
    OLY_Z_FUNCTION(sign, s, T, oly_z_sign(x))                                                                          \
    OLY_Z_FUNCTION(exp, s, T, oly_z_exp(x))                                                                            \
    OLY_Z_FUNCTION(log, s, T, oly_z_log(x))                                                                            \
    OLY_Z_FUNCTION(sqrt, s, T, oly_z_sqrt(x))                                                                          \
    OLY_Z_FUNCTION(sin, s, T, oly_z_back(oly_z_sinh(oly_z_turned(x))))                                                 \
    OLY_Z_FUNCTION(cos, s, T, oly_z_cosh(oly_z_turned(x)))                                                             \
    OLY_Z_FUNCTION(tan, s, T, oly_z_back(oly_z_tanh(oly_z_turned(x))))                                                 \
    OLY_Z_FUNCTION(tanh, s, T, oly_z_tanh(x))                                                                          \
    OLY_Z_FUNCTION(sinh, s, T, oly_z_sinh(x))                                                                          \
    OLY_Z_FUNCTION(cosh, s, T, oly_z_cosh(x))                                                                          \
    OLY_Z_FUNCTION(sigmoid, s, T, oly_z_sigmoid(x))                                                                    \
    OLY_Z_FUNCTION(asin, s, T, oly_z_asin(x))                                                                          \
    OLY_Z_FUNCTION(acos, s, T, oly_z_acos(x))                                                                          \
    OLY_Z_FUNCTION(atan, s, T, oly_z_back(oly_z_atanh(oly_z_turned(x))))                                               \
    OLY_Z_FUNCTION(asinh, s, T, oly_z_back(oly_z_asin(oly_z_turned(x))))                                               \
    OLY_Z_FUNCTION(acosh, s, T, oly_z_acosh(x))                                                                        \
    OLY_Z_FUNCTION(atanh, s, T, oly_z_atanh(x))                                                                        \
    OLY_Z_FUNCTION(exp2, s, T, oly_z_exp(oly_z_of(LN2 *x.re, LN2 *x.im)))                                              \
    OLY_Z_FUNCTION(expm1, s, T, oly_z_expm1(x))                                                                        \
    OLY_Z_FUNCTION(log1p, s, T, oly_z_log1p(x))                                                                        \
    OLY_Z_FUNCTION(rsqrt, s, T, oly_z_over(oly_z_of(1, 0), oly_z_sqrt(x)))
OLY_COMPLEX_OPS(c64, oly_c64, float, oly_w_of, oly_w_times, oly_w_over)
OLY_COMPLEX_OPS(c128, oly_c128, double, oly_z_of, oly_z_times, oly_z_over)
#endif
