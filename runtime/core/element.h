/* SPDX-License-Identifier: BSD-3-Clause */
/* One element of a real type as a number. What an element type is says dtype_list.h. Callable by all but the kernels, which have
 * loops of their own. */
#ifndef OLY_CORE_ELEMENT_H
#define OLY_CORE_ELEMENT_H
#include <olympus/array.h>

/* The element at `at`, which need not be aligned. Integers of 64 bits are rounded; 0 for complex types. */
double oly_real_at(oly_dtype dtype, const void *at);
/* Writes `value`, rounded once, as an element of a floating type; other types: nothing. */
void oly_set_real(oly_dtype dtype, void *at, double value);
/* What oly_real_at reads after oly_set_real. */
double oly_real_rounded(oly_dtype dtype, double value);
#endif
