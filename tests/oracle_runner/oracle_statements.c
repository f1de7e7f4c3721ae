/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of statements: the oracle's name (tests/oracle/README.md) and the function of Olympus. A statement that is
 * not here is skipped. Called by oracle_program.c. */
#include "oracle_statements.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* -- attributes ------------------------------------------------------------------------------------------------------ */
const char *oracle_attribute(const oracle_call *call, const char *key)
{
    return check_oracle_value(call->line, key);
}

int oracle_numbers(const oracle_call *call, const char *key, int64_t *list)
{
    const char *text = oracle_attribute(call, key);
    if (text && *text != '[') {
        list[0] = strtoll(text, NULL, 10);
        return 1;
    }
    return check_oracle_list(text, list, OLY_MAX_RANK);
}

int oracle_number(const oracle_call *call, const char *key, int missing)
{
    const char *text = oracle_attribute(call, key);
    return text ? atoi(text) : missing;
}

/* The lists in the form that the functions take. */
int oracle_small_numbers(const oracle_call *call, const char *key, int *list)
{
    int64_t wide[OLY_MAX_RANK];
    int n = oracle_numbers(call, key, wide);
    for (int k = 0; k < n; k++)
        list[k] = (int)wide[k];
    return n;
}

oly_sharding oracle_out(const oracle_call *call)
{
    const char *spec = oracle_attribute(call, "out");
    return spec ? oracle_sharding(call->mesh, spec) : NULL;
}

oly_dtype oracle_dtype_of(const oracle_call *call)
{
    return (oly_dtype)check_oracle_dtype(oracle_attribute(call, "dtype")); /* known: checked before the program runs */
}

oly_operand oracle_value_of(const oracle_call *call)
{
    const char *text = oracle_attribute(call, "value");
    oly_dtype dtype = oracle_dtype_of(call);
    bool floating = dtype > OLY_UINT64 || text[strcspn(text, ".eEn")];
    return floating ? oly_operand_float(strtod(text, NULL)) : oly_operand_int(strtoll(text, NULL, 10));
}

/* -- statements with functions of their own ------------------------------------------------------------------------ */
static oly_array constant(const oracle_call *call)
{
    return oly_scalar_of(oracle_value_of(call), oracle_dtype_of(call));
}

static oly_array full(const oracle_call *call)
{
    int64_t shape[OLY_MAX_RANK];
    int rank = oracle_numbers(call, "shape", shape);
    return oly_full_shape(oracle_value_of(call), oracle_dtype_of(call), rank, shape);
}

static oly_array select_where(const oracle_call *call)
{
    return oly_where(call->arg[0], call->arg[1], call->arg[2]);
}

static oly_array convert(const oracle_call *call)
{
    return oly_convert_element_type(call->arg[0], oracle_dtype_of(call));
}

static oly_array reshape(const oracle_call *call)
{
    int64_t shape[OLY_MAX_RANK];
    int rank = oracle_numbers(call, "shape", shape);
    return oly_reshape_sharded_shape(call->arg[0], oracle_out(call), rank, shape);
}

static oly_array broadcast_to(const oracle_call *call)
{
    int64_t shape[OLY_MAX_RANK];
    int rank = oracle_numbers(call, "shape", shape);
    return oly_broadcast_sharded_shape(oly_operand_array(call->arg[0]), oracle_out(call), rank, shape);
}

static oly_array transpose(const oracle_call *call)
{
    int order[OLY_MAX_RANK], n = oracle_small_numbers(call, "perm", order);
    return oly_transpose_axes(call->arg[0], n < 0 ? 0 : n, order);
}

static oly_array slice(const oracle_call *call)
{
    int64_t start[OLY_MAX_RANK], limit[OLY_MAX_RANK], stride[OLY_MAX_RANK];
    oracle_numbers(call, "start", start);
    oracle_numbers(call, "limit", limit);
    if (oracle_numbers(call, "stride", stride) < 0)
        for (int d = 0; d < OLY_MAX_RANK; d++)
            stride[d] = 1;
    return oly_slice_ranges(call->arg[0], start, limit, stride);
}

static oly_array concatenate(const oracle_call *call)
{
    return oly_concatenate_n(call->n, call->arg, oracle_number(call, "axis", 0));
}

static oly_array constraint(const oracle_call *call)
{
    if (!call->mesh)
        return call->arg[0]; /* the case is run on one device for comparison */
    oly_sharding sharding = oracle_sharding(call->mesh, oracle_attribute(call, "spec"));
    return sharding ? oly_with_sharding_constraint(call->arg[0], sharding) : NULL;
}

/* Functions that take an array where the others take an operand. */
static oly_array reduce(const oracle_statement *statement, const oracle_call *call)
{
    int axes[OLY_MAX_RANK], n = oracle_small_numbers(call, "axes", axes);
    oly_reduce_options options = {.keepdims = oracle_number(call, "keepdims", 0) != 0,
                                  .out_sharding = oracle_out(call)};
    if (n >= 0) {
        options.axis_list = axes;
        options.n_axis_list = n;
        options.axes_given = true;
    }
    return statement->reduction(oly_operand_array(call->arg[0]), options);
}

/* -- the table ------------------------------------------------------------------------------------------------------- */
const oracle_statement oracle_statements_first[] = {
    {"abs", 1, .unary = oly_abs},
    {"add", 2, .binary = oly_add},
    {"broadcast_to", 1, .other = broadcast_to},
    {"concatenate", -1, .other = concatenate},
    {"const", 0, .other = constant},
    {"constraint", 1, .other = constraint},
    {"convert", 1, .other = convert},
    {"cos", 1, .unary = oly_cos},
    {"div", 2, .binary = oly_div},
    {"eq", 2, .binary = oly_eq},
    {"exp", 1, .unary = oly_exp},
    {"full", 0, .other = full},
    {"ge", 2, .binary = oly_ge},
    {"gt", 2, .binary = oly_gt},
    {"le", 2, .binary = oly_le},
    {"log", 1, .unary = oly_log},
    {"logical_not", 1, .unary = oly_logical_not},
    {"lt", 2, .binary = oly_lt},
    {"max", 2, .binary = oly_max2},
    {"min", 2, .binary = oly_min2},
    {"mul", 2, .binary = oly_mul},
    {"ne", 2, .binary = oly_ne},
    {"neg", 1, .unary = oly_neg},
    {"pow", 2, .binary = oly_pow},
    {"reduce_max", 1, .reduction = oly_max_with},
    {"reduce_mean", 1, .reduction = oly_mean_with},
    {"reduce_min", 1, .reduction = oly_min_with},
    {"reduce_prod", 1, .reduction = oly_prod_with},
    {"reduce_sum", 1, .reduction = oly_sum_with},
    {"relu", 1, .unary = oly_relu},
    {"reshape", 1, .other = reshape},
    {"select", 3, .other = select_where},
    {"sigmoid", 1, .unary = oly_sigmoid},
    {"sign", 1, .unary = oly_sign},
    {"sin", 1, .unary = oly_sin},
    {"slice", 1, .other = slice},
    {"sqrt", 1, .unary = oly_sqrt},
    {"sub", 2, .binary = oly_sub},
    {"tanh", 1, .unary = oly_tanh},
    {"transpose", 1, .other = transpose},
    {NULL},
};

/* Each topic has its table, ended by a row without a name, in tests/oracle_runner/oracle_statements_<topic>.c. */
static const oracle_statement *const tables[] = {
    oracle_statements_first,  oracle_statements_complex, oracle_statements_sharding, oracle_statements_gradient,
    oracle_statements_manual, oracle_statements_shape,   oracle_statements_index,    oracle_statements_contract,
    oracle_statements_math,   oracle_statements_random,
};

const oracle_statement *oracle_find_statement(const char *name)
{
    for (size_t t = 0; t < sizeof tables / sizeof tables[0]; t++)
        for (const oracle_statement *row = tables[t]; row->name; row++)
            if (strcmp(row->name, name) == 0)
                return row;
    return NULL;
}

void oracle_state(const oracle_statement *statement, const oracle_call *call, oly_array *results)
{
    if (statement->n_args >= 0 && statement->n_args != call->n)
        return;
    if (statement->unary)
        results[0] = statement->unary(oly_operand_array(call->arg[0]));
    else if (statement->binary)
        results[0] = statement->binary(oly_operand_array(call->arg[0]), oly_operand_array(call->arg[1]));
    else if (statement->reduction)
        results[0] = reduce(statement, call);
    else if (statement->several)
        statement->several(call, results);
    else
        results[0] = statement->other(call);
}
