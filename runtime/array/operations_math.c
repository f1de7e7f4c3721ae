/* The public mathematical functions, activations and operations on bits. As in operations.c, each fills a recipe for
 * oly_dispatch; the compositions are those of graph/compose_math.h. */
#include "array/dispatch.h"
#include "graph/compose_math.h"
#include <olympus/math.h>
#include <math.h>
#include <string.h>

static oly_array apply(oly_compose *compose, oly_op op, int n_in, const oly_operand *in)
{
    oly_recipe recipe;
    memset(&recipe, 0, sizeof recipe); /* recipes are hashed and compared as memory */
    recipe.op = op;
    return oly_dispatch(compose, n_in, in, &recipe);
}

#define UNARY(function, compose, row)                                                                                  \
    oly_array(function)(oly_operand x)                                                                                 \
    {                                                                                                                  \
        oly_enter(__func__);                                                                                           \
        return apply(compose, OLY_OP_##row, 1, &x);                                                                    \
    }
#define BINARY(function, compose, row)                                                                                 \
    oly_array(function)(oly_operand x, oly_operand y)                                                                  \
    {                                                                                                                  \
        oly_enter(__func__);                                                                                           \
        return apply(compose, OLY_OP_##row, 2, (oly_operand[]){x, y});                                                 \
    }

/* -- functions of one operand -------------------------------------------------------------------------------------- */
UNARY(oly_tan, oly_compose_floating, tan)
UNARY(oly_asin, oly_compose_floating, asin)
UNARY(oly_acos, oly_compose_floating, acos)
UNARY(oly_atan, oly_compose_floating, atan)
UNARY(oly_sinh, oly_compose_floating, sinh)
UNARY(oly_cosh, oly_compose_floating, cosh)
UNARY(oly_asinh, oly_compose_floating, asinh)
UNARY(oly_acosh, oly_compose_floating, acosh)
UNARY(oly_atanh, oly_compose_floating, atanh)
UNARY(oly_exp2, oly_compose_floating, exp2)
UNARY(oly_expm1, oly_compose_floating, expm1)
UNARY(oly_log1p, oly_compose_floating, log1p)
UNARY(oly_log2, oly_compose_log2, log)
UNARY(oly_log10, oly_compose_log10, log)
UNARY(oly_rsqrt, oly_compose_floating, rsqrt)
UNARY(oly_cbrt, oly_compose_floating, cbrt)
UNARY(oly_square, oly_compose_numeric, square)
UNARY(oly_reciprocal, oly_compose_reciprocal, div)
UNARY(oly_erf, oly_compose_floating, erf)
UNARY(oly_erfc, oly_compose_floating, erfc)
UNARY(oly_erf_inv, oly_compose_floating, erf_inv)
UNARY(oly_lgamma, oly_compose_floating, lgamma)
UNARY(oly_digamma, oly_compose_floating, digamma)
UNARY(oly_sinc, oly_compose_sinc, sin)
UNARY(oly_angle, oly_compose_angle, atan2)

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
    oly_enter(__func__);
    return scaled(x, M_PI / 180);
}
oly_array(oly_rad2deg)(oly_operand x)
{
    oly_enter(__func__);
    return scaled(x, 180 / M_PI);
}

/* -- to whole numbers ------------------------------------------------------------------------------------------------ */
UNARY(oly_floor, oly_compose_whole, floor)
UNARY(oly_ceil, oly_compose_whole, ceil)
UNARY(oly_trunc, oly_compose_trunc, floor)
UNARY(oly_round_away, oly_compose_unary, round_away)

oly_array(oly_round_decimals)(oly_operand x, int decimals)
{
    oly_enter(__func__);
    oly_recipe recipe;
    memset(&recipe, 0, sizeof recipe);
    recipe.op = OLY_OP_round;
    recipe.params.dimension = decimals;
    return oly_dispatch(oly_compose_round, 1, &x, &recipe);
}

oly_array(oly_integer_pow)(oly_operand x, int y)
{
    oly_enter(__func__);
    oly_recipe recipe;
    memset(&recipe, 0, sizeof recipe);
    recipe.op = OLY_OP_mul;
    recipe.params.dimension = y;
    return oly_dispatch(oly_compose_integer_pow, 1, &x, &recipe);
}

/* -- kinds of numbers -------------------------------------------------------------------------------------------------- */
UNARY(oly_isfinite, oly_compose_isfinite, is_finite)
UNARY(oly_isinf, oly_compose_isinf, eq)
UNARY(oly_isnan, oly_compose_isnan, ne)
UNARY(oly_signbit, oly_compose_signbit, bitcast)
UNARY(oly_nan_to_num, oly_compose_nan_to_num, select)

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
    oly_enter(__func__);
    return is_infinity(x, INFINITY);
}
oly_array(oly_isneginf)(oly_operand x)
{
    oly_enter(__func__);
    return is_infinity(x, -INFINITY);
}

/* -- functions of two operands ----------------------------------------------------------------------------------------- */
BINARY(oly_atan2, oly_compose_floating_binary, atan2)
BINARY(oly_hypot, oly_compose_hypot, sqrt)
BINARY(oly_logaddexp, oly_compose_floating_binary, logaddexp)
BINARY(oly_copysign, oly_compose_copysign, select)
BINARY(oly_nextafter, oly_compose_floating_binary, nextafter)
BINARY(oly_truncate_divide, oly_compose_quotient, div)
BINARY(oly_floor_divide, oly_compose_floor_divide, div)
BINARY(oly_mod, oly_compose_remainder, rem)
BINARY(oly_rem, oly_compose_numeric_binary, rem)
BINARY(oly_fmod, oly_compose_fmod, rem)
BINARY(oly_fmax, oly_compose_ignoring_nan, gt)
BINARY(oly_fmin, oly_compose_ignoring_nan, lt)

oly_array(oly_clamp)(oly_operand lowest, oly_operand x, oly_operand highest)
{
    oly_enter(__func__);
    return apply(oly_compose_clamp, OLY_OP_clamp, 3, (oly_operand[]){lowest, x, highest});
}
oly_array(oly_clip)(oly_operand x, oly_operand lowest, oly_operand highest)
{
    oly_enter(__func__);
    return apply(oly_compose_clip, OLY_OP_max, 3, (oly_operand[]){x, lowest, highest});
}

oly_array(oly_select_n)(oly_operand which, int n, const oly_array *cases)
{
    oly_enter(__func__);
    oly_operand all[64] = {which};
    if (n < 1 || n > 63) {
        oly_raise(oly_fail(OLY_INVALID, "select_n of %d cases; it takes 1 to 63", n));
        return NULL;
    }
    for (int k = 0; k < n; k++)
        all[k + 1] = oly_operand_array(cases[k]);
    return apply(oly_compose_select_n, OLY_OP_select, n + 1, all);
}

/* -- truths and bits ------------------------------------------------------------------------------------------------------ */
BINARY(oly_logical_and, oly_compose_logical, and)
BINARY(oly_logical_or, oly_compose_logical, or)
BINARY(oly_logical_xor, oly_compose_logical, xor)
UNARY(oly_bitwise_not, oly_compose_unary, not )
BINARY(oly_bitwise_and, oly_compose_binary, and)
BINARY(oly_bitwise_or, oly_compose_binary, or)
BINARY(oly_bitwise_xor, oly_compose_binary, xor)
BINARY(oly_left_shift, oly_compose_numeric_binary, shift_left)
BINARY(oly_right_shift, oly_compose_right_shift, shift_right_arithmetic)
BINARY(oly_shift_right_logical, oly_compose_numeric_binary, shift_right_logical)
BINARY(oly_shift_right_arithmetic, oly_compose_numeric_binary, shift_right_arithmetic)
UNARY(oly_population_count, oly_compose_unary, population_count)
UNARY(oly_clz, oly_compose_unary, clz)

oly_array(oly_bitcast_convert_type)(oly_operand x, oly_dtype dtype)
{
    oly_enter(__func__);
    oly_recipe recipe;
    memset(&recipe, 0, sizeof recipe);
    recipe.op = OLY_OP_bitcast;
    recipe.params.dtype = dtype;
    return oly_dispatch(oly_compose_bitcast, 1, &x, &recipe);
}

/* -- activations ---------------------------------------------------------------------------------------------------------- */
UNARY(oly_relu6, oly_compose_relu6, clamp)
UNARY(oly_silu, oly_compose_silu, sigmoid)
UNARY(oly_softplus, oly_compose_softplus, logaddexp)
UNARY(oly_log_sigmoid, oly_compose_log_sigmoid, logaddexp)
BINARY(oly_elu, oly_compose_elu, expm1)
BINARY(oly_leaky_relu, oly_compose_leaky_relu, select)

oly_array(oly_gelu)(oly_operand x, bool approximate)
{
    oly_enter(__func__);
    oly_recipe recipe;
    memset(&recipe, 0, sizeof recipe);
    recipe.op = approximate ? OLY_OP_tanh : OLY_OP_erfc;
    return oly_dispatch(oly_compose_gelu, 1, &x, &recipe);
}
