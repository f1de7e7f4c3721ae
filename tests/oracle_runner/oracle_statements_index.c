/* SPDX-License-Identifier: BSD-3-Clause */
/* Statements along one dimension and by value. See oracle_statements.c. */
#include "oracle_statements.h"
#include <string.h>

static int axis_of(const oracle_call *call)
{
    return oracle_number(call, "axis", OLY_FLAT);
}

static oly_array sort(const oracle_call *call)
{
    return oly_sort(call->arg[0], axis_of(call), .descending = oracle_number(call, "descending", 0) != 0);
}
static oly_array argsort(const oracle_call *call)
{
    return oly_argsort(call->arg[0], axis_of(call), .descending = oracle_number(call, "descending", 0) != 0);
}

static void sort_kv(const oracle_call *call, oly_array *results)
{
    oly_sort_together(call->n, call->arg, axis_of(call), oracle_number(call, "num_keys", 1), results);
}
static void top_k(const oracle_call *call, oly_array *results)
{
    oly_top_k(call->arg[0], oracle_number(call, "k", 1), &results[0], &results[1]);
}

static oly_array argmax(const oracle_call *call)
{
    int axis = axis_of(call);
    return axis == OLY_FLAT ? oly_argmax(call->arg[0]) : oly_argmax(call->arg[0], OLY_AXES(axis));
}
static oly_array argmin(const oracle_call *call)
{
    int axis = axis_of(call);
    return axis == OLY_FLAT ? oly_argmin(call->arg[0]) : oly_argmin(call->arg[0], OLY_AXES(axis));
}

#define RUNNING(name)                                                                                                  \
    static oly_array name(const oracle_call *call)                                                                     \
    {                                                                                                                  \
        return oly_##name(call->arg[0], axis_of(call), .reverse = oracle_number(call, "reverse", 0) != 0);             \
    }
RUNNING(cumsum)
RUNNING(cumprod)
RUNNING(cummax)
RUNNING(cummin)
RUNNING(cumlogsumexp)

static oly_array searchsorted(const oracle_call *call)
{
    return oly_searchsorted(call->arg[0], call->arg[1], oracle_attribute(call, "side"));
}

/* -- by value -------------------------------------------------------------------------------------------------------- */
static oly_array take(const oracle_call *call)
{
    return oly_take(call->arg[0], call->arg[1], axis_of(call), oracle_attribute(call, "mode"));
}
static oly_array take_along_axis(const oracle_call *call)
{
    return oly_take_along_axis(call->arg[0], call->arg[1], axis_of(call), oracle_attribute(call, "mode"));
}

static int indexes_of(const oracle_call *call, int first, int last, oly_operand *indexes)
{
    for (int k = first; k < last; k++)
        indexes[k - first] = oly_operand_array(call->arg[k]);
    return last - first;
}

static oly_array at_get(const oracle_call *call)
{
    oly_operand indexes[ORACLE_MOST_OPERANDS];
    int n = indexes_of(call, 1, call->n, indexes);
    oly_at_options options = {.mode = oracle_attribute(call, "mode"), .out_sharding = oracle_out(call)};
    return oly_at_get_with(call->arg[0], n, indexes, options);
}

#define AT_UPDATE(name)                                                                                                \
    static oly_array name(const oracle_call *call)                                                                     \
    {                                                                                                                  \
        oly_operand indexes[ORACLE_MOST_OPERANDS], updates = oly_operand_array(call->arg[call->n - 1]);                \
        int n = indexes_of(call, 1, call->n - 1, indexes);                                                             \
        oly_at_options options = {.mode = oracle_attribute(call, "mode"), .out_sharding = oracle_out(call)};           \
        return oly_##name##_with(call->arg[0], n, indexes, updates, options);                                          \
    }
AT_UPDATE(at_set)
AT_UPDATE(at_add)
AT_UPDATE(at_mul)
AT_UPDATE(at_min)
AT_UPDATE(at_max)

static oly_array dynamic_slice(const oracle_call *call)
{
    int64_t sizes[OLY_MAX_RANK];
    oly_operand starts[ORACLE_MOST_OPERANDS];
    int rank = oracle_numbers(call, "sizes", sizes), n = indexes_of(call, 1, call->n, starts);
    return oly_dynamic_slice(call->arg[0], n, starts, rank, sizes);
}
static oly_array dynamic_update_slice(const oracle_call *call)
{
    oly_operand starts[ORACLE_MOST_OPERANDS];
    int n = indexes_of(call, 2, call->n, starts);
    return oly_dynamic_update_slice(call->arg[0], call->arg[1], n, starts);
}

static oly_array segment_sum(const oracle_call *call)
{
    return oly_segment_sum(call->arg[0], call->arg[1], oracle_number(call, "n", 0));
}
static oly_array bincount(const oracle_call *call)
{
    return oly_bincount(call->arg[0], oracle_number(call, "n", 0));
}

const oracle_statement oracle_statements_index[] = {
    {"argmax", 1, .other = argmax},
    {"argmin", 1, .other = argmin},
    {"argsort", 1, .other = argsort},
    {"at_add", -1, .other = at_add},
    {"at_get", -1, .other = at_get},
    {"at_max", -1, .other = at_max},
    {"at_min", -1, .other = at_min},
    {"at_mul", -1, .other = at_mul},
    {"at_set", -1, .other = at_set},
    {"bincount", 1, .other = bincount},
    {"cumlogsumexp", 1, .other = cumlogsumexp},
    {"cummax", 1, .other = cummax},
    {"cummin", 1, .other = cummin},
    {"cumprod", 1, .other = cumprod},
    {"cumsum", 1, .other = cumsum},
    {"dynamic_slice", -1, .other = dynamic_slice},
    {"dynamic_update_slice", -1, .other = dynamic_update_slice},
    {"searchsorted", 2, .other = searchsorted},
    {"segment_sum", 2, .other = segment_sum},
    {"sort", 1, .other = sort},
    {"sort_kv", -1, .several = sort_kv},
    {"take", 2, .other = take},
    {"take_along_axis", 2, .other = take_along_axis},
    {"top_k", 1, .several = top_k},
    {NULL},
};
