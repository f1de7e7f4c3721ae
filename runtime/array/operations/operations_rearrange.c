/* SPDX-License-Identifier: BSD-3-Clause */
/* The public operations that rearrange elements (olympus/shape.h). As in operations.c, each fills a recipe for
 * oly_dispatch; several compute the arguments of others. */
#include "array/array.h"
#include "array/arguments.h"
#include "array/context.h"
#include "array/dispatch.h"
#include "graph/compose/compose_rearrange.h"
#include <olympus/shape.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

static void begin(oly_recipe *recipe)
{
    memset(recipe, 0, sizeof *recipe); /* recipes are hashed and compared as memory */
}

static oly_array apply(oly_compose *compose, oly_array x, const oly_recipe *recipe)
{
    oly_operand in = oly_operand_array(x);
    return oly_dispatch(compose, 1, &in, recipe);
}

static oly_status read_axes(int n, const int *axes, oly_recipe *recipe)
{
    if (n < 0 || n > OLY_MAX_RANK)
        return oly_fail(OLY_INVALID, "%d axes named; arrays have at most %d dimensions, name each axis once", n,
                        OLY_MAX_RANK);
    recipe->params.n_axes = n;
    for (int k = 0; k < n; k++)
        recipe->params.axes[k] = axes[k];
    return OLY_OK;
}

static oly_status read_shape(int rank, const int64_t *shape, oly_recipe *recipe)
{
    if (rank < 0 || rank > OLY_MAX_RANK)
        return oly_fail(OLY_INVALID, "%d dimensions asked for; arrays have 0 to %d", rank, OLY_MAX_RANK);
    recipe->params.rank = rank;
    for (int d = 0; d < rank; d++)
        recipe->params.shape[d] = shape[d];
    return OLY_OK;
}

/* Raises the error and returns a null handle. */
static oly_array refuse(oly_status status)
{
    oly_raise(status);
    return NULL;
}

static oly_array with_axes(oly_compose *compose, oly_array x, int n, const int *axes, bool all)
{
    oly_recipe recipe;
    begin(&recipe);
    oly_status st = read_axes(n, axes, &recipe);
    if (st != OLY_OK)
        return refuse(st);
    recipe.all_axes = all;
    return apply(compose, x, &recipe);
}

/* -- dimensions -------------------------------------------------------------------------------------------------------- */
oly_array oly_squeeze_n(oly_array x, int n, const int *axes)
{
    OLY_ENTER(NULL);
    if (oly_need_numbers(n, axes) != OLY_OK)
        return NULL;
    if (oly_need_array(x) != OLY_OK)
        return NULL;
    return with_axes(oly_compose_squeeze, x, n, axes, n == 0);
}

oly_array oly_expand_dims_n(oly_array x, int n, const int *axes)
{
    OLY_ENTER(NULL);
    if (oly_need_numbers(n, axes) != OLY_OK)
        return NULL;
    if (oly_need_array(x) != OLY_OK)
        return NULL;
    return with_axes(oly_compose_expand_dims, x, n, axes, false);
}

oly_array(oly_ravel)(oly_array x)
{
    OLY_ENTER(NULL);
    if (oly_need_array(x) != OLY_OK)
        return NULL;
    oly_recipe recipe;
    begin(&recipe);
    recipe.params.rank = 1;
    recipe.params.shape[0] = -1;
    return apply(oly_compose_reshape, x, &recipe);
}

oly_array(oly_atleast)(oly_array x, int rank)
{
    OLY_ENTER(NULL);
    if (oly_need_array(x) != OLY_OK)
        return NULL;
    if (rank < 1 || rank > 3)
        return refuse(oly_fail(OLY_INVALID, "at least %d dimensions asked for; ask for 1, 2 or 3", rank));
    int has = oly_rank(x);
    int64_t shape[3] = {1, 1, 1};
    if (has >= rank) /* a handle of its own, like that of any operation */
        return oly_reshape_shape(x, has, oly_shape(x));
    if (has == 1)
        shape[1] = oly_shape(x)[0];
    if (has == 2) {
        shape[0] = oly_shape(x)[0];
        shape[1] = oly_shape(x)[1];
    }
    return oly_reshape_shape(x, rank, shape);
}

/* Normalises an axis for an array's rank. */
static oly_status front(oly_array x, int axis, int *out)
{
    int rank = oly_rank(x);
    if (axis < -rank || axis >= rank)
        return oly_fail(OLY_SHAPE, "axis %d is out of range for an array of %d dimensions", axis, rank);
    *out = axis < 0 ? axis + rank : axis;
    return OLY_OK;
}

oly_array(oly_moveaxis)(oly_array x, int from, int to)
{
    OLY_ENTER(NULL);
    if (oly_need_array(x) != OLY_OK)
        return NULL;
    int order[OLY_MAX_RANK], n = 0;
    if (oly_raise(front(x, from, &from)) != OLY_OK || oly_raise(front(x, to, &to)) != OLY_OK)
        return NULL;
    for (int d = 0; d < oly_rank(x); d++) {
        if (n == to)
            order[n++] = from;
        if (d != from)
            order[n++] = d;
    }
    if (n == to)
        order[n] = from;
    return oly_transpose_axes(x, oly_rank(x), order);
}

oly_array(oly_swapaxes)(oly_array x, int a, int b)
{
    OLY_ENTER(NULL);
    if (oly_need_array(x) != OLY_OK)
        return NULL;
    int order[OLY_MAX_RANK];
    if (oly_raise(front(x, a, &a)) != OLY_OK || oly_raise(front(x, b, &b)) != OLY_OK)
        return NULL;
    for (int d = 0; d < oly_rank(x); d++)
        order[d] = d == a ? b : d == b ? a : d;
    return oly_transpose_axes(x, oly_rank(x), order);
}

oly_array(oly_broadcast_in_dim)(oly_operand x, int rank, const int64_t *shape, int n, const int *dimensions)
{
    OLY_ENTER(NULL);
    if (oly_need_numbers(rank, shape) != OLY_OK || oly_need_numbers(n, dimensions) != OLY_OK)
        return NULL;
    if (oly_need_operand(&x) != OLY_OK)
        return NULL;
    return (oly_broadcast_in_dim_sharded)(x, NULL, rank, shape, n, dimensions);
}

oly_array(oly_broadcast_in_dim_sharded)(oly_operand x, oly_sharding out, int rank, const int64_t *shape, int n,
                                        const int *dimensions)
{
    OLY_ENTER(NULL);
    if (oly_need_numbers(rank, shape) != OLY_OK || oly_need_numbers(n, dimensions) != OLY_OK)
        return NULL;
    if (oly_need_operand(&x) != OLY_OK || oly_need_or_null(out, OLY_HANDLE_SHARDING) != OLY_OK)
        return NULL;
    oly_recipe recipe;
    begin(&recipe);
    recipe.params.sharding = out;
    if (oly_raise(read_shape(rank, shape, &recipe)) != OLY_OK || oly_raise(read_axes(n, dimensions, &recipe)) != OLY_OK)
        return NULL;
    return oly_dispatch(oly_compose_broadcast_in_dim, 1, &x, &recipe);
}

/* -- padding and repeating --------------------------------------------------------------------------------- */
oly_array(oly_pad)(oly_operand x, oly_operand value, const int64_t *low, const int64_t *high, const int64_t *between)
{
    OLY_ENTER(NULL);
    if (oly_need_operand(&x) != OLY_OK || oly_need_operand(&value) != OLY_OK)
        return NULL;
    oly_recipe recipe;
    oly_operand in[2] = {x, value};
    begin(&recipe);
    recipe.params.rank = x.kind == 'a' && x.array ? oly_rank(x.array) : 0;
    for (int d = 0; d < recipe.params.rank; d++) {
        if (between && between[d] == INT64_MAX)
            return refuse(oly_fail(OLY_OVERFLOW, "between[%d] is %lld", d, (long long)between[d]));
        recipe.params.start[d] = low ? low[d] : 0;
        recipe.params.shape[d] = high ? high[d] : 0;
        recipe.params.step[d] = between ? between[d] + 1 : 1;
    }
    return oly_dispatch(oly_compose_pad, 2, in, &recipe);
}

oly_array(oly_pad_mode)(oly_operand x, const char *mode, const int64_t *low, const int64_t *high)
{
    OLY_ENTER(NULL);
    if (oly_need_operand(&x) != OLY_OK)
        return NULL;
    static const char *const names[] = {[OLY_SURROUND_EDGE] = "edge",
                                        [OLY_SURROUND_REFLECT] = "reflect",
                                        [OLY_SURROUND_SYMMETRIC] = "symmetric",
                                        [OLY_SURROUND_WRAP] = "wrap"};
    oly_recipe recipe;
    begin(&recipe);
    while (recipe.params.dimension < 4 && strcmp(names[recipe.params.dimension], mode ? mode : "") != 0)
        recipe.params.dimension++;
    if (recipe.params.dimension == 4)
        return refuse(oly_fail(OLY_PARSE,
                               "\"%s\" is not a padding mode; use \"edge\", \"reflect\", \"symmetric\" or \"wrap\" "
                               "(oly_pad takes a value)",
                               mode ? mode : ""));
    recipe.params.rank = x.kind == 'a' && x.array ? oly_rank(x.array) : 0;
    for (int d = 0; d < recipe.params.rank; d++) {
        recipe.params.start[d] = low ? low[d] : 0;
        recipe.params.shape[d] = high ? high[d] : 0;
    }
    return oly_dispatch(oly_compose_surround, 1, &x, &recipe);
}

oly_array oly_tile_n(oly_array x, int n, const int64_t *times)
{
    OLY_ENTER(NULL);
    if (oly_need_numbers(n, times) != OLY_OK)
        return NULL;
    if (oly_need_array(x) != OLY_OK)
        return NULL;
    oly_recipe recipe;
    begin(&recipe);
    return oly_raise(read_shape(n, times, &recipe)) == OLY_OK ? apply(oly_compose_tile, x, &recipe) : NULL;
}

oly_array(oly_repeat)(oly_array x, int64_t times, int axis)
{
    OLY_ENTER(NULL);
    if (oly_need_array(x) != OLY_OK)
        return NULL;
    oly_recipe recipe;
    begin(&recipe);
    recipe.params.shape[0] = times;
    recipe.params.dimension = axis;
    return apply(oly_compose_repeat, x, &recipe);
}

/* -- order -------------------------------------------------------------------------------------------------------------- */
oly_array oly_rev_n(oly_array x, int n, const int *axes)
{
    OLY_ENTER(NULL);
    if (oly_need_numbers(n, axes) != OLY_OK)
        return NULL;
    if (oly_need_array(x) != OLY_OK)
        return NULL;
    return with_axes(oly_compose_rev, x, n, axes, false);
}

oly_array oly_flip_n(oly_array x, int n, const int *axes)
{
    OLY_ENTER(NULL);
    if (oly_need_numbers(n, axes) != OLY_OK)
        return NULL;
    if (oly_need_array(x) != OLY_OK)
        return NULL;
    return with_axes(oly_compose_rev, x, n, axes, n == 0);
}

oly_array(oly_roll_axes)(oly_array x, int n, const int64_t *shifts, const int *axes)
{
    OLY_ENTER(NULL);
    if (oly_need_numbers(n, shifts) != OLY_OK)
        return NULL;
    if (oly_need_array(x) != OLY_OK)
        return NULL;
    if (!axes && n != 1)
        return refuse(oly_fail(OLY_INVALID, "%d shifts without axes; give an axis for each, or one shift", n));
    oly_recipe recipe;
    begin(&recipe);
    if (axes && oly_raise(read_axes(n, axes, &recipe)) != OLY_OK)
        return NULL;
    recipe.all_axes = !axes;
    for (int k = 0; k < (axes ? n : 1); k++)
        recipe.params.start[k] = shifts[k];
    return apply(oly_compose_roll, x, &recipe);
}

oly_array(oly_roll)(oly_array x, int64_t shift, int axis)
{
    OLY_ENTER(NULL);
    if (oly_need_array(x) != OLY_OK)
        return NULL;
    return (oly_roll_axes)(x, 1, &shift, &axis);
}

/* -- several arrays ------------------------------------------------------------------------------------------------------ */
oly_array oly_stack_n(int n, const oly_array *arrays, int dimension)
{
    OLY_ENTER(NULL);
    if (oly_need_arrays(n, arrays) != OLY_OK)
        return NULL;
    oly_recipe recipe;
    oly_operand in[64];
    begin(&recipe);
    recipe.params.dimension = dimension;
    if (n < 1 || n > 64)
        return refuse(oly_fail(OLY_INVALID, "%d arrays given; give 1 to 64", n));
    for (int k = 0; k < n; k++)
        in[k] = oly_operand_array(arrays[k]);
    return oly_dispatch(oly_compose_stack, n, in, &recipe);
}

static oly_status evenly(oly_array x, int n, int dimension, oly_recipe *recipe, int *along)
{
    OLY_TRY(front(x, dimension, along));
    int64_t extent = oly_shape(x)[*along];
    if (n < 1 || extent % n != 0)
        return oly_fail(OLY_SHAPE, "dimension %d has %" PRId64 " elements, which cannot be split into %d equal parts",
                        *along, extent, n);
    begin(recipe);
    recipe->params.rank = oly_rank(x);
    for (int d = 0; d < recipe->params.rank; d++) {
        recipe->params.shape[d] = oly_shape(x)[d];
        recipe->params.step[d] = 1;
    }
    recipe->params.shape[*along] = extent / n;
    return OLY_OK;
}

oly_status(oly_split_evenly)(oly_array x, int n, int dimension, oly_array *parts)
{
    OLY_ENTER(OLY_STATE);
    oly_recipe recipe;
    int along = 0;
    OLY_TRY(oly_need_room(n, parts));
    OLY_TRY(oly_need_array(x));
    OLY_TRY(oly_raise(evenly(x, n, dimension, &recipe, &along)));
    for (int k = 0; k < n; k++) {
        recipe.params.start[along] = k * recipe.params.shape[along];
        parts[k] = apply(oly_compose_slice, x, &recipe);
        if (!parts[k])
            return oly_clear_list_after(OLY_INVALID, n, parts);
    }
    return OLY_OK;
}

/* -- matrices ------------------------------------------------------------------------------------------------------------ */
static oly_array matrix(oly_compose *compose, int64_t rows, int64_t columns, int64_t k, oly_dtype dtype)
{
    oly_recipe recipe;
    begin(&recipe);
    recipe.params.rank = 2;
    recipe.params.shape[0] = rows;
    recipe.params.shape[1] = columns;
    recipe.params.start[0] = k;
    recipe.params.dtype = dtype;
    return oly_dispatch(compose, 0, NULL, &recipe);
}

oly_array(oly_eye)(int64_t rows, int64_t columns, int64_t k, oly_dtype dtype)
{
    OLY_ENTER(NULL);
    return matrix(oly_compose_eye, rows, columns, k, dtype);
}

oly_array(oly_tri)(int64_t rows, int64_t columns, int64_t k, oly_dtype dtype)
{
    OLY_ENTER(NULL);
    return matrix(oly_compose_tri, rows, columns, k, dtype);
}

static oly_array diagonal(oly_compose *compose, oly_array x, int64_t k, int a, int b)
{
    oly_recipe recipe;
    begin(&recipe);
    recipe.params.start[0] = k;
    recipe.params.n_axes = 2;
    recipe.params.axes[0] = a;
    recipe.params.axes[1] = b;
    return apply(compose, x, &recipe);
}

oly_array(oly_tril)(oly_array x, int64_t k)
{
    OLY_ENTER(NULL);
    if (oly_need_array(x) != OLY_OK)
        return NULL;
    return diagonal(oly_compose_tril, x, k, -2, -1);
}

oly_array(oly_triu)(oly_array x, int64_t k)
{
    OLY_ENTER(NULL);
    if (oly_need_array(x) != OLY_OK)
        return NULL;
    return diagonal(oly_compose_triu, x, k, -2, -1);
}

oly_array(oly_diag)(oly_array x, int64_t k)
{
    OLY_ENTER(NULL);
    if (oly_need_array(x) != OLY_OK)
        return NULL;
    return diagonal(oly_compose_diag, x, k, 0, 1);
}

oly_array(oly_diagonal_of)(oly_array x, int64_t k, int a, int b)
{
    OLY_ENTER(NULL);
    if (oly_need_array(x) != OLY_OK)
        return NULL;
    return diagonal(oly_compose_diagonal, x, k, a, b);
}

oly_array(oly_trace_of)(oly_array x, int64_t k, int a, int b)
{
    OLY_ENTER(NULL);
    if (oly_need_array(x) != OLY_OK)
        return NULL;
    return diagonal(oly_compose_trace, x, k, a, b);
}

/* -- sequences --------------------------------------------------------------------------------------------- */
oly_array oly_iota_shape(oly_dtype dtype, int dimension, int rank, const int64_t *shape)
{
    OLY_ENTER(NULL);
    if (oly_need_numbers(rank, shape) != OLY_OK)
        return NULL;
    oly_recipe recipe;
    begin(&recipe);
    if (oly_raise(read_shape(rank, shape, &recipe)) != OLY_OK)
        return NULL;
    if (dimension < -rank || dimension >= rank)
        return refuse(
            oly_fail(OLY_SHAPE, "the index along dimension %d of an array of %d dimensions", dimension, rank));
    recipe.params.dimension = dimension < 0 ? dimension + rank : dimension;
    recipe.params.dtype = dtype;
    recipe.params.sharding = oly_context_sharding();
    return oly_dispatch(oly_compose_iota, 0, NULL, &recipe);
}

static oly_operand number(double x)
{
    return x == (double)(int64_t)x ? oly_operand_int((int64_t)x) : oly_operand_float(x);
}

oly_array(oly_arange_range)(double start, double stop, double step, oly_dtype dtype)
{
    OLY_ENTER(NULL);
    oly_recipe recipe;
    double n = ceil((stop - start) / step);
    begin(&recipe);
    if (step == 0 || isnan(n) || n >= 0x1p62)
        return refuse(
            oly_fail(OLY_INVALID, "from %g to %g in steps of %g; the step must lead there", start, stop, step));
    recipe.params.dtype = dtype;
    recipe.params.shape[0] = n > 0 ? (int64_t)n : 0;
    oly_operand in[2] = {number(start), number(step)};
    return oly_dispatch(oly_compose_progression, 2, in, &recipe);
}

oly_array(oly_linspace)(oly_operand start, oly_operand stop, int64_t n, oly_dtype dtype)
{
    OLY_ENTER(NULL);
    if (oly_need_operand(&start) != OLY_OK || oly_need_operand(&stop) != OLY_OK)
        return NULL;
    oly_recipe recipe;
    oly_operand in[2] = {start, stop};
    begin(&recipe);
    if (n < 0)
        return refuse(oly_fail(OLY_INVALID, "%" PRId64 " numbers asked for; the number is 0 or more", n));
    recipe.params.dtype = dtype;
    recipe.params.shape[0] = n;
    recipe.params.start[0] = 1;
    return oly_dispatch(oly_compose_linspace, 2, in, &recipe);
}

oly_array(oly_diff)(oly_array x, int64_t n, int axis)
{
    OLY_ENTER(NULL);
    if (oly_need_array(x) != OLY_OK)
        return NULL;
    oly_recipe recipe;
    begin(&recipe);
    recipe.params.shape[0] = n;
    recipe.params.dimension = axis;
    return apply(oly_compose_diff, x, &recipe);
}
