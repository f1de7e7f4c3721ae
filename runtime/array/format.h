/* SPDX-License-Identifier: BSD-3-Clause */
/* The text of values: NumPy 2's str(), JAX's repr(), and numbers inside sentences. Pure functions over host memory,
 * callable from runtime/array and above. Of a summarised array (more than 1000 elements) only the printed elements are
 * read. */
#ifndef OLY_ARRAY_FORMAT_H
#define OLY_ARRAY_FORMAT_H
#include <olympus/array.h>
#include "core/text.h"

/* Appends the array as NumPy's str() prints it: lines of at most 75 columns, no newline at the end.
 *   shape   rank extents; NULL allowed for rank 0
 *   data    row-major elements of dtype; may be NULL when there are none
 *   fails   OLY_INVALID (rank, extent or dtype out of range), OLY_MEMORY */
oly_status oly_format_str(oly_text *text, oly_dtype dtype, int rank, const int64_t *shape, const void *data);

/* The same as JAX's repr(): "Array([0, 1], dtype=int32)". */
oly_status oly_format_repr(oly_text *text, oly_dtype dtype, bool weak, int rank, const int64_t *shape,
                           const void *data);

/* Appends one element as the shortest text of its value as a double ("-0.12398731708526611", as Python's
 * format() of a rank-0 array); integers as integers, booleans as True and False. */
oly_status oly_format_scalar(oly_text *text, oly_dtype dtype, const void *element);
#endif
