/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the values of an iota in a tile program come from: the box's place in the whole array. Callable by kernels, of CPUs and of GPUs. */
#ifndef OLY_IOTA_H
#define OLY_IOTA_H
#include "kernel.h"

/* The increment of an iota's value along dimension d. */
static inline int64_t oly_iota_stride(const oly_tile_instruction *c, const oly_tile_box *box, int d)
{
    int64_t stride = 1;
    if (c->attribute >= 0)
        return c->attribute == d;
    for (int e = box->rank - 1; e > d; e--)
        stride *= box->whole[e];
    return stride;
}

/* Its value at the box's first element. */
static inline int64_t oly_iota_origin(const oly_tile_instruction *c, const oly_tile_box *box)
{
    int64_t origin = 0;
    for (int d = 0; d < box->rank; d++)
        origin += box->origin[d] * oly_iota_stride(c, box, d);
    return origin;
}
#endif
