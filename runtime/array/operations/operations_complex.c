/* SPDX-License-Identifier: BSD-3-Clause */
/* The public operations on complex numbers and their parts. As in operations.c, each fills a recipe for oly_dispatch. */
#include "array/dispatch.h"
#include "array/arguments.h"
#include <string.h>

static oly_array apply(oly_compose *compose, oly_op op, int n_in, const oly_operand *in)
{
    oly_recipe recipe;
    memset(&recipe, 0, sizeof recipe); /* recipes are hashed and compared as memory */
    recipe.op = op;
    return oly_dispatch(compose, n_in, in, &recipe);
}

#define PART(function, row)                                                                                            \
    oly_array(function)(oly_operand x)                                                                                 \
    {                                                                                                                  \
        OLY_ENTER(NULL);                                                                                               \
        return apply(oly_compose_part, OLY_OP_##row, 1, &x);                                                           \
    }
PART(oly_real, real)
PART(oly_imag, imag)
PART(oly_conj, conj)

oly_array(oly_complex)(oly_operand real, oly_operand imaginary)
{
    OLY_ENTER(NULL);
    if (oly_need_operand(&real) != OLY_OK || oly_need_operand(&imaginary) != OLY_OK)
        return NULL;
    return apply(oly_compose_complex, OLY_OP_complex, 2, (oly_operand[]){real, imaginary});
}
