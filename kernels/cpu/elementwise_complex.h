/* SPDX-License-Identifier: BSD-3-Clause */
/* Element types, and selection of formulas by type, for the files of complex formulas. */
#ifndef OLY_ELEMENTWISE_COMPLEX_H
#define OLY_ELEMENTWISE_COMPLEX_H
#include "table.h"
#include <complex.h>
#include <math.h>

#define BOOL_TYPES(X, ...)
#define INTEGER_TYPES(X, ...)
#define FLOAT_TYPES(X, ...)
#define COMPLEX_TYPES(X, ...) OLY_COMPLEX_TYPES(ROW_TYPE, (X, __VA_ARGS__))
typedef float part_c64;
typedef double part_c128;

#define BY_COMPLEX(name, x) _Generic((x), float _Complex : name##_c64, double _Complex : name##_c128)

/* Whether any element is far, and if so the whole tile: far elements by the C library, the others by the formula. */
#define FAR_TILE(name, s, T, near, is_far, careful)                                                                    \
    static bool name##_##s(int n, T _Complex *out, const T _Complex *xs)                                               \
    {                                                                                                                  \
        int any = 0;                                                                                                   \
        for (int i = 0; i < n; i++) {                                                                                  \
            const T _Complex x = xs[i];                                                                                \
            any |= is_far;                                                                                             \
        }                                                                                                              \
        for (int i = 0; i < n && any; i++) {                                                                           \
            const T _Complex x = xs[i];                                                                                \
            out[i] = is_far ? careful(x) : near(x);                                                                    \
        }                                                                                                              \
        return any;                                                                                                    \
    }
/* Of functions whose angle is the real, or the imaginary part. */
#define FAR_ANGLE(name, near, careful)                                                                                 \
    FAR_TILE(name, c64, float, near##_c64, is_far_c64(__real__ x, __imag__ x), careful##f)                             \
    FAR_TILE(name, c128, double, near##_c128, is_far_c128(__real__ x, __imag__ x), careful)
#define FAR_HYPERBOLIC(name, near, careful)                                                                            \
    FAR_TILE(name, c64, float, near##_c64, is_far_c64(__imag__ x, __real__ x), careful##f)                             \
    FAR_TILE(name, c128, double, near##_c128, is_far_c128(__imag__ x, __real__ x), careful)
#endif
