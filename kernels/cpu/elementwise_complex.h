/* SPDX-License-Identifier: BSD-3-Clause */
/* Element types, and selection of formulas by type, for the files of complex formulas. */
#ifndef OLY_ELEMENTWISE_COMPLEX_H
#define OLY_ELEMENTWISE_COMPLEX_H
#include "table.h"
#include <complex.h>
#include <math.h>

#define BOOL_TYPES(X, ...)
#define INTEGER_TYPES(X, ...)
#define FLOAT_TYPES(X, ...)
#define COMPLEX_TYPES(X, ...) OLY_COMPLEX_TYPES(ROW_TYPE, (X, __VA_ARGS__))
typedef float part_c64;
typedef double part_c128;

#define BY_COMPLEX(name, x) _Generic((x), float _Complex : name##_c64, double _Complex : name##_c128)
#define IN_LIBM(name, x)    _Generic((x), float _Complex : name##f, double _Complex : name)
#endif
