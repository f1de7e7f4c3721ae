/* SPDX-License-Identifier: BSD-3-Clause */
/* The names of optimisations, and which of them are off. See optimisation.h. */
#include "core/optimisation.h"
#include "core/error.h"
#include "core/text.h"
#include <string.h>

oly_optimisations oly_disabled_by_option;
_Thread_local oly_optimisations oly_disabled_here;

static const struct row {
    const char *name, *text;
} rows[] = {
#define OLY_OPTIMISATION(id, name, what, where) {name, what},
#include "core/optimisation.def"
#undef OLY_OPTIMISATION
};

const char *oly_optimisation_name(oly_optimisation x)
{
    return rows[x].name;
}

const char *oly_optimisation_text(oly_optimisation x)
{
    return rows[x].text;
}

oly_optimisations oly_disable(oly_optimisations some)
{
    oly_optimisations before = oly_disabled_here;
    oly_disabled_here = some;
    return before;
}

static oly_status unknown(const char *name, size_t length)
{
    oly_text names = {0};
    for (int k = 0; k < OLY_N_OPTIMISATIONS; k++)
        oly_text_add(&names, "%s%s", k ? ", " : "", rows[k].name);
    oly_status st = oly_fail(
        OLY_INVALID, "OLYMPUS_DISABLE: there is no optimisation \"%.*s\"; they are, separated by commas: all, %s",
        (int)length, name, oly_text_chars(&names));
    oly_text_free(&names);
    return st;
}

static oly_status find(const char *name, size_t length, oly_optimisations *some)
{
    if (length == 3 && memcmp(name, "all", 3) == 0) {
        *some |= OLY_ALL_OPTIMISATIONS;
        return OLY_OK;
    }
    for (int k = 0; k < OLY_N_OPTIMISATIONS; k++)
        if (strlen(rows[k].name) == length && memcmp(rows[k].name, name, length) == 0) {
            *some |= (oly_optimisations)1 << k;
            return OLY_OK;
        }
    return unknown(name, length);
}

oly_status oly_optimisations_parse(const char *list, oly_optimisations *some)
{
    *some = 0;
    for (const char *at = list + strspn(list, " ,"); *at; at += strspn(at, " ,")) {
        size_t length = strcspn(at, " ,");
        OLY_TRY(find(at, length, some));
        at += length;
    }
    return OLY_OK;
}
