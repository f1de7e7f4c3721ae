/* SPDX-License-Identifier: BSD-3-Clause */
/* The public operations along one dimension: sorting, running results, positions of extremes. As in operations.c, each
 * fills a recipe for oly_dispatch. */
#include "array/array.h"
#include "array/arguments.h"
#include "array/dispatch.h"
#include "array/slice_notation.h"
#include "graph/sharding_rule/sharding_rule.h"
#include <string.h>

static void begin(oly_recipe *recipe, oly_op op, int axis)
{
    memset(recipe, 0, sizeof *recipe); /* recipes are hashed and compared as memory */
    recipe->op = op;
    recipe->all_axes = axis == OLY_FLAT;
    recipe->params.dimension = recipe->all_axes ? 0 : axis;
}

/* -- sorting --------------------------------------------------------------------------------------------------------- */
oly_array oly_sort_with(oly_operand x, int axis, oly_along_options options)
{
    OLY_ENTER(NULL);
    if (oly_need_operand(&x) != OLY_OK)
        return NULL;
    oly_recipe recipe;
    begin(&recipe, OLY_OP_sort, axis);
    recipe.params.reverse = options.descending;
    return oly_dispatch(oly_compose_sort, 1, &x, &recipe);
}

oly_array oly_argsort_with(oly_operand x, int axis, oly_along_options options)
{
    OLY_ENTER(NULL);
    if (oly_need_operand(&x) != OLY_OK)
        return NULL;
    oly_recipe recipe;
    begin(&recipe, OLY_OP_argsort, axis);
    recipe.params.reverse = options.descending;
    recipe.params.dtype = oly_default_int();
    return oly_dispatch(oly_compose_argsort, 1, &x, &recipe);
}

/* Over Explicit axes, operands that are sorted together must be sharded alike, and not along the axis. */
static oly_status check_together(int n, const oly_array *operands, int axis)
{
    const oly_type *first = NULL;
    int d = axis < 0 ? axis + operands[0]->type.rank : axis;
    for (int k = 0; k < n && d >= 0 && d < operands[0]->type.rank; k++) {
        const oly_type *x = &operands[k]->type;
        if (!x->mesh || !x->mesh->explicit_axes)
            continue;
        first = first ? first : x;
        if (x->axes[d].n > 0 || !oly_axes_same(first, x))
            return oly_sharding_fail_types("sort", first, x, "sort_sharded",
                                           "operands that are sorted together must be split alike, and not along "
                                           "dimension %d, which is sorted; move one with oly_reshard",
                                           d);
    }
    return OLY_OK;
}

oly_status(oly_sort_together)(int n, const oly_array *operands, int axis, int num_keys, oly_array *results)
{
    OLY_ENTER(OLY_STATE);
    oly_operand keys[OLY_LOCAL_MOST];
    oly_recipe recipe;
    unsigned before = oly_raised_count();
    if (n > 0 && n <= OLY_LOCAL_MOST)
        OLY_TRY(oly_need_room(n, results));
    if (n < 1 || n > OLY_LOCAL_MOST || num_keys < 1 || num_keys > n)
        return oly_raise(oly_fail(OLY_INVALID, "%d operands, of which %d are keys; give 1 to %d, and 1 key or more", n,
                                  num_keys, OLY_LOCAL_MOST));
    OLY_TRY(oly_need_arrays(n, operands));
    for (int k = 0; k < n; k++)
        keys[k] = oly_operand_array(operands[k]);
    for (int k = num_keys; k < n; k++) /* the keys are checked when the indexes that sort them are computed */
        if (oly_rank(operands[k]) != oly_rank(operands[0]) ||
            memcmp(oly_shape(operands[k]), oly_shape(operands[0]), sizeof(int64_t) * (size_t)oly_rank(operands[0])) !=
                0)
            return oly_raise(oly_fail(OLY_SHAPE,
                                      "operand %d has another shape than operand 0; arrays that are sorted together "
                                      "have one shape",
                                      k));
    if (check_together(n, operands, axis) != OLY_OK)
        return oly_raise(OLY_SHARDING);
    begin(&recipe, OLY_OP_argsort, axis);
    recipe.params.dtype = OLY_INT32;
    oly_array order = oly_dispatch(oly_compose_argsort, num_keys, keys, &recipe);
    begin(&recipe, OLY_OP_gather, axis);
    recipe.params.index_mode = OLY_INDEX_PROMISE;
    for (int k = 0; k < n && order; k++)
        results[k] =
            oly_dispatch(oly_compose_apply_along, 2, (oly_operand[]){keys[k], oly_operand_array(order)}, &recipe);
    oly_status st = oly_raised_since(before);
    for (int k = 0; k < n && st != OLY_OK; k++)
        results[k] = NULL;
    return st;
}

oly_status(oly_top_k)(oly_array x, int64_t k, oly_array *values, oly_array *indices)
{
    OLY_ENTER(OLY_STATE);
    if (values)
        *values = NULL;
    if (indices)
        *indices = NULL;
    OLY_TRY(oly_need_array(x));
    oly_operand in = oly_operand_array(x);
    oly_recipe recipe;
    oly_array where, what = NULL;
    unsigned before = oly_raised_count();
    begin(&recipe, OLY_OP_top_k, 0);
    recipe.params.count = k;
    recipe.params.dtype = OLY_INT32;
    where = oly_dispatch(oly_compose_top_k, 1, &in, &recipe);
    if (values) {
        begin(&recipe, OLY_OP_gather, -1);
        recipe.params.index_mode = OLY_INDEX_PROMISE;
        what = where ? oly_dispatch(oly_compose_apply_along, 2, (oly_operand[]){in, oly_operand_array(where)}, &recipe)
                     : NULL;
    }
    oly_status st = oly_raised_since(before);
    if (values && st == OLY_OK)
        *values = what;
    if (indices && st == OLY_OK)
        *indices = where;
    return st;
}

oly_array(oly_searchsorted)(oly_array sorted, oly_operand values, const char *side)
{
    OLY_ENTER(NULL);
    if (oly_need_array(sorted) != OLY_OK || oly_need_operand(&values) != OLY_OK)
        return NULL;
    oly_recipe recipe;
    begin(&recipe, OLY_OP_searchsorted, 0);
    recipe.params.reverse = side && !strcmp(side, "right");
    if (side && !recipe.params.reverse && strcmp(side, "left") != 0) {
        oly_raise(oly_fail(OLY_PARSE, "side \"%s\" is unknown; it is \"left\" or \"right\"", side));
        return NULL;
    }
    return oly_dispatch(oly_compose_searchsorted, 2, (oly_operand[]){oly_operand_array(sorted), values}, &recipe);
}

/* -- running results ------------------------------------------------------------------------------------------------- */
static oly_array running(oly_op op, oly_operand x, int axis, const oly_along_options *options)
{
    oly_recipe recipe;
    begin(&recipe, op, axis);
    recipe.params.reverse = options->reverse;
    recipe.params.dtype = oly_default_int();
    return oly_dispatch(oly_compose_running, 1, &x, &recipe);
}

#define RUNNING(function, row)                                                                                         \
    oly_array function(oly_operand x, int axis, oly_along_options options)                                             \
    {                                                                                                                  \
        OLY_ENTER(NULL);                                                                                               \
        return running(OLY_OP_##row, x, axis, &options);                                                               \
    }
RUNNING(oly_cumsum_with, cumsum)
RUNNING(oly_cumprod_with, cumprod)
RUNNING(oly_cummax_with, cummax)
RUNNING(oly_cummin_with, cummin)
RUNNING(oly_cumlogsumexp_with, cumlogsumexp)

/* -- positions of extremes --------------------------------------------------------------------------------- */
static oly_array argreduce(oly_op op, oly_operand x, const oly_reduce_options *options)
{
    oly_recipe recipe;
    if (x.kind == 'a' && !x.array)
        return oly_null_array();
    begin(&recipe, op, 0);
    if (oly_raise(oly_read_reduce_options(options, &recipe)) != OLY_OK)
        return NULL;
    recipe.params.dtype = oly_default_int();
    return oly_dispatch(oly_compose_argreduce, 1, &x, &recipe);
}

oly_array oly_argmax_with(oly_operand x, oly_reduce_options options)
{
    OLY_ENTER(NULL);
    if (oly_need_operand(&x) != OLY_OK)
        return NULL;
    return argreduce(OLY_OP_argmax, x, &options);
}
oly_array oly_argmin_with(oly_operand x, oly_reduce_options options)
{
    OLY_ENTER(NULL);
    if (oly_need_operand(&x) != OLY_OK)
        return NULL;
    return argreduce(OLY_OP_argmin, x, &options);
}
