/* SPDX-License-Identifier: BSD-3-Clause */
/* Sliding windows whose elements are combined: as cpu/window.c, in the order of the window, narrow types rounded after each. A thread
 * for each result. `value`: the identity, which is also what padding reads. */
#include "windows.h"

template <class A> OLY_DEVICE void window(const oly_cuda_local_task &t)
{
    const oly_cuda_box &x = t.in[0];
    int outer = t.out.rank - (int)t.window.rank, dtype = t.out.dtype, c = t.part; /* the combiner */
    int64_t taps = oly_taps(t);
    A identity;
    oly_load(dtype, (const char *)t.value, 0, &identity);
    for (int64_t i = oly_index(); i < t.n; i += oly_stride()) {
        int64_t at[OLY_MAX_RANK], position[OLY_MAX_WINDOW], offset;
        int tap[OLY_MAX_WINDOW] = {0};
        oly_unravel(t.out.rank, t.out.extent, i, at);
        oly_first_tap(t, at + outer, position);
        int64_t base = oly_offset(outer, at, x.stride);
        A sum = identity;
        for (int64_t k = 0; k < taps; k++) {
            A next = identity;
            if (oly_tap_offset(t, position, tap, &offset))
                oly_load(dtype, x.base, base + offset, &next);
            sum = k ? oly_rounded(dtype, oly_combined(c, sum, next)) : next;
            oly_next_tap(t, tap);
        }
        oly_store(dtype, t.out.base, i, sum);
    }
}
OLY_KERNEL(oly_window, oly_cuda_local_task)
{
    OLY_BY_TYPE(task.out.dtype, window, task)
}
