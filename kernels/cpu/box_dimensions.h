/* SPDX-License-Identifier: BSD-3-Clause */
/* Dimensions of a strided box as a sequence of elements in row-major order: where element k is, and how many from it on are evenly spaced.
 * Included by cpu/reduce.c. */
#ifndef OLY_BOX_DIMENSIONS_H
#define OLY_BOX_DIMENSIONS_H
#include "kernel.h"

#define SHORT 16 /* elements of rows that are copied several at a time */

/* Some dimensions of the box, merged where they are evenly spaced. */
typedef struct dims {
    int rank;
    int64_t extent[OLY_MAX_RANK], stride[OLY_MAX_RANK];
} dims;

static void add_dimension(dims *d, int64_t extent, int64_t stride)
{
    if (d->rank > 0 && d->stride[d->rank - 1] == stride * extent) {
        d->extent[d->rank - 1] *= extent;
        d->stride[d->rank - 1] = stride;
        return;
    }
    d->extent[d->rank] = extent;
    d->stride[d->rank++] = stride;
}

static int64_t offset_at(const dims *d, int64_t index)
{
    int64_t offset = 0;
    for (int i = d->rank - 1; i > 0; i--) {
        offset += index % d->extent[i] * d->stride[i];
        index /= d->extent[i];
    }
    return d->rank > 0 ? offset + index * d->stride[0] : 0;
}
/* How many elements from `index` on are evenly spaced, at most `most`. */
static int64_t even_length(const dims *d, int64_t index, int64_t most)
{
    if (d->rank == 0)
        return 1;
    int64_t rest = d->extent[d->rank - 1];
    if (d->rank > 1)
        index %= rest;
    rest -= index;
    return rest < most ? rest : most;
}
static int64_t last_stride(const dims *d)
{
    return d->rank > 0 ? d->stride[d->rank - 1] : 0;
}

/* How many whole rows of the last dimension there are from `index` on, evenly spaced, if it is short and they are several; else 0. */
static int64_t short_rows(const dims *d, int64_t index, int64_t n)
{
    if (d->rank < 2 || d->extent[d->rank - 1] > SHORT || index % d->extent[d->rank - 1] != 0)
        return 0;
    int64_t all = d->extent[d->rank - 2], rows = n / d->extent[d->rank - 1];
    int64_t rest = all - index / d->extent[d->rank - 1] % all;
    rows = rows < rest ? rows : rest;
    return rows > 1 ? rows : 0;
}
#endif
