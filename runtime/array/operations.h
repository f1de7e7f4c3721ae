/* SPDX-License-Identifier: BSD-3-Clause */
/* Public functions that are one operation of one or two operands: the macros that define them in operations.c and
 * operations_math.c. */
#ifndef ARRAY_OPERATIONS_H
#define ARRAY_OPERATIONS_H
#include "array/dispatch.h"
#include <string.h>

static inline oly_array oly_apply_row(oly_compose *compose, oly_op op, int n_in, const oly_operand *in)
{
    oly_recipe recipe;
    memset(&recipe, 0, sizeof recipe); /* recipes are hashed and compared as memory */
    recipe.op = op;
    return oly_dispatch(compose, n_in, in, &recipe);
}

/* Defines the public function: OLY_UNARY(oly_exp, oly_compose_floating, exp). */
#define OLY_UNARY(function, compose, row)                                                                              \
    oly_array(function)(oly_operand x)                                                                                 \
    {                                                                                                                  \
        OLY_ENTER(NULL);                                                                                               \
        return oly_apply_row(compose, OLY_OP_##row, 1, &x);                                                            \
    }
#define OLY_BINARY(function, compose, row)                                                                             \
    oly_array(function)(oly_operand x, oly_operand y)                                                                  \
    {                                                                                                                  \
        OLY_ENTER(NULL);                                                                                               \
        return oly_apply_row(compose, OLY_OP_##row, 2, (oly_operand[]){x, y});                                         \
    }
#endif
