/* SPDX-License-Identifier: BSD-3-Clause */
/* Sliding windows whose elements are combined: as cpu/window.c, in the order of the window, narrow types rounded after each. `value`: the
 * identity, which is also what padding reads.
 *
 * Any: a thread for each result. Windows over two dimensions, of elements that are read as they are: a thread for some results below each
 * other, neighbouring threads at neighbouring columns, so that positions are found once for all of them, in 32 bits. */
#include "windows.h"
#include "window_task.h"

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

/* -- columns -------------------------------------------------------------------------------------------------------------------------- */
enum { DOWN = OLY_CUDA_WINDOW_DOWN };

/* Where a thread's results read: rows and columns of the operand, counted from the first element that is here. */
template <class A> struct column_place {
    const A *from;
    int top, left, place; /* place: the row of the first result */
    int64_t out;
};
template <class A> OLY_DEVICE column_place<A> find_column(const oly_cuda_local_task &t, uint32_t number)
{
    const oly_cuda_box &x = t.in[0];
    int across = t.out.rank - 1, down = across - 1;
    uint32_t width = (uint32_t)t.out.extent[across], height = (uint32_t)t.out.extent[down];
    uint32_t strips = (height + DOWN - 1) / DOWN, row = number / width, image = row / strips, rest = image;
    int column = (int)(number - row * width), place = (int)(row - image * strips) * DOWN;
    int64_t offset = 0;
    OLY_NO_UNROLL
    for (int d = down - 1; d >= 0; d--) {
        uint32_t extent = (uint32_t)t.out.extent[d], next = d > 0 ? rest / extent : 0;
        offset += (int64_t)(rest - next * extent) * x.stride[d];
        rest = next;
    }
    column_place<A> p;
    p.from = (const A *)x.base + offset;
    p.top = ((int)t.out.origin[down] + place) * (int)t.window.stride[0] - (int)t.window.lo[0] - (int)x.origin[down];
    p.left = ((int)t.out.origin[across] + column) * (int)t.window.stride[1] - (int)t.window.lo[1] - (int)x.origin[across];
    p.place = place;
    p.out = ((int64_t)image * height + place) * width + column;
    return p;
}

/* Windows of SIZE x SIZE elements that lie side by side, at every row: each row of the operand is read once for all results that it is in. */
template <class A, int C, int SIZE>
OLY_DEVICE void combine_square(const oly_cuda_local_task &t, const column_place<A> &p, A identity, A *sum)
{
    const oly_cuda_box &x = t.in[0];
    int across = t.out.rank - 1, down = across - 1, height = (int)x.extent[down], width = (int)x.extent[across];
    int64_t line = x.stride[down];
    const A *from = p.from + p.top * line + p.left;
    bool inside[SIZE];
    OLY_UNROLL
    for (int k = 0; k < SIZE; k++)
        inside[k] = (uint32_t)(p.left + k) < (uint32_t)width;
    A next[DOWN + SIZE - 1][SIZE];
    OLY_UNROLL
    for (int j = 0; j < DOWN + SIZE - 1; j++) {
        bool here = (uint32_t)(p.top + j) < (uint32_t)height;
        OLY_UNROLL
        for (int k = 0; k < SIZE; k++) {
            next[j][k] = identity;
            if (here && inside[k])
                next[j][k] = from[k];
        }
        from += line;
    }
    OLY_UNROLL
    for (int r = 0; r < DOWN; r++) {
        sum[r] = next[r][0];
        OLY_UNROLL
        for (int k = 1; k < SIZE * SIZE; k++)
            sum[r] = oly_combined(C, sum[r], next[r + k / SIZE][k % SIZE]);
    }
}
template <class A, int C>
OLY_DEVICE void combine_any(const oly_cuda_local_task &t, const column_place<A> &p, A identity, A *sum)
{
    const oly_cuda_box &x = t.in[0];
    int across = t.out.rank - 1, down = across - 1, height = (int)x.extent[down], width = (int)x.extent[across];
    int64_t line = x.stride[down], step = x.stride[across], below = line * t.window.stride[0];
    for (int j = 0; j < (int)t.window.size[0]; j++) {
        int row = p.top + j * (int)t.window.dilation[0];
        const A *from = p.from + row * line;
        bool here[DOWN];
        OLY_UNROLL
        for (int r = 0; r < DOWN; r++)
            here[r] = (uint32_t)(row + r * (int)t.window.stride[0]) < (uint32_t)height;
        for (int k = 0; k < (int)t.window.size[1]; k++) {
            int column = p.left + k * (int)t.window.dilation[1];
            bool inside = (uint32_t)column < (uint32_t)width, first = (j | k) == 0;
            OLY_UNROLL
            for (int r = 0; r < DOWN; r++) {
                A next = identity;
                if (inside && here[r])
                    next = from[r * below + column * step];
                sum[r] = first ? next : oly_combined(C, sum[r], next);
            }
        }
    }
}
template <class A, int C> OLY_DEVICE void columns_by(const oly_cuda_local_task &t)
{
    const oly_sliding_window &w = t.window;
    int height = (int)t.out.extent[t.out.rank - 2];
    int64_t width = t.out.extent[t.out.rank - 1];
    bool square = w.size[0] == 3 && w.size[1] == 3 && w.stride[0] == 1 && w.dilation[0] == 1 &&
                  w.dilation[1] == 1 && t.in[0].stride[t.out.rank - 1] == 1;
    A identity = *(const A *)t.value;
    for (int64_t i = oly_index(); i < t.n; i += oly_stride()) {
        column_place<A> p = find_column<A>(t, (uint32_t)i);
        A sum[DOWN] = {};
        if (square)
            combine_square<A, C, 3>(t, p, identity, sum);
        else
            combine_any<A, C>(t, p, identity, sum);
        A *to = (A *)t.out.base + p.out;
        OLY_UNROLL
        for (int r = 0; r < DOWN; r++)
            if (p.place + r < height)
                to[r * width] = sum[r];
    }
}
template <class A> OLY_DEVICE void columns(const oly_cuda_local_task &t)
{
    switch (t.part) {
    case OLY_COMBINE_SUM: columns_by<A, OLY_COMBINE_SUM>(t); break;
    case OLY_COMBINE_PROD: columns_by<A, OLY_COMBINE_PROD>(t); break;
    case OLY_COMBINE_MAX: columns_by<A, OLY_COMBINE_MAX>(t); break;
    default: columns_by<A, OLY_COMBINE_MIN>(t); break;
    }
}
OLY_KERNEL(oly_window_columns_f32, oly_cuda_local_task)
{
    columns<float>(task);
}
OLY_KERNEL(oly_window_columns_f64, oly_cuda_local_task)
{
    columns<double>(task);
}
OLY_KERNEL(oly_window_columns_i32, oly_cuda_local_task)
{
    columns<int32_t>(task);
}
