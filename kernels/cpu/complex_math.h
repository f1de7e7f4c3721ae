/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions of one complex number from its real and imaginary part, as vector_math.h: no branches, no tables, so that loops over
 * them vectorise. Those of complex64 compute in double, where squares are exact, and round once; those of complex128 scale by powers of two so
 * that squares neither overflow nor vanish. Special values are those of C99. Used by elementwise_complex.c and
 * elementwise_math_complex.c. */
#ifndef OLY_COMPLEX_MATH_H
#define OLY_COMPLEX_MATH_H
#include "cpu/math_angle.h"
#include <complex.h>

INLINE bool either_infinite(double a, double b)
{
    return (__builtin_fabs(a) == INFINITY) | (__builtin_fabs(b) == INFINITY);
}

/* -- magnitude ------------------------------------------------------------------------------------------------------ */
/* Infinite where a part is, even beside NaN. */
INLINE float magnitude_c64(float _Complex x)
{
    double a = __real__ x, b = __imag__ x, square = a * a + b * b; /* exact products: the same sum, fused or not */
    return (float)(either_infinite(a, b) ? INFINITY : __builtin_sqrt(square));
}

/* The magnitudes of both parts, times a power of four; back: the root of what undoes that. */
typedef struct sides {
    double large, small, back;
} sides;
INLINE sides sides_of(double a, double b)
{
    a = __builtin_fabs(a), b = __builtin_fabs(b);
    double large = a < b ? b : a, small = a < b ? a : b;
    bool huge = large > 0x1p500, tiny = large < 0x1p-500;
    double scale = huge ? 0x1p-600 : tiny ? 0x1p600 : 1;
    sides s = {large * scale, small * scale, huge ? 0x1p300 : tiny ? 0x1p-300 : 1};
    return s;
}
/* The hypotenuse: 1 ulp. From the difference where it is small, because rounding errors of squares weigh less then. */
INLINE double hypotenuse(sides s)
{
    bool similar = s.small + s.small >= s.large;
    double factor = similar ? s.small + s.small : s.large, rest = similar ? s.large - s.small : s.small;
    return __builtin_sqrt(FMA(factor, s.large, rest * rest));
}
INLINE double magnitude_c128(double _Complex x)
{
    sides s = sides_of(__real__ x, __imag__ x);
    double y = hypotenuse(s) * s.back * s.back;
    return either_infinite(__real__ x, __imag__ x) ? INFINITY : y;
}

/* -- square root ---------------------------------------------------------------------------------------------------- */
/* t = sqrt((|a| + |z|) / 2) is the larger part or equal to it; the other one is |b| / (2 t). */
INLINE double _Complex root_from(double a, double b, double t)
{
    double size = __builtin_fabs(b);
    t = either_infinite(a, b) ? INFINITY : t;
    double other = t == 0 ? 0 : size / (t + t);
    other = size == INFINITY ? INFINITY : other;
    return __builtin_complex(a < 0 ? other : t, with_sign_of(a < 0 ? t : other, b));
}
INLINE float _Complex root_c64(float _Complex x)
{
    double a = __real__ x, b = __imag__ x, square = a * a + b * b;
    double _Complex y = root_from(a, b, __builtin_sqrt(0.5 * (__builtin_fabs(a) + __builtin_sqrt(square))));
    return __builtin_complex((float)__real__ y, (float)__imag__ y);
}
INLINE double _Complex root_c128(double _Complex x)
{
    double a = __real__ x, b = __imag__ x;
    sides s = sides_of(a, b);
    double real = __builtin_fabs(a) < __builtin_fabs(b) ? s.small : s.large;
    return root_from(a, b, __builtin_sqrt(0.5 * (real + hypotenuse(s))) * s.back);
}

/* -- logarithm ------------------------------------------------------------------------------------------------------ */
/* Near the unit circle log|z| is computed from |z|^2 - 1. */
INLINE bool is_near_one(double large)
{
    return (large > 0.5) & (large < 2);
}
/* log|z| and the angle, of complex64: both of double precision. */
INLINE double _Complex logarithm_of_c64(float _Complex x)
{
    double a = __builtin_fabs(__real__ x), b = __builtin_fabs(__imag__ x), large = a < b ? b : a, small = a < b ? a : b;
    double near = log1p_f64((large - 1) * (large + 1) + small * small); /* exact products */
    double real = is_near_one(large) ? near : log_f64(a * a + b * b);
    real = either_infinite(a, b) ? INFINITY : 0.5 * real;
    return __builtin_complex(real, atan2_f64(__imag__ x, __real__ x));
}
INLINE float _Complex logarithm_c64(float _Complex x)
{
    double _Complex y = logarithm_of_c64(x);
    return __builtin_complex((float)__real__ y, (float)__imag__ y);
}
/* The rounding error of sum = a + b: exact. */
INLINE double sum_error(double a, double b, double sum)
{
    double back = sum - a;
    return (a - (sum - back)) + (b - back);
}
/* a^2 + b^2 - 1 for 1/2 < a < 2 and b <= a: the squares' rounding errors are terms of their own, and those of all sums are
 * added at the end. */
INLINE double square_minus_one(double a, double b)
{
    double p = a * a, q = b * b, p_rest = PRODUCT_ERROR(a, a, p), q_rest = PRODUCT_ERROR(b, b, q);
    double first = p - 1, second = first + q, third = second + p_rest, fourth = third + q_rest;
    double rest = sum_error(-1, p, first) + sum_error(first, q, second);
    return fourth + (rest + (sum_error(second, p_rest, third) + sum_error(third, q_rest, fourth)));
}
INLINE double _Complex logarithm_c128(double _Complex x)
{
    const double log_of_scale = 0x1.9fe3682cd3be4p+8; /* 600 ln 2 */
    sides s = sides_of(__real__ x, __imag__ x);
    bool near = is_near_one(s.large);
    double circle = log1p_f64(square_minus_one(near ? s.large : 1, near ? s.small : 0));
    double far = log_f64(FMA(s.large, s.large, s.small * s.small));
    double shift = s.back > 1 ? log_of_scale : s.back < 1 ? -log_of_scale : 0;
    double real = 0.5 * (near ? circle : far) + shift;
    real = either_infinite(__real__ x, __imag__ x) ? INFINITY : real;
    return __builtin_complex(real, atan2_f64(__imag__ x, __real__ x));
}

/* -- sine, tangent and those of the hyperbola -------------------------------------------------------------------------- */
/* For angles for which the sine's near form holds, and areas (hyperbolic angles) up to this, so that squares do not
 * overflow. Products that are added are fused explicitly: GCC 12 would fuse some in vector code alone (vector_math.h). */
#define NEAR_HYPERBOLIC 300.0
/* The tangent of angle + i area. */
INLINE double _Complex tangent_from(double sine, double cosine, double area)
{
    double s = sinh_f64(area), c = cosh_f64(area), size = FMA(cosine, cosine, s * s);
    return __builtin_complex(sine * cosine / size, s * c / size);
}
/* logistic: 1 / (1 + e^-x), where 1 + e cos b = 2 e cos(b/2)^2 - (e - 1) does not cancel near poles; a zero is positive, as
 * that of the quotient. less_one: e^x - 1 from e^a - 1 and the half angle, so that nothing cancels near zero. */
#define CIRCULAR(s, T, sine_of, cosine_of, near_angle)                                                                 \
    INLINE bool is_far_##s(T angle, T area)                                                                            \
    {                                                                                                                  \
        return !(__builtin_fabs((double)angle) <= (double)near_angle) |                                                \
               !(__builtin_fabs((double)area) <= NEAR_HYPERBOLIC);                                                     \
    }                                                                                                                  \
    INLINE T _Complex sine_##s(T _Complex x)                                                                           \
    {                                                                                                                  \
        double a = __real__ x, b = __imag__ x;                                                                         \
        return __builtin_complex((T)(sine_of(a) * cosh_f64(b)), (T)(cosine_of(a) * sinh_f64(b)));                      \
    }                                                                                                                  \
    INLINE T _Complex cosine_##s(T _Complex x)                                                                         \
    {                                                                                                                  \
        double a = __real__ x, b = __imag__ x;                                                                         \
        return __builtin_complex((T)(cosine_of(a) * cosh_f64(b)), (T)(-sine_of(a) * sinh_f64(b)));                     \
    }                                                                                                                  \
    INLINE T _Complex hyperbolic_sine_##s(T _Complex x)                                                                \
    {                                                                                                                  \
        double a = __real__ x, b = __imag__ x;                                                                         \
        return __builtin_complex((T)(cosine_of(b) * sinh_f64(a)), (T)(sine_of(b) * cosh_f64(a)));                      \
    }                                                                                                                  \
    INLINE T _Complex hyperbolic_cosine_##s(T _Complex x)                                                              \
    {                                                                                                                  \
        double a = __real__ x, b = __imag__ x;                                                                         \
        return __builtin_complex((T)(cosine_of(b) * cosh_f64(a)), (T)(sine_of(b) * sinh_f64(a)));                      \
    }                                                                                                                  \
    INLINE T _Complex tangent_##s(T _Complex x)                                                                        \
    {                                                                                                                  \
        double a = __real__ x, b = __imag__ x;                                                                         \
        double _Complex y = tangent_from(sine_of(a), cosine_of(a), b);                                                 \
        return __builtin_complex((T) __real__ y, (T) __imag__ y);                                                      \
    }                                                                                                                  \
    INLINE T _Complex hyperbolic_tangent_##s(T _Complex x)                                                             \
    {                                                                                                                  \
        double a = __real__ x, b = __imag__ x;                                                                         \
        double _Complex y = tangent_from(sine_of(b), cosine_of(b), a);                                                 \
        return __builtin_complex((T) __imag__ y, (T) __real__ y);                                                      \
    }                                                                                                                  \
    INLINE T _Complex logistic_##s(T _Complex x)                                                                       \
    {                                                                                                                  \
        double a = __real__ x, b = __imag__ x, e = exp_f64(-a), half = cosine_of(0.5 * b);                             \
        double real = FMA(2 * e * half, half, -expm1_f64(-a)), imaginary = FMA(e, sine_of(b), 0);                      \
        double size = FMA(real, real, imaginary * imaginary);                                                          \
        return __builtin_complex((T)(real / size), (T)(imaginary / size));                                             \
    }                                                                                                                  \
    INLINE T _Complex less_one_##s(T _Complex x)                                                                       \
    {                                                                                                                  \
        double a = __real__ x, b = __imag__ x, half = sine_of(0.5 * b);                                                \
        double real = FMA(-2 * half, half, expm1_f64(a) * cosine_of(b));                                               \
        return __builtin_complex((T)real, (T)(exp_f64(a) * sine_of(b)));                                               \
    }
CIRCULAR(c64, float, sine_of_single, cosine_of_single, NEAR_F32)
CIRCULAR(c128, double, sine_f64, cosine_f64, NEAR_F64)

/* -- power ---------------------------------------------------------------------------------------------------------- */
/* e^(y log x), or NaN where a part is not finite, x or y is zero, or the exponent is far: those have another formula. */
#define NEAR_POWER_C64  200.0 /* e^200 is no float32 */
#define NEAR_POWER_C128 700.0
INLINE bool is_near_power(double _Complex y, double _Complex w, double most)
{
    return ((__real__ y != 0) | (__imag__ y != 0)) & (__builtin_fabs(__real__ w) <= most) &
           (__builtin_fabs(__imag__ w) <= NEAR_F64);
}
INLINE float _Complex near_power_c64(float _Complex x, float _Complex exponent)
{
    double _Complex log = logarithm_of_c64(x),
                    y = __builtin_complex((double)__real__ exponent, (double)__imag__ exponent);
    double _Complex w = COMPLEX_PRODUCT(y, log, FMA);
    bool near = is_near_power(y, w, NEAR_POWER_C64);
    double size = near ? exp_short(near ? __real__ w : 0) : NAN, angle = near ? __imag__ w : 0;
    return __builtin_complex((float)(size * cosine_of_single(angle)), (float)(size * sine_of_single(angle)));
}
INLINE double _Complex near_power_c128(double _Complex x, double _Complex y)
{
    double _Complex log = logarithm_c128(x), w = COMPLEX_PRODUCT(y, log, FMA);
    bool near = is_near_power(y, w, NEAR_POWER_C128);
    double size = near ? exp_f64(near ? __real__ w : 0) : NAN, angle = near ? __imag__ w : 0;
    return __builtin_complex(size * cosine_f64(angle), size * sine_f64(angle));
}
#endif
