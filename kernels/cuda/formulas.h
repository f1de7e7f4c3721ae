/* SPDX-License-Identifier: BSD-3-Clause */
/* Elementwise operations of one element, for kernels: oly_op_<operation>_<type>(x, y) for every row of elementwise.def and
 * elementwise_math.def and every element type, with the CPU's own formulas (kernels/cpu/math_*.h, compiled here as C++) and so its
 * bits. Exceptions, which have the bits of CUDA's library: lgamma, digamma of float64 (their log), and functions of complex
 * numbers (complex.h). Narrow types are widened to float32 and rounded once. Part of the text of generated kernels. */
#ifndef OLY_CUDA_FORMULAS_H
#define OLY_CUDA_FORMULAS_H
#include "device.h"

/* A long function. Kernels that contain every operation (tile.cu, with OLY_SHORT_CODE) call it, others inline it. */
#ifdef OLY_SHORT_CODE
#define OLY_CALLED static __device__ __noinline__
#else
#define OLY_CALLED OLY_DEVICE
#endif

/* -- the CPU's headers as C++ for devices ------------------------------------------------------------------------------------ */
#define INLINE            OLY_DEVICE
#define CAREFUL           OLY_CALLED
#define TABLE             OLY_CONSTANT
#define UNROLLED          OLY_UNROLL
#define OLY_NARROW_INLINE OLY_DEVICE
#ifdef OLY_EMULATED
#include <math.h>
#include <string.h>
OLY_DEVICE double oly_lgamma(double x)
{
    int sign;
    return lgamma_r(x, &sign);
}
#define OLY_DEVICE_LGAMMA oly_lgamma
#else
#define OLY_DEVICE_LGAMMA lgamma
#undef INFINITY
#undef NAN
#define INFINITY            __longlong_as_double(0x7ff0000000000000)
#define NAN                 __longlong_as_double(0x7ff8000000000000)
#define __builtin_fma       __fma_rn
#define __builtin_fmaf      __fmaf_rn
#define __builtin_sqrt(x)   sqrt(x)
#define __builtin_sqrtf(x)  sqrtf(x)
#define __builtin_fabs(x)   fabs(x)
#define __builtin_fabsf(x)  fabsf(x)
#define __builtin_floor(x)  floor(x)
#define __builtin_floorf(x) floorf(x)
#define __builtin_rint(x)   rint(x)
#define __builtin_rintf(x)  rintf(x)
#define __builtin_copysign  copysign
#define __builtin_copysignf copysignf
#define __builtin_clzll(x)  __clzll((long long)(x))
#endif
#undef __FP_FAST_FMA
#undef __FP_FAST_FMAF
#define __FP_FAST_FMA  1
#define __FP_FAST_FMAF 1
#include "core/narrow.h"
#include "cpu/math_error.h"
#include "cpu/math_gamma.h"
#include "cpu/math_single_power.h"
#include "cpu/math_whole.h"

NEXT_AFTER(f8_e4m3fn, uint8_t, uint8_t, int8_t, 8, 0x7e)
NEXT_AFTER(f8_e5m2, uint8_t, uint8_t, int8_t, 8, 0x7c)
NEXT_AFTER(f16, uint16_t, uint16_t, int16_t, 16, 0x7c00)
NEXT_AFTER(bf16, uint16_t, uint16_t, int16_t, 16, 0x7f80)

/* -- element types: suffix, C++ type ------------------------------------------------------------------------------------------- */
typedef struct oly_c64 {
    float re, im;
} oly_c64;
typedef struct oly_c128 {
    double re, im;
} oly_c128;
typedef uint8_t oly_b8;
#define OLY_SIGNED_OF(X, ...)                                                                                          \
    X(i8, int8_t, uint32_t, uint8_t, 8, 1, __VA_ARGS__)                                                                \
    X(i16, int16_t, uint32_t, uint16_t, 16, 1, __VA_ARGS__)                                                            \
    X(i32, int32_t, uint32_t, uint32_t, 32, 1, __VA_ARGS__)                                                            \
    X(i64, int64_t, uint64_t, uint64_t, 64, 1, __VA_ARGS__)
#define OLY_UNSIGNED_OF(X, ...)                                                                                        \
    X(u8, uint8_t, uint32_t, uint8_t, 8, 0, __VA_ARGS__)                                                               \
    X(u16, uint16_t, uint32_t, uint16_t, 16, 0, __VA_ARGS__)                                                           \
    X(u32, uint32_t, uint32_t, uint32_t, 32, 0, __VA_ARGS__)                                                           \
    X(u64, uint64_t, uint64_t, uint64_t, 64, 0, __VA_ARGS__)

#define OLY_DEF1(name, s, R, T, value)                                                                                 \
    OLY_DEVICE R oly_op_##name##_##s(T x)                                                                              \
    {                                                                                                                  \
        return (R)(value);                                                                                             \
    }
#define OLY_DEF2(name, s, R, T, value)                                                                                 \
    OLY_DEVICE R oly_op_##name##_##s(T x, T y)                                                                         \
    {                                                                                                                  \
        return (R)(value);                                                                                             \
    }

/* -- bools and integers ---------------------------------------------------------------------------------------------------------- */
/* U: the unsigned type in which arithmetic wraps; V: that of the same size. */
#define OLY_INTEGER_OPS(s, T, U, V, bits, is_signed, ...)                                                              \
    OLY_DEF1(neg, s, T, T, 0 - (U)x)                                                                                   \
    OLY_DEF1(abs, s, T, T, is_signed &&x < (T)1 ? (T)(0 - (U)x) : x)                                                   \
    OLY_DEF1(sign, s, T, T, (x >= (T)1) - (is_signed && x < (T)1 && x != 0))                                           \
    OLY_DEF2(add, s, T, T, (U)x + (U)y)                                                                                \
    OLY_DEF2(sub, s, T, T, (U)x - (U)y)                                                                                \
    OLY_DEF2(mul, s, T, T, (U)x *(U)y)                                                                                 \
    OLY_DEF2(div, s, T, T, y == 0 ? (T) ~(U)0 : is_signed && y == (T) ~(U)0 ? (T)(0 - (U)x) : (T)(x / y))              \
    OLY_DEF2(max, s, T, T, x > y ? x : y)                                                                              \
    OLY_DEF2(min, s, T, T, x < y ? x : y)                                                                              \
    OLY_DEF2(eq, s, oly_b8, T, x == y)                                                                                 \
    OLY_DEF2(ne, s, oly_b8, T, x != y)                                                                                 \
    OLY_DEF2(lt, s, oly_b8, T, x < y)                                                                                  \
    OLY_DEF2(le, s, oly_b8, T, x <= y)                                                                                 \
    OLY_DEF2(gt, s, oly_b8, T, x > y)                                                                                  \
    OLY_DEF2(ge, s, oly_b8, T, x >= y)                                                                                 \
    OLY_DEF1(square, s, T, T, (U)x *(U)x)                                                                              \
    OLY_DEF2(rem, s, T, T, y == 0 ? x : is_signed && y == (T) ~(U)0 ? (T)0 : (T)(x % y))                               \
    OLY_DEF1(not, s, T, T, x ^ (T)-1)                                                                                  \
    OLY_DEF1(population_count, s, T, T, oly_count_ones((U)(V)x))                                                       \
    OLY_DEF1(clz, s, T, T, oly_leading_zeros((U)(V)x) - ((int)(8 * sizeof(U)) - bits))                                 \
    OLY_DEF2(and, s, T, T, x &y)                                                                                       \
    OLY_DEF2(or, s, T, T, x | y)                                                                                       \
    OLY_DEF2(xor, s, T, T, x ^ y)                                                                                      \
    OLY_DEF2(shift_left, s, T, T, (V)y < bits ? (T)((U)x << ((V)y & (bits - 1))) : (T)0)                               \
    OLY_DEF2(shift_right_logical, s, T, T, (V)y < bits ? (T)((V)x >> ((V)y & (bits - 1))) : (T)0)                      \
    OLY_DEF2(shift_right_arithmetic, s, T, T,                                                                          \
             (V)((int64_t)((uint64_t)x << (64 - bits)) >> (64 - bits + ((V)y < bits ? (int)(V)y : bits - 1))))         \
    OLY_DEVICE T oly_op_pow_##s(T x, T y)                                                                              \
    {                                                                                                                  \
        U result = 1, base = (U)x;                                                                                     \
        if (is_signed && y < (T)1 && y != 0)                                                                           \
            return x == 1 ? (T)1 : x == (T) ~(U)0 ? ((U)y & 1 ? x : (T)1) : (T)0;                                      \
        for (U e = (U)y; e != 0; e >>= 1) {                                                                            \
            result = e & 1 ? result * base : result;                                                                   \
            base *= base;                                                                                              \
        }                                                                                                              \
        return (T)result;                                                                                              \
    }
OLY_SIGNED_OF(OLY_INTEGER_OPS, )
OLY_UNSIGNED_OF(OLY_INTEGER_OPS, )

OLY_DEF1(abs, b8, oly_b8, oly_b8, x)
OLY_DEF1(logical_not, b8, oly_b8, oly_b8, x ^ 1)
OLY_DEF1(not, b8, oly_b8, oly_b8, x ^ 1)
OLY_DEF2(add, b8, oly_b8, oly_b8, x | y)
OLY_DEF2(mul, b8, oly_b8, oly_b8, x &y)
OLY_DEF2(max, b8, oly_b8, oly_b8, x | y)
OLY_DEF2(min, b8, oly_b8, oly_b8, x &y)
OLY_DEF2(logical_and, b8, oly_b8, oly_b8, x &y)
OLY_DEF2(logical_or, b8, oly_b8, oly_b8, x | y)
OLY_DEF2(and, b8, oly_b8, oly_b8, x &y)
OLY_DEF2(or, b8, oly_b8, oly_b8, x | y)
OLY_DEF2(xor, b8, oly_b8, oly_b8, x ^ y)
OLY_DEF2(eq, b8, oly_b8, oly_b8, x == y)
OLY_DEF2(ne, b8, oly_b8, oly_b8, x != y)
OLY_DEF2(lt, b8, oly_b8, oly_b8, x < y)
OLY_DEF2(le, b8, oly_b8, oly_b8, x <= y)
OLY_DEF2(gt, b8, oly_b8, oly_b8, x > y)
OLY_DEF2(ge, b8, oly_b8, oly_b8, x >= y)

/* -- floating-point numbers --------------------------------------------------------------------------------------------------------- */
OLY_DEVICE float oly_common_bits(float x, float y)
{
    return oly_float_of(oly_bits(x) & oly_bits(y));
}
OLY_DEVICE float oly_any_bits(float x, float y)
{
    return oly_float_of(oly_bits(x) | oly_bits(y));
}
OLY_DEVICE double oly_common_bits(double x, double y)
{
    return oly_double_of(oly_bits(x) & oly_bits(y));
}
OLY_DEVICE double oly_any_bits(double x, double y)
{
    return oly_double_of(oly_bits(x) | oly_bits(y));
}
/* Where a formula holds for small arguments only, far ones have another. */
OLY_DEVICE float oly_sine(float x)
{
    return fabsf(x) > NEAR_F32 || x != x ? (float)sine_far(x) : sine_f32(x);
}
OLY_DEVICE float oly_cosine(float x)
{
    return fabsf(x) > NEAR_F32 || x != x ? (float)cosine_far(x) : cosine_f32(x);
}
OLY_DEVICE float oly_tangent(float x)
{
    return fabsf(x) > NEAR_F32 || x != x ? (float)tangent_far(x) : tangent_f32(x);
}
OLY_DEVICE double oly_sine(double x)
{
    return fabs(x) > NEAR_F64 || x != x ? sine_far(x) : sine_f64(x);
}
OLY_DEVICE double oly_cosine(double x)
{
    return fabs(x) > NEAR_F64 || x != x ? cosine_far(x) : cosine_f64(x);
}
OLY_DEVICE double oly_tangent(double x)
{
    return fabs(x) > NEAR_F64 || x != x ? tangent_far(x) : tangent_f64(x);
}
OLY_DEVICE float oly_expm1(float x)
{
    return x > NEAR_EXPM1_F32 ? (float)(exp_short(clamp(x, 0, 100)) - 1) : expm1_f32(x);
}
OLY_DEVICE float oly_remainder(float x, float y)
{
    return remainder_far_f32(x, y) ? fmodf(x, y) : remainder_f32(x, y);
}
OLY_DEVICE double oly_remainder(double x, double y)
{
    return remainder_far_f64(x, y) ? fmod(x, y) : remainder_f64(x, y);
}
/* f: the suffix of C's functions; exp, sigmoid, expm1, rough_log: formulas. */
#define OLY_FLOAT_OPS(s, T, C, f, exp_of, sigmoid_of, expm1_of, rough_log_of)                                          \
    OLY_DEF1(neg, s, T, T, -x)                                                                                         \
    OLY_DEF1(abs, s, T, T, fabs##f(x))                                                                                 \
    OLY_DEF1(sign, s, T, T, x > 0 ? 1 : x < 0 ? -1 : x)                                                                \
    OLY_DEF1(exp, s, T, T, exp_of(x))                                                                                  \
    OLY_DEF1(log, s, T, T, log_##s(x))                                                                                 \
    OLY_DEF1(sqrt, s, T, T, sqrt##f(x))                                                                                \
    OLY_DEF1(sin, s, T, T, oly_sine(x))                                                                                \
    OLY_DEF1(cos, s, T, T, oly_cosine(x))                                                                              \
    OLY_DEF1(tanh, s, T, T, tanh_##s(x))                                                                               \
    OLY_DEF1(sigmoid, s, T, T, sigmoid_of(x))                                                                          \
    OLY_DEF1(floor, s, T, T, floor##f(x))                                                                              \
    OLY_DEF2(add, s, T, T, x + y)                                                                                      \
    OLY_DEF2(sub, s, T, T, x - y)                                                                                      \
    OLY_DEF2(mul, s, T, T, x *y)                                                                                       \
    OLY_DEF2(div, s, T, T, x / y)                                                                                      \
    OLY_DEF2(pow, s, T, T, pow_##s(x, y))                                                                              \
    OLY_DEF2(max, s, T, T, (x != x) | (x > y) ? x : x == y ? oly_common_bits(x, y) : y)                                \
    OLY_DEF2(min, s, T, T, (x != x) | (x < y) ? x : x == y ? oly_any_bits(x, y) : y)                                   \
    OLY_DEF2(eq, s, oly_b8, T, x == y)                                                                                 \
    OLY_DEF2(ne, s, oly_b8, T, x != y)                                                                                 \
    OLY_DEF2(lt, s, oly_b8, T, x < y)                                                                                  \
    OLY_DEF2(le, s, oly_b8, T, x <= y)                                                                                 \
    OLY_DEF2(gt, s, oly_b8, T, x > y)                                                                                  \
    OLY_DEF2(ge, s, oly_b8, T, x >= y)                                                                                 \
    OLY_DEF1(tan, s, T, T, oly_tangent(x))                                                                             \
    OLY_DEF1(asin, s, T, T, asin_##s(x))                                                                               \
    OLY_DEF1(acos, s, T, T, acos_##s(x))                                                                               \
    OLY_DEF1(atan, s, T, T, atan_##s(x))                                                                               \
    OLY_DEF1(sinh, s, T, T, sinh_##s(x))                                                                               \
    OLY_DEF1(cosh, s, T, T, cosh_##s(x))                                                                               \
    OLY_DEF1(asinh, s, T, T, asinh_##s(x))                                                                             \
    OLY_DEF1(acosh, s, T, T, acosh_##s(x))                                                                             \
    OLY_DEF1(atanh, s, T, T, atanh_##s(x))                                                                             \
    OLY_DEF1(exp2, s, T, T, exp2_##s(x))                                                                               \
    OLY_DEF1(expm1, s, T, T, expm1_of(x))                                                                              \
    OLY_DEF1(rough_log, s, T, T, rough_log_of(x))                                                                      \
    OLY_DEF1(log1p, s, T, T, log1p_##s(x))                                                                             \
    OLY_DEF1(rsqrt, s, T, T, rsqrt_##s(x))                                                                             \
    OLY_DEF1(cbrt, s, T, T, cbrt_##s(x))                                                                               \
    OLY_DEF1(erf, s, T, T, erf_##s(x))                                                                                 \
    OLY_DEF1(erfc, s, T, T, erfc_##s(x))                                                                               \
    OLY_DEF1(erf_inv, s, T, T, erf_inv_##s(x))                                                                         \
    OLY_DEF1(lgamma, s, T, T, lgamma_##s(x))                                                                           \
    OLY_DEF1(digamma, s, T, T, digamma_##s(x))                                                                         \
    OLY_DEF1(ceil, s, T, T, ceil_##s(x))                                                                               \
    OLY_DEF1(round, s, T, T, round_##s(x))                                                                             \
    OLY_DEF1(round_away, s, T, T, round_away_##s(x))                                                                   \
    OLY_DEF1(square, s, T, T, x *x)                                                                                    \
    OLY_DEF1(is_finite, s, oly_b8, T, is_finite_##s(x))                                                                \
    OLY_DEF2(atan2, s, T, T, atan2_##s(x, y))                                                                          \
    OLY_DEF2(logaddexp, s, T, T, logaddexp_##s(x, y))                                                                  \
    OLY_DEF2(nextafter, s, T, T, next_after_##s(x, y))                                                                 \
    OLY_DEF2(rem, s, T, T, oly_remainder(x, y))                                                                        \
    OLY_DEVICE T oly_op_fma_##s(T x, T y, T z)                                                                         \
    {                                                                                                                  \
        return oly_fma(x, y, z);                                                                                       \
    }                                                                                                                  \
    OLY_DEVICE C oly_op_complex_##s(T x, T y)                                                                          \
    {                                                                                                                  \
        C z;                                                                                                           \
        z.re = x, z.im = y;                                                                                            \
        return z;                                                                                                      \
    }
OLY_FLOAT_OPS(f32, float, oly_c64, f, exp_whole_f32, sigmoid_whole_f32, oly_expm1, log_as_jax)
OLY_FLOAT_OPS(f64, double, oly_c128, , exp_f64, sigmoid_f64, expm1_f64, log_f64)

/* -- Threefry-2x32, 20 rounds -------------------------------------------------------------------------------------------------------- */
OLY_DEVICE uint32_t oly_rotated(uint32_t x, int by)
{
    return x << by | x >> (32 - by);
}
#define OLY_ROUND(by) (x0 += x1, x1 = oly_rotated(x1, by) ^ x0)
#define OLY_EVEN_ROUNDS(a, b, count)                                                                                   \
    (OLY_ROUND(13), OLY_ROUND(15), OLY_ROUND(26), OLY_ROUND(6), x0 += (a), x1 += (b) + (count))
#define OLY_ODD_ROUNDS(a, b, count)                                                                                    \
    (OLY_ROUND(17), OLY_ROUND(29), OLY_ROUND(16), OLY_ROUND(24), x0 += (a), x1 += (b) + (count))
OLY_DEVICE uint64_t oly_op_threefry2x32_u64(uint64_t key, uint64_t counter)
{
    uint32_t k0 = (uint32_t)(key >> 32), k1 = (uint32_t)key, k2 = k0 ^ k1 ^ 0x1BD11BDAu;
    uint32_t x0 = (uint32_t)(counter >> 32) + k0, x1 = (uint32_t)counter + k1;
    OLY_EVEN_ROUNDS(k1, k2, 1);
    OLY_ODD_ROUNDS(k2, k0, 2);
    OLY_EVEN_ROUNDS(k0, k1, 3);
    OLY_ODD_ROUNDS(k1, k2, 4);
    OLY_EVEN_ROUNDS(k2, k0, 5);
    return (uint64_t)x0 << 32 | x1;
}
OLY_DEVICE uint32_t oly_op_random_bits_u64(uint64_t key, uint64_t counter)
{
    uint64_t words = oly_op_threefry2x32_u64(key, counter);
    return (uint32_t)(words >> 32) ^ (uint32_t)words;
}
#endif
