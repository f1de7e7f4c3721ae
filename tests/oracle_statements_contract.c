/* Statements that are products. See oracle_statements.h. */
#include "oracle_statements.h"

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

const oracle_statement oracle_statements_contract[] = {
    {"dot_general", 2, .other = dot_general},
    {"einsum", -1, .other = einsum},
    {"matmul", 2, .other = matmul},
    {"outer", 2, .other = outer},
    {NULL},
};
