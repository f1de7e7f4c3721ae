/* SPDX-License-Identifier: BSD-3-Clause */
/* Which element a tap of a sliding window reads: for windows and convolutions, as cpu/window_line.h. */
#ifndef OLY_CUDA_WINDOWS_H
#define OLY_CUDA_WINDOWS_H
#include "boxes.h"

/* Of a place of the result (its indexes in the window's dimensions): where its first tap reads, in the dilated operand. */
OLY_DEVICE void oly_first_tap(const oly_cuda_local_task &t, const int64_t *place, int64_t *position)
{
    int rank = (int)t.window.rank, first = t.out.rank - rank;
    for (int d = 0; d < rank; d++)
        position[d] = (t.out.origin[first + d] + place[d]) * t.window.stride[d] - t.window.lo[d];
}
/* The offset, in the window's dimensions of operand 0, of the element that tap `tap` reads; false: padding. */
OLY_DEVICE bool oly_tap_offset(const oly_cuda_local_task &t, const int64_t *position, const int *tap, int64_t *offset)
{
    const oly_sliding_window &w = t.window;
    const oly_cuda_box &x = t.in[0];
    int rank = (int)w.rank, first = t.out.rank - rank;
    int64_t sum = 0;
    bool inside = x.base != nullptr;
    for (int d = 0; d < rank; d++) {
        int64_t at = position[d] + tap[d] * w.dilation[d];
        if (w.base_dilation[d] > 1) {
            inside = inside && at >= 0 && at % w.base_dilation[d] == 0;
            at /= w.base_dilation[d];
        }
        at -= x.origin[first + d];
        inside = inside && at >= 0 && at < x.extent[first + d];
        sum += at * x.stride[first + d];
    }
    *offset = sum;
    return inside;
}
OLY_DEVICE int64_t oly_taps(const oly_cuda_local_task &t)
{
    int64_t taps = 1;
    for (int d = 0; d < (int)t.window.rank; d++)
        taps *= t.window.size[d];
    return taps;
}
/* The next in row-major order. */
OLY_DEVICE void oly_next_tap(const oly_cuda_local_task &t, int *tap)
{
    for (int d = (int)t.window.rank - 1; d >= 0; d--) {
        if (++tap[d] < t.window.size[d])
            return;
        tap[d] = 0;
    }
}
#endif
