/* SPDX-License-Identifier: BSD-3-Clause */
/* Inverse sine, cosine and tangent of one complex number, and those of the hyperbola, as complex_math.h: complex64 in double,
 * complex128 scaled by powers of two, special values of C99. Each is computed in the quadrant where both parts are positive, from
 * sums of positive terms (T. E. Hull, T. F. Fairgrieve, P. T. P. Tang, Implementing the complex arcsine and arccosine functions
 * using exception handling, 1997), and mirrored. Used by elementwise_math_complex.c. */
#ifndef OLY_COMPLEX_INVERSE_H
#define OLY_COMPLEX_INVERSE_H
#include "cpu/complex_math.h"

/* condition ? yes : no, by masks: the compiler would make a branch of it where a constant goes on into other conditions, and loops
 * would not vectorise. */
INLINE double chosen(bool condition, double yes, double no)
{
    uint64_t mask = -(uint64_t)condition;
    return of_bits((bits_of(yes) & mask) | (bits_of(no) & ~mask));
}

/* -- sine and cosine ------------------------------------------------------------------------------------------------ */
/* For x, y >= 0: asin(x + iy) = atan(x / beside) + i area, acos(x + iy) = atan(beside / x) - i area. */
typedef struct inverse_sine {
    double beside, area;
} inverse_sine;

/* x, y and 1, all times the same power of two; `one` is 0 where 1 is nothing beside x or y. y = raised * back, and the square of
 * `raised` does not vanish. */
typedef struct quadrant_point {
    double x, y, one, raised, back;
} quadrant_point;

/* From `middle`, half the sum of the distances to -1 and 1. Of middle - 1 and middle - x one is `narrow` = y slope, the other one
 * `wide`: which, depends on the side of 1 that x lies on. Gives e^area - 1 in place of the area. */
INLINE inverse_sine inverse_sine_from(quadrant_point z)
{
    double right = z.x + z.one, left = __builtin_fabs(z.x - z.one), square = z.y * z.y;
    double distance = __builtin_sqrt(FMA(right, right, square)), root = __builtin_sqrt(FMA(left, left, square));
    double near = left == 0 ? z.y : root, middle = 0.5 * (distance + near), edge = near + left;
    double first = z.raised / (distance + right), second = edge == 0 ? 0 : z.raised / edge;
    double slope = 0.5 * (first + second);
    double narrow = z.y * (slope * z.back), twice_wide = FMA(z.y, first * z.back, edge);
    bool inside = z.x < z.one;
    double of_narrow = __builtin_sqrt(z.raised * (slope * (middle + (inside ? z.one : z.x)))) * z.back;
    double of_wide = __builtin_sqrt(twice_wide * (0.5 * (middle + (inside ? z.x : z.one))));
    inverse_sine s = {inside ? of_wide : of_narrow, inside ? narrow + of_narrow : FMA(0.5, twice_wide, of_wide)};
    return s;
}
INLINE inverse_sine inverse_sine_special(double x, double y, inverse_sine s)
{
    bool infinite = either_infinite(x, y);
    s.beside = chosen(x == 0, 1, s.beside); /* even where y is NaN */
    s.area = infinite ? INFINITY : s.area;
    return s;
}
INLINE inverse_sine inverse_sine_c64(double x, double y)
{
    quadrant_point z = {x, y, 1, y, 1};
    inverse_sine s = inverse_sine_from(z);
    s.beside = either_infinite(x, y) ? y : s.beside;
    s.area = log1p_f64(s.area);
    return inverse_sine_special(x, y, s);
}
INLINE inverse_sine inverse_sine_c128(double x, double y)
{
    const double log_of_scale = 0x1.1542457337d43p+8; /* 400 ln 2 */
    bool huge = (x > 0x1p500) | (y > 0x1p500), tiny = y < 0x1p-300;
    double scale = huge ? 0x1p-600 : 1;
    quadrant_point z = {x * scale, y * scale, huge ? 0 : 1, y * (tiny ? 0x1p600 : scale), tiny ? 0x1p-600 : 1};
    inverse_sine s = inverse_sine_from(z);
    s.beside = huge ? y : s.beside;
    s.area = log1p_f64(huge ? s.area * 0x1p200 : s.area); /* the same for a huge number and for 1 plus it */
    s.area += huge ? log_of_scale : 0;
    return inverse_sine_special(x, y, s);
}

/* -- tangent of the hyperbola --------------------------------------------------------------------------------------- */
/* For x, y >= 0: atanh(x + iy) = area + i angle, atan(y + ix) = angle + i area. */
typedef struct inverse_tangent {
    double angle, area;
} inverse_tangent;

/* far: 1 is nothing beside the square of x or y. */
INLINE double inverse_tangent_angle(double x, double y, bool far)
{
    double real = FMA(-y, y, (1 - x) * (1 + x));
    far &= (y == y) & (either_infinite(x, y) | (x == x));
    return 0.5 * atan2_f64(chosen(far, 0, y + y), chosen(far, -1, real));
}
INLINE inverse_tangent inverse_tangent_c64(double x, double y)
{
    double left = 1 - x, quotient = 4 * x / FMA(left, left, y * y);
    bool infinite = either_infinite(x, y);
    quotient = chosen(infinite | (x == 0), 0, quotient); /* even where y is NaN */
    inverse_tangent t = {inverse_tangent_angle(x, y, infinite), 0.25 * log1p_f64(quotient)};
    return t;
}
INLINE inverse_tangent inverse_tangent_c128(double x, double y)
{
    const double log_of_scale = 0x1.52417db067f38p+5; /* 61 ln 2 */
    bool huge = (x > 0x1p500) | (y > 0x1p500), infinite = either_infinite(x, y);
    double scale = huge ? 0x1p-600 : 1, one = huge ? 0 : 1, a = x * scale, b = y * scale, left = one - a;
    bool pole = (x == 1) & (y < 0x1p-120); /* there y^2 may vanish: log(2 / y) / 2 */
    double quotient = (pole ? 0x1p-60 : 4 * a) / (pole ? b : FMA(left, left, b * b)) * scale;
    quotient = chosen(infinite | (x == 0), 0, quotient);
    double log = log1p_f64(quotient);
    inverse_tangent t = {inverse_tangent_angle(x, y, huge), pole ? 0.5 * (log + log_of_scale) : 0.25 * log};
    return t;
}

/* -- functions ------------------------------------------------------------------------------------------------------ */
#define COMPLEX_INVERSES(s, T)                                                                                         \
    INLINE T _Complex arc_sine_##s(T _Complex z)                                                                       \
    {                                                                                                                  \
        double x = __builtin_fabs((double)__real__ z), y = __builtin_fabs((double)__imag__ z);                         \
        inverse_sine of = inverse_sine_##s(x, y);                                                                      \
        return __builtin_complex((T)with_sign_of(atan2_f64(x, of.beside), __real__ z),                                 \
                                 (T)with_sign_of(of.area, __imag__ z));                                                \
    }                                                                                                                  \
    INLINE T _Complex area_sine_##s(T _Complex z)                                                                      \
    {                                                                                                                  \
        double x = __builtin_fabs((double)__imag__ z), y = __builtin_fabs((double)__real__ z);                         \
        inverse_sine of = inverse_sine_##s(x, y);                                                                      \
        return __builtin_complex((T)with_sign_of(of.area, __real__ z),                                                 \
                                 (T)with_sign_of(atan2_f64(x, of.beside), __imag__ z));                                \
    }                                                                                                                  \
    INLINE T _Complex arc_cosine_##s(T _Complex z)                                                                     \
    {                                                                                                                  \
        double x = __builtin_fabs((double)__real__ z), y = __builtin_fabs((double)__imag__ z);                         \
        inverse_sine of = inverse_sine_##s(x, y);                                                                      \
        return __builtin_complex((T)atan2_f64(of.beside, __real__ z), (T)with_sign_of(of.area, -__imag__ z));          \
    }                                                                                                                  \
    INLINE T _Complex area_cosine_##s(T _Complex z)                                                                    \
    {                                                                                                                  \
        double x = __builtin_fabs((double)__real__ z), y = __builtin_fabs((double)__imag__ z);                         \
        inverse_sine of = inverse_sine_##s(x, y);                                                                      \
        return __builtin_complex((T)of.area, (T)with_sign_of(atan2_f64(of.beside, __real__ z), __imag__ z));           \
    }                                                                                                                  \
    INLINE T _Complex arc_tangent_##s(T _Complex z)                                                                    \
    {                                                                                                                  \
        double x = __builtin_fabs((double)__imag__ z), y = __builtin_fabs((double)__real__ z);                         \
        inverse_tangent of = inverse_tangent_##s(x, y);                                                                \
        return __builtin_complex((T)with_sign_of(of.angle, __real__ z), (T)with_sign_of(of.area, __imag__ z));         \
    }                                                                                                                  \
    INLINE T _Complex area_tangent_##s(T _Complex z)                                                                   \
    {                                                                                                                  \
        double x = __builtin_fabs((double)__real__ z), y = __builtin_fabs((double)__imag__ z);                         \
        inverse_tangent of = inverse_tangent_##s(x, y);                                                                \
        return __builtin_complex((T)with_sign_of(of.area, __real__ z), (T)with_sign_of(of.angle, __imag__ z));         \
    }
COMPLEX_INVERSES(c64, float)
COMPLEX_INVERSES(c128, double)
#endif
