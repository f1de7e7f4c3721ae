/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks of arguments. See arguments.h. */
#include "array/arguments.h"

oly_status oly_refuse_operand(void)
{
    return oly_raise(oly_fail(OLY_INVALID, "an operand is neither an array nor a number; make it with OLY_ARG"));
}

static oly_status need_list(int n, const void *list, const char *what)
{
    if (n < 0)
        return oly_raise(oly_fail(OLY_INVALID, "%d %s: their number cannot be negative", n, what));
    if (n > 0 && !list)
        return oly_raise(oly_fail(OLY_INVALID, "the list of %d %s is NULL", n, what));
    return OLY_OK;
}

oly_status oly_check_arrays(int n, const oly_array *list)
{
    OLY_TRY(need_list(n, list, "arrays"));
    for (int k = 0; k < n; k++)
        OLY_TRY(oly_need_array(list[k]));
    return OLY_OK;
}

oly_status oly_need_operands(int n, const oly_operand *list)
{
    OLY_TRY(need_list(n, list, "operands"));
    for (int k = 0; k < n; k++)
        OLY_TRY(oly_need_operand(&list[k]));
    return OLY_OK;
}

oly_status oly_check_places(int n, oly_array *const *list)
{
    OLY_TRY(need_list(n, list, "outputs"));
    for (int k = 0; k < n; k++)
        if (!list[k])
            return oly_raise(oly_fail(OLY_INVALID, "the address of output %d is NULL", k));
    return OLY_OK;
}

oly_status oly_clear_after(oly_status status, int n, oly_array *const *places)
{
    for (int k = 0; status != OLY_OK && k < n; k++)
        *places[k] = NULL;
    return status;
}

oly_status oly_clear_list_after(oly_status status, int n, oly_array *list)
{
    for (int k = 0; status != OLY_OK && list && k < n; k++)
        list[k] = NULL;
    return status;
}

oly_status oly_need_room(int n, oly_array *results)
{
    OLY_TRY(need_list(n, results, "results"));
    for (int k = 0; k < n; k++)
        results[k] = NULL;
    return OLY_OK;
}

oly_status oly_need_numbers(int n, const void *list)
{
    return n > 0 ? need_list(n, list, "numbers") : OLY_OK;
}

oly_status oly_need_shardings(int n, const oly_sharding *list)
{
    for (int k = 0; list && k < n; k++)
        OLY_TRY(oly_need_or_null(list[k], OLY_HANDLE_SHARDING));
    return OLY_OK;
}
