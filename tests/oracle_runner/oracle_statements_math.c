/* SPDX-License-Identifier: BSD-3-Clause */
/* The statements of mathematical functions, activations and bits (tests/oracle/README.md). See oracle_statements.h. */
#include "oracle_statements.h"

static oly_array round_even(oly_operand x)
{
    return (oly_round_decimals)(x, 0);
}
static oly_array gelu_erf(oly_operand x)
{
    return oly_gelu(x, false);
}
static oly_array gelu_tanh(oly_operand x)
{
    return oly_gelu(x, true);
}
static oly_array elu(oly_operand x)
{
    return oly_elu(x, 1.0);
}
static oly_array leaky_relu(oly_operand x)
{
    return oly_leaky_relu(x, 0.01);
}
static oly_array clamp(const oracle_call *call)
{
    return oly_clamp(call->arg[0], call->arg[1], call->arg[2]);
}
static oly_array clip(const oracle_call *call)
{
    return oly_clip(call->arg[0], call->arg[1], call->arg[2]);
}
static oly_array integer_pow(const oracle_call *call)
{
    return oly_integer_pow(call->arg[0], oracle_number(call, "y", 0));
}
static oly_array bitcast(const oracle_call *call)
{
    return oly_bitcast_convert_type(call->arg[0], oracle_dtype_of(call));
}
static oly_array select_n(const oracle_call *call)
{
    return oly_select_n(call->arg[0], call->n - 1, call->arg + 1);
}

const oracle_statement oracle_statements_math[] = {
    {"acos", 1, .unary = oly_acos},
    {"acosh", 1, .unary = oly_acosh},
    {"and", 2, .binary = oly_bitwise_and},
    {"angle", 1, .unary = oly_angle},
    {"asin", 1, .unary = oly_asin},
    {"asinh", 1, .unary = oly_asinh},
    {"atan", 1, .unary = oly_atan},
    {"atan2", 2, .binary = oly_atan2},
    {"atanh", 1, .unary = oly_atanh},
    {"bitcast", 1, .other = bitcast},
    {"cbrt", 1, .unary = oly_cbrt},
    {"ceil", 1, .unary = oly_ceil},
    {"clamp", 3, .other = clamp},
    {"clip", 3, .other = clip},
    {"clz", 1, .unary = oly_clz},
    {"copysign", 2, .binary = oly_copysign},
    {"cosh", 1, .unary = oly_cosh},
    {"deg2rad", 1, .unary = oly_deg2rad},
    {"digamma", 1, .unary = oly_digamma},
    {"elu", 1, .unary = elu},
    {"erf", 1, .unary = oly_erf},
    {"erf_inv", 1, .unary = oly_erf_inv},
    {"erfc", 1, .unary = oly_erfc},
    {"exp2", 1, .unary = oly_exp2},
    {"expm1", 1, .unary = oly_expm1},
    {"floor", 1, .unary = oly_floor},
    {"floor_divide", 2, .binary = oly_floor_divide},
    {"fmax", 2, .binary = oly_fmax},
    {"fmin", 2, .binary = oly_fmin},
    {"gelu_erf", 1, .unary = gelu_erf},
    {"gelu_tanh", 1, .unary = gelu_tanh},
    {"hypot", 2, .binary = oly_hypot},
    {"integer_pow", 1, .other = integer_pow},
    {"isfinite", 1, .unary = oly_isfinite},
    {"isinf", 1, .unary = oly_isinf},
    {"isnan", 1, .unary = oly_isnan},
    {"lax_div", 2, .binary = oly_truncate_divide},
    {"leaky_relu", 1, .unary = leaky_relu},
    {"lgamma", 1, .unary = oly_lgamma},
    {"log10", 1, .unary = oly_log10},
    {"log1p", 1, .unary = oly_log1p},
    {"log2", 1, .unary = oly_log2},
    {"log_sigmoid", 1, .unary = oly_log_sigmoid},
    {"logaddexp", 2, .binary = oly_logaddexp},
    {"logical_and", 2, .binary = oly_logical_and},
    {"logical_or", 2, .binary = oly_logical_or},
    {"logical_xor", 2, .binary = oly_logical_xor},
    {"mod", 2, .binary = oly_mod},
    {"nan_to_num", 1, .unary = oly_nan_to_num},
    {"nextafter", 2, .binary = oly_nextafter},
    {"not", 1, .unary = oly_bitwise_not},
    {"or", 2, .binary = oly_bitwise_or},
    {"popcount", 1, .unary = oly_population_count},
    {"rad2deg", 1, .unary = oly_rad2deg},
    {"reciprocal", 1, .unary = oly_reciprocal},
    {"relu6", 1, .unary = oly_relu6},
    {"rem", 2, .binary = oly_rem},
    {"round", 1, .unary = round_even},
    {"round_away", 1, .unary = oly_round_away},
    {"rsqrt", 1, .unary = oly_rsqrt},
    {"sar", 2, .binary = oly_shift_right_arithmetic},
    {"select_n", -1, .other = select_n},
    {"shl", 2, .binary = oly_left_shift},
    {"shr", 2, .binary = oly_shift_right_logical},
    {"signbit", 1, .unary = oly_signbit},
    {"silu", 1, .unary = oly_silu},
    {"sinc", 1, .unary = oly_sinc},
    {"sinh", 1, .unary = oly_sinh},
    {"softplus", 1, .unary = oly_softplus},
    {"square", 1, .unary = oly_square},
    {"tan", 1, .unary = oly_tan},
    {"trunc", 1, .unary = oly_trunc},
    {"xor", 2, .binary = oly_bitwise_xor},
    {NULL},
};
