/* SPDX-License-Identifier: BSD-3-Clause */
/* Pictures of shardings in text, as jax.debug.visualize_array_sharding draws them. Pure functions over boxes,
 * callable from runtime/array and above. */
#ifndef OLY_ARRAY_DRAW_H
#define OLY_ARRAY_DRAW_H
#include <olympus/base.h>
#include "core/text.h"

/* A box of a 1-D or 2-D array and its label ("CPU 0,4"). Entry 1 is not read for rank 1. */
typedef struct oly_draw_cell {
    int64_t start[2], extent[2];
    const char *label; /* borrowed */
} oly_draw_cell;

/* Appends the table; every line ends with a newline. Cells form a grid of the starts that occur and may be given in any
 * order; boxes without elements are skipped, and labels are never truncated. fails OLY_SHAPE unless rank is 1 or 2;
 * OLY_MEMORY */
oly_status oly_draw_cells(oly_text *text, int rank, const int64_t *shape, int n_cells, const oly_draw_cell *cells);

/* The same from devices: those that hold the same box share a cell, their ids ascending.
 *   platform         "CPU"
 *   starts, extents  n_devices x rank, row-major
 *   ids              n_devices */
oly_status oly_draw_sharding(oly_text *text, const char *platform, int rank, const int64_t *shape, int n_devices,
                             const int64_t *starts, const int64_t *extents, const int *ids);
#endif
