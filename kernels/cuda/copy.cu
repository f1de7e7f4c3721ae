/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies of boxes with any strides, and fills. Where one side is dense in another dimension than the other (a transpose), tiles
 * of elements go through shared memory, so that both sides are read and written in whole lines. */
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

/* -- transposes: the source is dense in dimension task.tile, the result in the last ------------------------------------------------ */
/* Tiles of 32 x 32 elements, or 64 x 64 of small ones where both sides are that long. A thread has all its elements of a tile in registers
 * before it writes any, so that many reads are on their way. Tiles are numbered in 32 bits: each has 64 elements or more. */
template <class T, int SIDE> OLY_DEVICE void transpose(const oly_cuda_copy_task &t, T (*tile)[SIDE + 1])
{
    enum { STEP = OLY_CUDA_THREADS / SIDE, N = SIDE / STEP };
    const int last = t.rank - 1, along = t.tile;
    const uint32_t columns = (uint32_t)((t.extent[last] + SIDE - 1) / SIDE);
    const uint32_t rows = (uint32_t)((t.extent[along] + SIDE - 1) / SIDE);
    uint32_t n = rows * columns;
    for (int d = 0; d < last; d++)
        n *= d == along ? 1 : (uint32_t)t.extent[d];
    const int x = oly_thread() % SIDE, y = oly_thread() / SIDE;
    const int64_t from_step = t.from_stride[last] * STEP, to_step = t.to_stride[along] * STEP;
    for (uint32_t number = (uint32_t)oly_block(); number < n; number += (uint32_t)oly_blocks()) {
        uint32_t rest = number / columns, next = rest / rows;
        const int64_t column = (int64_t)(number - rest * columns) * SIDE, row = (int64_t)(rest - next * rows) * SIDE;
        int64_t a = 0, b = 0;
        rest = next;
        for (int d = last - 1; d >= 0; d--) {
            if (d == along)
                continue;
            next = rest / (uint32_t)t.extent[d];
            const int64_t at = rest - next * (uint32_t)t.extent[d];
            a += at * t.to_stride[d];
            b += at * t.from_stride[d];
            rest = next;
        }
        const T *from = (const T *)t.from + b + (row + x) * t.from_stride[along] + (column + y) * t.from_stride[last];
        T *to = (T *)t.to + a + (row + y) * t.to_stride[along] + (column + x) * t.to_stride[last];
        const bool whole = row + SIDE <= t.extent[along] && column + SIDE <= t.extent[last];
        T item[N];
        if (whole) {
            OLY_UNROLL
            for (int k = 0; k < N; k++)
                item[k] = from[k * from_step];
            OLY_UNROLL
            for (int k = 0; k < N; k++)
                tile[y + k * STEP][x] = item[k];
        } else {
            for (int k = 0; k < N; k++)
                if (row + x < t.extent[along] && column + y + k * STEP < t.extent[last])
                    tile[y + k * STEP][x] = from[k * from_step];
        }
        oly_barrier();
        if (whole) {
            OLY_UNROLL
            for (int k = 0; k < N; k++)
                to[k * to_step] = tile[x][y + k * STEP];
        } else {
            for (int k = 0; k < N; k++)
                if (row + y + k * STEP < t.extent[along] && column + x < t.extent[last])
                    to[k * to_step] = tile[x][y + k * STEP];
        }
        oly_barrier();
    }
}
#define TRANSPOSE(name, T, SIDE)                                                                                       \
    OLY_KERNEL_BLOCK_BOUNDED(oly_transpose_##name, oly_cuda_copy_task, OLY_CUDA_THREADS, 4)                            \
    {                                                                                                                  \
        OLY_SHARED(T, tile, SIDE *(SIDE + 1));                                                                         \
        transpose<T, SIDE>(task, (T(*)[SIDE + 1]) tile);                                                               \
    }
TRANSPOSE(1, uint8_t, 32)
TRANSPOSE(2, uint16_t, 32)
TRANSPOSE(4, uint32_t, 32)
TRANSPOSE(8, uint64_t, 32)
TRANSPOSE(16, oly_sixteen_apart, 32)
TRANSPOSE(wide_1, uint8_t, 64)
TRANSPOSE(wide_2, uint16_t, 64)
TRANSPOSE(wide_4, uint32_t, 64)

/* -- fills ----------------------------------------------------------------------------------------------------------------------- */
/* Vectors of 16 bytes where n elements are aligned so, single elements before and after them. */
template <class T> OLY_DEVICE void spread(char *at, int64_t n, T value)
{
    enum { EACH = 16 / sizeof(T) };
    struct alignas(16) vector {
        T of[EACH];
    } all;
    T *to = (T *)at;
    const int64_t past = (int64_t)((uintptr_t)at % 16 / sizeof(T)), head = past ? EACH - past : 0;
    const int64_t before = head < n ? head : n, vectors = (n - before) / EACH, after = before + vectors * EACH;
    OLY_UNROLL
    for (int k = 0; k < EACH; k++)
        all.of[k] = value;
    for (int64_t i = oly_index(); i < vectors; i += oly_stride())
        ((vector *)(to + before))[i] = all;
    for (int64_t i = oly_index(); i < before; i += oly_stride())
        to[i] = value;
    for (int64_t i = after + oly_index(); i < n; i += oly_stride())
        to[i] = value;
}
template <class T> OLY_DEVICE void fill(const oly_cuda_fill_task &t)
{
    spread<T>(t.to, t.n, *(const T *)t.element);
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
    for (int64_t i = oly_index(); i < task.n; i += oly_stride())
        ((oly_sixteen_apart *)task.to)[i] = *(const oly_sixteen_apart *)task.element;
}

/* Of the element at task.from, which is in memory of the device. */
OLY_KERNEL(oly_spread_1, oly_cuda_copy_task)
{
    spread<uint8_t>(task.to, task.n, *(const uint8_t *)task.from);
}
OLY_KERNEL(oly_spread_2, oly_cuda_copy_task)
{
    spread<uint16_t>(task.to, task.n, *(const uint16_t *)task.from);
}
OLY_KERNEL(oly_spread_4, oly_cuda_copy_task)
{
    spread<uint32_t>(task.to, task.n, *(const uint32_t *)task.from);
}
OLY_KERNEL(oly_spread_8, oly_cuda_copy_task)
{
    spread<uint64_t>(task.to, task.n, *(const uint64_t *)task.from);
}
