/* SPDX-License-Identifier: BSD-3-Clause */
/* Elements at positions that indexes give: reading them (gather, slices at computed positions), writing them where positions do not meet
 * (updates at computed positions), and the places of positions for scatter.cu. A thread for each element or position; types matter
 * by their sizes only. */
#include "boxes.h"

/* The offset in the array of the element that belongs to these indexes of the box: 1; outside the array: 0; not here: -1. */
OLY_DEVICE int follow(const oly_cuda_indexed_task &t, const int64_t *at, int64_t *offset)
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

OLY_KERNEL(oly_indexed_read, oly_cuda_indexed_task)
{
    for (int64_t i = oly_index(); i < task.n; i += oly_stride()) {
        int64_t at[OLY_MAX_RANK], offset;
        oly_unravel(task.rank, task.extent, i, at);
        int state = follow(task, at, &offset);
        oly_value v;
        if (state > 0)
            v = oly_load_bits(task.bytes, task.from + offset * task.bytes);
        else
            v.lo = task.value[state < 0][0], v.hi = task.value[state < 0][1];
        oly_store_bits(task.bytes, task.to + i * task.bytes, v);
    }
}

OLY_KERNEL(oly_indexed_write, oly_cuda_indexed_task)
{
    for (int64_t i = oly_index(); i < task.n; i += oly_stride()) {
        int64_t at[OLY_MAX_RANK], offset;
        oly_unravel(task.rank, task.extent, i, at);
        if (follow(task, at, &offset) > 0)
            oly_store_bits(task.bytes, task.to + offset * task.bytes,
                           oly_load_bits(task.bytes, task.from + oly_offset(task.rank, at, task.stride) * task.bytes));
    }
}

OLY_KERNEL(oly_indexed_places, oly_cuda_indexed_task)
{
    for (int64_t i = oly_index(); i < task.n; i += oly_stride()) {
        int64_t at[OLY_MAX_RANK], offset;
        oly_unravel(task.rank, task.extent, i, at);
        ((int64_t *)task.to)[i] = follow(task, at, &offset) > 0 ? offset : -1;
    }
}
