/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of other programs: pictures (PNG), images of VTK and ParaView. docs/formats.md is the guide.
 * Included by <olympus.h>; programs include that one. */
#ifndef OLYMPUS_FORMATS_H
#define OLYMPUS_FORMATS_H

#include <olympus/array.h>

#ifdef __cplusplus
extern "C" {
#endif

/* -- series ---------------------------------------------------------------------------------------------------------
 * A path may have one place for the number of the file in a series, %d, %5d or %05d, which .number takes: "frame-%05d.png". A % of
 * the name itself is written %%. */

/* -- pictures ------------------------------------------------------------------------------------------------------- */
typedef struct oly_frame_options {
    char first_;         /* not used: lets the macro begin the list */
    int64_t number;      /* in a series; 0 or more */
    const char *colours; /* "magma" (the default), "viridis", "coolwarm" (for values around a middle) or "grey" */
    double low,
        high; /* the values of the first and the last colour; both 0: the smallest and the largest finite element */
    const char *origin; /* row 0 is at the top: "upper" (the default), or at the bottom: "lower" */
    int scale;          /* pixels per element along each side; 0: so many that small matrices have 256 pixels a side */
    int largest;        /* longest side of the matrix in pixels; 0: 1024. Larger matrices are averaged down */
    bool bar;           /* a colour bar with numbers, to the right of the matrix */
} oly_frame_options;

/* Writes a matrix as a PNG image: oly_write_frame("frame-%05d.png", u, .number = step, .low = 0, .high = 1, .bar = true). Element (i, j)
 * is in row i, counted from the side of the origin, and column j, counted from the left. A pixel shows the mean of the elements that fall
 * on it. Values outside the range, infinities included, have the first or the last colour; NaN, and a mean with a NaN, is grey
 * (128, 128, 128), among the colours "grey" red (255, 0, 0). With the same options all frames of a series have the same size, so that
 *      ffmpeg -framerate 25 -i frame-%05d.png -vf "pad=ceil(iw/2)*2:ceil(ih/2)*2" -c:v libx264 -pix_fmt yuv420p film.mp4
 * makes a film of them. The file appears complete or not at all; it may replace a regular file, nothing else. Every device averages its
 * part, and only the picture travels: memory does not grow with the matrix.
 *   ranks    all ranks of the array's mesh (of an uncommitted array: all) with the same options; process 0 writes, or, if the mesh leaves
 *            ranks out, the process of its first device. Ranks that are left out may call, too
 *   fails    OLY_SHAPE (not 2-D, or empty), OLY_DTYPE (complex), OLY_INVALID (options), OLY_PARSE (the path), OLY_IO (path and reason),
 *            OLY_MEMORY; on all of these ranks */
OLY_API oly_status oly_write_frame_with(const char *path, oly_array x, oly_frame_options options);
#define oly_write_frame(...) oly_write_frame_(__VA_ARGS__, )
#define oly_write_frame_(path, x, ...)                                                                                 \
    OLY_AT_AS(oly_write_frame, oly_write_frame_with)(path, x, OLY_OPTIONS_(oly_frame_options, __VA_ARGS__))

#ifdef __cplusplus
}
#endif
#endif
