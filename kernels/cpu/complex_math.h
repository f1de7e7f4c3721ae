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
/* t, of a number with these sides and that hypotenuse, times 1 / back. */
INLINE double larger_of_root(double a, double b, sides s, double size)
{
    double real = __builtin_fabs(a) < __builtin_fabs(b) ? s.small : s.large;
    return __builtin_sqrt(0.5 * (real + size));
}
INLINE double _Complex root_c128(double _Complex x)
{
    double a = __real__ x, b = __imag__ x;
    sides s = sides_of(a, b);
    return root_from(a, b, larger_of_root(a, b, s, hypotenuse(s)) * s.back);
}
/* 1 / root, from t and |z|: the conjugate over |z|. Infinite, with NaN, where the root is zero. */
INLINE double _Complex inverse_root_from(double a, double b, double t, double size)
{
    bool infinite = either_infinite(a, b);
    double large = infinite ? 0 : t / size, small = infinite ? 0 : __builtin_fabs(b) / ((t + t) * size);
    large = size == 0 ? INFINITY : large;
    return __builtin_complex(a < 0 ? small : large, with_sign_of(a < 0 ? large : small, -b));
}
INLINE float _Complex inverse_root_c64(float _Complex x)
{
    double a = __real__ x, b = __imag__ x, square = a * a + b * b, size = __builtin_sqrt(square);
    double _Complex y = inverse_root_from(a, b, __builtin_sqrt(0.5 * (__builtin_fabs(a) + size)), size);
    return __builtin_complex((float)__real__ y, (float)__imag__ y);
}
INLINE double _Complex inverse_root_c128(double _Complex x)
{
    double a = __real__ x, b = __imag__ x;
    sides s = sides_of(a, b);
    double forth = 1 / s.back, scale = forth * forth, size = hypotenuse(s); /* the first two are powers of two */
    double _Complex y = inverse_root_from(a * scale, b * scale, larger_of_root(a, b, s, size), size);
    return __builtin_complex(__real__ y * forth, __imag__ y * forth);
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
/* first + a^2 + b^2, which may cancel: the squares' rounding errors are terms of their own, and those of all sums are added at
 * the end. */
INLINE double sum_of_squares(double first, double a, double b)
{
    double p = a * a, q = b * b, p_rest = PRODUCT_ERROR(a, a, p), q_rest = PRODUCT_ERROR(b, b, q);
    double second = first + p, third = second + q, fourth = third + p_rest, fifth = fourth + q_rest;
    double rest = sum_error(first, p, second) + sum_error(second, q, third);
    return fifth + (rest + (sum_error(third, p_rest, fourth) + sum_error(fourth, q_rest, fifth)));
}
/* The logarithm of a + ib with the sides s; if `near`, from the sum of their squares minus 1. */
INLINE double _Complex logarithm_from(double a, double b, sides s, bool near, double square_minus_one)
{
    const double log_of_scale = 0x1.9fe3682cd3be4p+8; /* 600 ln 2 */
    double circle = log1p_f64(near ? square_minus_one : 0);
    double far = log_f64(FMA(s.large, s.large, s.small * s.small));
    double shift = s.back > 1 ? log_of_scale : s.back < 1 ? -log_of_scale : 0;
    double real = 0.5 * (near ? circle : far) + shift;
    real = either_infinite(a, b) ? INFINITY : real;
    return __builtin_complex(real, atan2_f64(b, a));
}
INLINE double _Complex logarithm_c128(double _Complex x)
{
    sides s = sides_of(__real__ x, __imag__ x);
    bool near = is_near_one(s.large);
    double square_minus_one = sum_of_squares(-1, near ? s.large : 1, near ? s.small : 0);
    return logarithm_from(__real__ x, __imag__ x, s, near, square_minus_one);
}
/* log(1 + a + ib), where |1 + a + ib|^2 - 1 = 2a + a^2 + b^2 loses nothing by the rounding of 1 + a. */
INLINE double _Complex logarithm_beside_one(double a, double b)
{
    double one = __builtin_fabs(1 + a), other = __builtin_fabs(b);
    bool near = is_near_one(one < other ? other : one);
    return logarithm_from(1 + a, b, sides_of(one, other), near,
                          sum_of_squares(near ? a + a : 0, near ? a : 0, near ? b : 0));
}
INLINE float _Complex log_of_one_plus_c64(float _Complex x)
{
    double _Complex y = logarithm_beside_one(__real__ x, __imag__ x);
    return __builtin_complex((float)__real__ y, (float)__imag__ y);
}
INLINE double _Complex log_of_one_plus_c128(double _Complex x)
{
    return logarithm_beside_one(__real__ x, __imag__ x);
}

/* -- sine, tangent and those of the hyperbola -------------------------------------------------------------------------- */
/* For angles for which the sine's near form holds, and areas (hyperbolic angles) up to this, so that squares do not
 * overflow. Products that are added are fused explicitly: GCC 12 would fuse some in vector code alone (vector_math.h). */
#define NEAR_HYPERBOLIC 300.0
/* Functions of angle + i area, from the angle's sine and cosine. */
INLINE double _Complex sine_from(double sine, double cosine, double area)
{
    return __builtin_complex(sine * cosh_f64(area), cosine * sinh_f64(area));
}
INLINE double _Complex cosine_from(double sine, double cosine, double area)
{
    return __builtin_complex(cosine * cosh_f64(area), -sine * sinh_f64(area));
}
INLINE double _Complex tangent_from(double sine, double cosine, double area)
{
    double s = sinh_f64(area), c = cosh_f64(area), size = FMA(cosine, cosine, s * s);
    return __builtin_complex(sine * cosine / size, s * c / size);
}
/* The angle is the real part; or the imaginary one, of functions of the hyperbola, where sinh z = -i sin iz and cosh z = cos -iz. */
#define OF_ANGLE(name, s, T, sine_of, cosine_of)                                                                       \
    INLINE T _Complex name##_##s(T _Complex x)                                                                         \
    {                                                                                                                  \
        double angle = __real__ x, area = __imag__ x;                                                                  \
        double _Complex y = name##_from(sine_of(angle), cosine_of(angle), area);                                       \
        return __builtin_complex((T) __real__ y, (T) __imag__ y);                                                      \
    }
#define OF_AREA(name, s, T, sine_of, cosine_of, first, second)                                                         \
    INLINE T _Complex hyperbolic_##name##_##s(T _Complex x)                                                            \
    {                                                                                                                  \
        double angle = __imag__ x, area = __real__ x;                                                                  \
        double _Complex y = name##_from(sine_of(angle), cosine_of(angle), area);                                       \
        return __builtin_complex((T)(first y), (T)(second y));                                                         \
    }
/* logistic: 1 / (1 + e^-x), where 1 + e cos b = 2 e cos(b/2)^2 - (e - 1) does not cancel near poles; a zero is positive, as
 * that of the quotient. less_one: e^x - 1 from e^a - 1 and the half angle, so that nothing cancels near zero. */
#define CIRCULAR(s, T, sine_of, cosine_of, near_angle)                                                                 \
    INLINE bool is_far_##s(T angle, T area)                                                                            \
    {                                                                                                                  \
        return !(__builtin_fabs((double)angle) <= (double)near_angle) |                                                \
               !(__builtin_fabs((double)area) <= NEAR_HYPERBOLIC);                                                     \
    }                                                                                                                  \
    OF_ANGLE(sine, s, T, sine_of, cosine_of)                                                                           \
    OF_ANGLE(cosine, s, T, sine_of, cosine_of)                                                                         \
    OF_ANGLE(tangent, s, T, sine_of, cosine_of)                                                                        \
    OF_AREA(sine, s, T, sine_of, cosine_of, __imag__, __real__)                                                        \
    OF_AREA(cosine, s, T, sine_of, cosine_of, __real__, -__imag__)                                                     \
    OF_AREA(tangent, s, T, sine_of, cosine_of, __imag__, __real__)                                                     \
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
/* 2^x where the real part's power is a normal number, or, of complex64, any. */
#define NEAR_POWER_OF_TWO 1020.0
INLINE float _Complex power_of_two_c64(float _Complex x)
{
    double size = exp_short(clamp(LN2 * (double)__real__ x, -200, 200)), angle = LN2 * (double)__imag__ x;
    return __builtin_complex((float)(size * cosine_of_single(angle)), (float)(size * sine_of_single(angle)));
}
INLINE double _Complex power_of_two_c128(double _Complex x)
{
    const double ln2_rest = 0x1.abc9e3b39803fp-56;
    double size = exp2_f64(__real__ x), b = __imag__ x, angle = LN2 * b;
    double rest = FMA(ln2_rest, b, PRODUCT_ERROR(LN2, b, angle)), sine = sine_f64(angle), cosine = cosine_f64(angle);
    double imaginary = b == 0 ? b : FMA(rest, cosine, sine); /* keeps the sign of zero */
    return __builtin_complex(size * FMA(-rest, sine, cosine), size * imaginary);
}
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
