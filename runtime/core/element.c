/* SPDX-License-Identifier: BSD-3-Clause */
/* Elements as numbers. See element.h. */
#include "core/element.h"
#include "core/dtype_list.h"
#include <string.h>

/* One element each: of a type that C has, of a narrow one. */
#define PLAIN(a, number, name, s, T, ...)                                                                              \
    static double read_##s(const void *at)                                                                             \
    {                                                                                                                  \
        T x;                                                                                                           \
        memcpy(&x, at, sizeof x);                                                                                      \
        return (double)x;                                                                                              \
    }
#define WIDE(a, number, name, s, T, ...)                                                                               \
    PLAIN(a, number, name, s, T, )                                                                                     \
    static void write_##s(void *at, double value)                                                                      \
    {                                                                                                                  \
        const T x = (T)value;                                                                                          \
        memcpy(at, &x, sizeof x);                                                                                      \
    }
#define NARROW(a, number, name, s, T, of, to, ...)                                                                     \
    static double read_##s(const void *at)                                                                             \
    {                                                                                                                  \
        T x;                                                                                                           \
        memcpy(&x, at, sizeof x);                                                                                      \
        return (double)of(x);                                                                                          \
    }                                                                                                                  \
    static void write_##s(void *at, double value)                                                                      \
    {                                                                                                                  \
        const T x = to(oly_float_rounded_to_odd(value));                                                               \
        memcpy(at, &x, sizeof x);                                                                                      \
    }
OLY_INTEGER_TYPES(PLAIN, )
OLY_WIDE_TYPES(WIDE, )
OLY_NARROW_TYPES(NARROW, )

static double read_b8(const void *at)
{
    return *(const uint8_t *)at;
}

double oly_real_at(oly_dtype dtype, const void *at)
{
    static double (*const reads[OLY_N_DTYPES])(const void *) = {OLY_BOOL_TYPES(OLY_CELL, read)
                                                                    OLY_REAL_TYPES(OLY_CELL, read)};
    return reads[dtype] ? reads[dtype](at) : 0;
}

void oly_set_real(oly_dtype dtype, void *at, double value)
{
    static void (*const writes[OLY_N_DTYPES])(void *, double) = {OLY_NARROW_TYPES(OLY_CELL, write)
                                                                     OLY_WIDE_TYPES(OLY_CELL, write)};
    if (writes[dtype])
        writes[dtype](at, value);
}

double oly_real_rounded(oly_dtype dtype, double value)
{
    double element = 0;
    oly_set_real(dtype, &element, value);
    return oly_real_at(dtype, &element);
}
