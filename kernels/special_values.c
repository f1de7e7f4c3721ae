/* SPDX-License-Identifier: BSD-3-Clause */
/* See special_values.h. */
#include "special_values.h"
#include "core/dtype_list.h"
#include "local_table.h"
#include <math.h>
#include <string.h>

void oly_outside_value(oly_dtype dtype, void *value)
{
#define SIGNED_OUTSIDE(a, number, name, s, T, U, S, W, least, most)   static const T outside_##s = least;
#define UNSIGNED_OUTSIDE(a, number, name, s, T, U, S, W, least, most) static const T outside_##s = most;
#define NARROW_OUTSIDE(a, number, name, s, T, of, to, top, ...)       static const T outside_##s = OLY_NAN_BITS(top);
#define WIDE_OUTSIDE(a, number, name, s, T, ...)                      static const T outside_##s[2] = {NAN, 0};
#define OUTSIDE(a, number, name, s, ...)                              [OLY_##number] = &outside_##s,
#define OUTSIDE_PARTS(a, number, name, s, T, real, r, ...)            [OLY_##number] = outside_##r,
    static const bool outside_b8 = true;
    OLY_SIGNED_TYPES(SIGNED_OUTSIDE, )
    OLY_UNSIGNED_TYPES(UNSIGNED_OUTSIDE, )
    OLY_NARROW_TYPES(NARROW_OUTSIDE, )
    OLY_WIDE_TYPES(WIDE_OUTSIDE, )
    static const void *const values[OLY_N_DTYPES] = {OLY_BOOL_TYPES(OUTSIDE, ) OLY_REAL_TYPES(OUTSIDE, )
                                                         OLY_COMPLEX_TYPES(OUTSIDE_PARTS, )};
    memcpy(value, values[dtype], oly_element_bytes[dtype]);
}

void oly_unseen_value(oly_dtype dtype, void *value)
{
#define NARROW_UNSEEN(a, number, name, s, T, ...)         static const T unseen_##s = (T)((T)-1 ^ (T)-1 >> 1);
#define WIDE_UNSEEN(a, number, name, s, T, ...)           static const T unseen_##s[2] = {-(T)0, -(T)0};
#define UNSEEN(a, number, name, s, ...)                   [OLY_##number] = &unseen_##s,
#define UNSEEN_PARTS(a, number, name, s, T, real, r, ...) [OLY_##number] = unseen_##r,
    OLY_NARROW_TYPES(NARROW_UNSEEN, )
    OLY_WIDE_TYPES(WIDE_UNSEEN, )
    static const void *const values[OLY_N_DTYPES] = {OLY_NARROW_TYPES(UNSEEN, ) OLY_WIDE_TYPES(UNSEEN, )
                                                         OLY_COMPLEX_TYPES(UNSEEN_PARTS, )};
    memset(value, 0, oly_element_bytes[dtype]);
    if (values[dtype])
        memcpy(value, values[dtype], oly_element_bytes[dtype]);
}

void oly_last_value(oly_dtype dtype, void *value)
{
#define LAST_INTEGER(a, number, name, s, T, U, S, W, least, most) static const T last_##s = most;
#define LAST_NARROW(a, number, name, s, T, of, to, top, ...)      static const T last_##s = OLY_NAN_BITS(top);
#define LAST_WIDE(a, number, name, s, T, ...)                     static const T last_##s[2] = {NAN, NAN};
#define LAST_PLACE(a, number, name, s, ...)                       [OLY_##number] = &last_##s,
#define LAST_PARTS(a, number, name, s, T, real, r, ...)           [OLY_##number] = last_##r,
    static const bool last_b8 = true;
    OLY_INTEGER_TYPES(LAST_INTEGER, )
    OLY_NARROW_TYPES(LAST_NARROW, )
    OLY_WIDE_TYPES(LAST_WIDE, )
    static const void *const values[OLY_N_DTYPES] = {OLY_BOOL_TYPES(LAST_PLACE, ) OLY_REAL_TYPES(LAST_PLACE, )
                                                         OLY_COMPLEX_TYPES(LAST_PARTS, )};
    memcpy(value, values[dtype], oly_element_bytes[dtype]);
}
