/* SPDX-License-Identifier: BSD-3-Clause */
/* C numbers as inputs of plans. See number_operands.h. */
#include "array/number_operands.h"
#include "array/origin.h"
#include "array/place.h"
#include "graph/build.h"
#include <string.h>

void oly_number_params(const oly_operand *x, oly_params *params)
{
    memset(params, 0, sizeof *params);
    params->weak = x->kind != 'b';
    params->dtype = x->kind == 'b'   ? OLY_BOOL
                    : x->kind == 'i' ? oly_default_int()
                    : x->kind == 'f' ? oly_default_float()
                                     : oly_default_complex();
    params->imaginary = x->kind == 'c' ? x->imaginary : 0;
    if (x->kind == 'f' || x->kind == 'c')
        params->value.f = x->floating;
    else
        params->value.i = x->integer;
}

oly_status oly_number_scalar(const oly_operand *x, oly_dtype dtype, oly_array *scalar)
{
    oly_params p;
    char element[OLY_MOST_ELEMENT_BYTES];
    OLY_TRY(oly_type_check(&(oly_type){.dtype = dtype}));
    oly_number_params(x, &p);
    oly_convert_number(&p, dtype, false);
    oly_number_store(&p, element);
    return oly_array_of_data(element, &(oly_type){.dtype = dtype}, false, scalar);
}

static bool is_same(const oly_operand *x, const oly_operand *y)
{
    return x->kind == y->kind && x->integer == y->integer &&
           memcmp(&x->floating, &y->floating, sizeof x->floating) == 0 &&
           memcmp(&x->imaginary, &y->imaginary, sizeof x->imaginary) == 0;
}

static oly_status renew(oly_number_operand *x, const oly_operand *given)
{
    oly_params p;
    char element[OLY_MOST_ELEMENT_BYTES];
    oly_number_params(given, &p);
    for (int k = 0; k < x->conversions.n; k++)
        oly_convert_number(&p, x->conversions.to[k].dtype, x->conversions.to[k].weak);
    oly_number_store(&p, element);
    x->given.kind = 0; /* until it is renewed */
    OLY_TRY(x->array ? oly_array_rewrite(x->array, element)
                     : oly_array_of_data(element, &(oly_type){.dtype = p.dtype, .weak = p.weak}, true, &x->array));
    x->given = *given;
    return OLY_OK;
}

typedef struct listing {
    const oly_operand *in;
    oly_number_operands *list;
} listing;

static oly_status list_number(void *context, const oly_number *number)
{
    const listing *l = context;
    oly_number_operand *x = &l->list->each[l->list->n];
    if (l->list->n == OLY_MOST_NUMBERS)
        return oly_fail(OLY_INVALID, "an operation takes at most %d numbers", OLY_MOST_NUMBERS);
    *x = (oly_number_operand){.operand = number->operand, .conversions = number->conversions};
    l->list->n++;
    return renew(x, &l->in[number->operand]);
}

oly_status oly_number_operands_list(oly_graph *g, const oly_operand *in, oly_number_operands *list, uint64_t *fixed)
{
    list->n = 0;
    oly_status st = oly_numbers_to_inputs(g, fixed, list_number, &(listing){in, list});
    if (st != OLY_OK) {
        oly_number_operands_release(list->n, list->each);
        list->n = 0;
    }
    return st;
}

oly_status oly_number_operands_renew(int n, oly_number_operand *list, const oly_operand *in, oly_array *arrays)
{
    for (int k = 0; k < n; k++) {
        oly_number_operand *x = &list[k];
        if (!is_same(&x->given, &in[x->operand]))
            OLY_TRY(renew(x, &in[x->operand]));
        arrays[k] = x->array;
    }
    return OLY_OK;
}

void oly_number_operands_release(int n, oly_number_operand *list)
{
    for (int k = 0; k < n; k++)
        oly_array_release(list[k].array);
}
