/* SPDX-License-Identifier: BSD-3-Clause */
/* The formulas of elementwise.def for floating-point elements, float32 and float64 (narrower ones are computed as
 * float32: tile_narrow.c), and their loops (elementwise_loops.h): oly_elementwise_float_<isa>. Compiled once per
 * instruction set; used by the tile interpreter. Formulas are static inline functions of one element, selected by type;
 * the compiler vectorises the loops. */
#include "table.h"
#include "cpu/elementwise_float.h"
#include "cpu/math_single_power.h"

#define ELEMENTWISE_TABLE oly_elementwise_float
#define OLY_NEG(x)        BY_FLOAT(negative, x)(x)
#define OLY_ABS(x)        BY_FLOAT(magnitude, x)(x)
#define OLY_SIGN(x)       BY_FLOAT(sign, x)(x)
#define OLY_EXP(x)        BY_FLOAT(exp, x)(x)
#define OLY_LOG(x)        BY_FLOAT(log, x)(x)
#define OLY_SQRT(x)       BY_FLOAT(root, x)(x)
#define OLY_SIN(x)        BY_FLOAT(sine, x)(x)
#define OLY_COS(x)        BY_FLOAT(cosine, x)(x)
#define OLY_TANH(x)       BY_FLOAT(tanh, x)(x)
#define OLY_SIGMOID(x)    BY_FLOAT(sigmoid, x)(x)
#define OLY_FLOOR(x)      BY_FLOAT(floor, x)(x)
#define OLY_ADD(x, y)     BY_FLOAT(sum, x)(x, y)
#define OLY_SUB(x, y)     BY_FLOAT(difference, x)(x, y)
#define OLY_MUL(x, y)     BY_FLOAT(product, x)(x, y)
#define OLY_DIV(x, y)     BY_FLOAT(quotient, x)(x, y)
#define OLY_POW(x, y)     BY_FLOAT(pow, x)(x, y)
#define OLY_MAX(x, y)     BY_FLOAT(larger, x)(x, y)
#define OLY_MIN(x, y)     BY_FLOAT(smaller, x)(x, y)
#define OLY_LT(x, y)      ((x) < (y))
#define OLY_LE(x, y)      ((x) <= (y))
#define OLY_GT(x, y)      ((x) > (y))
#define OLY_GE(x, y)      ((x) >= (y))
#define OLY_JOIN(x, y)    BY_FLOAT(complex_of, x)(x, y)

/* -- formulas ------------------------------------------------------------------------------------------------------- */
/* Of equal numbers max prefers +0 to -0, min -0 to +0. */
#define ZERO_FORMULAS(s, T, U)                                                                                         \
    static inline T common_bits_##s(T x, T y)                                                                          \
    {                                                                                                                  \
        U a, b;                                                                                                        \
        memcpy(&a, &x, sizeof a);                                                                                      \
        memcpy(&b, &y, sizeof b);                                                                                      \
        a &= b;                                                                                                        \
        memcpy(&x, &a, sizeof a);                                                                                      \
        return x;                                                                                                      \
    }                                                                                                                  \
    static inline T any_bits_##s(T x, T y)                                                                             \
    {                                                                                                                  \
        U a, b;                                                                                                        \
        memcpy(&a, &x, sizeof a);                                                                                      \
        memcpy(&b, &y, sizeof b);                                                                                      \
        a |= b;                                                                                                        \
        memcpy(&x, &a, sizeof a);                                                                                      \
        return x;                                                                                                      \
    }
ZERO_FORMULAS(f32, float, uint32_t)
ZERO_FORMULAS(f64, double, uint64_t)
#define FLOAT_FORMULAS(s, T, dtype, sqrt_of, floor_of, abs_of)                                                         \
    static inline T negative_##s(T x)                                                                                  \
    {                                                                                                                  \
        return -x;                                                                                                     \
    }                                                                                                                  \
    static inline T magnitude_##s(T x)                                                                                 \
    {                                                                                                                  \
        return abs_of(x);                                                                                              \
    }                                                                                                                  \
    static inline T sign_##s(T x)                                                                                      \
    {                                                                                                                  \
        return x > 0 ? 1 : x < 0 ? -1 : x;                                                                             \
    }                                                                                                                  \
    static inline T root_##s(T x)                                                                                      \
    {                                                                                                                  \
        return sqrt_of(x);                                                                                             \
    }                                                                                                                  \
    static inline T floor_##s(T x)                                                                                     \
    {                                                                                                                  \
        return floor_of(x);                                                                                            \
    }                                                                                                                  \
    static inline T sum_##s(T x, T y)                                                                                  \
    {                                                                                                                  \
        return x + y;                                                                                                  \
    }                                                                                                                  \
    static inline T difference_##s(T x, T y)                                                                           \
    {                                                                                                                  \
        return x - y;                                                                                                  \
    }                                                                                                                  \
    static inline T product_##s(T x, T y)                                                                              \
    {                                                                                                                  \
        return x * y;                                                                                                  \
    }                                                                                                                  \
    static inline T quotient_##s(T x, T y)                                                                             \
    {                                                                                                                  \
        return x / y;                                                                                                  \
    }                                                                                                                  \
    static inline T larger_##s(T x, T y)                                                                               \
    {                                                                                                                  \
        return (x != x) | (x > y) ? x : x == y ? common_bits_##s(x, y) : y;                                            \
    }                                                                                                                  \
    static inline T smaller_##s(T x, T y)                                                                              \
    {                                                                                                                  \
        return (x != x) | (x < y) ? x : x == y ? any_bits_##s(x, y) : y;                                               \
    }

/* A complex number from its parts, infinities and -0 included. */
#define JOIN_FORMULA(s, T)                                                                                             \
    static inline T _Complex complex_of_##s(T real, T imaginary)                                                       \
    {                                                                                                                  \
        T _Complex z;                                                                                                  \
        __real__ z = real;                                                                                             \
        __imag__ z = imaginary;                                                                                        \
        return z;                                                                                                      \
    }
JOIN_FORMULA(f32, float)
JOIN_FORMULA(f64, double)

FLOAT_FORMULAS(f32, float, OLY_FLOAT32, __builtin_sqrtf, __builtin_floorf, __builtin_fabsf)
FLOAT_FORMULAS(f64, double, OLY_FLOAT64, __builtin_sqrt, __builtin_floor, __builtin_fabs)

/* -- tiles with elements beyond a formula's bound ------------------------------------------------------------------- */
FAR(far_sine, f32, float, __builtin_fabsf, NEAR_F32, sine_f32, sine_far)
FAR(far_sine, f64, double, __builtin_fabs, NEAR_F64, sine_f64, sine_far)
FAR(far_cosine, f32, float, __builtin_fabsf, NEAR_F32, cosine_f32, cosine_far)
FAR(far_cosine, f64, double, __builtin_fabs, NEAR_F64, cosine_f64, cosine_far)
FAR_WHOLE(far_exponential, f32, float, NEAR_EXP_F32, exp_whole_f32)
FAR_WHOLE(far_sigmoid, f32, float, NEAR_EXP_F32, sigmoid_whole_f32)

/* Powers by blocks: the special cases cost as much as the power, and whole blocks seldom need any. */
#define POWER_LOOP(variant, sx, sy)                                                                                    \
    static void pow_##variant##_f32(int n, void *out, const void *px, const void *py, UNUSED_OPERAND)                  \
    {                                                                                                                  \
        float *result = out;                                                                                           \
        for (int done = 0; done < n; done += 256) {                                                                    \
            const float *xs = (const float *)px + (sx ? done : 0), *ys = (const float *)py + (sy ? done : 0);          \
            int m = n - done < 256 ? n - done : 256, special = 0;                                                      \
            const float x0 = xs[0], y0 = ys[0];                                                                        \
            for (int i = 0; i < m; i++)                                                                                \
                special |= !is_ordinary_power(sx ? xs[i] : x0, sy ? ys[i] : y0);                                       \
            if (special)                                                                                               \
                _Pragma("GCC ivdep") for (int i = 0; i < m; i++) result[done + i] =                                    \
                    pow_f32(sx ? xs[i] : x0, sy ? ys[i] : y0);                                                         \
            else                                                                                                       \
                _Pragma("GCC ivdep") for (int i = 0; i < m; i++) result[done + i] =                                    \
                    pow_ordinary_f32(sx ? xs[i] : x0, sy ? ys[i] : y0);                                                \
        }                                                                                                              \
    }
#define POWER_LOOPS_f32(...)          POWER_LOOP(vv, 1, 1) POWER_LOOP(sv, 0, 1) POWER_LOOP(vs, 1, 0)
#define POWER_LOOPS_f64               PAIR_LOOPS
#define POWER_LOOPS(s, T, R, name, v) POWER_LOOPS_##s(s, T, R, name, v)
#define OLY_LOOPS_OF_pow              , POWER_LOOPS

#define far_exponential_f64(n, out, x) false
#define far_sigmoid_f64(n, out, x)     false
#define far_sine(s, n, out, x)         far_sine_##s(n, out, x)
#define far_cosine(s, n, out, x)       far_cosine_##s(n, out, x)
#define far_exponential(s, n, out, x)  far_exponential_##s(n, out, x)
#define far_sigmoid(s, n, out, x)      far_sigmoid_##s(n, out, x)
#include "cpu/elementwise_loops.h"
