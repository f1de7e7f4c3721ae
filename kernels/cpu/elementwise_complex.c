/* SPDX-License-Identifier: BSD-3-Clause */
/* The formulas of elementwise.def for complex elements, and their loops (elementwise_loops.h):
 * oly_elementwise_complex_<isa>. Compiled once per instruction set; used by the tile interpreter. Products use the
 * plain formula, as in XLA (vector_math.h); quotients are scaled (the compiler's), so that they overflow only where the
 * result does. Order is by real part, then by imaginary part. */
#include "table.h"
#include "cpu/elementwise_complex.h"
#include "cpu/vector_math.h"

#define ELEMENTWISE_TABLE oly_elementwise_complex
#define OLY_NEG(x)        (-(x))
#define OLY_ABS(x)        IN_LIBM(cabs, x)(x)
#define OLY_SIGN(x)       BY_COMPLEX(sign, x)(x)
#define OLY_EXP(x)        IN_LIBM(cexp, x)(x)
#define OLY_LOG(x)        IN_LIBM(clog, x)(x)
#define OLY_SQRT(x)       IN_LIBM(csqrt, x)(x)
#define OLY_SIN(x)        IN_LIBM(csin, x)(x)
#define OLY_COS(x)        IN_LIBM(ccos, x)(x)
#define OLY_TANH(x)       IN_LIBM(ctanh, x)(x)
#define OLY_SIGMOID(x)    BY_COMPLEX(sigmoid, x)(x)
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

#define far_sine        everywhere
#define far_cosine      everywhere
#define far_exponential everywhere
#define far_sigmoid     everywhere

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
COMPLEX_FORMULAS(c64, float, cabsf, cexpf, cpow, FMAF) /* a power in double: its exponent magnifies errors */
COMPLEX_FORMULAS(c128, double, cabs, cexp, cpow, FMA)
#include "cpu/elementwise_loops.h"
