/* SPDX-License-Identifier: BSD-3-Clause */
/* Elements of any type as doubles, see check_element.h. */
#include "check_element.h"
#include "core/dtype_list.h"
#include "core/element.h"
#include "graph/type.h"
#include <string.h>

/* The function, not the macro that notes where it is called: for every element of every test that took most of the time. */
static int64_t size_of(oly_dtype dtype)
{
    return (int64_t)(oly_dtype_size)(dtype);
}

int element_parts(oly_dtype dtype)
{
    return oly_dtype_kind(dtype) == OLY_KIND_COMPLEX ? 2 : 1;
}

double element_part(oly_dtype dtype, const void *data, int64_t i, int part)
{
    oly_dtype real = oly_dtype_real(dtype);
    int64_t at = real == dtype ? i : 2 * i + part;
    return oly_real_at(real, (const char *)data + at * size_of(real));
}

void set_element_part(oly_dtype dtype, void *data, int64_t i, int part, double x)
{
    oly_dtype real = oly_dtype_real(dtype);
    int64_t at = real == dtype ? i : 2 * i + part, whole = x >= -0x1p63 && x < 0x1p63 ? (int64_t)x : 0;
#define SIGNED(a, number, name, s, T, ...)                                                                             \
    case OLY_##number:                                                                                                 \
        ((T *)data)[i] = (T)whole;                                                                                     \
        break;
#define UNSIGNED(a, number, name, s, T, ...)                                                                           \
    case OLY_##number: ((T *)data)[i] = sizeof(T) < 8 || x < 0x1p63 ? (T)whole : x < 0x1p64 ? (T)x : (T)-1; break;
    switch (dtype) {
    case OLY_BOOL:
        ((unsigned char *)data)[i] = x != 0;
        break;
        OLY_SIGNED_TYPES(SIGNED, )
        OLY_UNSIGNED_TYPES(UNSIGNED, )
    default: oly_set_real(real, (char *)data + at * size_of(real), x); break;
    }
}

bool element_is_unsigned(oly_dtype dtype)
{
    return oly_dtype_kind(dtype) == OLY_KIND_INTEGER && !oly_dtype_is_signed(dtype);
}

bool element_is_inexact(oly_dtype dtype)
{
    return oly_dtype_kind(dtype) >= OLY_KIND_FLOAT;
}

double element_epsilon(oly_dtype dtype)
{
    return element_is_inexact(dtype) ? oly_dtype_epsilon(dtype) : 0x1p-52;
}

double _Complex element_of(oly_dtype dtype, const void *data, int64_t i)
{
    return __builtin_complex(element_part(dtype, data, i, 0),
                             element_parts(dtype) > 1 ? element_part(dtype, data, i, 1) : 0.0);
}

void set_element(oly_dtype dtype, void *data, int64_t i, double _Complex x)
{
    set_element_part(dtype, data, i, 0, __real__ x);
    if (element_parts(dtype) > 1)
        set_element_part(dtype, data, i, 1, __imag__ x);
}
