/* SPDX-License-Identifier: BSD-3-Clause */
/* The public operations that read and write by value: take, x.at[...], dynamic slices, segment sums. As in operations.c, each
 * fills a recipe for oly_dispatch. */
#include "array/dispatch.h"
#include "array/arguments.h"
#include <string.h>

static void begin(oly_recipe *recipe, oly_op op)
{
    memset(recipe, 0, sizeof *recipe); /* recipes are hashed and compared as memory */
    recipe->op = op;
}

/* "fill", "drop", "clip", "wrap", "promise_in_bounds"; NULL: `missing`. */
static oly_status read_mode(const char *mode, oly_index_mode missing, oly_params *p)
{
    static const struct {
        const char *name;
        oly_index_mode mode;
    } modes[] = {{"fill", OLY_INDEX_FILL},
                 {"drop", OLY_INDEX_FILL},
                 {"clip", OLY_INDEX_CLIP},
                 {"wrap", OLY_INDEX_WRAP},
                 {"promise_in_bounds", OLY_INDEX_PROMISE}};
    p->index_mode = (int)missing;
    if (!mode)
        return OLY_OK;
    for (size_t k = 0; k < sizeof modes / sizeof modes[0]; k++)
        if (!strcmp(modes[k].name, mode)) {
            p->index_mode = (int)modes[k].mode;
            return OLY_OK;
        }
    return oly_fail(OLY_PARSE,
                    "mode \"%s\" is unknown; it is \"fill\" or \"drop\", \"clip\", \"wrap\" or \"promise_in_bounds\"",
                    mode);
}

/* -- reading --------------------------------------------------------------------------------------------------------- */
static oly_array take(oly_compose *compose, oly_array x, oly_operand indices, int axis, const char *mode)
{
    oly_recipe recipe;
    begin(&recipe, OLY_OP_gather);
    recipe.all_axes = axis == OLY_FLAT;
    recipe.params.dimension = recipe.all_axes ? 0 : axis;
    if (oly_raise(read_mode(mode, OLY_INDEX_FILL, &recipe.params)) != OLY_OK)
        return NULL;
    return oly_dispatch(compose, 2, (oly_operand[]){oly_operand_array(x), indices}, &recipe);
}

oly_array(oly_take)(oly_array x, oly_operand indices, int axis, const char *mode)
{
    OLY_ENTER(NULL);
    if (oly_need_array(x) != OLY_OK || oly_need_operand(&indices) != OLY_OK)
        return NULL;
    return take(oly_compose_take, x, indices, axis, mode);
}

oly_array(oly_take_along_axis)(oly_array x, oly_array indices, int axis, const char *mode)
{
    OLY_ENTER(NULL);
    if (oly_need_array(x) != OLY_OK || oly_need_array(indices) != OLY_OK)
        return NULL;
    return take(oly_compose_take_along, x, oly_operand_array(indices), axis, mode);
}

/* Array, indexes and, for updates, the new values. */
static oly_array at(oly_compose *compose, oly_op op, oly_array x, int n, const oly_operand *indexes,
                    const oly_operand *updates, const oly_at_options *options)
{
    oly_operand in[OLY_MAX_RANK + 2] = {oly_operand_array(x)};
    oly_recipe recipe;
    begin(&recipe, op);
    recipe.params.sharding = options->out_sharding;
    oly_status st = read_mode(options->mode, updates ? OLY_INDEX_FILL : OLY_INDEX_PROMISE, &recipe.params);
    if (st == OLY_OK && (n < 1 || n > OLY_MAX_RANK))
        st = oly_fail(OLY_SHAPE, "%d indexes given; give one for each of the leading dimensions", n);
    if (oly_raise(st) != OLY_OK)
        return NULL;
    for (int k = 0; k < n; k++)
        in[1 + k] = indexes[k];
    if (updates)
        in[1 + n] = *updates;
    return oly_dispatch(compose, 1 + n + (updates != NULL), in, &recipe);
}

oly_array oly_at_get_with(oly_array x, int n, const oly_operand *indexes, oly_at_options options)
{
    OLY_ENTER(NULL);
    if (oly_need_array(x) != OLY_OK || oly_need_operands(n, indexes) != OLY_OK)
        return NULL;
    return at(oly_compose_at_get, OLY_OP_gather, x, n, indexes, NULL, &options);
}

/* -- writing --------------------------------------------------------------------------------------------------------- */
#define AT_UPDATE(function, row)                                                                                       \
    oly_array function(oly_array x, int n, const oly_operand *indexes, oly_operand updates, oly_at_options options)    \
    {                                                                                                                  \
        OLY_ENTER(NULL);                                                                                               \
        if (oly_need_array(x) != OLY_OK || oly_need_operands(n, indexes) != OLY_OK)                                    \
            return NULL;                                                                                               \
        return at(oly_compose_at_update, OLY_OP_##row, x, n, indexes, &updates, &options);                             \
    }
AT_UPDATE(oly_at_set_with, scatter)
AT_UPDATE(oly_at_add_with, scatter_add)
AT_UPDATE(oly_at_mul_with, scatter_mul)
AT_UPDATE(oly_at_min_with, scatter_min)
AT_UPDATE(oly_at_max_with, scatter_max)

oly_array(oly_segment_sum)(oly_array data, oly_array ids, int64_t num_segments)
{
    OLY_ENTER(NULL);
    if (oly_need_array(data) != OLY_OK || oly_need_array(ids) != OLY_OK)
        return NULL;
    oly_recipe recipe;
    begin(&recipe, OLY_OP_scatter_add);
    recipe.params.count = num_segments;
    return oly_dispatch(oly_compose_segment_sum, 2, (oly_operand[]){oly_operand_array(data), oly_operand_array(ids)},
                        &recipe);
}

oly_array(oly_bincount)(oly_array x, int64_t length)
{
    OLY_ENTER(NULL);
    if (oly_need_array(x) != OLY_OK)
        return NULL;
    oly_operand in = oly_operand_array(x);
    oly_recipe recipe;
    begin(&recipe, OLY_OP_scatter_add);
    recipe.params.count = length;
    recipe.params.dtype = oly_default_int();
    return oly_dispatch(oly_compose_bincount, 1, &in, &recipe);
}

/* -- slices at computed positions -------------------------------------------------------------------------- */
static oly_status check_counts(int n, int rank)
{
    if (n < 0 || n > OLY_MAX_RANK || rank < 0 || rank > OLY_MAX_RANK)
        return oly_fail(OLY_SHAPE, "%d starts and %d sizes given; give one of each for every dimension", n, rank);
    return OLY_OK;
}

oly_array(oly_dynamic_slice)(oly_array x, int n, const oly_operand *starts, int rank, const int64_t *sizes)
{
    OLY_ENTER(NULL);
    if (oly_need_numbers(rank, sizes) != OLY_OK)
        return NULL;
    if (oly_need_array(x) != OLY_OK || oly_need_operands(n, starts) != OLY_OK)
        return NULL;
    oly_operand in[1 + OLY_MAX_RANK] = {oly_operand_array(x)};
    oly_recipe recipe;
    begin(&recipe, OLY_OP_dynamic_slice);
    recipe.numbers_wrap = true;
    if (oly_raise(check_counts(n, rank)) != OLY_OK)
        return NULL;
    recipe.params.rank = rank;
    for (int d = 0; d < rank; d++)
        recipe.params.shape[d] = sizes[d];
    for (int k = 0; k < n; k++)
        in[1 + k] = starts[k];
    return oly_dispatch(oly_compose_dynamic_slice, 1 + n, in, &recipe);
}

oly_array(oly_dynamic_update_slice)(oly_array x, oly_array update, int n, const oly_operand *starts)
{
    OLY_ENTER(NULL);
    if (oly_need_array(x) != OLY_OK || oly_need_array(update) != OLY_OK || oly_need_operands(n, starts) != OLY_OK)
        return NULL;
    oly_operand in[2 + OLY_MAX_RANK] = {oly_operand_array(x), oly_operand_array(update)};
    oly_recipe recipe;
    begin(&recipe, OLY_OP_dynamic_update_slice);
    recipe.numbers_wrap = true;
    if (oly_raise(check_counts(n, 0)) != OLY_OK)
        return NULL;
    for (int k = 0; k < n; k++)
        in[2 + k] = starts[k];
    return oly_dispatch(oly_compose_dynamic_update_slice, 2 + n, in, &recipe);
}
