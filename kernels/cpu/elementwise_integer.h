/* SPDX-License-Identifier: BSD-3-Clause */
/* Element types, and selection of formulas by type, for the files of bool and integer formulas. */
#ifndef OLY_ELEMENTWISE_INTEGER_H
#define OLY_ELEMENTWISE_INTEGER_H
#include "table.h"
#include <string.h>

#define BOOL_TYPES(X, ...)    OLY_BOOL_TYPES(ROW_TYPE, (X, __VA_ARGS__))
#define INTEGER_TYPES(X, ...) OLY_INTEGER_TYPES(ROW_TYPE, (X, __VA_ARGS__))
#define FLOAT_TYPES(X, ...)
#define COMPLEX_TYPES(X, ...)
#define PART(a, number, name, s, T, ...) typedef T part_##s;
OLY_BOOL_TYPES(PART, )
OLY_INTEGER_TYPES(PART, )

#define BY_ONE(f, number, name, s, T, ...) , T : f##_##s
#define BY_NUMBER(f, x)                    _Generic((x)OLY_INTEGER_TYPES(BY_ONE, f))
#define BY_TYPE(f, x)                      _Generic((x)OLY_BOOL_TYPES(BY_ONE, f) OLY_INTEGER_TYPES(BY_ONE, f))

#define BELOW_ZERO(x) ((x) < 0)
#define NEVER(x)      0

/* By way of its byte: GCC 12 does not vectorise a loop that inverts a bool. */
static inline uint8_t inverted(bool x)
{
    uint8_t byte;
    memcpy(&byte, &x, sizeof byte);
    return byte ^ 1;
}
#endif
