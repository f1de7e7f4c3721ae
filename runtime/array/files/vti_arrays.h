/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays as the fields of one grid: what oly_save_vti and others describe to viewers. Called by runtime/array/files. */
#ifndef OLY_ARRAY_FILES_VTI_ARRAYS_H
#define OLY_ARRAY_FILES_VTI_ARRAYS_H
#include "array/array.h"
#include "file/vti.h"

typedef struct oly_grid {
    oly_vti vti; /* its fields are owned */
    int n;
    const oly_array *arrays; /* borrowed */
    oly_mesh mesh;           /* whose processes make the call; NULL: all */
} oly_grid;

/* The grid that all arrays have: each has its dimensions, or one more at the end for the components of vectors.
 *   names       of the arrays, with commas
 *   dimensions  of the grid; 0: as the array with the fewest
 *   origin, spacing   [dimensions], in the array's order; NULL: 0 and 1
 * After a failure, too, mesh is set. fails OLY_INVALID, OLY_SHAPE, OLY_DTYPE, OLY_MEMORY, and as oly_parts_check. */
oly_status oly_grid_of(const char *names, int n, const oly_array *arrays, int dimensions, const double *origin,
                       const double *spacing, oly_grid *g);
void oly_grid_end(oly_grid *g);
/* Hash of all that the processes must call with alike. */
uint64_t oly_grid_hash(const oly_grid *g);
/* The next name of a list with commas, without spaces around it, of at most OLY_VTI_NAME bytes; *at: behind its comma. fails OLY_INVALID */
oly_status oly_next_name(const char **at, char *name);
#endif
