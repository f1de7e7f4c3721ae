/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies of boxes with any strides, and fills. Where one side is dense in another dimension than the other (a transpose), tiles of
 * 32 x 32 elements go through shared memory, so that both sides are read and written in whole lines. */
#include "tasks.h" /* before device.h, whose OLY_DEVICE is a macro */

#include "device.h"

struct alignas(16) oly_sixteen {
    uint64_t half[2];
};
struct oly_sixteen_apart {
    uint64_t half[2];
};

OLY_DEVICE void offsets_of(const oly_cuda_copy_task &t, int64_t i, int64_t *to, int64_t *from)
{
    int64_t a = 0, b = 0;
    for (int d = t.rank - 1; d > 0; d--) {
        int64_t next = i / t.extent[d], at = i - next * t.extent[d];
        a += at * t.to_stride[d];
        b += at * t.from_stride[d];
        i = next;
    }
    *to = a + i * t.to_stride[0];
    *from = b + i * t.from_stride[0];
}

template <class T> OLY_DEVICE void copy_elements(const oly_cuda_copy_task &t)
{
    T *to = (T *)t.to;
    const T *from = (const T *)t.from;
    for (int64_t i = oly_index(); i < t.n; i += oly_stride()) {
        int64_t a, b;
        offsets_of(t, i, &a, &b);
        to[a] = from[b];
    }
}
OLY_KERNEL(oly_copy_1, oly_cuda_copy_task)
{
    copy_elements<uint8_t>(task);
}
OLY_KERNEL(oly_copy_2, oly_cuda_copy_task)
{
    copy_elements<uint16_t>(task);
}
OLY_KERNEL(oly_copy_4, oly_cuda_copy_task)
{
    copy_elements<uint32_t>(task);
}
OLY_KERNEL(oly_copy_8, oly_cuda_copy_task)
{
    copy_elements<uint64_t>(task);
}
OLY_KERNEL(oly_copy_16, oly_cuda_copy_task)
{
    copy_elements<oly_sixteen_apart>(task);
}

/* Dense on both sides, 16-byte aligned: n is in units of 16 bytes, four of them at a time. */
OLY_KERNEL(oly_copy_dense, oly_cuda_copy_task)
{
    oly_sixteen *to = (oly_sixteen *)task.to;
    const oly_sixteen *from = (const oly_sixteen *)task.from;
    int64_t stride = oly_stride(), i = oly_index();
    for (; i + 3 * stride < task.n; i += 4 * stride) {
        oly_sixteen a = from[i], b = from[i + stride], c = from[i + 2 * stride], d = from[i + 3 * stride];
        to[i] = a, to[i + stride] = b, to[i + 2 * stride] = c, to[i + 3 * stride] = d;
    }
    for (; i < task.n; i += stride)
        to[i] = from[i];
}

/* -- transposes: blocks of 32 x 8 threads; the source is dense in dimension task.tile, the result in the last ------------------- */
enum { SIDE = 32, STEP = 8 };
template <class T> OLY_DEVICE void transpose(const oly_cuda_copy_task &t, T (*tile)[SIDE + 1])
{
    int last = t.rank - 1, along = t.tile;
    int64_t columns = (t.extent[last] + SIDE - 1) / SIDE, rows = (t.extent[along] + SIDE - 1) / SIDE, others = 1;
    for (int d = 0; d < last; d++)
        others *= d == along ? 1 : t.extent[d];
    int x = oly_thread() % SIDE, y = oly_thread() / SIDE;
    for (int64_t number = oly_block(); number < rows * columns * others; number += oly_blocks()) {
        int64_t column = number % columns * SIDE, rest = number / columns, row = rest % rows * SIDE, a = 0, b = 0;
        rest /= rows;
        for (int d = last - 1; d >= 0; d--) {
            if (d == along)
                continue;
            a += rest % t.extent[d] * t.to_stride[d];
            b += rest % t.extent[d] * t.from_stride[d];
            rest /= t.extent[d];
        }
        T *to = (T *)t.to + a;
        const T *from = (const T *)t.from + b;
        for (int k = y; k < SIDE; k += STEP)
            if (row + x < t.extent[along] && column + k < t.extent[last])
                tile[k][x] = from[(row + x) * t.from_stride[along] + (column + k) * t.from_stride[last]];
        oly_barrier();
        for (int k = y; k < SIDE; k += STEP)
            if (row + k < t.extent[along] && column + x < t.extent[last])
                to[(row + k) * t.to_stride[along] + (column + x) * t.to_stride[last]] = tile[x][k];
        oly_barrier();
    }
}
#define TRANSPOSE(bytes, T)                                                                                            \
    OLY_KERNEL_BLOCK_BOUNDED(oly_transpose_##bytes, oly_cuda_copy_task, SIDE *STEP, 4)                                 \
    {                                                                                                                  \
        OLY_SHARED(T, tile, SIDE * (SIDE + 1));                                                                        \
        transpose<T>(task, (T(*)[SIDE + 1]) tile);                                                                     \
    }
TRANSPOSE(1, uint8_t)
TRANSPOSE(2, uint16_t)
TRANSPOSE(4, uint32_t)
TRANSPOSE(8, uint64_t)
TRANSPOSE(16, oly_sixteen_apart)

/* -- fills ----------------------------------------------------------------------------------------------------------------------- */
template <class T> OLY_DEVICE void fill(const oly_cuda_fill_task &t)
{
    for (int64_t i = oly_index(); i < t.n; i += oly_stride())
        ((T *)t.to)[i] = *(const T *)t.element;
}
OLY_KERNEL(oly_fill_1, oly_cuda_fill_task)
{
    fill<uint8_t>(task);
}
OLY_KERNEL(oly_fill_2, oly_cuda_fill_task)
{
    fill<uint16_t>(task);
}
OLY_KERNEL(oly_fill_4, oly_cuda_fill_task)
{
    fill<uint32_t>(task);
}
OLY_KERNEL(oly_fill_8, oly_cuda_fill_task)
{
    fill<uint64_t>(task);
}
OLY_KERNEL(oly_fill_16, oly_cuda_fill_task)
{
    fill<oly_sixteen_apart>(task);
}
