/* SPDX-License-Identifier: BSD-3-Clause */
/* The first lines of public functions that take arrays: they check the tags of their arguments, raise an error and
 * return it (OLY_OK: none). Deleted arrays pass: their type may be queried, and whoever reads them says more
 * (oly_array_readable). */
#ifndef OLY_ARRAY_ARGUMENTS_H
#define OLY_ARRAY_ARGUMENTS_H
#include "array/array.h"
#include "core/error.h"
#include <olympus/ops.h>

static inline oly_status oly_need_array(oly_array x)
{
    return __builtin_expect(oly_lives(x, OLY_HANDLE_ARRAY), 1) || oly_is_dead(x, OLY_HANDLE_ARRAY)
               ? OLY_OK
               : oly_refuse(x, OLY_HANDLE_ARRAY);
}
static inline oly_status oly_need_array_or_null(oly_array x)
{
    return x ? oly_need_array(x) : OLY_OK;
}
oly_status oly_refuse_operand(void);
static inline oly_status oly_need_operand(const oly_operand *x)
{
    if (x->kind == 'a')
        return oly_need_array(x->array);
    return x->kind == 'b' || x->kind == 'i' || x->kind == 'f' || x->kind == 'c' ? OLY_OK : oly_refuse_operand();
}
/* Lists of n: n itself, the list pointer, and every entry. */
oly_status oly_check_arrays(int n, const oly_array *list);
static inline oly_status oly_need_arrays(int n, const oly_array *list)
{
    int good = 0;
    while (list && good < n && oly_lives(list[good], OLY_HANDLE_ARRAY))
        good++;
    return __builtin_expect(good == n, 1) ? OLY_OK : oly_check_arrays(n, list);
}
oly_status oly_need_operands(int n, const oly_operand *list);
/* A list of n numbers; the caller checks the upper limit of n. */
oly_status oly_need_numbers(int n, const void *list);
/* Each must have a mesh or be NULL. */
oly_status oly_need_shardings(int n, const oly_sharding *list);
/* Addresses of variables; their contents are not read. */
oly_status oly_check_places(int n, oly_array *const *list);
static inline oly_status oly_need_places(int n, oly_array *const *list)
{
    int good = 0;
    while (list && good < n && list[good])
        good++;
    return __builtin_expect(good == n, 1) ? OLY_OK : oly_check_places(n, list);
}
/* After an error sets the variables to NULL. Returns the status. */
oly_status oly_clear_after(oly_status status, int n, oly_array *const *places);
/* The same for a list; n is not read where the list is NULL. */
oly_status oly_clear_list_after(oly_status status, int n, oly_array *list);
/* A list for n results, which are set to NULL. */
oly_status oly_need_room(int n, oly_array *results);
#endif
