/* SPDX-License-Identifier: BSD-3-Clause */
/* Running results along lines: as cpu/scan.c, in float for narrow types, rounded once. Short lines: a thread for each, one element after the
 * other, with the CPU's bits. Long ones are divided into segments, which go on from the totals of those before: of lines side by side threads
 * have a segment each, so that a warp reads adjacent elements; of others blocks scan tiles of 2048 elements. Sums then have an
 * order of their own, fixed by the shape. launch_scan.c chooses. */
#include "boxes.h"

enum { ITEMS = 8, TILE = OLY_CUDA_THREADS * ITEMS, AHEAD = 8 }; /* AHEAD: elements read before they are added */

/* -- the logarithm of the sum of exponentials, in double precision ------------------------------------------------------------------ */
__device__ __noinline__ static double log_add_exp(double x, double y)
{
    double larger = x > y ? x : y, distance = x - y;
    return distance != distance ? x + y : larger + log1p_f64(exp_f64(-fabs(distance)));
}
__device__ __noinline__ static double double_of(int dtype, const char *at)
{
    return oly_as<double>(oly_convert(dtype, OLY_T_f64, oly_load_bits(oly_bytes_of(dtype), at)));
}
__device__ __noinline__ static void store_double(int dtype, char *at, double x)
{
    oly_store_bits(oly_bytes_of(dtype), at, oly_convert(OLY_T_f64, dtype, oly_put(x)));
}

template <class A> OLY_DEVICE A joined(int c, A x, A y)
{
    return oly_joined(c, x, y);
}
OLY_DEVICE double joined(int c, double x, double y)
{
    return c < 0 ? log_add_exp(x, y) : oly_joined(c, x, y);
}
template <class A> OLY_DEVICE void load(int dtype, const char *base, int64_t i, A *x)
{
    oly_load(dtype, base, i, x);
}
OLY_DEVICE void load(int dtype, const char *base, int64_t i, double *x)
{
    if (dtype == OLY_T_f64)
        oly_load(dtype, base, i, x);
    else
        *x = double_of(dtype, base + i * oly_bytes_of(dtype));
}
template <class A> OLY_DEVICE void store(int dtype, char *base, int64_t i, A x)
{
    oly_store(dtype, base, i, x);
}
OLY_DEVICE void store(int dtype, char *base, int64_t i, double x)
{
    if (dtype == OLY_T_f64)
        oly_store(dtype, base, i, x);
    else
        store_double(dtype, base + i * oly_bytes_of(dtype), x);
}

/* -- lines ---------------------------------------------------------------------------------------------------------------------------- */
typedef struct line {
    int64_t in, out, before; /* offsets of the first element */
} line;
OLY_DEVICE line line_at(const oly_cuda_scan_task &t, int64_t number)
{
    int64_t at[OLY_MAX_RANK];
    line l;
    oly_unravel(t.line.rank, t.line.extent, number, at);
    l.in = oly_offset(t.line.rank, at, t.line.stride);
    l.out = oly_offset(t.line.rank, at, t.out_stride);
    l.before = oly_offset(t.line.rank, at, t.before_stride);
    return l;
}
/* The results of the parts that come before; false: there are none. */
template <class A> OLY_DEVICE bool read_before(const oly_cuda_scan_task &t, const line &l, A *x)
{
    int first = t.reverse ? t.parts - 1 : 0, by = t.reverse ? -1 : 1;
    if (!t.before || first == t.part)
        return false;
    oly_load(t.total_to, t.before, l.before + first * t.before_step, x);
    for (int p = first + by; p != t.part; p += by) {
        A next;
        oly_load(t.total_to, t.before, l.before + p * t.before_step, &next);
        *x = joined(t.combiner, *x, next);
    }
    return true;
}

/* Segments of a line are n apart, so that the threads of a warp read adjacent lines; so are totals and carries. */
template <class A> OLY_DEVICE void scan_lines(const oly_cuda_scan_task &t)
{
    for (int64_t number = oly_index(); number < t.n * t.segments; number += oly_stride()) {
        const int64_t i = number % t.n, segment = number / t.n;
        const int64_t begin = t.length * segment / t.segments, end = t.length * (segment + 1) / t.segments;
        line l = line_at(t, i);
        A sum = A(), next[AHEAD];
        bool begun = read_before(t, l, &sum);
        if (segment > 0 && t.carry) {
            oly_load(t.total_to, t.carry, number - t.n, &next[0]);
            sum = begun ? joined(t.combiner, sum, next[0]) : next[0];
            begun = true;
        }
        for (int64_t k = begin; k < end; k += AHEAD) {
            OLY_UNROLL
            for (int j = 0; j < AHEAD; j++) {
                int64_t at = k + j < end ? k + j : end - 1;
                load(t.dtype, t.in, l.in + (t.reverse ? t.length - 1 - at : at) * t.in_step, &next[j]);
            }
            OLY_UNROLL
            for (int j = 0; j < AHEAD; j++) {
                if (k + j >= end)
                    break;
                int64_t at = t.reverse ? t.length - 1 - k - j : k + j;
                sum = begun ? joined(t.combiner, sum, next[j]) : next[j];
                begun = true;
                if (t.out)
                    store(t.to, t.out, l.out + at * t.out_step, sum);
            }
        }
        if (t.totals)
            oly_store(t.total_to, t.totals, number, sum);
    }
}
OLY_KERNEL(oly_scan_lines, oly_cuda_scan_task)
{
    if (task.combiner < 0)
        scan_lines<double>(task);
    else
        OLY_BY_TYPE(task.dtype, scan_lines, task)
}

/* -- segments: a block for each -------------------------------------------------------------------------------------------------------- */
/* Items of a thread are adjacent: a gap for each keeps threads in banks of their own. */
OLY_DEVICE int gap(int i)
{
    return i + i / ITEMS;
}
/* Replaces each thread's items of the `m` elements of the tile by running results; sums: of all items up to each thread's last. */
template <class A> OLY_DEVICE void scan_tile(int c, int m, A *tile, A *sums)
{
    int thread = oly_thread(), first = thread * ITEMS, n_sums = (m + ITEMS - 1) / ITEMS;
    A sum = A();
    if (first < m) {
        sum = tile[gap(first)];
        for (int i = first + 1; i < first + ITEMS && i < m; i++) {
            sum = joined(c, sum, tile[gap(i)]);
            tile[gap(i)] = sum;
        }
        sums[thread] = sum;
    }
    oly_barrier();
    for (int by = 1; by < n_sums; by *= 2) {
        bool has = thread >= by && thread < n_sums;
        if (has)
            sum = joined(c, sums[thread - by], sum);
        oly_barrier();
        if (has)
            sums[thread] = sum;
        oly_barrier();
    }
}
template <class A> OLY_DEVICE void scan_segment(const oly_cuda_scan_task &t, int64_t number)
{
    OLY_SHARED_DYNAMIC(A, tile);
    A *sums = tile + TILE + TILE / ITEMS;
    int thread = oly_thread(), c = t.combiner;
    int64_t i = number / t.segments, segment = number % t.segments;
    int64_t begin = t.length * segment / t.segments, end = t.length * (segment + 1) / t.segments;
    line l = line_at(t, i);
    A carry = A();
    bool begun = read_before(t, l, &carry);
    if (segment > 0 && t.carry) {
        A before;
        oly_load(t.total_to, t.carry, number - 1, &before);
        carry = begun ? joined(c, carry, before) : before;
        begun = true;
    }
    for (int64_t base = begin; base < end; base += TILE) {
        int m = end - base < TILE ? (int)(end - base) : TILE;
        for (int k = thread; k < m; k += OLY_CUDA_THREADS) {
            int64_t at = t.reverse ? t.length - 1 - base - k : base + k;
            load(t.dtype, t.in, l.in + at * t.in_step, &tile[gap(k)]);
        }
        oly_barrier();
        scan_tile(c, m, tile, sums);
        int first = thread * ITEMS;
        if (t.out && first < m && (begun || thread > 0)) {
            A before = thread > 0 ? sums[thread - 1] : carry;
            if (begun && thread > 0)
                before = joined(c, carry, before);
            for (int j = first; j < first + ITEMS && j < m; j++)
                tile[gap(j)] = joined(c, before, tile[gap(j)]);
        }
        A total = sums[(m + ITEMS - 1) / ITEMS - 1];
        carry = begun ? joined(c, carry, total) : total;
        begun = true;
        oly_barrier();
        for (int k = thread; t.out && k < m; k += OLY_CUDA_THREADS) {
            int64_t at = t.reverse ? t.length - 1 - base - k : base + k;
            store(t.to, t.out, l.out + at * t.out_step, tile[gap(k)]);
        }
        oly_barrier();
    }
    if (t.totals && thread == 0)
        oly_store(t.total_to, t.totals, number, carry);
}
template <class A> OLY_DEVICE void scan_segments(const oly_cuda_scan_task &t)
{
    for (int64_t k = oly_block(); k < t.n * t.segments; k += oly_blocks())
        scan_segment<A>(t, k);
}
OLY_KERNEL_BLOCK_BOUNDED(oly_scan_segments, oly_cuda_scan_task, OLY_CUDA_THREADS, 2)
{
    if (task.combiner < 0)
        scan_segments<double>(task);
    else
        OLY_BY_TYPE(task.dtype, scan_segments, task)
}
