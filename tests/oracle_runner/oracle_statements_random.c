/* SPDX-License-Identifier: BSD-3-Clause */
/* The oracle's random numbers. A table of oracle_statements.c. */
#include "oracle_statements.h"
#include <stdlib.h>

static int shape_of(const oracle_call *call, int64_t *shape)
{
    return oracle_numbers(call, "shape", shape);
}

static int64_t wide_number(const oracle_call *call, const char *name, int64_t missing)
{
    const char *text = oracle_attribute(call, name);
    return text ? strtoll(text, NULL, 10) : missing;
}

static double real_number(const oracle_call *call, const char *name, double missing)
{
    const char *text = oracle_attribute(call, name);
    return text ? strtod(text, NULL) : missing;
}

static oly_array key(const oracle_call *call)
{
    return oly_random_key(wide_number(call, "seed", 0));
}

static oly_array split(const oracle_call *call)
{
    return oly_random_split(call->arg[0], wide_number(call, "n", 2));
}

static oly_array fold_in(const oracle_call *call)
{
    return oly_random_fold_in(call->arg[0], wide_number(call, "data", 0));
}

static oly_array threefry(const oracle_call *call)
{
    return oly_threefry2x32(call->arg[0], call->arg[1]);
}

#define DISTRIBUTION(name)                                                                                             \
    static oly_array name(const oracle_call *call)                                                                     \
    {                                                                                                                  \
        int64_t shape[OLY_MAX_RANK];                                                                                   \
        int rank = shape_of(call, shape);                                                                              \
        return oly_random_##name##_shape(call->arg[0], oracle_dtype_of(call), NULL, rank, shape);                      \
    }
DISTRIBUTION(bits)
DISTRIBUTION(normal)
DISTRIBUTION(gumbel)
DISTRIBUTION(exponential)
DISTRIBUTION(laplace)
DISTRIBUTION(rademacher)

static oly_array uniform(const oracle_call *call)
{
    int64_t shape[OLY_MAX_RANK];
    int rank = shape_of(call, shape);
    return oly_random_uniform_shape(call->arg[0], oracle_dtype_of(call), oly_operand_float(real_number(call, "lo", 0)),
                                    oly_operand_float(real_number(call, "hi", 1)), NULL, rank, shape);
}

static oly_array truncated_normal(const oracle_call *call)
{
    int64_t shape[OLY_MAX_RANK];
    int rank = shape_of(call, shape);
    return oly_random_truncated_normal_shape(call->arg[0], oracle_dtype_of(call),
                                             oly_operand_float(real_number(call, "lo", -2)),
                                             oly_operand_float(real_number(call, "hi", 2)), NULL, rank, shape);
}

static oly_array randint(const oracle_call *call)
{
    int64_t shape[OLY_MAX_RANK];
    int rank = shape_of(call, shape);
    return oly_random_randint_shape(call->arg[0], oracle_dtype_of(call), oly_operand_int(wide_number(call, "lo", 0)),
                                    oly_operand_int(wide_number(call, "hi", 1)), NULL, rank, shape);
}

static oly_array bernoulli(const oracle_call *call)
{
    int64_t shape[OLY_MAX_RANK];
    int rank = shape_of(call, shape);
    return oly_random_bernoulli_shape(call->arg[0], oly_operand_float(real_number(call, "p", 0.5)), NULL, rank, shape);
}

static oly_array permutation(const oracle_call *call)
{
    return call->n > 1 ? oly_random_permutation_of(call->arg[0], call->arg[1], oracle_number(call, "axis", 0))
                       : oly_random_permutation(call->arg[0], wide_number(call, "n", 0));
}

static oly_array choice(const oracle_call *call)
{
    int64_t shape[OLY_MAX_RANK];
    int rank = shape_of(call, shape);
    return oly_random_choice_shape(call->arg[0], wide_number(call, "n", 1), oracle_number(call, "replace", 1) != 0,
                                   NULL, rank, shape);
}

static oly_array categorical(const oracle_call *call)
{
    int64_t shape[OLY_MAX_RANK];
    int rank = shape_of(call, shape);
    return oly_random_categorical_shape(call->arg[0], call->arg[1], oracle_number(call, "axis", -1),
                                        rank < 0 ? 0 : rank, rank < 0 ? NULL : shape);
}

const oracle_statement oracle_statements_random[] = {
    {"bernoulli", 1, .other = bernoulli},
    {"categorical", 2, .other = categorical},
    {"choice", 1, .other = choice},
    {"exponential", 1, .other = exponential},
    {"fold_in", 1, .other = fold_in},
    {"gumbel", 1, .other = gumbel},
    {"key", 0, .other = key},
    {"laplace", 1, .other = laplace},
    {"normal", 1, .other = normal},
    {"permutation", -1, .other = permutation},
    {"rademacher", 1, .other = rademacher},
    {"randint", 1, .other = randint},
    {"random_bits", 1, .other = bits},
    {"split", 1, .other = split},
    {"threefry2x32", 2, .other = threefry},
    {"truncated_normal", 1, .other = truncated_normal},
    {"uniform", 1, .other = uniform},
    {NULL},
};
