/* SPDX-License-Identifier: BSD-3-Clause */
/* More elementwise operations on arrays: mathematical functions, activations, logical and bit operations. Included by
 * <olympus.h>; programs include that one. What ops.h says of all operations holds for them: where they run, how operands broadcast
 * and promote, that C numbers may replace arrays; nothing communicates unless operands are placed differently. */
#ifndef OLYMPUS_MATH_H
#define OLYMPUS_MATH_H

#include <olympus/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/* -- functions of one operand ---------------------------------------------------------------------------------------
 * The result has x's shape. "floating": integers and bools are converted to floating point first (float32, int64 and
 * uint64 to float64). Outside the domain: NaN. float32 is accurate to about 1 unit in the last place, float64 to 2.
 *   fails   OLY_DTYPE: the cube root, error and gamma functions of complex numbers
 *   source  jax.numpy and jax.lax functions of these names (oly_asin: arcsin, and so on) */
OLY_API oly_array oly_tan(oly_operand x);        /* x in radians, any size; floating */
OLY_API oly_array oly_asin(oly_operand x);       /* floating */
OLY_API oly_array oly_acos(oly_operand x);       /* floating */
OLY_API oly_array oly_atan(oly_operand x);       /* floating */
OLY_API oly_array oly_sinh(oly_operand x);       /* floating */
OLY_API oly_array oly_cosh(oly_operand x);       /* floating */
OLY_API oly_array oly_asinh(oly_operand x);      /* floating */
OLY_API oly_array oly_acosh(oly_operand x);      /* floating */
OLY_API oly_array oly_atanh(oly_operand x);      /* floating */
OLY_API oly_array oly_exp2(oly_operand x);       /* 2^x, floating */
OLY_API oly_array oly_expm1(oly_operand x);      /* exp(x) - 1 without its rounding near 0, floating */
OLY_API oly_array oly_log1p(oly_operand x);      /* log(1 + x) without the sum's rounding, floating */
OLY_API oly_array oly_log2(oly_operand x);       /* log(x) / log(2), floating */
OLY_API oly_array oly_log10(oly_operand x);      /* log(x) times 1 / log(10), floating */
OLY_API oly_array oly_rsqrt(oly_operand x);      /* 1 / sqrt(x), floating */
OLY_API oly_array oly_cbrt(oly_operand x);       /* cube root, floating */
OLY_API oly_array oly_square(oly_operand x);     /* x x; bools as int32 */
OLY_API oly_array oly_reciprocal(oly_operand x); /* 1 / x, floating */
OLY_API oly_array oly_erf(oly_operand x);        /* error function, floating */
OLY_API oly_array oly_erfc(oly_operand x);       /* 1 - erf(x) without the difference's rounding, floating */
OLY_API oly_array oly_erf_inv(oly_operand x);    /* inverse of erf on [-1, 1], floating */
OLY_API oly_array oly_lgamma(oly_operand x);     /* log |gamma(x)|, floating */
OLY_API oly_array oly_digamma(oly_operand x);    /* derivative of lgamma, floating; 0, -1, -2, ...: NaN */
OLY_API oly_array oly_sinc(oly_operand x);       /* sin(pi x) / (pi x), 1 at 0, floating */
OLY_API oly_array oly_angle(oly_operand x);      /* argument of a complex number; for real ones 0 or pi; floating */
OLY_API oly_array oly_deg2rad(oly_operand x);    /* x pi / 180, floating */
OLY_API oly_array oly_rad2deg(oly_operand x);    /* 180 x / pi, floating */
#define oly_tan(x)        OLY_AT(oly_tan)(OLY_ARG(x))
#define oly_asin(x)       OLY_AT(oly_asin)(OLY_ARG(x))
#define oly_acos(x)       OLY_AT(oly_acos)(OLY_ARG(x))
#define oly_atan(x)       OLY_AT(oly_atan)(OLY_ARG(x))
#define oly_sinh(x)       OLY_AT(oly_sinh)(OLY_ARG(x))
#define oly_cosh(x)       OLY_AT(oly_cosh)(OLY_ARG(x))
#define oly_asinh(x)      OLY_AT(oly_asinh)(OLY_ARG(x))
#define oly_acosh(x)      OLY_AT(oly_acosh)(OLY_ARG(x))
#define oly_atanh(x)      OLY_AT(oly_atanh)(OLY_ARG(x))
#define oly_exp2(x)       OLY_AT(oly_exp2)(OLY_ARG(x))
#define oly_expm1(x)      OLY_AT(oly_expm1)(OLY_ARG(x))
#define oly_log1p(x)      OLY_AT(oly_log1p)(OLY_ARG(x))
#define oly_log2(x)       OLY_AT(oly_log2)(OLY_ARG(x))
#define oly_log10(x)      OLY_AT(oly_log10)(OLY_ARG(x))
#define oly_rsqrt(x)      OLY_AT(oly_rsqrt)(OLY_ARG(x))
#define oly_cbrt(x)       OLY_AT(oly_cbrt)(OLY_ARG(x))
#define oly_square(x)     OLY_AT(oly_square)(OLY_ARG(x))
#define oly_reciprocal(x) OLY_AT(oly_reciprocal)(OLY_ARG(x))
#define oly_erf(x)        OLY_AT(oly_erf)(OLY_ARG(x))
#define oly_erfc(x)       OLY_AT(oly_erfc)(OLY_ARG(x))
#define oly_erf_inv(x)    OLY_AT(oly_erf_inv)(OLY_ARG(x))
#define oly_lgamma(x)     OLY_AT(oly_lgamma)(OLY_ARG(x))
#define oly_digamma(x)    OLY_AT(oly_digamma)(OLY_ARG(x))
#define oly_sinc(x)       OLY_AT(oly_sinc)(OLY_ARG(x))
#define oly_angle(x)      OLY_AT(oly_angle)(OLY_ARG(x))
#define oly_deg2rad(x)    OLY_AT(oly_deg2rad)(OLY_ARG(x))
#define oly_rad2deg(x)    OLY_AT(oly_rad2deg)(OLY_ARG(x))

/* x to an integer power, by products: oly_integer_pow(x, 3) is x x x. So is oly_pow(x, 3) with a C integer as exponent.
 *   fails   OLY_DTYPE: integers to a negative power. source: jax.lax.integer_pow */
OLY_API oly_array oly_integer_pow(oly_operand x, int y);
#define oly_integer_pow(x, y) OLY_AT(oly_integer_pow)(OLY_ARG(x), y)

/* -- rounding -------------------------------------------------------------------------------------------------------
 * Integers are unchanged; the others stay floating, with the sign of x (-0.5 to -0).
 *   fails   OLY_DTYPE: complex numbers (except oly_round), oly_round and oly_round_away of bools, oly_round_away of integers
 *   source  jax.numpy.floor, ceil, trunc, round; jax.lax.round (away from zero) */
OLY_API oly_array oly_floor(oly_operand x);      /* down */
OLY_API oly_array oly_ceil(oly_operand x);       /* up */
OLY_API oly_array oly_trunc(oly_operand x);      /* towards zero */
OLY_API oly_array oly_round_away(oly_operand x); /* to the nearest, ties away from zero */
#define oly_floor(x)      OLY_AT(oly_floor)(OLY_ARG(x))
#define oly_ceil(x)       OLY_AT(oly_ceil)(OLY_ARG(x))
#define oly_trunc(x)      OLY_AT(oly_trunc)(OLY_ARG(x))
#define oly_round_away(x) OLY_AT(oly_round_away)(OLY_ARG(x))

/* To the nearest, ties to even; oly_round(x) to integers, oly_round_to(x, 2) to two decimals (negative: tens, hundreds).
 *   fails   OLY_INVALID: integers to a negative number of decimals. source: jax.numpy.round */
OLY_API oly_array oly_round_decimals(oly_operand x, int decimals);
#define oly_round(x)              OLY_AT_AS(oly_round, oly_round_decimals)(OLY_ARG(x), 0)
#define oly_round_to(x, decimals) OLY_AT_AS(oly_round_to, oly_round_decimals)(OLY_ARG(x), decimals)

/* -- tests of numbers -----------------------------------------------------------------------------------------------
 * bool. Integers and bools are finite.
 *   fails   OLY_DTYPE: isposinf, isneginf and signbit of complex numbers. source: jax.numpy */
OLY_API oly_array oly_isfinite(oly_operand x); /* neither infinite nor NaN */
OLY_API oly_array oly_isinf(oly_operand x);    /* either infinity */
OLY_API oly_array oly_isnan(oly_operand x);
OLY_API oly_array oly_isposinf(oly_operand x);
OLY_API oly_array oly_isneginf(oly_operand x);
OLY_API oly_array oly_signbit(oly_operand x); /* negative, or -0, or a NaN with that bit */
#define oly_isfinite(x) OLY_AT(oly_isfinite)(OLY_ARG(x))
#define oly_isinf(x)    OLY_AT(oly_isinf)(OLY_ARG(x))
#define oly_isnan(x)    OLY_AT(oly_isnan)(OLY_ARG(x))
#define oly_isposinf(x) OLY_AT(oly_isposinf)(OLY_ARG(x))
#define oly_isneginf(x) OLY_AT(oly_isneginf)(OLY_ARG(x))
#define oly_signbit(x)  OLY_AT(oly_signbit)(OLY_ARG(x))
/* x, with 0 for NaN and the largest numbers for the infinities. source: jax.numpy.nan_to_num */
OLY_API oly_array oly_nan_to_num(oly_operand x);
#define oly_nan_to_num(x) OLY_AT(oly_nan_to_num)(OLY_ARG(x))

/* -- functions of two operands --------------------------------------------------------------------------------------
 * Operands broadcast and are promoted to a common type ("floating": at least float32), as in ops.h.
 *   fails   OLY_SHAPE (both types and the dimension), OLY_DTYPE: complex numbers
 *   source  jax.numpy, jax.lax */
OLY_API oly_array oly_atan2(oly_operand y, oly_operand x);     /* angle of the point (x, y), floating */
OLY_API oly_array oly_hypot(oly_operand x, oly_operand y);     /* sqrt(x x + y y) without overflow, floating */
OLY_API oly_array oly_logaddexp(oly_operand x, oly_operand y); /* log(exp(x) + exp(y)) without overflow, floating */
OLY_API oly_array oly_copysign(oly_operand x, oly_operand y);  /* |x| with the sign of y, floating */
OLY_API oly_array oly_nextafter(oly_operand x, oly_operand y); /* the next number from x towards y, floating */
/* integers: the quotient towards zero, by 0 all bits set; others x / y. source: jax.lax.div */
OLY_API oly_array oly_truncate_divide(oly_operand x, oly_operand y);
OLY_API oly_array oly_floor_divide(oly_operand x, oly_operand y); /* the quotient rounded down */
OLY_API oly_array oly_mod(oly_operand x, oly_operand y);          /* remainder with the sign of y; integers by 0: 0 */
/* remainder with the sign of x; integers by 0: x. source: jax.lax.rem */
OLY_API oly_array oly_rem(oly_operand x, oly_operand y);
OLY_API oly_array oly_fmod(oly_operand x, oly_operand y); /* the same; integers by 0: 0 */
OLY_API oly_array oly_fmax(oly_operand x, oly_operand y); /* the larger; the other one where one is NaN */
OLY_API oly_array oly_fmin(oly_operand x, oly_operand y); /* the smaller; the other one where one is NaN */
#define oly_atan2(y, x)           OLY_AT(oly_atan2)(OLY_ARG(y), OLY_ARG(x))
#define oly_hypot(x, y)           OLY_AT(oly_hypot)(OLY_ARG(x), OLY_ARG(y))
#define oly_logaddexp(x, y)       OLY_AT(oly_logaddexp)(OLY_ARG(x), OLY_ARG(y))
#define oly_copysign(x, y)        OLY_AT(oly_copysign)(OLY_ARG(x), OLY_ARG(y))
#define oly_nextafter(x, y)       OLY_AT(oly_nextafter)(OLY_ARG(x), OLY_ARG(y))
#define oly_truncate_divide(x, y) OLY_AT(oly_truncate_divide)(OLY_ARG(x), OLY_ARG(y))
#define oly_floor_divide(x, y)    OLY_AT(oly_floor_divide)(OLY_ARG(x), OLY_ARG(y))
#define oly_mod(x, y)             OLY_AT(oly_mod)(OLY_ARG(x), OLY_ARG(y))
#define oly_rem(x, y)             OLY_AT(oly_rem)(OLY_ARG(x), OLY_ARG(y))
#define oly_fmod(x, y)            OLY_AT(oly_fmod)(OLY_ARG(x), OLY_ARG(y))
#define oly_fmax(x, y)            OLY_AT(oly_fmax)(OLY_ARG(x), OLY_ARG(y))
#define oly_fmin(x, y)            OLY_AT(oly_fmin)(OLY_ARG(x), OLY_ARG(y))

/* The nearest number from lowest to highest: min(max(x, lowest), highest).
 *   oly_clamp  bounds of x's type, and of its shape or rank 0; the slope is 0 at the bounds. fails OLY_DTYPE, OLY_SHAPE.
 *              source: jax.lax.clamp
 *   oly_clip   all three broadcast and promoted. source: jax.numpy.clip */
OLY_API oly_array oly_clamp(oly_operand lowest, oly_operand x, oly_operand highest);
OLY_API oly_array oly_clip(oly_operand x, oly_operand lowest, oly_operand highest);
#define oly_clamp(lowest, x, highest) OLY_AT(oly_clamp)(OLY_ARG(lowest), OLY_ARG(x), OLY_ARG(highest))
#define oly_clip(x, lowest, highest)  OLY_AT(oly_clip)(OLY_ARG(x), OLY_ARG(lowest), OLY_ARG(highest))

/* Elementwise cases[which], with the first case for smaller and the last for larger numbers; a bool selects one of two. The cases
 * have one type; which: integers or bools, of their shape or rank 0.
 *   fails   OLY_DTYPE, OLY_SHAPE, OLY_INVALID (not 1 to 63 cases). source: jax.lax.select_n */
OLY_API oly_array oly_select_n(oly_operand which, int n, const oly_array *cases);
#define oly_select_n(which, n, cases) OLY_AT(oly_select_n)(OLY_ARG(which), n, cases)

/* -- logical and bit operations -------------------------------------------------------------------------------------
 * Logical operations take bools; other types count as true if not zero. Bit operations take integers and bools (shifts: integers;
 * bools as int32), promoted to a common type. A shift by the number of bits or more, or a negative one, gives 0, or the sign for
 * arithmetic right shifts.
 *   fails   OLY_DTYPE: bits of floating and complex numbers
 *   source  jax.numpy, jax.lax */
OLY_API oly_array oly_logical_and(oly_operand x, oly_operand y);
OLY_API oly_array oly_logical_or(oly_operand x, oly_operand y);
OLY_API oly_array oly_logical_xor(oly_operand x, oly_operand y);
OLY_API oly_array oly_bitwise_and(oly_operand x, oly_operand y);
OLY_API oly_array oly_bitwise_or(oly_operand x, oly_operand y);
OLY_API oly_array oly_bitwise_xor(oly_operand x, oly_operand y);
OLY_API oly_array oly_bitwise_not(oly_operand x); /* of bools the other one */
OLY_API oly_array oly_left_shift(oly_operand x, oly_operand y);
OLY_API oly_array oly_right_shift(oly_operand x, oly_operand y); /* signed: the sign is shifted in, unsigned: zeros */
OLY_API oly_array oly_shift_right_logical(oly_operand x, oly_operand y);    /* zeros are shifted in */
OLY_API oly_array oly_shift_right_arithmetic(oly_operand x, oly_operand y); /* the highest bit is shifted in */
OLY_API oly_array oly_population_count(oly_operand x);                      /* number of ones; integers only */
OLY_API oly_array oly_clz(oly_operand x); /* number of zeros in front; integers only */
#define oly_logical_and(x, y)            OLY_AT(oly_logical_and)(OLY_ARG(x), OLY_ARG(y))
#define oly_logical_or(x, y)             OLY_AT(oly_logical_or)(OLY_ARG(x), OLY_ARG(y))
#define oly_logical_xor(x, y)            OLY_AT(oly_logical_xor)(OLY_ARG(x), OLY_ARG(y))
#define oly_bitwise_and(x, y)            OLY_AT(oly_bitwise_and)(OLY_ARG(x), OLY_ARG(y))
#define oly_bitwise_or(x, y)             OLY_AT(oly_bitwise_or)(OLY_ARG(x), OLY_ARG(y))
#define oly_bitwise_xor(x, y)            OLY_AT(oly_bitwise_xor)(OLY_ARG(x), OLY_ARG(y))
#define oly_bitwise_not(x)               OLY_AT(oly_bitwise_not)(OLY_ARG(x))
#define oly_left_shift(x, y)             OLY_AT(oly_left_shift)(OLY_ARG(x), OLY_ARG(y))
#define oly_right_shift(x, y)            OLY_AT(oly_right_shift)(OLY_ARG(x), OLY_ARG(y))
#define oly_shift_right_logical(x, y)    OLY_AT(oly_shift_right_logical)(OLY_ARG(x), OLY_ARG(y))
#define oly_shift_right_arithmetic(x, y) OLY_AT(oly_shift_right_arithmetic)(OLY_ARG(x), OLY_ARG(y))
#define oly_population_count(x)          OLY_AT(oly_population_count)(OLY_ARG(x))
#define oly_clz(x)                       OLY_AT(oly_clz)(OLY_ARG(x))

/* The elements' bits as elements of another type. A narrower type makes a last dimension, low bits first; a wider one takes the
 * last dimension, of the size that makes one element.
 *   fails   OLY_DTYPE: bools and complex numbers; OLY_SHAPE. source: jax.lax.bitcast_convert_type */
OLY_API oly_array oly_bitcast_convert_type(oly_operand x, oly_dtype dtype);
#define oly_bitcast_convert_type(x, dtype) OLY_AT(oly_bitcast_convert_type)(OLY_ARG(x), dtype)

/* -- activations ----------------------------------------------------------------------------------------------------
 * Floating. source: jax.nn */
OLY_API oly_array oly_relu6(oly_operand x);                         /* between 0 and 6 */
OLY_API oly_array oly_silu(oly_operand x);                          /* x sigmoid(x) */
OLY_API oly_array oly_softplus(oly_operand x);                      /* log(1 + exp(x)) */
OLY_API oly_array oly_log_sigmoid(oly_operand x);                   /* log(sigmoid(x)) */
OLY_API oly_array oly_elu(oly_operand x, oly_operand alpha);        /* x, below 0 alpha (exp(x) - 1) */
OLY_API oly_array oly_leaky_relu(oly_operand x, oly_operand slope); /* x, below 0 slope x; integers too */
#define oly_relu6(x)             OLY_AT(oly_relu6)(OLY_ARG(x))
#define oly_silu(x)              OLY_AT(oly_silu)(OLY_ARG(x))
#define oly_softplus(x)          OLY_AT(oly_softplus)(OLY_ARG(x))
#define oly_log_sigmoid(x)       OLY_AT(oly_log_sigmoid)(OLY_ARG(x))
#define oly_elu(x, alpha)        OLY_AT(oly_elu)(OLY_ARG(x), OLY_ARG(alpha))
#define oly_leaky_relu(x, slope) OLY_AT(oly_leaky_relu)(OLY_ARG(x), OLY_ARG(slope))
/* x times the normal distribution's probability below x; approximate: by tanh (jax.nn.gelu's default). */
OLY_API oly_array oly_gelu(oly_operand x, bool approximate);
#define oly_gelu(x, approximate) OLY_AT(oly_gelu)(OLY_ARG(x), approximate)

/* -- call sites -----------------------------------------------------------------------------------------------------
 * These record where they are called, like the macros above (calls.h). */
#ifndef OLYMPUS_LIBRARY
#define oly_round_decimals(...) OLY_AT_AS(oly_round, oly_round_decimals)(__VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
