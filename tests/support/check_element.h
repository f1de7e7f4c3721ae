/* SPDX-License-Identifier: BSD-3-Clause */
/* Elements of any type as pairs of doubles: for test programs that cover all types. */
#ifndef CHECK_ELEMENT_H
#define CHECK_ELEMENT_H
#include <olympus/array.h>

int element_parts(oly_dtype dtype); /* 2 for complex types; part 1 is the imaginary one */
double element_part(oly_dtype dtype, const void *data, int64_t i, int part);
/* Integers wrap, floating-point numbers are rounded; a bool is x != 0. */
void set_element_part(oly_dtype dtype, void *data, int64_t i, int part, double x);
bool element_is_unsigned(oly_dtype dtype);
bool element_is_inexact(oly_dtype dtype); /* floating or complex */
double element_epsilon(oly_dtype dtype);  /* from 1 to the next number */

/* Both parts; setting a real element drops the imaginary one. */
double _Complex element_of(oly_dtype dtype, const void *data, int64_t i);
void set_element(oly_dtype dtype, void *data, int64_t i, double _Complex x);
#endif
