/* SPDX-License-Identifier: BSD-3-Clause */
/* Where indexes point to, for the kernels of gathers, updates and scatters. */
#ifndef OLY_CUDA_INDEXING_H
#define OLY_CUDA_INDEXING_H
#include "boxes.h"

/* The offset in the array of the element that belongs to these indexes of the box: 1; outside the array: 0; not here: -1. */
OLY_DEVICE int oly_follow(const oly_cuda_indexed_task &t, const int64_t *at, int64_t *offset)
{
    int state = 1;
    int64_t sum = oly_offset(t.rank, at, t.at_stride);
    for (int a = 0; a < t.n_axes; a++) {
        const oly_cuda_axis &x = t.axis[a];
        int64_t index = oly_load_number(x.wide, x.index, oly_offset(t.rank, at, x.stride));
        if (t.mode == OLY_CUDA_START) {
            index = index > x.size ? x.size : index;
            index = index < 0 ? 0 : index;
        } else if (index < 0 || index >= x.size) {
            if (t.mode == OLY_INDEX_FILL || x.size == 0) {
                state = 0;
                continue;
            }
            index = t.mode == OLY_INDEX_WRAP ? (index % x.size + x.size) % x.size : index < 0 ? 0 : x.size - 1;
        }
        index += x.shift + (x.along >= 0 ? at[x.along] : 0);
        if (index < x.low || index >= x.high)
            state = state == 0 ? 0 : -1;
        sum += (index - x.low) * x.step;
    }
    *offset = sum;
    return state;
}
#endif
