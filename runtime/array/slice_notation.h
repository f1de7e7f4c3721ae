/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading slices: Python's notation as text or numbers, and lists of axes. Called by the public operations. */
#ifndef OLY_ARRAY_SLICE_NOTATION_H
#define OLY_ARRAY_SLICE_NOTATION_H
#include "graph/compose/compose.h"

/* "1:-1, ::2, 3, ..." of an array of this shape: fills rank, start, shape (extents) and step (1 or more), and marks in
 * axes[d] which dimensions an index drops and which are reversed (OLY_PART_...). fails OLY_PARSE (with the column),
 * OLY_SHAPE (too many dimensions), OLY_INVALID (index out of range, step 0) */
oly_status oly_slice_notation(const char *text, int rank, const int64_t *shape, oly_params *part);
/* The same from numbers; limit NULL: to the end, step NULL: 1, start NULL: from the beginning (from the end for
 * negative steps). fails OLY_INVALID (step 0). */
oly_status oly_slice_numbers(int rank, const int64_t *shape, const int64_t *start, const int64_t *limit,
                             const int64_t *step, oly_params *part);
/* "0, -1": fills axes and n_axes. fails OLY_PARSE (with the column), OLY_INVALID (more than OLY_MAX_RANK). */
oly_status oly_axes_notation(const char *text, oly_params *params);
#endif
