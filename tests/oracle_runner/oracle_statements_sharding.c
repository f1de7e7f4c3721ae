/* SPDX-License-Identifier: BSD-3-Clause */
/* Statements of the oracle about Explicit axes. */
#include "oracle_statements.h"

static oly_array reshard(const oracle_call *call)
{
    return oly_reshard(call->arg[0], oracle_sharding(call->mesh, oracle_attribute(call, "spec")));
}

const oracle_statement oracle_statements_sharding[] = {
    {"reshard", 1, .other = reshard},
    {NULL},
};
