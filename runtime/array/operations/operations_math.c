/* SPDX-License-Identifier: BSD-3-Clause */
/* The public mathematical functions, activations and operations on bits. As in operations.c, each fills a recipe for
 * oly_dispatch; the compositions are those of graph/compose_math.h. */
#include "array/operations.h"
#include "array/arguments.h"
#include "graph/compose/compose_math.h"
#include <olympus/math.h>
#include <math.h>
#include <string.h>

/* -- functions of one operand -------------------------------------------------------------------------------------- */
OLY_UNARY(oly_tan, oly_compose_floating, tan)
OLY_UNARY(oly_asin, oly_compose_floating, asin)
OLY_UNARY(oly_acos, oly_compose_floating, acos)
OLY_UNARY(oly_atan, oly_compose_floating, atan)
OLY_UNARY(oly_sinh, oly_compose_floating, sinh)
OLY_UNARY(oly_cosh, oly_compose_floating, cosh)
OLY_UNARY(oly_asinh, oly_compose_floating, asinh)
OLY_UNARY(oly_acosh, oly_compose_floating, acosh)
OLY_UNARY(oly_atanh, oly_compose_floating, atanh)
OLY_UNARY(oly_exp2, oly_compose_floating, exp2)
OLY_UNARY(oly_expm1, oly_compose_floating, expm1)
OLY_UNARY(oly_log1p, oly_compose_floating, log1p)
OLY_UNARY(oly_log2, oly_compose_log2, log)
OLY_UNARY(oly_log10, oly_compose_log10, log)
OLY_UNARY(oly_rsqrt, oly_compose_floating, rsqrt)
OLY_UNARY(oly_cbrt, oly_compose_floating, cbrt)
OLY_UNARY(oly_square, oly_compose_numeric, square)
OLY_UNARY(oly_reciprocal, oly_compose_reciprocal, div)
OLY_UNARY(oly_erf, oly_compose_floating, erf)
OLY_UNARY(oly_erfc, oly_compose_floating, erfc)
OLY_UNARY(oly_erf_inv, oly_compose_floating, erf_inv)
OLY_UNARY(oly_lgamma, oly_compose_floating, lgamma)
OLY_UNARY(oly_digamma, oly_compose_floating, digamma)
OLY_UNARY(oly_sinc, oly_compose_sinc, sin)
OLY_UNARY(oly_angle, oly_compose_angle, atan2)

static oly_array scaled(oly_operand x, double by)
{
    oly_recipe recipe;
    memset(&recipe, 0, sizeof recipe);
    recipe.op = OLY_OP_mul;
    recipe.params.value.f = by;
    return oly_dispatch(oly_compose_scaled, 1, &x, &recipe);
}
oly_array(oly_deg2rad)(oly_operand x)
{
    OLY_ENTER(NULL);
    if (oly_need_operand(&x) != OLY_OK)
        return NULL;
    return scaled(x, M_PI / 180);
}
oly_array(oly_rad2deg)(oly_operand x)
{
    OLY_ENTER(NULL);
    if (oly_need_operand(&x) != OLY_OK)
        return NULL;
    return scaled(x, 180 / M_PI);
}

/* -- to whole numbers ------------------------------------------------------------------------------------------------ */
OLY_UNARY(oly_floor, oly_compose_whole, floor)
OLY_UNARY(oly_ceil, oly_compose_whole, ceil)
OLY_UNARY(oly_trunc, oly_compose_trunc, floor)
OLY_UNARY(oly_round_away, oly_compose_unary, round_away)

oly_array(oly_round_decimals)(oly_operand x, int decimals)
{
    OLY_ENTER(NULL);
    if (oly_need_operand(&x) != OLY_OK)
        return NULL;
    oly_recipe recipe;
    memset(&recipe, 0, sizeof recipe);
    recipe.op = OLY_OP_round;
    recipe.params.dimension = decimals;
    return oly_dispatch(oly_compose_round, 1, &x, &recipe);
}

oly_array(oly_integer_pow)(oly_operand x, int y)
{
    OLY_ENTER(NULL);
    if (oly_need_operand(&x) != OLY_OK)
        return NULL;
    oly_recipe recipe;
    memset(&recipe, 0, sizeof recipe);
    recipe.op = OLY_OP_mul;
    recipe.params.dimension = y;
    return oly_dispatch(oly_compose_integer_pow, 1, &x, &recipe);
}

/* -- kinds of numbers -------------------------------------------------------------------------------------------------- */
OLY_UNARY(oly_isfinite, oly_compose_isfinite, is_finite)
OLY_UNARY(oly_isinf, oly_compose_isinf, eq)
OLY_UNARY(oly_isnan, oly_compose_isnan, ne)
OLY_UNARY(oly_signbit, oly_compose_signbit, bitcast)
OLY_UNARY(oly_nan_to_num, oly_compose_nan_to_num, select)

static oly_array is_infinity(oly_operand x, double which)
{
    oly_recipe recipe;
    memset(&recipe, 0, sizeof recipe);
    recipe.op = OLY_OP_eq;
    recipe.params.value.f = which;
    return oly_dispatch(oly_compose_isinfinity, 1, &x, &recipe);
}
oly_array(oly_isposinf)(oly_operand x)
{
    OLY_ENTER(NULL);
    if (oly_need_operand(&x) != OLY_OK)
        return NULL;
    return is_infinity(x, INFINITY);
}
oly_array(oly_isneginf)(oly_operand x)
{
    OLY_ENTER(NULL);
    if (oly_need_operand(&x) != OLY_OK)
        return NULL;
    return is_infinity(x, -INFINITY);
}

/* -- functions of two operands ----------------------------------------------------------------------------------------- */
OLY_BINARY(oly_atan2, oly_compose_floating_binary, atan2)
OLY_BINARY(oly_hypot, oly_compose_hypot, sqrt)
OLY_BINARY(oly_logaddexp, oly_compose_floating_binary, logaddexp)
OLY_BINARY(oly_copysign, oly_compose_copysign, select)
OLY_BINARY(oly_nextafter, oly_compose_floating_binary, nextafter)
OLY_BINARY(oly_truncate_divide, oly_compose_quotient, div)
OLY_BINARY(oly_floor_divide, oly_compose_floor_divide, div)
OLY_BINARY(oly_mod, oly_compose_remainder, rem)
OLY_BINARY(oly_rem, oly_compose_numeric_binary, rem)
OLY_BINARY(oly_fmod, oly_compose_fmod, rem)
OLY_BINARY(oly_fmax, oly_compose_ignoring_nan, gt)
OLY_BINARY(oly_fmin, oly_compose_ignoring_nan, lt)

oly_array(oly_clamp)(oly_operand lowest, oly_operand x, oly_operand highest)
{
    OLY_ENTER(NULL);
    if (oly_need_operand(&lowest) != OLY_OK || oly_need_operand(&x) != OLY_OK || oly_need_operand(&highest) != OLY_OK)
        return NULL;
    return oly_apply_row(oly_compose_clamp, OLY_OP_clamp, 3, (oly_operand[]){lowest, x, highest});
}
oly_array(oly_clip)(oly_operand x, oly_operand lowest, oly_operand highest)
{
    OLY_ENTER(NULL);
    if (oly_need_operand(&x) != OLY_OK || oly_need_operand(&lowest) != OLY_OK || oly_need_operand(&highest) != OLY_OK)
        return NULL;
    return oly_apply_row(oly_compose_clip, OLY_OP_max, 3, (oly_operand[]){x, lowest, highest});
}

oly_array(oly_select_n)(oly_operand which, int n, const oly_array *cases)
{
    OLY_ENTER(NULL);
    if (oly_need_operand(&which) != OLY_OK || oly_need_arrays(n, cases) != OLY_OK)
        return NULL;
    oly_operand all[64] = {which};
    if (n < 1 || n > 63) {
        oly_raise(oly_fail(OLY_INVALID, "select_n of %d cases; it takes 1 to 63", n));
        return NULL;
    }
    for (int k = 0; k < n; k++)
        all[k + 1] = oly_operand_array(cases[k]);
    return oly_apply_row(oly_compose_select_n, OLY_OP_select, n + 1, all);
}

/* -- truths and bits ------------------------------------------------------------------------------------------------------ */
OLY_BINARY(oly_logical_and, oly_compose_logical, and)
OLY_BINARY(oly_logical_or, oly_compose_logical, or)
OLY_BINARY(oly_logical_xor, oly_compose_logical, xor)
OLY_UNARY(oly_bitwise_not, oly_compose_unary, not )
OLY_BINARY(oly_bitwise_and, oly_compose_binary, and)
OLY_BINARY(oly_bitwise_or, oly_compose_binary, or)
OLY_BINARY(oly_bitwise_xor, oly_compose_binary, xor)
OLY_BINARY(oly_left_shift, oly_compose_numeric_binary, shift_left)
OLY_BINARY(oly_right_shift, oly_compose_right_shift, shift_right_arithmetic)
OLY_BINARY(oly_shift_right_logical, oly_compose_numeric_binary, shift_right_logical)
OLY_BINARY(oly_shift_right_arithmetic, oly_compose_numeric_binary, shift_right_arithmetic)
OLY_UNARY(oly_population_count, oly_compose_unary, population_count)
OLY_UNARY(oly_clz, oly_compose_unary, clz)

oly_array(oly_bitcast_convert_type)(oly_operand x, oly_dtype dtype)
{
    OLY_ENTER(NULL);
    if (oly_need_operand(&x) != OLY_OK)
        return NULL;
    oly_recipe recipe;
    memset(&recipe, 0, sizeof recipe);
    recipe.op = OLY_OP_bitcast;
    recipe.params.dtype = dtype;
    return oly_dispatch(oly_compose_bitcast, 1, &x, &recipe);
}

/* -- activations ---------------------------------------------------------------------------------------------------------- */
OLY_UNARY(oly_relu6, oly_compose_relu6, clamp)
OLY_UNARY(oly_silu, oly_compose_silu, sigmoid)
OLY_UNARY(oly_softplus, oly_compose_softplus, logaddexp)
OLY_UNARY(oly_log_sigmoid, oly_compose_log_sigmoid, logaddexp)
OLY_BINARY(oly_elu, oly_compose_elu, expm1)
OLY_BINARY(oly_leaky_relu, oly_compose_leaky_relu, select)

oly_array(oly_gelu)(oly_operand x, bool approximate)
{
    OLY_ENTER(NULL);
    if (oly_need_operand(&x) != OLY_OK)
        return NULL;
    oly_recipe recipe;
    memset(&recipe, 0, sizeof recipe);
    recipe.op = approximate ? OLY_OP_tanh : OLY_OP_erfc;
    return oly_dispatch(oly_compose_gelu, 1, &x, &recipe);
}
