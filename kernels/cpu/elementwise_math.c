/* SPDX-License-Identifier: BSD-3-Clause */
/* The formulas of elementwise_math.def for floating elements and their loops (elementwise_loops.h): oly_math_float_<isa>.
 * Compiled once per instruction set; used by the tile interpreter. */
#include "table.h"
#include "cpu/elementwise_float.h"
#include "cpu/math_angle.h"
#include "cpu/math_error.h"
#include "cpu/math_gamma.h"
#include "cpu/math_whole.h"

#define ELEMENTWISE_TABLE oly_math_float
#define ELEMENTWISE_ROWS  "elementwise_math.def"

#define OLY_TAN(x)          BY_FLOAT(tangent, x)(x)
#define OLY_ASIN(x)         BY_FLOAT(asin, x)(x)
#define OLY_ACOS(x)         BY_FLOAT(acos, x)(x)
#define OLY_ATAN(x)         BY_FLOAT(atan, x)(x)
#define OLY_SINH(x)         BY_FLOAT(sinh, x)(x)
#define OLY_COSH(x)         BY_FLOAT(cosh, x)(x)
#define OLY_ASINH(x)        BY_FLOAT(asinh, x)(x)
#define OLY_ACOSH(x)        BY_FLOAT(acosh, x)(x)
#define OLY_ATANH(x)        BY_FLOAT(atanh, x)(x)
#define OLY_EXP2(x)         BY_FLOAT(exp2, x)(x)
#define OLY_EXPM1(x)        BY_FLOAT(expm1, x)(x)
#define OLY_ROUGH_LOG(x)    _Generic((x), float : log_as_jax, double : log_f64)(x)
#define OLY_LOG1P(x)        BY_FLOAT(log1p, x)(x)
#define OLY_RSQRT(x)        BY_FLOAT(rsqrt, x)(x)
#define OLY_CBRT(x)         BY_FLOAT(cbrt, x)(x)
#define OLY_ERF(x)          BY_FLOAT(erf, x)(x)
#define OLY_ERFC(x)         BY_FLOAT(erfc, x)(x)
#define OLY_ERF_INV(x)      BY_FLOAT(erf_inv, x)(x)
#define OLY_LGAMMA(x)       BY_FLOAT(lgamma, x)(x)
#define OLY_DIGAMMA(x)      BY_FLOAT(digamma, x)(x)
#define OLY_CEIL(x)         BY_FLOAT(ceil, x)(x)
#define OLY_ROUND(x)        BY_FLOAT(round, x)(x)
#define OLY_ROUND_AWAY(x)   BY_FLOAT(round_away, x)(x)
#define OLY_IS_FINITE(x)    BY_FLOAT(is_finite, x)(x)
#define OLY_SQUARE(x)       ((x) * (x))
#define OLY_ATAN2(y, x)     BY_FLOAT(atan2, x)(y, x)
#define OLY_LOGADDEXP(x, y) BY_FLOAT(logaddexp, x)(x, y)
#define OLY_NEXTAFTER(x, y)                                                                                            \
    _Generic((x), float : next_after_f32, double : next_after_f64 OLY_NARROW_TYPES(NEXT_AFTER_OF, ))(x, y)
#define NEXT_AFTER_OF(a, number, name, s, ...) , bits_##s : next_after_##s
#define OLY_REM(x, y)                          BY_FLOAT(remainder, x)(x, y)
#define OLY_REM_FAR(x, y)                      BY_FLOAT(remainder_far, x)(x, y)
#define OLY_REM_CAREFUL(x, y)                  _Generic((x), float : fmodf, double : fmod)(x, y)

FAR(far_tangent, f32, float, __builtin_fabsf, NEAR_F32, tangent_f32, tangent_far)
FAR(far_tangent, f64, double, __builtin_fabs, NEAR_F64, tangent_f64, tangent_far)
FAR_WHOLE(far_expm1, f32, float, NEAR_EXPM1_F32, expm1_whole_f32)
#define far_expm1_f64(n, out, x)  false
#define far_tangent(s, n, out, x) far_tangent_##s(n, out, x)
#define far_expm1(s, n, out, x)   far_expm1_##s(n, out, x)
#include "cpu/elementwise_loops.h"
