/* SPDX-License-Identifier: BSD-3-Clause */
/* The public elementwise operations and reductions. Each reads its arguments into a recipe and hands it to oly_dispatch
 * with the composition that makes the nodes (graph/compose/compose.h), which checks shapes and element types.
 * operations_shape.c has those that create or move elements. */
#include "array/array.h"
#include "array/arguments.h"
#include "array/operations.h"
#include "graph/compose/compose_math.h"
#include "array/slice_notation.h"
#include <string.h>

/* -- elementwise ----------------------------------------------------------------------------------------- */
OLY_UNARY(oly_neg, oly_compose_unary, neg)
OLY_UNARY(oly_abs, oly_compose_unary, abs)
OLY_UNARY(oly_sign, oly_compose_unary, sign)
OLY_UNARY(oly_exp, oly_compose_floating, exp)
OLY_UNARY(oly_log, oly_compose_floating, log)
OLY_UNARY(oly_sqrt, oly_compose_floating, sqrt)
OLY_UNARY(oly_sin, oly_compose_floating, sin)
OLY_UNARY(oly_cos, oly_compose_floating, cos)
OLY_UNARY(oly_tanh, oly_compose_floating, tanh)
OLY_UNARY(oly_sigmoid, oly_compose_floating, sigmoid)
OLY_UNARY(oly_relu, oly_compose_relu, select)
OLY_UNARY(oly_logical_not, oly_compose_unary, logical_not)

OLY_BINARY(oly_add, oly_compose_binary, add)
OLY_BINARY(oly_sub, oly_compose_binary, sub)
OLY_BINARY(oly_mul, oly_compose_binary, mul)
OLY_BINARY(oly_div, oly_compose_divide, div)
OLY_BINARY(oly_pow, oly_compose_power, pow)
OLY_BINARY(oly_max2, oly_compose_binary, max)
OLY_BINARY(oly_min2, oly_compose_binary, min)
OLY_BINARY(oly_eq, oly_compose_binary, eq)
OLY_BINARY(oly_ne, oly_compose_binary, ne)
OLY_BINARY(oly_lt, oly_compose_binary, lt)
OLY_BINARY(oly_le, oly_compose_binary, le)
OLY_BINARY(oly_gt, oly_compose_binary, gt)
OLY_BINARY(oly_ge, oly_compose_binary, ge)

oly_array(oly_where)(oly_operand condition, oly_operand x, oly_operand y)
{
    OLY_ENTER(NULL);
    if (oly_need_operand(&condition) != OLY_OK || oly_need_operand(&x) != OLY_OK || oly_need_operand(&y) != OLY_OK)
        return NULL;
    return oly_apply_row(oly_compose_where, OLY_OP_select, 3, (oly_operand[]){condition, x, y});
}

static oly_array convert(oly_compose *compose, oly_operand x, oly_dtype dtype)
{
    oly_recipe recipe;
    memset(&recipe, 0, sizeof recipe);
    recipe.op = OLY_OP_convert;
    recipe.params.dtype = dtype;
    return oly_dispatch(compose, 1, &x, &recipe);
}

oly_array(oly_astype)(oly_operand x, oly_dtype dtype)
{
    OLY_ENTER(NULL);
    if (oly_need_operand(&x) != OLY_OK)
        return NULL;
    return convert(oly_compose_astype, x, dtype);
}
oly_array(oly_convert_element_type)(oly_operand x, oly_dtype dtype)
{
    OLY_ENTER(NULL);
    if (oly_need_operand(&x) != OLY_OK)
        return NULL;
    return convert(oly_compose_convert, x, dtype);
}

/* -- reductions ------------------------------------------------------------------------------------------ */
oly_status oly_read_reduce_options(const oly_reduce_options *options, oly_recipe *recipe)
{
    recipe->keepdims = options->keepdims;
    recipe->params.sharding = options->out_sharding;
    recipe->all_axes = !options->axes && !options->axes_given;
    if (options->axes)
        return oly_axes_notation(options->axes, &recipe->params);
    if (options->n_axis_list > 0 && !options->axis_list)
        return oly_fail(OLY_INVALID, "the list of %d axes is NULL", options->n_axis_list);
    if (options->n_axis_list < 0 || options->n_axis_list > OLY_MAX_RANK)
        return oly_fail(OLY_INVALID, "%d axes named; arrays have at most %d dimensions, name each axis once",
                        options->n_axis_list, OLY_MAX_RANK);
    recipe->params.n_axes = options->n_axis_list;
    for (int k = 0; k < options->n_axis_list; k++)
        recipe->params.axes[k] = options->axis_list[k];
    return OLY_OK;
}

static oly_array reduce(oly_compose *compose, oly_op op, oly_operand x, oly_reduce_options options)
{
    oly_recipe recipe;
    memset(&recipe, 0, sizeof recipe);
    recipe.op = op;
    if (x.kind == 'a' && !x.array)
        return oly_null_array();
    if (oly_raise(oly_read_reduce_options(&options, &recipe)) != OLY_OK)
        return NULL;
    return oly_dispatch(compose, 1, &x, &recipe);
}

#define REDUCTION(function, compose, row)                                                                              \
    oly_array function(oly_operand x, oly_reduce_options options)                                                      \
    {                                                                                                                  \
        OLY_ENTER(NULL);                                                                                               \
        return reduce(compose, OLY_OP_##row, x, options);                                                              \
    }
REDUCTION(oly_sum_with, oly_compose_reduce, reduce_sum)
REDUCTION(oly_prod_with, oly_compose_reduce, reduce_prod)
REDUCTION(oly_max_with, oly_compose_reduce, reduce_max)
REDUCTION(oly_min_with, oly_compose_reduce, reduce_min)
REDUCTION(oly_mean_with, oly_compose_mean, reduce_sum)
