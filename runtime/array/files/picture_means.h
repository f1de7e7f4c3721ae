/* SPDX-License-Identifier: BSD-3-Clause */
/* The blocks of a picture of a sharded matrix: each device averages what it holds, and only the blocks travel. Called by frame_write.c. */
#ifndef OLY_ARRAY_FILES_PICTURE_MEANS_H
#define OLY_ARRAY_FILES_PICTURE_MEANS_H
#include "array/array.h"
#include "file/frame.h"

typedef struct oly_picture_means {
    double *mean;     /* owned; [rows][columns] on the process that draws, elsewhere NULL */
    double low, high; /* there: of all finite elements; low > high if there is none */
} oly_picture_means;

/* Means of the blocks of f, in double, added in the order of the devices in the mesh: the same on all layouts. A block with a NaN is
 * NaN. Memory: a few times rows * columns numbers, whatever the size of the matrix.
 *   x         a matrix of real numbers whose value can be read
 *   agreeing  the mesh of all processes that call this
 *   root      the process that draws, which owns a device of x's mesh */
oly_status oly_picture_means_of(oly_array x, const oly_frame *f, oly_mesh agreeing, int root, oly_picture_means *means);
#endif
