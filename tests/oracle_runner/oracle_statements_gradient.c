/* SPDX-License-Identifier: BSD-3-Clause */
/* Statements of the oracle about derivatives. Read by oracle_statements.c. */
#include "oracle_statements.h"

/* `grad LOSS wrt=[a,b]`: the loss, then the values to differentiate with respect to. */
static void gradients(const oracle_call *call, oly_array *results)
{
    oly_array *wanted[ORACLE_MOST_RESULTS];
    for (int k = 0; k < ORACLE_MOST_RESULTS; k++)
        wanted[k] = &results[k];
    oly_gradients(call->arg[0], call->n - 1, call->arg + 1, call->n - 1, wanted);
}

static oly_array stop(const oracle_call *call)
{
    return oly_stop_gradient(call->arg[0]);
}

const oracle_statement oracle_statements_gradient[] = {
    {"grad", -1, .several = gradients},
    {"stop_gradient", 1, .other = stop},
    {NULL},
};
