/* SPDX-License-Identifier: BSD-3-Clause */
/* The public operations built on reductions (olympus/statistics.h). As in operations.c, each fills a recipe for
 * oly_dispatch. */
#include "array/array.h"
#include "array/arguments.h"
#include "array/dispatch.h"
#include "graph/compose/compose_statistics.h"
#include <olympus/statistics.h>
#include <string.h>

static oly_array reduce(oly_compose *compose, oly_operand x, oly_reduce_options options)
{
    oly_recipe recipe;
    memset(&recipe, 0, sizeof recipe); /* recipes are hashed and compared as memory */
    if (x.kind == 'a' && !x.array)
        return oly_null_array();
    if (oly_raise(oly_read_reduce_options(&options, &recipe)) != OLY_OK)
        return NULL;
    recipe.params.start[0] = options.ddof;
    return oly_dispatch(compose, 1, &x, &recipe);
}

#define REDUCTION(function, compose)                                                                                   \
    oly_array function(oly_operand x, oly_reduce_options options)                                                      \
    {                                                                                                                  \
        OLY_ENTER(NULL);                                                                                               \
        return reduce(compose, x, options);                                                                            \
    }
REDUCTION(oly_any_with, oly_compose_any)
REDUCTION(oly_all_with, oly_compose_all)
REDUCTION(oly_var_with, oly_compose_var)
REDUCTION(oly_std_with, oly_compose_std)
REDUCTION(oly_logsumexp_with, oly_compose_logsumexp)

static oly_array along(oly_compose *compose, oly_operand x, int axis)
{
    oly_recipe recipe;
    memset(&recipe, 0, sizeof recipe);
    recipe.params.n_axes = 1;
    recipe.params.axes[0] = axis;
    return oly_dispatch(compose, 1, &x, &recipe);
}

oly_array(oly_softmax)(oly_operand x, int axis)
{
    OLY_ENTER(NULL);
    if (oly_need_operand(&x) != OLY_OK)
        return NULL;
    return along(oly_compose_softmax, x, axis);
}

oly_array(oly_log_softmax)(oly_operand x, int axis)
{
    OLY_ENTER(NULL);
    if (oly_need_operand(&x) != OLY_OK)
        return NULL;
    return along(oly_compose_log_softmax, x, axis);
}

oly_array(oly_one_hot)(oly_array x, int64_t n, oly_dtype dtype, int axis)
{
    OLY_ENTER(NULL);
    if (oly_need_array(x) != OLY_OK)
        return NULL;
    oly_operand in = oly_operand_array(x);
    oly_recipe recipe;
    memset(&recipe, 0, sizeof recipe);
    recipe.params.shape[0] = n;
    recipe.params.dtype = dtype;
    recipe.params.dimension = axis;
    return oly_dispatch(oly_compose_one_hot, 1, &in, &recipe);
}
