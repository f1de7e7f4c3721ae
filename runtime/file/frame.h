/* SPDX-License-Identifier: BSD-3-Clause */
/* What a picture of a matrix looks like: its size, its pixels, the colour bar. Arithmetic over a matrix of means that lies in
 * memory; called by runtime/array/files. */
#ifndef OLY_FILE_FRAME_H
#define OLY_FILE_FRAME_H
#include "file/colours.h"
#include <olympus/base.h>

/* Longest side of the matrix's part of a picture, and the side to which small matrices are enlarged (by a whole factor), in
 * pixels, unless options say otherwise; and the longest side that options may ask for. */
enum { OLY_FRAME_LARGEST = 1024, OLY_FRAME_ENLARGED = 256, OLY_FRAME_LIMIT = 32768 };

typedef struct oly_frame {
    int64_t height, width; /* of the matrix */
    int64_t rows, columns; /* of the blocks that it is averaged to */
    int factor;            /* pixels per block along each side */
    bool bar;              /* a colour bar to the right of it */
    bool upwards;          /* row 0 is at the bottom */
    const oly_colours *colours;
    double low, high;
    const double *mean; /* [rows][columns] */
} oly_frame;

/* Chooses rows, columns and factor. Elements stay square, unless a side would get shorter than a pixel.
 *   largest  longest side in pixels; scale: pixels per block, 0: so that small matrices are large enough to see */
void oly_frame_choose_size(oly_frame *f, int64_t largest, int scale);
/* The block of row or column i of n that are averaged to `blocks`, and where block b begins: at element i. */
static inline int64_t oly_frame_block_of(int64_t i, int64_t n, int64_t blocks)
{
    return ((i + 1) * blocks - 1) / n;
}
static inline int64_t oly_frame_block_begin(int64_t b, int64_t n, int64_t blocks)
{
    return b * n / blocks;
}

/* Pixels of the whole picture. */
int64_t oly_frame_picture_width(const oly_frame *f);
int64_t oly_frame_picture_height(const oly_frame *f);
/* Row y of the picture, from the top; the context is an oly_frame. */
void oly_frame_row(const void *frame, int64_t y, unsigned char *rgb);
/* A range that has a width, from the smallest and the largest finite element (low > high: there is none). */
void oly_frame_automatic_range(double *low, double *high);
#endif
