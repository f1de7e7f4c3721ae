/* SPDX-License-Identifier: BSD-3-Clause */
/* Elements of host memory as doubles, and as bits. Private to runtime/verify. */
#ifndef OLY_VERIFY_ELEMENT_H
#define OLY_VERIFY_ELEMENT_H
#include "graph/type.h"

/* Parts of an element: 2 for complex types, else 1. */
int oly_element_parts(oly_dtype dtype);
double oly_element_part(oly_dtype dtype, const void *element, int part);
/* Of a floating or complex type; rounds. */
void oly_element_set_part(oly_dtype dtype, void *element, int part, double value);
/* The same bits, or both NaN (in each part). */
bool oly_element_same(oly_dtype dtype, const void *a, const void *b);
/* Largest difference of the parts: 0 for equal infinities and for two NaNs, infinite where only one is not a number. */
double oly_element_distance(oly_dtype dtype, const void *a, const void *b);
/* The distance from 1 to the next number. */
double oly_element_epsilon(oly_dtype dtype);
#endif
