/* SPDX-License-Identifier: BSD-3-Clause */
/* The formulas of elementwise_math.def for complex elements, and their loops (elementwise_loops.h): oly_math_complex_<isa>.
 * Compiled once per instruction set; used by the tile interpreter. */
#include "table.h"
#include "cpu/complex_inverse.h"
#include "cpu/elementwise_complex.h"
#include <string.h>

#define ELEMENTWISE_TABLE oly_math_complex
#define ELEMENTWISE_ROWS  "elementwise_math.def"

#define OLY_TAN(x)    BY_COMPLEX(tangent, x)(x)
#define OLY_ASIN(x)   BY_COMPLEX(arc_sine, x)(x)
#define OLY_ACOS(x)   BY_COMPLEX(arc_cosine, x)(x)
#define OLY_ATAN(x)   BY_COMPLEX(arc_tangent, x)(x)
#define OLY_SINH(x)   BY_COMPLEX(hyperbolic_sine, x)(x)
#define OLY_COSH(x)   BY_COMPLEX(hyperbolic_cosine, x)(x)
#define OLY_ASINH(x)  BY_COMPLEX(area_sine, x)(x)
#define OLY_ACOSH(x)  BY_COMPLEX(area_cosine, x)(x)
#define OLY_ATANH(x)  BY_COMPLEX(area_tangent, x)(x)
#define OLY_EXP2(x)   BY_COMPLEX(power_of_two, x)(x)
#define OLY_EXPM1(x)  BY_COMPLEX(less_one, x)(x)
#define OLY_LOG1P(x)  BY_COMPLEX(log_of_one_plus, x)(x)
#define OLY_RSQRT(x)  BY_COMPLEX(inverse_root, x)(x)
#define OLY_SQUARE(x) BY_COMPLEX(square, x)(x)

/* -- formulas ------------------------------------------------------------------------------------------------------- */
/* exp2 and expm1 are for far elements. e^z - 1 = (e^a - 1) cos b - 2 sin(b/2)^2 + i e^a sin b. */
#define COMPLEX_FORMULAS(s, T, f)                                                                                      \
    static inline T _Complex complex_##s(T a, T b)                                                                     \
    {                                                                                                                  \
        T _Complex z;                                                                                                  \
        __real__ z = a;                                                                                                \
        __imag__ z = b;                                                                                                \
        return z;                                                                                                      \
    }                                                                                                                  \
    static inline T _Complex square_##s(T _Complex x)                                                                  \
    {                                                                                                                  \
        T a = __real__ x, b = __imag__ x;                                                                              \
        return complex_##s((a - b) * (a + b), 2 * a * b);                                                              \
    }                                                                                                                  \
    static inline T _Complex exp2_##s(T _Complex x)                                                                    \
    {                                                                                                                  \
        const T ln2 = (T)0x1.62e42fefa39efp-1;                                                                         \
        return cexp##f(complex_##s(ln2 * __real__ x, ln2 * __imag__ x));                                               \
    }                                                                                                                  \
    static inline T _Complex expm1_##s(T _Complex x)                                                                   \
    {                                                                                                                  \
        T a = __real__ x, b = __imag__ x, half = sin##f(b / 2);                                                        \
        if (b == 0)                                                                                                    \
            return complex_##s(expm1##f(a), b);                                                                        \
        return complex_##s(expm1##f(a) * cos##f(b) - 2 * half * half, exp##f(a) * sin##f(b));                          \
    }
COMPLEX_FORMULAS(c64, float, f)
COMPLEX_FORMULAS(c128, double, )

/* -- functions with far elements ------------------------------------------------------------------------------------ */
FAR_ANGLE(far_tangent, tangent, ctan)
FAR_HYPERBOLIC(far_hyperbolic_sine, hyperbolic_sine, csinh)
FAR_HYPERBOLIC(far_hyperbolic_cosine, hyperbolic_cosine, ccosh)
FAR_TILE(far_expm1, c64, float, less_one_c64, is_far_c64(__imag__ x, __real__ x), expm1_c64)
FAR_TILE(far_expm1, c128, double, less_one_c128, is_far_c128(__imag__ x, __real__ x), expm1_c128)
FAR_TILE(far_exp2, c64, float, power_of_two_c64,
         !(__builtin_fabsf(__real__ x) < (float)INFINITY) | !(__builtin_fabsf(__imag__ x) <= NEAR_F32), exp2_c64)
FAR_TILE(far_exp2, c128, double, power_of_two_c128,
         !(__builtin_fabs(__real__ x) <= NEAR_POWER_OF_TWO) | !(__builtin_fabs(__imag__ x) <= NEAR_F64), exp2_c128)
#define far_tangent(s, n, out, x)           far_tangent_##s(n, out, x)
#define far_expm1(s, n, out, x)             far_expm1_##s(n, out, x)
#define far_hyperbolic_sine(s, n, out, x)   far_hyperbolic_sine_##s(n, out, x)
#define far_hyperbolic_cosine(s, n, out, x) far_hyperbolic_cosine_##s(n, out, x)
#define far_exp2(s, n, out, x)              far_exp2_##s(n, out, x)
#define OLY_FAR_OF_exp2                     , far_exp2
#define OLY_FAR_OF_sinh                     , far_hyperbolic_sine
#define OLY_FAR_OF_cosh                     , far_hyperbolic_cosine
#include "cpu/elementwise_loops.h"
