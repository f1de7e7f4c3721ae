/* SPDX-License-Identifier: BSD-3-Clause */
/* Pictures of matrices as PNG files. A pure function over host memory, callable from runtime/array and above. */
#ifndef OLY_ARRAY_PNG_H
#define OLY_ARRAY_PNG_H
#include <olympus/base.h>

/* Largest side of a picture, and the side to which small matrices are enlarged (by a whole factor), in pixels. */
#define OLY_PNG_LARGEST  1024
#define OLY_PNG_ENLARGED 256

/* Writes a matrix as a picture, row 0 on top. Colours go from black (`low` and below) over violet and orange to pale
 * yellow (`high` and above), ever brighter; NaN is grey. Large matrices are averaged down, small ones enlarged; elements
 * stay square, unless a side would get shorter than a pixel. The file is written beside its path (PATH.tmp) and renamed,
 * so that it appears whole or not at all.
 *   values  height x width, row-major
 *   fails   OLY_SHAPE without pixels, OLY_INVALID unless low < high and both are finite, OLY_IO (path and reason),
 *           OLY_MEMORY */
oly_status oly_png_write(const char *path, int64_t height, int64_t width, const float *values, double low, double high);
#endif
