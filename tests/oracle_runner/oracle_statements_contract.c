/* SPDX-License-Identifier: BSD-3-Clause */
/* Statements that are products. See oracle_statements.h. */
#include "oracle_statements.h"
#include <stdlib.h>

static oly_product_options options(const oracle_call *call)
{
    const char *out = oracle_attribute(call, "out"), *preferred = oracle_attribute(call, "pref");
    return (oly_product_options){.out_sharding = out ? oracle_sharding(call->mesh, out) : NULL,
                                 .preferred_element_type =
                                     preferred ? (oly_dtype)check_oracle_dtype(preferred) : OLY_BOOL};
}

static oly_array dot_general(const oracle_call *call)
{
    int dims[4][OLY_MAX_RANK], n = oracle_small_numbers(call, "lc", dims[0]),
                               n_batch = oracle_small_numbers(call, "lb", dims[2]);
    oracle_small_numbers(call, "rc", dims[1]);
    oracle_small_numbers(call, "rb", dims[3]);
    oly_product_options o = options(call);
    return oly_dot_general(call->arg[0], call->arg[1], .n_contracting = n, .a_contracting = dims[0],
                           .b_contracting = dims[1], .n_batch = n_batch < 0 ? 0 : n_batch, .a_batch = dims[2],
                           .b_batch = dims[3], .preferred_element_type = o.preferred_element_type,
                           .out_sharding = o.out_sharding);
}

static oly_array matmul(const oracle_call *call)
{
    return oly_matmul_with(oly_operand_array(call->arg[0]), oly_operand_array(call->arg[1]), options(call));
}

static oly_array outer(const oracle_call *call)
{
    return oly_outer_with(oly_operand_array(call->arg[0]), oly_operand_array(call->arg[1]), options(call));
}

static oly_array einsum(const oracle_call *call)
{
    return oly_einsum_with(oracle_attribute(call, "eq"), call->n, call->arg, options(call));
}

/* Numbers of a list, nested or not. */
static int flat(const oracle_call *call, const char *key, int64_t *list)
{
    const char *text = oracle_attribute(call, key);
    int n = 0;
    for (char *end; text && *text && n < OLY_MAX_RANK; text = end) {
        long long number = strtoll(text, &end, 10);
        if (end == text)
            end++;
        else
            list[n++] = number;
    }
    return n;
}

static oly_array conv(const oracle_call *call)
{
    int64_t strides[OLY_MAX_RANK], padding[OLY_MAX_RANK], lhs[OLY_MAX_RANK], rhs[OLY_MAX_RANK];
    oly_product_options o = options(call);
    return oly_conv(call->arg[0], call->arg[1], .n_list = flat(call, "strides", strides), .stride_list = strides,
                    .padding_list = flat(call, "padding", padding) ? padding : NULL,
                    .lhs_dilation_list = flat(call, "lhs_dilation", lhs) ? lhs : NULL,
                    .rhs_dilation_list = flat(call, "rhs_dilation", rhs) ? rhs : NULL,
                    .feature_group_count = oracle_number(call, "groups", 1),
                    .preferred_element_type = o.preferred_element_type, .out_sharding = o.out_sharding);
}

static oly_array convolve(const oracle_call *call)
{
    return oly_convolve_with(call->arg[0], call->arg[1], oracle_attribute(call, "mode"), options(call));
}

const oracle_statement oracle_statements_contract[] = {
    {"conv", 2, .other = conv},
    {"convolve", 2, .other = convolve},
    {"dot_general", 2, .other = dot_general},
    {"einsum", -1, .other = einsum},
    {"matmul", 2, .other = matmul},
    {"outer", 2, .other = outer},
    {NULL},
};
