/* SPDX-License-Identifier: BSD-3-Clause */
/* Rearranging elements along a dimension, for lines that are sorted over several devices: as cpu/arrange.c. A thread for each element of
 * the result. */
#include "boxes.h"

OLY_KERNEL(oly_arrange, oly_cuda_local_task)
{
    const oly_cuda_box &x = task.in[0], &numbers = task.in[1];
    int d = task.dimension, bytes = oly_bytes_of(task.out.dtype);
    bool wide = task.out.dtype == OLY_T_i64;
    for (int64_t i = oly_index(); i < task.n; i += oly_stride()) {
        int64_t at[OLY_MAX_RANK];
        oly_unravel(task.out.rank, task.out.extent, i, at);
        int64_t k = at[d];
        if (task.op == OLY_LOCAL_NUMBER) {
            int64_t number = x.origin[d] + k;
            number = k >= x.extent[d] ? x.size[d] : task.reverse ? x.size[d] - 1 - number : number;
            oly_store_number(wide, task.out.base, i, number);
            continue;
        }
        oly_value v;
        v.lo = task.value[0], v.hi = task.value[1]; /* after the line's end: what sorts last */
        if (task.op == OLY_LOCAL_TAKE)
            at[d] = oly_load_number(numbers.dtype == OLY_T_i64, numbers.base, oly_offset(x.rank, at, numbers.stride));
        if (task.op == OLY_LOCAL_TAKE || k < x.extent[d])
            v = oly_load_bits(bytes, x.base + oly_offset(x.rank, at, x.stride) * bytes);
        oly_store_bits(bytes, task.out.base + i * bytes, v);
        if (task.op == OLY_LOCAL_TAKE && task.reverse) /* numbers that were counted from the end of the whole line */
            oly_store_number(wide, task.out.base, i,
                             task.out.size[d] - 1 - oly_load_number(wide, task.out.base, i));
    }
}
