/* The public operations on values: elementwise, reductions. Each reads its arguments into a recipe
 * and hands it to oly_dispatch with the composition that makes the nodes (graph/compose.h); shapes, element
 * types and their errors live there. operations_shape.c has those that make or move elements. */
#include "array/dispatch.h"
#include "graph/compose_math.h"
#include "array/slice_notation.h"
#include <string.h>

/* -- elementwise ----------------------------------------------------------------------------------------- */
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
UNARY(oly_neg, oly_compose_unary, neg)
UNARY(oly_abs, oly_compose_unary, abs)
UNARY(oly_sign, oly_compose_unary, sign)
UNARY(oly_exp, oly_compose_floating, exp)
UNARY(oly_log, oly_compose_floating, log)
UNARY(oly_sqrt, oly_compose_floating, sqrt)
UNARY(oly_sin, oly_compose_floating, sin)
UNARY(oly_cos, oly_compose_floating, cos)
UNARY(oly_tanh, oly_compose_floating, tanh)
UNARY(oly_sigmoid, oly_compose_floating, sigmoid)
UNARY(oly_relu, oly_compose_relu, select)
UNARY(oly_logical_not, oly_compose_unary, logical_not)

#define BINARY(function, compose, row)                                                                                 \
    oly_array(function)(oly_operand x, oly_operand y)                                                                  \
    {                                                                                                                  \
        oly_enter(__func__);                                                                                           \
        return apply(compose, OLY_OP_##row, 2, (oly_operand[]){x, y});                                                 \
    }
BINARY(oly_add, oly_compose_binary, add)
BINARY(oly_sub, oly_compose_binary, sub)
BINARY(oly_mul, oly_compose_binary, mul)
BINARY(oly_div, oly_compose_divide, div)
BINARY(oly_pow, oly_compose_power, pow)
BINARY(oly_max2, oly_compose_binary, max)
BINARY(oly_min2, oly_compose_binary, min)
BINARY(oly_eq, oly_compose_binary, eq)
BINARY(oly_ne, oly_compose_binary, ne)
BINARY(oly_lt, oly_compose_binary, lt)
BINARY(oly_le, oly_compose_binary, le)
BINARY(oly_gt, oly_compose_binary, gt)
BINARY(oly_ge, oly_compose_binary, ge)

oly_array(oly_where)(oly_operand condition, oly_operand x, oly_operand y)
{
    oly_enter(__func__);
    return apply(oly_compose_where, OLY_OP_select, 3, (oly_operand[]){condition, x, y});
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
    oly_enter(__func__);
    return convert(oly_compose_astype, x, dtype);
}
oly_array(oly_convert_element_type)(oly_operand x, oly_dtype dtype)
{
    oly_enter(__func__);
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
        return NULL;
    if (oly_raise(oly_read_reduce_options(&options, &recipe)) != OLY_OK)
        return NULL;
    return oly_dispatch(compose, 1, &x, &recipe);
}

#define REDUCTION(function, compose, row)                                                                              \
    oly_array function(oly_operand x, oly_reduce_options options)                                                      \
    {                                                                                                                  \
        oly_enter(__func__);                                                                                           \
        return reduce(compose, OLY_OP_##row, x, options);                                                              \
    }
REDUCTION(oly_sum_with, oly_compose_reduce, reduce_sum)
REDUCTION(oly_prod_with, oly_compose_reduce, reduce_prod)
REDUCTION(oly_max_with, oly_compose_reduce, reduce_max)
REDUCTION(oly_min_with, oly_compose_reduce, reduce_min)
REDUCTION(oly_mean_with, oly_compose_mean, reduce_sum)
