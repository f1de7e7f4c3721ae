/* SPDX-License-Identifier: BSD-3-Clause */
/* The formulas of elementwise.def for complex elements, and their loops (elementwise_loops.h):
 * oly_elementwise_complex_<isa>. Compiled once per instruction set; used by the tile interpreter. Functions are those of
 * complex_math.h; where elements are far, the C library's. Products use the plain formula, as in XLA (vector_math.h);
 * quotients overflow only where the result does: those of complex64 are computed in double, those of complex128 scaled
 * (the compiler's). Order is by real part, then by imaginary part. */
#include "table.h"
#include "cpu/complex_math.h"
#include "cpu/elementwise_complex.h"

#define ELEMENTWISE_TABLE oly_elementwise_complex
#define OLY_NEG(x)        (-(x))
#define OLY_ABS(x)        BY_COMPLEX(magnitude, x)(x)
#define OLY_SIGN(x)       BY_COMPLEX(sign, x)(x)
#define OLY_EXP(x)        BY_COMPLEX(exponential, x)(x)
#define OLY_LOG(x)        BY_COMPLEX(logarithm, x)(x)
#define OLY_SQRT(x)       BY_COMPLEX(root, x)(x)
#define OLY_SIN(x)        BY_COMPLEX(sine, x)(x)
#define OLY_COS(x)        BY_COMPLEX(cosine, x)(x)
#define OLY_TANH(x)       BY_COMPLEX(hyperbolic_tangent, x)(x)
#define OLY_SIGMOID(x)    BY_COMPLEX(logistic, x)(x)
#define OLY_REAL(x)       (__real__(x))
#define OLY_IMAG(x)       (__imag__(x))
#define OLY_CONJ(x)       (~(x))
#define OLY_ADD(x, y)     ((x) + (y))
#define OLY_SUB(x, y)     ((x) - (y))
#define OLY_MUL(x, y)     BY_COMPLEX(product, x)(x, y)
#define OLY_DIV(x, y)     ((x) / (y))
#define OLY_POW(x, y)     BY_COMPLEX(pow, x)(x, y)
#define OLY_MAX(x, y)     (OLY_GT(x, y) ? (x) : (y))
#define OLY_MIN(x, y)     (OLY_LT(x, y) ? (x) : (y))
#define OLY_LT(x, y)      BY_COMPLEX(less, x)(x, y)
#define OLY_LE(x, y)      BY_COMPLEX(at_most, x)(x, y)
#define OLY_GT(x, y)      BY_COMPLEX(less, x)(y, x)
#define OLY_GE(x, y)      BY_COMPLEX(at_most, x)(y, x)

/* -- formulas ------------------------------------------------------------------------------------------------------- */
#define COMPLEX_FORMULAS(s, T, abs_of, exp_of, pow_of, fma_of)                                                         \
    static inline T _Complex product_##s(T _Complex x, T _Complex y)                                                   \
    {                                                                                                                  \
        return COMPLEX_PRODUCT(x, y, fma_of);                                                                          \
    }                                                                                                                  \
    static inline T _Complex sign_##s(T _Complex x)                                                                    \
    {                                                                                                                  \
        return x == 0 ? 0 : x / abs_of(x);                                                                             \
    }                                                                                                                  \
    static inline T _Complex sigmoid_##s(T _Complex x)                                                                 \
    {                                                                                                                  \
        return 1 / (1 + exp_of(-x));                                                                                   \
    }                                                                                                                  \
    static inline T _Complex pow_##s(T _Complex x, T _Complex y)                                                       \
    {                                                                                                                  \
        if (y == 0)                                                                                                    \
            return 1;                                                                                                  \
        if (x == 0) /* the logarithm is infinite */                                                                    \
            return __real__ y > 0 ? 0 : __real__ y < 0 ? INFINITY : NAN;                                               \
        return (T _Complex)pow_of(x, y);                                                                               \
    }                                                                                                                  \
    static inline bool less_##s(T _Complex x, T _Complex y)                                                            \
    {                                                                                                                  \
        return __real__ x == __real__ y ? __imag__ x < __imag__ y : __real__ x < __real__ y;                           \
    }                                                                                                                  \
    static inline bool at_most_##s(T _Complex x, T _Complex y)                                                         \
    {                                                                                                                  \
        return __real__ x == __real__ y ? __imag__ x <= __imag__ y : __real__ x <= __real__ y;                         \
    }
COMPLEX_FORMULAS(c64, float, magnitude_c64, cexpf, cpow, FMAF) /* a power in double: its exponent magnifies errors */
COMPLEX_FORMULAS(c128, double, magnitude_c128, cexp, cpow, FMA)

/* -- quotients and powers ---------------------------------------------------------------------------------------------- */
static inline float _Complex quotient_c64(float _Complex x, float _Complex y)
{
    double a = __real__ x, b = __imag__ x, c = __real__ y, d = __imag__ y, square = c * c + d * d;
    float _Complex q;
    __real__ q = (float)((a * c + b * d) / square);
    __imag__ q = (float)((b * c - a * d) / square);
    return q;
}
/* Where both parts are NaN the quotient may be infinite or zero: C's rules, by the compiler; and powers are left to cpow. */
#define IS_UNKNOWN(z) ((__real__(z) != __real__(z)) & (__imag__(z) != __imag__(z)))
#define QUOTIENT_LOOPS_c64(s, T, R, name, value)                                                                       \
    FAR_PAIR_LOOPS(s, T, name, quotient_c64(x, y), IS_UNKNOWN(block[j]), x / y)
#define QUOTIENT_LOOPS_c128              PAIR_LOOPS
#define QUOTIENT_LOOPS(s, T, R, name, v) QUOTIENT_LOOPS_##s(s, T, R, name, v)
#define OLY_LOOPS_OF_div                 , QUOTIENT_LOOPS
#define POWER_LOOPS(s, T, R, name, value)                                                                              \
    FAR_PAIR_LOOPS(s, T, name, near_power_##s(x, y), IS_UNKNOWN(block[j]), pow_##s(x, y))
#define OLY_LOOPS_OF_pow , POWER_LOOPS

/* -- exponential ---------------------------------------------------------------------------------------------------- */
#define NORMAL_EXP_F32 87.0f
/* Exponential, sine and cosine rounded, then multiplied, as by the C library and by XLA: the last digits printed by JAX programs
 * depend on it. Where the exponential is not a normal float32 the product is rounded only. Where a part is not finite, or
 * the imaginary one too large, libm's. */
static inline float _Complex exponential_c64(float _Complex x)
{
    double b = __imag__ x, e = exp_short(clamp(__real__ x, -200, 200)), c = cosine_of_single(b), s = sine_of_single(b);
    bool normal = __builtin_fabsf(__real__ x) <= NORMAL_EXP_F32;
    float _Complex z;
    __real__ z = normal ? (float)e * (float)c : (float)(e * c);
    __imag__ z = normal ? (float)e * (float)s : (float)(e * s);
    return z;
}
static inline double _Complex exponential_c128(double _Complex x)
{
    double e = exp_f64(__real__ x), b = __imag__ x;
    return __builtin_complex(e * cosine_f64(b), e * sine_f64(b));
}
#define NORMAL_EXP_F64 708.0 /* beyond, it overflows or is no normal number, which the product may be */
FAR_TILE(far_exponential, c64, float, exponential_c64,
         !(__builtin_fabsf(__real__ x) < (float)INFINITY) | !(__builtin_fabsf(__imag__ x) <= NEAR_F32), cexpf)
FAR_TILE(far_exponential, c128, double, exponential_c128,
         !(__builtin_fabs(__real__ x) <= NORMAL_EXP_F64) | !(__builtin_fabs(__imag__ x) <= NEAR_F64), cexp)
#define far_exponential(s, n, out, x) far_exponential_##s(n, out, x)

/* -- other functions with far elements ------------------------------------------------------------------------------ */
FAR_ANGLE(far_sine, sine, csin)
FAR_ANGLE(far_cosine, cosine, ccos)
FAR_HYPERBOLIC(far_hyperbolic_tangent, hyperbolic_tangent, ctanh)
FAR_TILE(far_sigmoid, c64, float, logistic_c64, is_far_c64(__imag__ x, __real__ x), sigmoid_c64)
FAR_TILE(far_sigmoid, c128, double, logistic_c128, is_far_c128(__imag__ x, __real__ x), sigmoid_c128)
#define far_sine(s, n, out, x)               far_sine_##s(n, out, x)
#define far_cosine(s, n, out, x)             far_cosine_##s(n, out, x)
#define far_sigmoid(s, n, out, x)            far_sigmoid_##s(n, out, x)
#define far_hyperbolic_tangent(s, n, out, x) far_hyperbolic_tangent_##s(n, out, x)
#define OLY_FAR_OF_tanh                      , far_hyperbolic_tangent
#include "cpu/elementwise_loops.h"
