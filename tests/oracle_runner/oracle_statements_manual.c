/* SPDX-License-Identifier: BSD-3-Clause */
/* Statements of bodies of shard_map: collectives. */
#include "oracle_statements.h"
#include <stdlib.h>
#include <string.h>

/* "x,y" of axes=[x,y], in a static buffer. */
static const char *axes_of(const oracle_call *call)
{
    static char text[256];
    const char *list = oracle_attribute(call, "axes");
    size_t n = list ? strlen(list) : 0;
    text[0] = 0;
    if (n >= 2 && n < sizeof text)
        memcpy(text, list + 1, n - 2), text[n - 2] = 0;
    return text;
}

static oly_array psum(const oracle_call *call)
{
    return oly_psum(call->arg[0], axes_of(call));
}
static oly_array pmean(const oracle_call *call)
{
    return oly_pmean(call->arg[0], axes_of(call));
}
static oly_array pmax(const oracle_call *call)
{
    return oly_pmax(call->arg[0], axes_of(call));
}
static oly_array pmin(const oracle_call *call)
{
    return oly_pmin(call->arg[0], axes_of(call));
}
static oly_array pvary(const oracle_call *call)
{
    return oly_pvary(call->arg[0], axes_of(call));
}
static oly_array axis_index(const oracle_call *call)
{
    return oly_axis_index(axes_of(call));
}

static oly_array all_gather(const oracle_call *call)
{
    return oly_all_gather(call->arg[0], axes_of(call), .axis = oracle_number(call, "axis", 0),
                          .tiled = oracle_number(call, "tiled", 0) != 0);
}
static oly_array all_gather_invariant(const oracle_call *call)
{
    return oly_all_gather(call->arg[0], axes_of(call), .axis = oracle_number(call, "axis", 0),
                          .tiled = oracle_number(call, "tiled", 0) != 0, .invariant = true);
}
static oly_array psum_scatter(const oracle_call *call)
{
    return oly_psum_scatter(call->arg[0], axes_of(call), .axis = oracle_number(call, "axis", 0),
                            .tiled = oracle_number(call, "tiled", 0) != 0);
}
static oly_array all_to_all(const oracle_call *call)
{
    return oly_all_to_all(call->arg[0], axes_of(call), oracle_number(call, "split", 0),
                          oracle_number(call, "concat", 0), oracle_number(call, "tiled", 0) != 0);
}

/* perm=[[0,1],[1,2]]: the numbers in pairs. */
static oly_array ppermute(const oracle_call *call)
{
    int pairs[256][2], n = 0;
    for (const char *at = oracle_attribute(call, "perm"); at && *at;) {
        char *end;
        at += strcspn(at, "-0123456789");
        long number = strtol(at, &end, 10);
        if (end == at || n == 512)
            break;
        pairs[n / 2][n % 2] = (int)number;
        n++;
        at = end;
    }
    return oly_ppermute(call->arg[0], axes_of(call), n / 2, (const int(*)[2])pairs);
}

const oracle_statement oracle_statements_manual[] = {
    {"all_gather", 1, .other = all_gather},
    {"all_gather_invariant", 1, .other = all_gather_invariant},
    {"all_to_all", 1, .other = all_to_all},
    {"axis_index", 0, .other = axis_index},
    {"pmax", 1, .other = pmax},
    {"pmean", 1, .other = pmean},
    {"pmin", 1, .other = pmin},
    {"ppermute", 1, .other = ppermute},
    {"psum", 1, .other = psum},
    {"psum_scatter", 1, .other = psum_scatter},
    {"pvary", 1, .other = pvary},
    {NULL},
};
