/* SPDX-License-Identifier: BSD-3-Clause */
/* Sorting: stable orders of lines. Elements become unsigned keys in the same order, as in cpu/sort.c. Lines of at most 32 elements are
 * ordered by warps that count smaller ones, those of at most 2048 by a block, by radix, in shared memory; longer
 * ones by sort_sweeps.cu. launch_sort.c chooses. */
#include "ranking.h"

enum { ITEMS = OLY_CUDA_SORT_TILE / OLY_CUDA_THREADS };

/* -- keys ------------------------------------------------------------------------------------------------------------------------------ */
/* The bits of infinity, or of the largest number where the type has none. */
OLY_DEVICE uint64_t infinity_of(int dtype)
{
    switch (dtype) {
    case OLY_T_f8_e4m3fn: return 0x7e;
    case OLY_T_f8_e5m2: return 0x7c;
    case OLY_T_f16: return 0x7c00;
    case OLY_T_bf16: return 0x7f80;
    case OLY_T_f32: return 0x7f800000u;
    default: return 0x7ff0000000000000u;
    }
}
OLY_DEVICE uint64_t key_of(const oly_cuda_sort_task &t, const char *at)
{
    int bytes = oly_bytes_of(t.dtype);
    uint64_t bits = oly_load_bits(bytes, at).lo, sign = (uint64_t)1 << (8 * bytes - 1), all = sign | (sign - 1);
    if (t.kind == OLY_CUDA_KEY_PLACE)
        return bits + 1;
    if (t.kind == OLY_CUDA_KEY_COUNTS)
        return (bits & sign) != 0;
    if (t.dtype >= OLY_T_i8 && t.dtype <= OLY_T_i64) {
        bits ^= sign;
    } else if (t.dtype >= OLY_T_f8_e4m3fn) {
        uint64_t infinity = infinity_of(t.dtype), magnitude = bits & ~sign;
        if (t.kind == OLY_CUDA_KEY_VALUE)
            bits = magnitude > infinity ? infinity | infinity >> 1 : magnitude == 0 ? 0 : bits;
        bits = bits & sign ? ~bits & all : bits | sign;
    }
    return t.kind == OLY_CUDA_KEY_TOTAL ? ~bits & all : bits;
}
OLY_KERNEL(oly_sort_keys, oly_cuda_sort_task)
{
    for (int64_t i = oly_index(); i < task.lines * task.n; i += oly_stride()) {
        int64_t line = i / task.n, k = i - line * task.n;
        uint32_t number = (uint32_t)(task.backwards ? task.n - 1 - k : k);
        if (task.first)
            task.numbers[i] = number;
        else
            number = task.numbers[i];
        int64_t at = oly_offset_in(task.line, line) + number * task.step;
        uint64_t key = key_of(task, task.in + at * oly_bytes_of(task.dtype));
        if (task.wide)
            ((uint64_t *)task.keys)[i] = key;
        else
            ((uint32_t *)task.keys)[i] = (uint32_t)key;
    }
}

/* -- few elements: a warp for each line ------------------------------------------------------------------------------------------------- */
template <class K> OLY_DEVICE void order_few(const oly_cuda_sort_task &t)
{
    int lane = oly_lane(), n = (int)t.n;
    const K *keys = (const K *)t.keys;
    for (int64_t line = oly_index() / OLY_WARP; line < t.lines; line += oly_stride() / OLY_WARP) {
        int64_t at = line * n;
        K key = lane < n ? keys[at + lane] : 0;
        int rank = 0;
        for (int j = 0; j < n; j++) {
            K other = oly_shuffle(key, j);
            rank += other < key || (other == key && j < lane);
        }
        if (lane < n) {
            ((K *)t.keys_to)[at + rank] = key;
            t.numbers_to[at + rank] = t.numbers[at + lane];
        }
    }
}
OLY_KERNEL_BLOCK_BOUNDED(oly_sort_few, oly_cuda_sort_task, OLY_CUDA_THREADS, 2)
{
    if (task.wide)
        order_few<uint64_t>(task);
    else
        order_few<uint32_t>(task);
}

/* -- lines of a block ------------------------------------------------------------------------------------------------------------------------ */
/* Replaces each thread's number by the sum of those of the threads before. */
OLY_DEVICE void sum_before(uint32_t *x)
{
    int thread = oly_thread();
    uint32_t own = x[thread], sum = own;
    for (int by = 1; by < OLY_CUDA_THREADS; by *= 2) {
        oly_barrier();
        if (thread >= by)
            sum += x[thread - by];
        oly_barrier();
        x[thread] = sum;
    }
    oly_barrier();
    x[thread] = sum - own;
    oly_barrier();
}

template <class K> OLY_DEVICE void order_line(const oly_cuda_sort_task &t, int64_t line)
{
    OLY_SHARED(uint64_t, keys_memory, OLY_CUDA_SORT_TILE);
    OLY_SHARED(uint32_t, numbers, OLY_CUDA_SORT_TILE);
    OLY_SHARED(uint32_t, counts, WARPS * OLY_CUDA_DIGITS);
    OLY_SHARED(uint32_t, starts, OLY_CUDA_DIGITS);
    K *keys = (K *)keys_memory, key[ITEMS];
    uint32_t number[ITEMS], ranked[ITEMS];
    int n = (int)t.n;
    OLY_UNROLL
    for (int j = 0; j < ITEMS; j++) {
        int i = item_at<ITEMS>(j);
        key[j] = i < n ? ((const K *)t.keys)[line * n + i] : 0;
        number[j] = i < n ? t.numbers[line * n + i] : 0;
    }
    for (int shift = 0; shift < 8 * t.key_bytes; shift += 8) {
        OLY_UNROLL
        for (int j = 0; j < ITEMS; j++)
            ranked[j] = digit_of(key[j], shift);
        rank_items<ITEMS>(ranked, n, counts, starts);
        sum_before(starts);
        OLY_UNROLL
        for (int j = 0; j < ITEMS; j++) {
            if (item_at<ITEMS>(j) >= n)
                continue;
            uint32_t to = place_of(ranked[j], counts, starts);
            keys[to] = key[j];
            numbers[to] = number[j];
        }
        oly_barrier();
        OLY_UNROLL
        for (int j = 0; j < ITEMS; j++) {
            if (item_at<ITEMS>(j) >= n)
                continue;
            key[j] = keys[item_at<ITEMS>(j)];
            number[j] = numbers[item_at<ITEMS>(j)];
        }
    }
    OLY_UNROLL
    for (int j = 0; j < ITEMS; j++) {
        int i = item_at<ITEMS>(j);
        if (i < n) {
            ((K *)t.keys_to)[line * n + i] = key[j];
            t.numbers_to[line * n + i] = number[j];
        }
    }
    oly_barrier();
}
OLY_KERNEL_BLOCK_BOUNDED(oly_sort_block4, oly_cuda_sort_task, OLY_CUDA_THREADS, 2)
{
    for (int64_t line = oly_block(); line < task.lines; line += oly_blocks())
        order_line<uint32_t>(task, line);
}
OLY_KERNEL_BLOCK_BOUNDED(oly_sort_block8, oly_cuda_sort_task, OLY_CUDA_THREADS, 2)
{
    for (int64_t line = oly_block(); line < task.lines; line += oly_blocks())
        order_line<uint64_t>(task, line);
}

/* -- results: a thread for each element -------------------------------------------------------------------------------------------------- */
OLY_KERNEL(oly_sort_store, oly_cuda_ordered_task)
{
    const oly_cuda_local_task &t = task.task;
    const oly_cuda_box &x = t.in[0], &out = t.out;
    int d = t.dimension, bytes = oly_bytes_of(x.dtype);
    bool wide = out.dtype == OLY_T_i64;
    for (int64_t i = oly_index(); i < task.lines * task.count; i += oly_stride()) {
        int64_t line = i / task.count, k = i - line * task.count;
        int64_t from = oly_line_offset(out.rank, out.extent, x.stride, d, line);
        int64_t to = oly_line_offset(out.rank, out.extent, out.stride, d, line) + k * out.stride[d];
        const uint32_t *order = task.numbers + line * task.length;
        bool backwards = t.reverse && t.op != OLY_LOCAL_TOP_K;
        int64_t place = k < task.length ? (int64_t)order[backwards ? task.length - 1 - k : k] : -1, number = place;
        if (t.op == OLY_LOCAL_SORT) {
            oly_store_bits(bytes, out.base + to * bytes,
                           oly_load_bits(bytes, x.base + (from + place * x.stride[d]) * bytes));
            continue;
        }
        if (t.op == OLY_LOCAL_TOP_K && place >= 0) {
            number += x.origin[d];
            if (t.n_in == 2) /* results of parts come with their numbers */
                number = oly_load_number(t.in[1].dtype == OLY_T_i64, t.in[1].base,
                                         oly_line_offset(out.rank, out.extent, t.in[1].stride, d, line) +
                                             place * t.in[1].stride[d]);
        }
        oly_store_number(wide, out.base, to, number < 0 ? -1 : number);
        if (task.elements) {
            oly_value v = oly_bits_value(0);
            if (number >= 0)
                v = oly_load_bits(bytes, x.base + (from + place * x.stride[d]) * bytes);
            oly_store_bits(bytes, task.elements + to * bytes, v);
        }
    }
}
