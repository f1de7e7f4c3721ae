/* SPDX-License-Identifier: BSD-3-Clause */
/* The public operations that create or move elements: filled arrays, reshape, slices, updates, concatenation,
 * placement. As in operations.c, each fills a recipe for oly_dispatch. */
#include "array/array.h"
#include "array/arguments.h"
#include "array/dispatch.h"
#include "array/context.h"
#include "array/number_operands.h"
#include "array/slice_notation.h"
#include "array/trace.h"
#include <inttypes.h>
#include <string.h>

static void begin(oly_recipe *recipe, oly_op op)
{
    memset(recipe, 0, sizeof *recipe); /* recipes are hashed and compared as memory */
    recipe->op = op;
}

static oly_status read_shape(int rank, const int64_t *shape, oly_params *p)
{
    if (rank < 0 || rank > OLY_MAX_RANK)
        return oly_fail(OLY_INVALID, "%d dimensions asked for; arrays have 0 to %d", rank, OLY_MAX_RANK);
    p->rank = rank;
    for (int d = 0; d < rank; d++)
        p->shape[d] = shape[d];
    return OLY_OK;
}

/* -- creating --------------------------------------------------------------------------------------------- */
oly_array(oly_arange)(int64_t n, oly_dtype dtype)
{
    OLY_ENTER(NULL);
    return (oly_arange_sharded)(n, dtype, NULL);
}

oly_array(oly_arange_sharded)(int64_t n, oly_dtype dtype, oly_sharding out)
{
    OLY_ENTER(NULL);
    if (oly_need_or_null(out, OLY_HANDLE_SHARDING) != OLY_OK)
        return NULL;
    oly_recipe recipe;
    begin(&recipe, OLY_OP_iota);
    recipe.params.sharding = out ? out : oly_context_sharding();
    recipe.params.dtype = dtype;
    recipe.params.rank = 1;
    recipe.params.shape[0] = n;
    if (n < 0) {
        oly_raise(oly_fail(OLY_INVALID, "%" PRId64 " elements asked for; the number is 0 or more", n));
        return NULL;
    }
    return oly_dispatch(oly_compose_iota, 0, NULL, &recipe);
}

oly_array oly_full_shape(oly_operand value, oly_dtype dtype, int rank, const int64_t *shape)
{
    OLY_ENTER(NULL);
    if (oly_need_numbers(rank, shape) != OLY_OK)
        return NULL;
    if (oly_need_operand(&value) != OLY_OK)
        return NULL;
    return oly_full_sharded(value, dtype, NULL, rank, shape);
}

oly_array oly_full_sharded(oly_operand value, oly_dtype dtype, oly_sharding out, int rank, const int64_t *shape)
{
    OLY_ENTER(NULL);
    if (oly_need_numbers(rank, shape) != OLY_OK)
        return NULL;
    if (oly_need_operand(&value) != OLY_OK || oly_need_or_null(out, OLY_HANDLE_SHARDING) != OLY_OK)
        return NULL;
    oly_recipe recipe;
    begin(&recipe, OLY_OP_broadcast);
    recipe.params.sharding = out ? out : oly_context_sharding();
    recipe.params.dtype = dtype;
    recipe.numbers_wrap = true;
    if (oly_raise(read_shape(rank, shape, &recipe.params)) != OLY_OK)
        return NULL;
    return oly_dispatch(oly_compose_full, 1, &value, &recipe);
}

oly_array oly_zeros_shape(oly_dtype dtype, int rank, const int64_t *shape)
{
    OLY_ENTER(NULL);
    if (oly_need_numbers(rank, shape) != OLY_OK)
        return NULL;
    return oly_full_shape(oly_operand_int(0), dtype, rank, shape);
}

oly_array oly_ones_shape(oly_dtype dtype, int rank, const int64_t *shape)
{
    OLY_ENTER(NULL);
    if (oly_need_numbers(rank, shape) != OLY_OK)
        return NULL;
    return oly_full_shape(oly_operand_int(1), dtype, rank, shape);
}

oly_array oly_scalar_of(oly_operand value, oly_dtype dtype)
{
    OLY_ENTER(NULL);
    if (oly_need_operand(&value) != OLY_OK)
        return NULL;
    bool converts = value.kind != 'a' && (unsigned)dtype < OLY_N_DTYPES && (value.kind != 'c' || dtype != OLY_BOOL);
    if (!converts || oly_trace_current() || oly_context_sharding())
        return oly_full_shape(value, dtype, 0, NULL);
    oly_array x = NULL;
    oly_raise(oly_number_scalar(&value, dtype, &x));
    return x;
}

/* -- other extents --------------------------------------------------------------------------------------- */
oly_array oly_reshape_shape(oly_array x, int rank, const int64_t *shape)
{
    OLY_ENTER(NULL);
    if (oly_need_numbers(rank, shape) != OLY_OK)
        return NULL;
    if (oly_need_array(x) != OLY_OK)
        return NULL;
    return oly_reshape_sharded_shape(x, NULL, rank, shape);
}

oly_array oly_reshape_sharded_shape(oly_array x, oly_sharding out, int rank, const int64_t *shape)
{
    OLY_ENTER(NULL);
    if (oly_need_numbers(rank, shape) != OLY_OK)
        return NULL;
    if (oly_need_array(x) != OLY_OK || oly_need_or_null(out, OLY_HANDLE_SHARDING) != OLY_OK)
        return NULL;
    oly_recipe recipe;
    oly_operand in = oly_operand_array(x);
    begin(&recipe, OLY_OP_reshape);
    if (oly_raise(read_shape(rank, shape, &recipe.params)) != OLY_OK)
        return NULL;
    recipe.params.sharding = out;
    return oly_dispatch(oly_compose_reshape, 1, &in, &recipe);
}

oly_array oly_transpose_axes(oly_array x, int n, const int *axes)
{
    OLY_ENTER(NULL);
    if (oly_need_numbers(n, axes) != OLY_OK)
        return NULL;
    if (oly_need_array(x) != OLY_OK)
        return NULL;
    oly_recipe recipe;
    oly_operand in = oly_operand_array(x);
    begin(&recipe, OLY_OP_transpose);
    if (n < 0 || n > OLY_MAX_RANK) {
        oly_raise(oly_fail(OLY_SHAPE, "%d axes given for an array of %d dimensions; give each once", n, oly_rank(x)));
        return NULL;
    }
    recipe.params.n_axes = n;
    for (int k = 0; k < n; k++)
        recipe.params.axes[k] = axes[k];
    return oly_dispatch(oly_compose_transpose, 1, &in, &recipe);
}

oly_array oly_broadcast_shape(oly_operand x, int rank, const int64_t *shape)
{
    OLY_ENTER(NULL);
    if (oly_need_numbers(rank, shape) != OLY_OK)
        return NULL;
    if (oly_need_operand(&x) != OLY_OK)
        return NULL;
    return oly_broadcast_sharded_shape(x, NULL, rank, shape);
}

oly_array oly_broadcast_sharded_shape(oly_operand x, oly_sharding out, int rank, const int64_t *shape)
{
    OLY_ENTER(NULL);
    if (oly_need_numbers(rank, shape) != OLY_OK)
        return NULL;
    if (oly_need_operand(&x) != OLY_OK || oly_need_or_null(out, OLY_HANDLE_SHARDING) != OLY_OK)
        return NULL;
    oly_recipe recipe;
    begin(&recipe, OLY_OP_broadcast);
    if (x.kind == 'a' && !x.array)
        return oly_null_array();
    if (oly_raise(read_shape(rank, shape, &recipe.params)) != OLY_OK)
        return NULL;
    recipe.params.sharding = out;
    return oly_dispatch(oly_compose_broadcast, 1, &x, &recipe);
}

/* -- slices and updates ----------------------------------------------------------------------------------- */
oly_array(oly_slice)(oly_array x, const char *slices)
{
    OLY_ENTER(NULL);
    if (oly_need_array(x) != OLY_OK)
        return NULL;
    oly_recipe recipe;
    oly_operand in = oly_operand_array(x);
    begin(&recipe, OLY_OP_slice);
    if (oly_raise(oly_slice_notation(slices, oly_rank(x), oly_shape(x), &recipe.params)) != OLY_OK)
        return NULL;
    return oly_dispatch(oly_compose_slice, 1, &in, &recipe);
}

oly_array(oly_slice_ranges)(oly_array x, const int64_t *start, const int64_t *limit, const int64_t *step)
{
    OLY_ENTER(NULL);
    if (oly_need_array(x) != OLY_OK)
        return NULL;
    oly_recipe recipe;
    oly_operand in = oly_operand_array(x);
    begin(&recipe, OLY_OP_slice);
    if (oly_raise(oly_slice_numbers(oly_rank(x), oly_shape(x), start, limit, step, &recipe.params)) != OLY_OK)
        return NULL;
    return oly_dispatch(oly_compose_slice, 1, &in, &recipe);
}

/* Slices one dimension by the notation; the others stay whole. */
static oly_array slice_along(oly_array x, int axis, const char *item)
{
    char text[4 * OLY_MAX_RANK + 96] = "";
    int rank = oly_rank(x), dimension = axis < 0 ? axis + rank : axis;
    if (dimension < 0 || dimension >= rank) {
        oly_raise(oly_fail(OLY_SHAPE, "axis %d of %s; it has %d dimensions", axis, oly_type_short(&x->type), rank));
        return NULL;
    }
    for (int d = 0; d < dimension; d++)
        strcat(text, ":, ");
    strcat(text, item);
    return (oly_slice)(x, text);
}

oly_array(oly_slice_in_dim)(oly_array x, int64_t start, int64_t limit, int64_t step, int axis)
{
    OLY_ENTER(NULL);
    if (oly_need_array(x) != OLY_OK)
        return NULL;
    char item[96];
    snprintf(item, sizeof item, "%" PRId64 ":%" PRId64 ":%" PRId64, start, limit, step);
    return x ? slice_along(x, axis, item) : oly_null_array();
}

oly_array(oly_index_in_dim)(oly_array x, int64_t index, int axis)
{
    OLY_ENTER(NULL);
    if (oly_need_array(x) != OLY_OK)
        return NULL;
    char item[96];
    snprintf(item, sizeof item, "%" PRId64, index);
    return x ? slice_along(x, axis, item) : oly_null_array();
}

oly_array(oly_update)(oly_array x, const char *slices, oly_operand value)
{
    OLY_ENTER(NULL);
    if (oly_need_array(x) != OLY_OK || oly_need_operand(&value) != OLY_OK)
        return NULL;
    oly_recipe recipe;
    oly_operand in[2] = {oly_operand_array(x), value};
    begin(&recipe, OLY_OP_update);
    if (!x)
        return oly_null_array();
    if (oly_raise(oly_slice_notation(slices, oly_rank(x), oly_shape(x), &recipe.params)) != OLY_OK)
        return NULL;
    return oly_dispatch(oly_compose_update, 2, in, &recipe);
}

oly_array oly_concatenate_n(int n, const oly_array *arrays, int dimension)
{
    OLY_ENTER(NULL);
    if (oly_need_arrays(n, arrays) != OLY_OK)
        return NULL;
    oly_recipe recipe;
    begin(&recipe, OLY_OP_concatenate);
    recipe.params.dimension = dimension;
    if (n < 1) {
        oly_raise(oly_fail(OLY_INVALID, "%d arrays given; give one or more", n));
        return NULL;
    }
    oly_operand *in = oly_malloc(sizeof *in * (size_t)n);
    if (!in) {
        oly_raise(oly_out_of_memory(sizeof *in * (size_t)n, "the operands of a concatenation"));
        return NULL;
    }
    for (int k = 0; k < n; k++)
        in[k] = oly_operand_array(arrays[k]);
    oly_array result = oly_dispatch(oly_compose_concatenate, n, in, &recipe);
    oly_release(in);
    return result;
}

/* -- placement ------------------------------------------------------------------------------------------- */
oly_array(oly_with_sharding_constraint)(oly_array x, oly_sharding sharding)
{
    OLY_ENTER(NULL);
    if (oly_need_array(x) != OLY_OK || oly_need(sharding, OLY_HANDLE_SHARDING) != OLY_OK)
        return NULL;
    oly_recipe recipe;
    oly_operand in = oly_operand_array(x);
    begin(&recipe, OLY_OP_place);
    recipe.params.sharding = sharding;
    return sharding ? oly_dispatch(oly_compose_constraint, 1, &in, &recipe) : NULL;
}
