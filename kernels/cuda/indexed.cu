/* SPDX-License-Identifier: BSD-3-Clause */
/* Elements at positions that indexes give: reading them (gather, slices at computed positions), writing them where positions do not meet
 * (updates at computed positions), and the places of positions for scatter.cu. A thread for each element or position; types matter
 * by their sizes only. */
#include "indexing.h"

OLY_KERNEL(oly_indexed_read, oly_cuda_indexed_task)
{
    for (int64_t i = oly_index(); i < task.n; i += oly_stride()) {
        int64_t at[OLY_MAX_RANK], offset;
        oly_unravel(task.rank, task.extent, i, at);
        int state = oly_follow(task, at, &offset);
        oly_value v;
        if (state > 0)
            v = oly_load_bits(task.bytes, task.from + offset * task.bytes);
        else
            v.lo = task.value[state < 0][0], v.hi = task.value[state < 0][1];
        oly_store_bits(task.bytes, task.to + i * task.bytes, v);
    }
}

/* The usual gather: one index for each element of the result, fewer elements than 2^31, few dimensions. A block has adjacent elements, and so
 * reads of few rows of the array, which its cache holds; a thread reads AHEAD elements before it writes any. */
enum { AHEAD = 4 };
struct alignas(16) sixteen {
    uint64_t half[2];
};
template <class T> OLY_DEVICE void take_value(const uint64_t *value, T *x)
{
    *x = (T)value[0];
}
OLY_DEVICE void take_value(const uint64_t *value, sixteen *x)
{
    x->half[0] = value[0], x->half[1] = value[1];
}
/* Element i's index, and the offset of the elements among which it counts. */
OLY_DEVICE int64_t index_of(const oly_cuda_indexed_task &t, uint32_t i, int64_t *from)
{
    const oly_cuda_axis &x = t.axis[0];
    int64_t at_index = 0;
    *from = 0;
    OLY_UNROLL
    for (int d = OLY_CUDA_FEW - 1; d > 0; d--) {
        if (d >= t.rank)
            continue;
        const uint32_t next = i / (uint32_t)t.extent[d], at = i - next * (uint32_t)t.extent[d];
        *from += at * t.at_stride[d];
        at_index += at * x.stride[d];
        i = next;
    }
    *from += i * t.at_stride[0];
    return oly_load_number(x.wide, x.index, at_index + i * x.stride[0]);
}
/* Which element: -1: none, as the index is outside the array; -2: it is not here. */
OLY_DEVICE int64_t element_of(const oly_cuda_indexed_task &t, int64_t index)
{
    const oly_cuda_axis &x = t.axis[0];
    if (index < 0 || index >= x.size) {
        if (t.mode == OLY_INDEX_FILL || x.size == 0)
            return -1;
        index = t.mode == OLY_INDEX_WRAP ? (index % x.size + x.size) % x.size : index < 0 ? 0 : x.size - 1;
    }
    index += x.shift;
    return index < x.low || index >= x.high ? -2 : index - x.low;
}
template <class T, int N> OLY_DEVICE void read_some(const oly_cuda_indexed_task &t, uint32_t i)
{
    int64_t from[N], element[N];
    T x[N];
    OLY_UNROLL
    for (int j = 0; j < N; j++)
        element[j] = index_of(t, i + j * OLY_CUDA_THREADS, &from[j]);
    OLY_UNROLL
    for (int j = 0; j < N; j++)
        element[j] = element_of(t, element[j]);
    OLY_UNROLL
    for (int j = 0; j < N; j++) {
        take_value(t.value[element[j] < -1], &x[j]);
        if (element[j] >= 0)
            x[j] = ((const T *)t.from)[from[j] + element[j] * t.axis[0].step];
    }
    OLY_UNROLL
    for (int j = 0; j < N; j++)
        ((T *)t.to)[i + j * OLY_CUDA_THREADS] = x[j];
}
template <class T> OLY_DEVICE void read_by_one(const oly_cuda_indexed_task &t)
{
    const uint32_t n = (uint32_t)t.n, blocks = (uint32_t)oly_blocks();
    const uint32_t chunk = ((n + blocks - 1) / blocks + OLY_CUDA_THREADS - 1) / OLY_CUDA_THREADS * OLY_CUDA_THREADS;
    const uint32_t begin = (uint32_t)oly_block() * chunk, end = begin + chunk < n ? begin + chunk : n;
    uint32_t i = begin + oly_thread();
    for (; i + (AHEAD - 1) * OLY_CUDA_THREADS < end; i += AHEAD * OLY_CUDA_THREADS)
        read_some<T, AHEAD>(t, i);
    for (; i < end; i += OLY_CUDA_THREADS)
        read_some<T, 1>(t, i);
}
OLY_KERNEL(oly_indexed_read_1, oly_cuda_indexed_task)
{
    read_by_one<uint8_t>(task);
}
OLY_KERNEL(oly_indexed_read_2, oly_cuda_indexed_task)
{
    read_by_one<uint16_t>(task);
}
OLY_KERNEL(oly_indexed_read_4, oly_cuda_indexed_task)
{
    read_by_one<uint32_t>(task);
}
OLY_KERNEL(oly_indexed_read_8, oly_cuda_indexed_task)
{
    read_by_one<uint64_t>(task);
}
OLY_KERNEL(oly_indexed_read_16, oly_cuda_indexed_task)
{
    read_by_one<sixteen>(task);
}

/* Slices at one position of long rows: a block for a part of a row, whose place it finds once. */
template <class T> OLY_DEVICE void read_slice(const oly_cuda_indexed_task &t)
{
    enum { EACH = 8, PART = EACH * OLY_CUDA_THREADS };
    const int last = t.rank - 1;
    const int64_t length = t.extent[last], step = t.at_stride[last], parts = (length + PART - 1) / PART;
    int64_t at[OLY_MAX_RANK] = {0}, begin;
    oly_follow(t, at, &begin);
    for (int64_t number = oly_block(); number < t.n / length * parts; number += oly_blocks()) {
        const int64_t row = number / parts, first = (number - row * parts) * PART + oly_thread();
        oly_unravel(last, t.extent, row, at);
        const T *from = (const T *)t.from + begin + oly_offset(last, at, t.at_stride);
        T *to = (T *)t.to + row * length, x[EACH];
        OLY_UNROLL
        for (int j = 0; j < EACH; j++)
            if (first + j * OLY_CUDA_THREADS < length)
                x[j] = from[(first + j * OLY_CUDA_THREADS) * step];
        OLY_UNROLL
        for (int j = 0; j < EACH; j++)
            if (first + j * OLY_CUDA_THREADS < length)
                to[first + j * OLY_CUDA_THREADS] = x[j];
    }
}
#define SLICE(bytes, T)                                                                                                \
    OLY_KERNEL(oly_indexed_slice_##bytes, oly_cuda_indexed_task)                                                       \
    {                                                                                                                  \
        read_slice<T>(task);                                                                                           \
    }
SLICE(1, uint8_t)
SLICE(2, uint16_t)
SLICE(4, uint32_t)
SLICE(8, uint64_t)
SLICE(16, sixteen)

OLY_KERNEL(oly_indexed_write, oly_cuda_indexed_task)
{
    for (int64_t i = oly_index(); i < task.n; i += oly_stride()) {
        int64_t at[OLY_MAX_RANK], offset;
        oly_unravel(task.rank, task.extent, i, at);
        if (oly_follow(task, at, &offset) > 0)
            oly_store_bits(task.bytes, task.to + offset * task.bytes,
                           oly_load_bits(task.bytes, task.from + oly_offset(task.rank, at, task.stride) * task.bytes));
    }
}

OLY_KERNEL(oly_indexed_places, oly_cuda_indexed_task)
{
    for (int64_t i = oly_index(); i < task.n; i += oly_stride()) {
        int64_t at[OLY_MAX_RANK], offset;
        oly_unravel(task.rank, task.extent, i, at);
        ((int64_t *)task.to)[i] = oly_follow(task, at, &offset) > 0 ? offset : -1;
    }
}
