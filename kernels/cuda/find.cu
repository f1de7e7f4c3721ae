/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers of the largest or smallest elements, and searches in sorted lines: as cpu/argreduce.c and cpu/search.c. Of equal elements
 * the first is found, whatever the order in which pieces are compared; nothing is larger or smaller than a NaN. */
#include "boxes.h"

/* int64_t, uint64_t, float or double; complex numbers have no largest. */
#define BY_REAL_TYPE(dtype, f, ...)                                                                                    \
    switch (dtype) {                                                                                                   \
    case OLY_T_i8:                                                                                                     \
    case OLY_T_i16:                                                                                                    \
    case OLY_T_i32:                                                                                                    \
    case OLY_T_i64: f<int64_t>(__VA_ARGS__); break;                                                                    \
    case OLY_T_f64: f<double>(__VA_ARGS__); break;                                                                     \
    case OLY_T_f32:                                                                                                    \
    case OLY_T_f16:                                                                                                    \
    case OLY_T_bf16:                                                                                                   \
    case OLY_T_f8_e4m3fn:                                                                                              \
    case OLY_T_f8_e5m2: f<float>(__VA_ARGS__); break;                                                                  \
    default: f<uint64_t>(__VA_ARGS__); break;                                                                          \
    }

template <class A> OLY_DEVICE bool better(bool smallest, A x, A y)
{
    return (smallest ? x < y : x > y) || (x != x && y == y);
}
/* Elements and their numbers; -1: none. */
template <class A> OLY_DEVICE bool wins(bool smallest, A x, int64_t number, A y, int64_t than)
{
    return number >= 0 && (than < 0 || better(smallest, x, y) || (number < than && !better(smallest, y, x)));
}

/* Frequent types without a choice for each element. */
OLY_DEVICE void load(int dtype, const char *base, int64_t i, float *x)
{
    if (dtype == OLY_T_f32)
        *x = ((const float *)base)[i];
    else
        oly_load(dtype, base, i, x);
}
OLY_DEVICE void load(int dtype, const char *base, int64_t i, int64_t *x)
{
    if (dtype == OLY_T_i32)
        *x = ((const int32_t *)base)[i];
    else
        oly_load(dtype, base, i, x);
}
template <class A> OLY_DEVICE void load(int dtype, const char *base, int64_t i, A *x)
{
    oly_load(dtype, base, i, x);
}

/* -- argreductions: some lanes of a warp, a power of 2, for each result and piece --------------------------------------------------- */
enum { AHEAD = 4 }; /* elements that are read before they are compared */

/* The elements' offsets and weights. */
OLY_DEVICE void locate(const oly_cuda_find_task &t, int64_t e, int64_t *offset, int64_t *weight)
{
    int64_t at[OLY_MAX_RANK];
    if (t.reduced.rank <= 1) { /* without dimensions e is 0 */
        *offset = e * t.reduced.stride[0];
        *weight = e * t.weight[0];
        return;
    }
    oly_unravel(t.reduced.rank, t.reduced.extent, e, at);
    *offset = oly_offset(t.reduced.rank, at, t.reduced.stride);
    *weight = oly_offset(t.reduced.rank, at, t.weight);
}
/* The best of the group's lanes, in its first. */
template <class A> OLY_DEVICE void find_among(const oly_cuda_find_task &t, A *best, int64_t *number)
{
    for (int half = t.lanes / 2; half > 0; half /= 2) {
        A next = oly_shuffle_down(*best, half);
        int64_t other = oly_shuffle_down(*number, half);
        if (wins(t.smallest, next, other, *best, *number)) {
            *best = next;
            *number = other;
        }
    }
}
template <class A> OLY_DEVICE void find(const oly_cuda_find_task &t)
{
    const int lane = oly_lane() & (t.lanes - 1);
    const int64_t all = t.n * t.pieces, step = oly_stride() / t.lanes;
    /* whole warps go on together: of the last one some groups have nothing to do */
    for (int64_t i = oly_index() / t.lanes, first = i - oly_lane() / t.lanes; first < all; i += step, first += step) {
        int64_t k = i % t.n, piece = i / t.n, number = -1, begin = 0, end = 0, base = 0;
        A best = A();
        if (i < all) {
            base = oly_offset_in(t.kept, k);
            begin = t.length * piece / t.pieces;
            end = t.length * (piece + 1) / t.pieces;
        }
        for (int64_t e = begin + lane; e < end; e += AHEAD * t.lanes) {
            A next[AHEAD];
            int64_t weight[AHEAD];
            OLY_UNROLL
            for (int j = 0; j < AHEAD; j++) {
                int64_t offset, x = e + j * t.lanes;
                locate(t, x < end ? x : e, &offset, &weight[j]);
                load(t.dtype, t.in, base + offset, &next[j]);
            }
            OLY_UNROLL
            for (int j = 0; j < AHEAD; j++)
                if (e + j * t.lanes < end && (number < 0 || better(t.smallest, next[j], best))) {
                    best = next[j];
                    number = t.first + weight[j];
                }
        }
        find_among(t, &best, &number);
        if (lane == 0 && i < all) {
            oly_store_number(t.wide, t.to, i, number);
            if (t.elements)
                oly_store(t.dtype, t.elements, i, best);
        }
    }
}
OLY_KERNEL_BLOCK_BOUNDED(oly_find, oly_cuda_find_task, OLY_CUDA_THREADS, 2)
{
    BY_REAL_TYPE(task.dtype, find, task)
}

/* Adjacent elements of a frequent type, 16 bytes at a time where they are aligned, by the lanes of a warp. Numbers count from the piece's
 * beginning, so 32 bits hold them; a lane meets its elements in ascending order, and keeps the first of equal ones. */
template <class T> struct alignas(16) vector_of {
    T at[16 / sizeof(T)];
};
template <class T> OLY_DEVICE void consider(bool smallest, T x, int32_t number, T *best, int32_t *found)
{
    if (better(smallest, x, *best)) {
        *best = x;
        *found = number;
    }
}
template <class T, class A, bool smallest> OLY_DEVICE void find_direction(const oly_cuda_find_task &t)
{
    enum { WIDTH = 16 / sizeof(T), VECTORS = 4, ROUND = OLY_WARP * WIDTH };
    const int lane = oly_lane();
    const int64_t all = t.n * t.pieces, step = oly_stride() / OLY_WARP;
    for (int64_t i = oly_index() / OLY_WARP; i < all; i += step) {
        const int64_t piece = i / t.n, begin = t.length * piece / t.pieces;
        const int32_t n = (int32_t)(t.length * (piece + 1) / t.pieces - begin);
        const T *from = (const T *)t.in + oly_offset_in(t.kept, i - piece * t.n) + begin;
        /* those before the first aligned one, by the first lanes; each lane has one element to begin with */
        int32_t e = (int32_t)((0 - (uintptr_t)from) / sizeof(T) & (WIDTH - 1)), found = lane < n ? lane : 0;
        T best = from[found];
        e = e < n ? e : n;
        for (; e + (VECTORS - 1) * ROUND + ROUND <= n; e += VECTORS * ROUND) {
            vector_of<T> x[VECTORS];
            OLY_UNROLL
            for (int v = 0; v < VECTORS; v++)
                x[v] = *(const vector_of<T> *)(from + e + v * ROUND + lane * WIDTH);
            OLY_UNROLL
            for (int v = 0; v < VECTORS; v++) {
                OLY_UNROLL
                for (int j = 0; j < WIDTH; j++)
                    consider(smallest, x[v].at[j], e + v * ROUND + lane * WIDTH + j, &best, &found);
            }
        }
        for (e += lane; e < n; e += OLY_WARP)
            consider(smallest, from[e], e, &best, &found);
        A widest = (A)best;
        int64_t number = t.first + begin + found;
        find_among(t, &widest, &number);
        if (lane == 0) {
            oly_store_number(t.wide, t.to, i, number);
            if (t.elements)
                ((T *)t.elements)[i] = (T)widest;
        }
    }
}
template <class T, class A> OLY_DEVICE void find_adjacent(const oly_cuda_find_task &t)
{
    if (t.smallest)
        find_direction<T, A, true>(t);
    else
        find_direction<T, A, false>(t);
}
OLY_KERNEL_BLOCK_BOUNDED(oly_find_adjacent, oly_cuda_find_task, OLY_CUDA_THREADS, 4)
{
    switch (task.dtype) {
    case OLY_T_f32: find_adjacent<float, float>(task); break;
    case OLY_T_f64: find_adjacent<double, double>(task); break;
    case OLY_T_i32: find_adjacent<int32_t, int64_t>(task); break;
    case OLY_T_i64: find_adjacent<int64_t, int64_t>(task); break;
    }
}

/* The pieces' results, in the same way. */
template <class A> OLY_DEVICE void join_found(const oly_cuda_find_task &t)
{
    const int lane = oly_lane() & (t.lanes - 1);
    const int64_t step = oly_stride() / t.lanes;
    for (int64_t i = oly_index() / t.lanes, first = i - oly_lane() / t.lanes; first < t.n; i += step, first += step) {
        int64_t number = -1;
        A best = A(), next;
        for (int64_t p = lane; p < t.pieces && i < t.n; p += t.lanes) {
            oly_load(t.dtype, t.in, p * t.n + i, &next);
            if (wins(t.smallest, next, t.numbers[p * t.n + i], best, number)) {
                best = next;
                number = t.numbers[p * t.n + i];
            }
        }
        find_among(t, &best, &number);
        if (lane == 0 && i < t.n) {
            oly_store_number(t.wide, t.to, i, number);
            if (t.elements)
                oly_store(t.dtype, t.elements, i, best);
        }
    }
}
OLY_KERNEL_BLOCK_BOUNDED(oly_find_join, oly_cuda_find_task, OLY_CUDA_THREADS, 2)
{
    BY_REAL_TYPE(task.dtype, join_found, task)
}

/* The same of many pieces, by a block for each result. */
template <class A> OLY_DEVICE void join_many(const oly_cuda_find_task &t)
{
    enum { WARPS = OLY_CUDA_THREADS / OLY_WARP };
    OLY_SHARED(A, bests, WARPS);
    OLY_SHARED(int64_t, numbers, WARPS);
    const int thread = oly_thread();
    for (int64_t i = oly_block(); i < t.n; i += oly_blocks()) {
        int64_t number = -1;
        A best = A();
        for (int64_t p = thread; p < t.pieces; p += AHEAD * OLY_CUDA_THREADS) {
            A next[AHEAD];
            int64_t of[AHEAD];
            OLY_UNROLL
            for (int j = 0; j < AHEAD; j++) {
                const int64_t x = p + j * OLY_CUDA_THREADS, at = (x < t.pieces ? x : p) * t.n + i;
                oly_load(t.dtype, t.in, at, &next[j]);
                of[j] = t.numbers[at];
            }
            OLY_UNROLL
            for (int j = 0; j < AHEAD; j++) /* the last ones again: no harm */
                if (wins(t.smallest, next[j], of[j], best, number)) {
                    best = next[j];
                    number = of[j];
                }
        }
        find_among(t, &best, &number);
        if (oly_lane() == 0) {
            bests[oly_warp()] = best;
            numbers[oly_warp()] = number;
        }
        oly_barrier();
        if (oly_warp() == 0) {
            best = bests[oly_lane() % WARPS];
            number = numbers[oly_lane() % WARPS];
            find_among(t, &best, &number);
            if (thread == 0) {
                oly_store_number(t.wide, t.to, i, number);
                if (t.elements)
                    oly_store(t.dtype, t.elements, i, best);
            }
        }
        oly_barrier();
    }
}
OLY_KERNEL_BLOCK_BOUNDED(oly_find_join_many, oly_cuda_find_task, OLY_CUDA_THREADS, 2)
{
    BY_REAL_TYPE(task.dtype, join_many, task)
}

/* The devices' results: in[0] elements, in[1] their numbers, along `axes`. A thread for each result. */
template <class A> OLY_DEVICE void pick(const oly_cuda_local_task &t)
{
    const oly_cuda_box &x = t.in[0], &numbers = t.in[1];
    int64_t kept[OLY_MAX_RANK], parts = 1;
    int n_kept = 0, kept_dimension[OLY_MAX_RANK];
    for (int d = 0, k = 0; d < x.rank; d++)
        if (k < t.n_axes && t.axes[k] == d) {
            parts *= x.extent[d];
            k++;
        } else {
            kept[n_kept] = x.extent[d];
            kept_dimension[n_kept++] = d;
        }
    for (int64_t i = oly_index(); i < t.n; i += oly_stride()) {
        int64_t at[OLY_MAX_RANK], from = 0, from_number = 0, found = -1;
        A best = A(), next;
        oly_unravel(n_kept, kept, i, at);
        for (int d = 0; d < n_kept; d++) {
            from += at[d] * x.stride[kept_dimension[d]];
            from_number += at[d] * numbers.stride[kept_dimension[d]];
        }
        for (int64_t p = 0; p < parts; p++) {
            int64_t rest = p, offset = from, offset_number = from_number;
            for (int a = t.n_axes - 1; a >= 0; a--) {
                int d = t.axes[a];
                offset += rest % x.extent[d] * x.stride[d];
                offset_number += rest % x.extent[d] * numbers.stride[d];
                rest /= x.extent[d];
            }
            int64_t number = oly_load_number(numbers.dtype == OLY_T_i64, numbers.base, offset_number);
            oly_load(x.dtype, x.base, offset, &next);
            if (wins(t.reverse, next, number, best, found)) {
                best = next;
                found = number;
            }
        }
        oly_store_number(t.out.dtype == OLY_T_i64, t.out.base, i, found);
    }
}
OLY_KERNEL(oly_pick, oly_cuda_local_task)
{
    BY_REAL_TYPE(task.in[0].dtype, pick, task)
}

/* -- searches: a thread for each element that is looked for -------------------------------------------------------------------------- */
OLY_DEVICE bool before(int64_t x, int64_t y)
{
    return x < y;
}
OLY_DEVICE bool before(uint64_t x, uint64_t y)
{
    return x < y;
}
OLY_DEVICE bool before(double x, double y)
{
    return x < y || (x == x && y != y);
}
OLY_DEVICE bool before(float x, float y)
{
    return x < y || (x == x && y != y);
}
OLY_DEVICE bool same(double x, double y)
{
    return x == y || (x != x && y != y);
}
OLY_DEVICE bool before(oly_c128 x, oly_c128 y)
{
    return before(x.re, y.re) || (same(x.re, y.re) && before(x.im, y.im));
}
OLY_DEVICE bool before(oly_c64 x, oly_c64 y)
{
    return before(oly_z_widened(x), oly_z_widened(y));
}
template <class A> OLY_DEVICE void search(const oly_cuda_local_task &t)
{
    const oly_cuda_box &lines = t.in[0], &sought = t.in[1];
    for (int64_t i = oly_index(); i < t.n; i += oly_stride()) {
        int64_t at[OLY_MAX_RANK], found = 0, stride = lines.stride[t.n_batch];
        A x, middle;
        oly_unravel(t.out.rank, t.out.extent, i, at);
        int64_t line = oly_offset(t.n_batch, at, lines.stride);
        oly_load(lines.dtype, sought.base, oly_offset(sought.rank, at, sought.stride), &x);
        for (int64_t left = lines.extent[t.n_batch]; left > 0;) {
            int64_t half = (left + 1) / 2;
            oly_load(lines.dtype, lines.base, line + (found + half - 1) * stride, &middle);
            if (t.reverse ? !before(x, middle) : before(middle, x))
                found += half;
            left -= half;
        }
        oly_store_number(t.out.dtype == OLY_T_i64, t.out.base, i, found);
    }
}
OLY_KERNEL(oly_search, oly_cuda_local_task)
{
    OLY_BY_TYPE(task.in[0].dtype, search, task)
}
