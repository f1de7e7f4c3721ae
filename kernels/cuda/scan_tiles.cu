/* SPDX-License-Identifier: BSD-3-Clause */
/* Running results along long lines of frequent types. A block scans a tile: each warp has adjacent rows of 32 vectors, which it reads and
 * writes in whole lines, scans by shuffles and joins through shared memory. A line is a block's, tile after tile, or, of few lines, all of
 * them at once: in one pass over memory, as blocks take tiles in order and find what comes before in the totals of others.
 *
 * Sums have an order of their own, which follows from the shape alone. What comes before a tile is, in this order: all tiles of the
 * thousands before (SPAN * SPAN tiles), the totals of whole groups of SPAN tiles in its thousand, and those of the tiles in its group; the
 * last two as trees of a warp. A total is published in words of 8 bytes: half of it is a mark that it is there. */
#include "boxes.h"

enum { WARPS = OLY_CUDA_THREADS / OLY_WARP, SPAN = OLY_CUDA_SCAN_SPAN };

/* -- types and combiners ---------------------------------------------------------------------------------------------------------- */
template <int dtype, class T, class A> struct number : oly_known<dtype, T, A> {
    typedef T element;
    typedef A value;
    enum { WIDTH = 16 / sizeof(T), ROWS = sizeof(T) == 2 ? 2 : 4, TILE = OLY_CUDA_THREADS * WIDTH * ROWS };
};
/* What leaves every element as it is: of sums of floating numbers zero with a sign. */
#define IDENTITY(A, zero, least, most)                                                                                 \
    OLY_DEVICE A identity(A, int combiner)                                                                             \
    {                                                                                                                  \
        return combiner == OLY_COMBINE_SUM    ? zero                                                                   \
               : combiner == OLY_COMBINE_PROD ? (A)1                                                                   \
               : combiner == OLY_COMBINE_MAX  ? least                                                                  \
                                              : most;                                                                   \
    }
IDENTITY(float, -0.0f, -(float)INFINITY, (float)INFINITY)
IDENTITY(double, -0.0, -(double)INFINITY, (double)INFINITY)
IDENTITY(int32_t, 0, INT32_MIN, INT32_MAX)
IDENTITY(int64_t, 0, INT64_MIN, INT64_MAX)
template <class A> OLY_DEVICE A identity_of(int combiner)
{
    return identity(A(), combiner);
}

/* -- lines, as in scan.cu ---------------------------------------------------------------------------------------------------------- */
typedef struct line {
    const char *in;
    char *out;
    bool in_vectors, out_vectors; /* aligned, and adjacent */
} line;
template <class T> OLY_DEVICE bool in_vectors(const void *first, int64_t step, int64_t past)
{
    return step == 1 && ((uintptr_t)first + (uintptr_t)past * sizeof(T)) % 16 == 0;
}
template <class T> OLY_DEVICE line line_at(const oly_cuda_scan_task &t, int64_t n)
{
    line l;
    int64_t in = 0, out = 0, rest = n;
    for (int d = t.line.rank - 1; d >= 0; d--) {
        const int64_t next = rest / t.line.extent[d], at = rest - next * t.line.extent[d];
        in += at * t.line.stride[d];
        out += at * t.out_stride[d];
        rest = next;
    }
    l.in = t.in + in * (int64_t)sizeof(T);
    l.out = t.out ? t.out + out * (int64_t)sizeof(T) : (char *)0;
    const int64_t past = t.reverse ? t.length : 0; /* the last vector of reversed lines is the first */
    l.in_vectors = in_vectors<T>(l.in, t.in_step, past);
    l.out_vectors = in_vectors<T>(l.out, t.out_step, past);
    return l;
}
/* The results of the line's parts that come before, joined. */
template <class A> OLY_DEVICE A read_before(const oly_cuda_scan_task &t, int64_t n, int combiner)
{
    const int first = t.reverse ? t.parts - 1 : 0, by = t.reverse ? -1 : 1;
    A x = identity_of<A>(combiner);
    if (!t.before || first == t.part)
        return x;
    int64_t offset = 0;
    for (int d = t.line.rank - 1; d >= 0; d--) {
        const int64_t next = n / t.line.extent[d];
        offset += (n - next * t.line.extent[d]) * t.before_stride[d];
        n = next;
    }
    for (int p = first; p != t.part; p += by)
        x = oly_joined(combiner, x, ((const A *)t.before)[offset + p * t.before_step]);
    return x;
}

#define METHOD __device__ __forceinline__ /* of an object */

/* -- tiles: row r of a thread is its vector number warp * ROWS * 32 + r * 32 + lane of the tile ----------------------------------------- */
template <class T> struct alignas(16) vector_of {
    T at[16 / sizeof(T)];
};
template <class X, int combiner> struct tile_of {
    typedef typename X::element T;
    typedef typename X::value A;
    enum { WIDTH = X::WIDTH, ROWS = X::ROWS };
    A x[ROWS][WIDTH];
    A lanes_before[ROWS], rows_before[ROWS];

    METHOD A join(A a, A b) { return oly_joined(combiner, a, b); }
    METHOD int first(int r) { return ((oly_warp() * ROWS + r) * OLY_WARP + oly_lane()) * WIDTH; }
    /* Of the elements from `base` on there are m here. */
    METHOD void load(const oly_cuda_scan_task &t, const line &l, int64_t base, int m)
    {
        const bool back = t.reverse;
        const T *in = (const T *)l.in + (back ? t.length - 1 - base : base) * t.in_step;
        const int64_t by = back ? -t.in_step : t.in_step;
        OLY_UNROLL
        for (int r = 0; r < ROWS; r++) {
            if (l.in_vectors && first(r) + WIDTH <= m) {
                const vector_of<T> v = *(const vector_of<T> *)(back ? in - first(r) - (WIDTH - 1) : in + first(r));
                OLY_UNROLL
                for (int j = 0; j < WIDTH; j++)
                    x[r][j] = X::wide(back ? v.at[WIDTH - 1 - j] : v.at[j]);
                continue;
            }
            OLY_UNROLL
            for (int j = 0; j < WIDTH; j++)
                x[r][j] = first(r) + j < m ? X::wide(in[(first(r) + j) * by]) : identity_of<A>(combiner);
        }
    }
    /* Scans the warp's rows; returns their total. */
    METHOD A scan()
    {
        A total = identity_of<A>(combiner);
        OLY_UNROLL
        for (int r = 0; r < ROWS; r++) {
            OLY_UNROLL
            for (int j = 1; j < WIDTH; j++)
                x[r][j] = join(x[r][j - 1], x[r][j]);
            A sum = x[r][WIDTH - 1];
            OLY_UNROLL
            for (int by = 1; by < OLY_WARP; by *= 2) {
                const A before = oly_shuffle_up(sum, by);
                sum = oly_lane() >= by ? join(before, sum) : sum;
            }
            const A before = oly_shuffle_up(sum, 1), row = oly_shuffle(sum, OLY_WARP - 1);
            lanes_before[r] = oly_lane() > 0 ? before : identity_of<A>(combiner);
            rows_before[r] = total;
            total = join(total, row);
        }
        return total;
    }
    METHOD void store(const oly_cuda_scan_task &t, const line &l, int64_t base, int m, A before)
    {
        const bool back = t.reverse;
        T *out = (T *)l.out + (back ? t.length - 1 - base : base) * t.out_step;
        const int64_t by = back ? -t.out_step : t.out_step;
        OLY_UNROLL
        for (int r = 0; r < ROWS; r++) {
            const A from = join(join(before, rows_before[r]), lanes_before[r]);
            vector_of<T> v;
            OLY_UNROLL
            for (int j = 0; j < WIDTH; j++)
                x[r][j] = join(from, x[r][j]);
            if (l.out_vectors && first(r) + WIDTH <= m) {
                OLY_UNROLL
                for (int j = 0; j < WIDTH; j++)
                    v.at[j] = X::narrow(back ? x[r][WIDTH - 1 - j] : x[r][j]);
                *(vector_of<T> *)(back ? out - first(r) - (WIDTH - 1) : out + first(r)) = v;
                continue;
            }
            OLY_UNROLL
            for (int j = 0; j < WIDTH; j++)
                if (first(r) + j < m)
                    out[(first(r) + j) * by] = X::narrow(x[r][j]);
        }
    }
    /* Of all warps' totals: those before this warp's, and all. */
    METHOD A join_warps(const A *totals, A *before)
    {
        A all = identity_of<A>(combiner);
        OLY_UNROLL
        for (int w = 0; w < WARPS; w++) {
            if (w == oly_warp())
                *before = all;
            all = join(all, totals[w]);
        }
        return all;
    }
};
template <class X> OLY_DEVICE int elements_from(int64_t length, int64_t base)
{
    return length - base < X::TILE ? (int)(length - base) : (int)X::TILE;
}

/* -- a block for each line --------------------------------------------------------------------------------------------------------- */
template <class X, int combiner> OLY_DEVICE void scan_rows(const oly_cuda_scan_task &t)
{
    typedef typename X::value A;
    OLY_SHARED(A, totals, 2 * WARPS); /* of this tile and of the one before, which other warps may still read */
    int now = 0;
    for (int64_t n = oly_block(); n < t.n; n += oly_blocks()) {
        const line l = line_at<typename X::element>(t, n);
        A before = read_before<A>(t, n, combiner);
        for (int64_t base = 0; base < t.length; base += X::TILE, now ^= 1) {
            const int m = elements_from<X>(t.length, base);
            tile_of<X, combiner> tile;
            A *of = totals + now * WARPS, warps_before = identity_of<A>(combiner);
            tile.load(t, l, base, m);
            const A total = tile.scan();
            if (oly_lane() == 0)
                of[oly_warp()] = total;
            oly_barrier();
            const A all = tile.join_warps(of, &warps_before);
            if (l.out)
                tile.store(t, l, base, m, tile.join(before, warps_before));
            before = tile.join(before, all);
        }
        if (t.totals && oly_thread() == 0)
            ((A *)t.totals)[n] = before;
    }
}

/* -- all tiles at once ------------------------------------------------------------------------------------------------------------- */
/* A value in words that also say that it is there: all of it, as each word is written and read at once. */
template <class A> struct published {
    enum { WORDS = sizeof(A) / 4 };
    OLY_DEVICE void write(uint64_t *chain, int64_t number, A x)
    {
        const uint64_t bits = oly_put(x).lo;
        for (int w = 0; w < WORDS; w++)
            oly_store_shared_by_blocks(chain + number * WORDS + w, (uint64_t)1 << 32 | (uint32_t)(bits >> 32 * w));
    }
    OLY_DEVICE bool read(const uint64_t *chain, int64_t number, A *x)
    {
        uint64_t bits = 0, there = 1;
        for (int w = 0; w < WORDS; w++) {
            const uint64_t word = oly_load_shared_by_blocks(chain + number * WORDS + w);
            bits |= (uint64_t)(uint32_t)word << 32 * w;
            there &= word >> 32;
        }
        oly_take(oly_bits_value(bits), x);
        return there != 0;
    }
};
/* The first n < 32 values from `number` on, one for each lane, joined; waits until they are there. Of a whole warp. */
template <class A, int combiner> OLY_DEVICE A join_published(const uint64_t *chain, int64_t number, int n)
{
    A x = identity_of<A>(combiner);
    bool waits = oly_lane() < n;
    do {
        A value;
        if (waits && published<A>::read(chain, number + oly_lane(), &value)) {
            x = value;
            waits = false;
        }
    } while (oly_any(waits));
    OLY_UNROLL
    for (int by = 1; by < OLY_WARP; by *= 2) {
        const A before = oly_shuffle_up(x, by);
        x = oly_lane() >= by ? oly_joined(combiner, before, x) : x;
    }
    return oly_shuffle(x, OLY_WARP - 1);
}
/* What comes before tile k of a line; its own total is published, and those that it completes. Of the first warp. */
template <class A, int combiner>
OLY_DEVICE A join_chain(const oly_cuda_scan_task &t, int64_t n, int64_t k, int64_t tiles, A total)
{
    const int64_t groups = (tiles + SPAN - 1) / SPAN, thousands = (groups + SPAN - 1) / SPAN;
    const int64_t group = k / SPAN, thousand = group / SPAN;
    const int in_group = (int)(k % SPAN), in_thousand = (int)(group % SPAN);
    uint64_t *of_tiles = t.chain + 1 + n * tiles * published<A>::WORDS;
    uint64_t *of_groups = t.chain + 1 + (t.n * tiles + n * groups) * published<A>::WORDS;
    uint64_t *of_thousands = t.chain + 1 + (t.n * (tiles + groups) + n * thousands) * published<A>::WORDS;
    if (oly_lane() == 0)
        published<A>::write(of_tiles, k, total);
    const A in_this_group = join_published<A, combiner>(of_tiles, group * SPAN, in_group);
    if (oly_lane() == 0 && in_group == SPAN - 1)
        published<A>::write(of_groups, group, oly_joined(combiner, in_this_group, total));
    A before = join_published<A, combiner>(of_groups, thousand * SPAN, in_thousand);
    if (thousand > 0) /* running results, one after the other */
        before = oly_joined(combiner, join_published<A, combiner>(of_thousands, thousand - 1, 1), before);
    before = oly_joined(combiner, before, in_this_group);
    if (oly_lane() == 0 && in_group == SPAN - 1 && in_thousand == SPAN - 1)
        published<A>::write(of_thousands, thousand, oly_joined(combiner, before, total));
    return before;
}
template <class X, int combiner> OLY_DEVICE void scan_chain(const oly_cuda_scan_task &t)
{
    typedef typename X::value A;
    OLY_SHARED(A, totals, WARPS);
    OLY_SHARED(A, carry, 1);
    OLY_SHARED(uint64_t, ticket, 1);
    const int64_t tiles = (t.length + X::TILE - 1) / X::TILE;
    for (;;) {
        if (oly_thread() == 0)
            *ticket = oly_atomic_add(t.chain, (uint64_t)1);
        oly_barrier();
        const int64_t number = (int64_t)*ticket, n = number / tiles, k = number - n * tiles, base = k * X::TILE;
        if (number >= t.n * tiles)
            return;
        const line l = line_at<typename X::element>(t, n);
        const int m = elements_from<X>(t.length, base);
        tile_of<X, combiner> tile;
        A warps_before = identity_of<A>(combiner);
        tile.load(t, l, base, m);
        const A total = tile.scan();
        if (oly_lane() == 0)
            totals[oly_warp()] = total;
        oly_barrier();
        A all = tile.join_warps(totals, &warps_before);
        if (oly_warp() == 0) {
            A before = identity_of<A>(combiner);
            if (k == 0) {
                before = read_before<A>(t, n, combiner);
                all = tile.join(before, all);
            }
            const A others = join_chain<A, combiner>(t, n, k, tiles, all);
            if (oly_lane() == 0) {
                *carry = k == 0 ? before : others;
                if (t.totals && k == tiles - 1)
                    ((A *)t.totals)[n] = tile.join(others, all);
            }
        }
        oly_barrier();
        if (l.out)
            tile.store(t, l, base, m, tile.join(*carry, warps_before));
    }
}

/* -- kernels: launch_scan.c has the same list ---------------------------------------------------------------------------------------- */
#define SCAN(s, T, A, name, combiner)                                                                                  \
    OLY_KERNEL_BLOCK_BOUNDED(oly_scan_rows_##s##_##name, oly_cuda_scan_task, OLY_CUDA_THREADS, 4)                      \
    {                                                                                                                  \
        scan_rows<number<OLY_T_##s, T, A>, OLY_COMBINE_##combiner>(task);                                              \
    }                                                                                                                  \
    OLY_KERNEL_BLOCK_BOUNDED(oly_scan_chain_##s##_##name, oly_cuda_scan_task, OLY_CUDA_THREADS, 3)                     \
    {                                                                                                                  \
        scan_chain<number<OLY_T_##s, T, A>, OLY_COMBINE_##combiner>(task);                                             \
    }
#define SCAN_ALL(s, T, A)                                                                                              \
    SCAN(s, T, A, sum, SUM)                                                                                            \
    SCAN(s, T, A, prod, PROD)                                                                                          \
    SCAN(s, T, A, max, MAX)                                                                                            \
    SCAN(s, T, A, min, MIN)
SCAN_ALL(f32, float, float)
SCAN_ALL(f64, double, double)
SCAN_ALL(i32, int32_t, int32_t)
SCAN_ALL(i64, int64_t, int64_t)
SCAN(f16, uint16_t, float, sum, SUM)
SCAN(bf16, uint16_t, float, sum, SUM)
