/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers of elements in boxes, their offsets, and arrays of numbers, for the kernels of operations of local.h. */
#ifndef OLY_CUDA_BOXES_H
#define OLY_CUDA_BOXES_H
#include "combining.h"

/* Indexes in `rank` dimensions of a row-major number. */
OLY_DEVICE void oly_unravel(int rank, const int64_t *extent, int64_t number, int64_t *at)
{
    for (int d = rank - 1; d > 0; d--) {
        int64_t next = number / extent[d];
        at[d] = number - next * extent[d];
        number = next;
    }
    if (rank > 0)
        at[0] = number;
}
OLY_DEVICE int64_t oly_offset(int rank, const int64_t *at, const int64_t *stride)
{
    int64_t offset = 0;
    for (int d = 0; d < rank; d++)
        offset += at[d] * stride[d];
    return offset;
}
/* Of a row-major number. */
OLY_DEVICE int64_t oly_offset_in(const oly_cuda_dims &d, int64_t number)
{
    int64_t offset = 0;
    for (int i = d.rank - 1; i > 0; i--) {
        int64_t next = number / d.extent[i];
        offset += (number - next * d.extent[i]) * d.stride[i];
        number = next;
    }
    return d.rank > 0 ? offset + number * d.stride[0] : 0;
}
/* Of line `number` of a box: its row-major number among all dimensions but one. */
OLY_DEVICE int64_t oly_line_offset(int rank, const int64_t *extent, const int64_t *stride, int without, int64_t number)
{
    int64_t offset = 0;
    for (int d = rank - 1; d >= 0; d--) {
        if (d == without)
            continue;
        int64_t next = number / extent[d];
        offset += (number - next * extent[d]) * stride[d];
        number = next;
    }
    return offset;
}

/* Elements of int32 or int64. */
OLY_DEVICE int64_t oly_load_number(bool wide, const char *base, int64_t i)
{
    return wide ? ((const int64_t *)base)[i] : ((const int32_t *)base)[i];
}
OLY_DEVICE void oly_store_number(bool wide, char *base, int64_t i, int64_t value)
{
    if (wide)
        ((int64_t *)base)[i] = value;
    else
        ((int32_t *)base)[i] = (int32_t)value;
}
#endif
