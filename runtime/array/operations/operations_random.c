/* SPDX-License-Identifier: BSD-3-Clause */
/* The public random numbers (olympus/random.h). As in operations.c, each fills a recipe for oly_dispatch. */
#include "array/array.h"
#include "array/arguments.h"
#include "array/context.h"
#include "array/dispatch.h"
#include "graph/compose/compose_random.h"
#include <olympus/random.h>
#include <inttypes.h>
#include <string.h>

static void begin(oly_recipe *recipe)
{
    memset(recipe, 0, sizeof *recipe); /* recipes are hashed and compared as memory */
}

static oly_array refuse(oly_status status)
{
    oly_raise(status);
    return NULL;
}

static oly_status read_shape(int rank, const int64_t *shape, oly_params *p)
{
    oly_type t = {.rank = rank};
    if (rank < 0 || rank > OLY_MAX_RANK)
        return oly_fail(OLY_INVALID, "%d dimensions asked for; arrays have 0 to %d", rank, OLY_MAX_RANK);
    p->rank = rank;
    for (int d = 0; d < rank; d++)
        t.shape[d] = p->shape[d] = shape[d];
    return oly_type_check(&t);
}

/* -- keys -------------------------------------------------------------------------------------------------------------- */
oly_array(oly_random_key)(int64_t seed)
{
    OLY_ENTER(NULL);
    oly_recipe recipe;
    begin(&recipe);
    recipe.params.start[0] = oly_types_are_wide() ? (int64_t)((uint64_t)seed >> 32) : 0;
    recipe.params.start[1] = (int64_t)((uint64_t)seed & UINT32_MAX);
    return oly_dispatch(oly_compose_random_key, 0, NULL, &recipe);
}

oly_array(oly_random_split)(oly_array key, int64_t n)
{
    OLY_ENTER(NULL);
    if (oly_need_array(key) != OLY_OK)
        return NULL;
    oly_recipe recipe;
    oly_operand in = oly_operand_array(key);
    begin(&recipe);
    if (n < 0)
        return refuse(oly_fail(OLY_INVALID, "%" PRId64 " keys asked for; the number is 0 or more", n));
    recipe.params.count = n;
    return oly_dispatch(oly_compose_random_split, 1, &in, &recipe);
}

oly_array(oly_random_fold_in)(oly_array key, oly_operand data)
{
    OLY_ENTER(NULL);
    if (oly_need_array(key) != OLY_OK || oly_need_operand(&data) != OLY_OK)
        return NULL;
    oly_recipe recipe;
    oly_operand in[2] = {oly_operand_array(key), data};
    begin(&recipe);
    recipe.numbers_wrap = true;
    return oly_dispatch(oly_compose_random_fold_in, 2, in, &recipe);
}

oly_array(oly_threefry2x32)(oly_array key, oly_array counters)
{
    OLY_ENTER(NULL);
    if (oly_need_array(key) != OLY_OK || oly_need_array(counters) != OLY_OK)
        return NULL;
    oly_recipe recipe;
    oly_operand in[2] = {oly_operand_array(key), oly_operand_array(counters)};
    begin(&recipe);
    return oly_dispatch(oly_compose_random_block, 2, in, &recipe);
}

/* -- numbers ----------------------------------------------------------------------------------------------------------- */
static oly_array draw(oly_compose *compose, int n_in, const oly_operand *in, oly_dtype dtype, oly_sharding out,
                      int rank, const int64_t *shape)
{
    oly_recipe recipe;
    begin(&recipe);
    oly_status st = read_shape(rank, shape, &recipe.params);
    if (st != OLY_OK)
        return refuse(st);
    recipe.params.dtype = dtype;
    recipe.params.sharding = out ? out : oly_context_sharding();
    return oly_dispatch(compose, n_in, in, &recipe);
}

#define DISTRIBUTION(function, compose)                                                                                \
    oly_array function(oly_array key, oly_dtype dtype, oly_sharding out, int rank, const int64_t *shape)               \
    {                                                                                                                  \
        OLY_ENTER(NULL);                                                                                               \
        if (oly_need_numbers(rank, shape) != OLY_OK)                                                                   \
            return NULL;                                                                                               \
        oly_operand in = oly_operand_array(key);                                                                       \
        return draw(compose, 1, &in, dtype, out, rank, shape);                                                         \
    }
DISTRIBUTION(oly_random_bits_shape, oly_compose_random_bits)
DISTRIBUTION(oly_random_normal_shape, oly_compose_random_normal)
DISTRIBUTION(oly_random_gumbel_shape, oly_compose_random_gumbel)
DISTRIBUTION(oly_random_exponential_shape, oly_compose_random_exponential)
DISTRIBUTION(oly_random_laplace_shape, oly_compose_random_laplace)
DISTRIBUTION(oly_random_logistic_shape, oly_compose_random_logistic)
DISTRIBUTION(oly_random_cauchy_shape, oly_compose_random_cauchy)
DISTRIBUTION(oly_random_rademacher_shape, oly_compose_random_rademacher)

#define BETWEEN(function, compose)                                                                                     \
    oly_array function(oly_array key, oly_dtype dtype, oly_operand low, oly_operand high, oly_sharding out, int rank,  \
                       const int64_t *shape)                                                                           \
    {                                                                                                                  \
        OLY_ENTER(NULL);                                                                                               \
        if (oly_need_numbers(rank, shape) != OLY_OK)                                                                   \
            return NULL;                                                                                               \
        oly_operand in[3] = {oly_operand_array(key), low, high};                                                       \
        return draw(compose, 3, in, dtype, out, rank, shape);                                                          \
    }
BETWEEN(oly_random_uniform_shape, oly_compose_random_uniform)
BETWEEN(oly_random_truncated_normal_shape, oly_compose_random_truncated_normal)
BETWEEN(oly_random_randint_shape, oly_compose_random_randint)

oly_array oly_random_bernoulli_shape(oly_array key, oly_operand p, oly_sharding out, int rank, const int64_t *shape)
{
    OLY_ENTER(NULL);
    if (oly_need_numbers(rank, shape) != OLY_OK)
        return NULL;
    if (oly_need_array(key) != OLY_OK || oly_need_operand(&p) != OLY_OK ||
        oly_need_or_null(out, OLY_HANDLE_SHARDING) != OLY_OK)
        return NULL;
    oly_operand in[2] = {oly_operand_array(key), p};
    return draw(oly_compose_random_bernoulli, 2, in, OLY_BOOL, out, rank, shape);
}

/* -- order and choice -------------------------------------------------------------------------------------------------- */
oly_array(oly_random_permutation)(oly_array key, int64_t n)
{
    OLY_ENTER(NULL);
    if (oly_need_array(key) != OLY_OK)
        return NULL;
    oly_recipe recipe;
    oly_operand in = oly_operand_array(key);
    begin(&recipe);
    recipe.params.count = n;
    return oly_dispatch(oly_compose_random_permutation, 1, &in, &recipe);
}

oly_array(oly_random_permutation_of)(oly_array key, oly_array x, int axis)
{
    OLY_ENTER(NULL);
    if (oly_need_array(key) != OLY_OK || oly_need_array(x) != OLY_OK)
        return NULL;
    oly_recipe recipe;
    oly_operand in[2] = {oly_operand_array(key), oly_operand_array(x)};
    begin(&recipe);
    recipe.params.dimension = axis;
    return oly_dispatch(oly_compose_random_permutation, 2, in, &recipe);
}

static oly_array choose(int n_in, oly_operand *in, oly_recipe *recipe, bool replace, oly_array p, int rank,
                        const int64_t *shape)
{
    oly_status st = read_shape(rank, shape, &recipe->params);
    if (st != OLY_OK)
        return refuse(st);
    recipe->params.reverse = !replace;
    recipe->keepdims = p != NULL;
    if (p)
        in[n_in++] = oly_operand_array(p);
    return oly_dispatch(oly_compose_random_choice, n_in, in, recipe);
}

oly_array oly_random_choice_shape(oly_array key, int64_t n, bool replace, oly_array p, int rank, const int64_t *shape)
{
    OLY_ENTER(NULL);
    if (oly_need_numbers(rank, shape) != OLY_OK)
        return NULL;
    if (oly_need_array(key) != OLY_OK || oly_need_array_or_null(p) != OLY_OK)
        return NULL;
    oly_recipe recipe;
    oly_operand in[3] = {oly_operand_array(key)};
    begin(&recipe);
    recipe.params.count = n;
    return choose(1, in, &recipe, replace, p, rank, shape);
}

oly_array oly_random_choice_of_shape(oly_array key, oly_array x, int axis, bool replace, oly_array p, int rank,
                                     const int64_t *shape)
{
    OLY_ENTER(NULL);
    if (oly_need_numbers(rank, shape) != OLY_OK)
        return NULL;
    if (oly_need_array(key) != OLY_OK || oly_need_array(x) != OLY_OK || oly_need_array_or_null(p) != OLY_OK)
        return NULL;
    oly_recipe recipe;
    oly_operand in[3] = {oly_operand_array(key), oly_operand_array(x)};
    begin(&recipe);
    recipe.params.dimension = axis;
    recipe.all_axes = true;
    return choose(2, in, &recipe, replace, p, rank, shape);
}

oly_array(oly_random_categorical_shape)(oly_array key, oly_array logits, int axis, int rank, const int64_t *shape)
{
    OLY_ENTER(NULL);
    if (oly_need_array(key) != OLY_OK || oly_need_array(logits) != OLY_OK)
        return NULL;
    oly_recipe recipe;
    oly_operand in[2] = {oly_operand_array(key), oly_operand_array(logits)};
    begin(&recipe);
    oly_status st = shape ? read_shape(rank, shape, &recipe.params) : OLY_OK;
    if (st != OLY_OK)
        return refuse(st);
    recipe.params.dimension = axis;
    recipe.all_axes = !shape;
    return oly_dispatch(oly_compose_random_categorical, 2, in, &recipe);
}
