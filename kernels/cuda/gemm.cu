/* SPDX-License-Identifier: BSD-3-Clause */
/* Matrix products of any type. Every sum goes from left to right with fused multiply-add, as those of cpu/gemm.c do, so both kernels
 * here give the same bits: blocks of 64 x 64 results, 4 x 4 for each thread, from tiles in shared memory; and one result for each
 * thread, where the results have few rows or columns. Long sums of few results are computed in parts, which are added in order. */
#include "combining.h"

enum { SIDE = 64, DEPTH = 16, EACH = 4, ACROSS = SIDE / EACH, LINE = SIDE + 4 };

/* -- elements ---------------------------------------------------------------------------------------------------------------- */
/* Integers of up to 32 bits, and bools; wider ones are those of combining.h. */
OLY_DEVICE void read(int dtype, const char *base, int64_t i, uint32_t *x)
{
    uint64_t wide;
    if (dtype == OLY_T_u32) {
        *x = ((const uint32_t *)base)[i];
        return;
    }
    oly_read(dtype, base, i, &wide);
    *x = (uint32_t)wide;
}
template <class A> OLY_DEVICE void read(int dtype, const char *base, int64_t i, A *x)
{
    oly_read(dtype, base, i, x);
}
OLY_DEVICE void write(int dtype, char *base, int64_t i, uint32_t x)
{
    oly_write(dtype, base, i, (uint64_t)x);
}
template <class A> OLY_DEVICE void write(int dtype, char *base, int64_t i, A x)
{
    oly_write(dtype, base, i, x);
}

#define SUM_INTEGERS(T)                                                                                                \
    OLY_DEVICE T multiplied(int dtype, T sum, T x, T y)                                                                \
    {                                                                                                                  \
        return dtype == OLY_T_b8 ? sum | (x & y) : sum + x * y;                                                        \
    }                                                                                                                  \
    OLY_DEVICE T added(int dtype, T x, T y)                                                                            \
    {                                                                                                                  \
        return dtype == OLY_T_b8 ? x | y : x + y;                                                                      \
    }
SUM_INTEGERS(uint32_t)
SUM_INTEGERS(uint64_t)
OLY_DEVICE float multiplied(int, float sum, float x, float y)
{
    return oly_fma(x, y, sum);
}
OLY_DEVICE double multiplied(int, double sum, double x, double y)
{
    return oly_fma(x, y, sum);
}
#define MULTIPLIED(T, of)                                                                                              \
    OLY_DEVICE T multiplied(int, T sum, T x, T y)                                                                      \
    {                                                                                                                  \
        return of(oly_fma(-x.im, y.im, oly_fma(x.re, y.re, sum.re)),                                                   \
                  oly_fma(x.im, y.re, oly_fma(x.re, y.im, sum.im)));                                                   \
    }
MULTIPLIED(oly_c64, oly_w_of)
MULTIPLIED(oly_c128, oly_z_of)
template <class A> OLY_DEVICE A added(int, A x, A y)
{
    return oly_combined(OLY_COMBINE_SUM, x, y);
}

/* A single product is the result as it is: a zero keeps its sign. */
template <class A> OLY_DEVICE A empty_sum(int64_t k, A *)
{
    return (A)(k == 1 ? -0.0 : 0.0);
}
OLY_DEVICE oly_c64 empty_sum(int64_t k, oly_c64 *)
{
    return oly_w_of(k == 1 ? -0.0f : 0.0f, 0);
}
OLY_DEVICE oly_c128 empty_sum(int64_t k, oly_c128 *)
{
    return oly_z_of(k == 1 ? -0.0 : 0.0, 0);
}

/* -- places ------------------------------------------------------------------------------------------------------------------- */
struct matrices { /* the start of those of a batch */
    int64_t a, b, c;
};
OLY_DEVICE matrices matrices_of(const oly_gemm_task &t, int64_t batch)
{
    int64_t inner = batch % t.batch, rest = batch / t.batch;
    matrices at = {inner * t.a_batch, inner * t.b_batch, inner * t.c_batch};
    for (int k = t.n_outer - 1; k >= 0; k--) {
        int64_t i = rest % t.outer[k];
        rest /= t.outer[k];
        at.a += i * t.a_outer[k], at.b += i * t.b_outer[k], at.c += i * t.c_outer[k];
    }
    return at;
}

template <class A>
OLY_DEVICE void put(const oly_cuda_gemm_task &g, int64_t part, int64_t batch, int64_t c, int64_t row, int64_t column,
                    A sum)
{
    const oly_gemm_task &t = g.task;
    if (g.parts > 1)
        ((A *)g.partial)[((part * g.batches + batch) * t.m + row) * t.n + column] = sum;
    else
        write((int)t.dtype, g.c, c + row * t.c_row + column, sum);
}

OLY_DEVICE int64_t end_of_part(const oly_cuda_gemm_task &g, int64_t part)
{
    return g.task.k < (part + 1) * g.depth ? g.task.k : (part + 1) * g.depth;
}

/* -- kernels ------------------------------------------------------------------------------------------------------------------- */

/* Elements of a tile that a thread reads of each operand: zeros where there is nothing. Adjacent threads read adjacent elements. */
enum { OWN = SIDE * DEPTH / OLY_CUDA_THREADS };
template <class A>
OLY_DEVICE void load(const oly_cuda_gemm_task &g, matrices at, int64_t row, int64_t column, int64_t from, int depth,
                     A (&left)[OWN], A (&right)[OWN])
{
    const oly_gemm_task &t = g.task;
    int dtype = (int)t.dtype;
    OLY_UNROLL
    for (int j = 0; j < OWN; j++) {
        int i = oly_thread() + j * OLY_CUDA_THREADS;
        int r = t.a_column == 1 ? i / DEPTH : i % SIDE, k = t.a_column == 1 ? i % DEPTH : i / SIDE;
        left[j] = right[j] = empty_sum(0, (A *)0);
        if (k < depth && row + r < t.m)
            read(dtype, g.a, at.a + (row + r) * t.a_row + (from + k) * t.a_column, &left[j]);
        int c = t.b_column == 1 ? i % SIDE : i / DEPTH, l = t.b_column == 1 ? i / SIDE : i % DEPTH;
        if (l < depth && column + c < t.n)
            read(dtype, g.b, at.b + (from + l) * t.b_row + (column + c) * t.b_column, &right[j]);
    }
}
template <class A>
OLY_DEVICE void keep(const oly_gemm_task &t, const A (&own_left)[OWN], const A (&own_right)[OWN], A *left, A *right)
{
    OLY_UNROLL
    for (int j = 0; j < OWN; j++) {
        int i = oly_thread() + j * OLY_CUDA_THREADS;
        left[t.a_column == 1 ? i % DEPTH * LINE + i / DEPTH : i / SIDE * LINE + i % SIDE] = own_left[j];
        right[t.b_column == 1 ? i / SIDE * LINE + i % SIDE : i % DEPTH * LINE + i / DEPTH] = own_right[j];
    }
}

/* Elements that are read together: a thread has vectors of neighbouring rows, and of columns that lie ACROSS vectors apart. */
template <class A> struct alignas(16) vector {
    static constexpr int length = 16 / (int)sizeof(A);
    A of[16 / sizeof(A)];
};
template <class A> OLY_DEVICE int own_column(int j)
{
    constexpr int V = vector<A>::length;
    return j / V * ACROSS * V + oly_thread() % ACROSS * V + j % V;
}

/* Row k of the tiles. */
template <class A> OLY_DEVICE void accumulate(int dtype, const A *left, const A *right, A (&sum)[EACH][EACH])
{
    constexpr int V = vector<A>::length;
    vector<A> p[EACH / V], q[EACH / V];
    OLY_UNROLL
    for (int k = 0; k < EACH / V; k++) {
        p[k] = *(const vector<A> *)(left + oly_thread() / ACROSS * EACH + k * V);
        q[k] = *(const vector<A> *)(right + own_column<A>(k * V));
    }
    OLY_UNROLL
    for (int i = 0; i < EACH; i++) {
        OLY_UNROLL
        for (int j = 0; j < EACH; j++)
            sum[i][j] = multiplied(dtype, sum[i][j], p[i / V].of[i % V], q[j / V].of[j % V]);
    }
}

template <class A, bool BOOLS> OLY_DEVICE void product(const oly_cuda_gemm_task &g, A *left, A *right)
{
    const oly_gemm_task &t = g.task;
    int64_t rows = (t.m + SIDE - 1) / SIDE, columns = (t.n + SIDE - 1) / SIDE, all = rows * columns * g.batches;
    int y = oly_thread() / ACROSS;
    const int kind = BOOLS ? OLY_T_b8 : OLY_T_u64; /* known when this is compiled: of any other type */
    for (int64_t number = oly_block(); number < all * g.parts; number += oly_blocks()) {
        int64_t column = number % columns * SIDE, row = number / columns % rows * SIDE;
        int64_t batch = number / (columns * rows) % g.batches, part = number / all, end = end_of_part(g, part);
        matrices at = matrices_of(t, batch);
        A sum[EACH][EACH], own_left[OWN], own_right[OWN];
        OLY_UNROLL
        for (int i = 0; i < EACH; i++) {
            OLY_UNROLL
            for (int j = 0; j < EACH; j++)
                sum[i][j] = empty_sum(t.k, (A *)0);
        }
        int64_t from = part * g.depth;
        int depth = end - from < DEPTH ? (int)(end - from) : DEPTH;
        load(g, at, row, column, from, depth, own_left, own_right);
        OLY_NO_UNROLL
        while (depth > 0) {
            keep(t, own_left, own_right, left, right);
            oly_barrier();
            int most = depth;
            from += DEPTH;
            depth = end - from < DEPTH ? (int)(end - from) : DEPTH;
            if (depth > 0) /* on their way while these are multiplied */
                load(g, at, row, column, from, depth, own_left, own_right);
            if (most == DEPTH) {
                OLY_UNROLL
                for (int k = 0; k < DEPTH; k++)
                    accumulate(kind, left + k * LINE, right + k * LINE, sum);
            } else {
                for (int k = 0; k < most; k++)
                    accumulate(kind, left + k * LINE, right + k * LINE, sum);
            }
            oly_barrier();
        }
        OLY_UNROLL
        for (int i = 0; i < EACH; i++) {
            OLY_UNROLL
            for (int j = 0; j < EACH; j++)
                if (row + y * EACH + i < t.m && column + own_column<A>(j) < t.n)
                    put(g, part, batch, at.c, row + y * EACH + i, column + own_column<A>(j), sum[i][j]);
        }
    }
}

/* Elements in memory are accumulators. */
template <class A> OLY_DEVICE bool is_own_type(int dtype)
{
    return oly_bytes_of(dtype) == (int)sizeof(A) && dtype != OLY_T_b8;
}
/* LONG: of sums that are long enough to be worth the registers. */
template <class A, bool LONG> OLY_DEVICE void narrow_product(const oly_cuda_gemm_task &g)
{
    enum { AHEAD = 64 / sizeof(A) }; /* elements read before they are multiplied */
    const oly_gemm_task &t = g.task;
    int64_t all = t.m * t.n * g.batches;
    int dtype = (int)t.dtype;
    for (int64_t number = oly_index(); number < all * g.parts; number += oly_stride()) {
        int64_t column = number % t.n, row = number / t.n % t.m, batch = number / (t.n * t.m) % g.batches;
        int64_t part = number / all, end = end_of_part(g, part);
        matrices at = matrices_of(t, batch);
        int64_t a = at.a + row * t.a_row, b = at.b + column * t.b_column;
        A sum = empty_sum(t.k, (A *)0), x, y;
        int64_t k = part * g.depth;
        for (; LONG && is_own_type<A>(dtype) && k + AHEAD <= end; k += AHEAD) {
            A left[AHEAD], right[AHEAD];
            OLY_UNROLL
            for (int j = 0; j < AHEAD; j++) {
                left[j] = ((const A *)g.a)[a + (k + j) * t.a_column];
                right[j] = ((const A *)g.b)[b + (k + j) * t.b_row];
            }
            OLY_UNROLL
            for (int j = 0; j < AHEAD; j++)
                sum = multiplied(OLY_T_u64, sum, left[j], right[j]);
        }
        for (; k < end; k++) {
            read(dtype, g.a, a + k * t.a_column, &x);
            read(dtype, g.b, b + k * t.b_row, &y);
            sum = multiplied(dtype, sum, x, y);
        }
        put(g, part, batch, at.c, row, column, sum);
    }
}

template <class A> OLY_DEVICE void add_parts(const oly_cuda_gemm_task &g)
{
    const oly_gemm_task &t = g.task;
    int64_t all = t.m * t.n * g.batches;
    for (int64_t number = oly_index(); number < all; number += oly_stride()) {
        int64_t column = number % t.n, row = number / t.n % t.m, batch = number / (t.n * t.m);
        A sum = ((const A *)g.partial)[number];
        for (int64_t part = 1; part < g.parts; part++)
            sum = added((int)t.dtype, sum, ((const A *)g.partial)[part * all + number]);
        write((int)t.dtype, g.c, matrices_of(t, batch).c + row * t.c_row + column, sum);
    }
}

#define PRODUCT(s, A, bools)                                                                                           \
    OLY_KERNEL_BLOCK_BOUNDED(oly_gemm_##s, oly_cuda_gemm_task, OLY_CUDA_THREADS, 1)                                    \
    {                                                                                                                  \
        OLY_SHARED(vector<A>, left, DEPTH *LINE / vector<A>::length);                                                  \
        OLY_SHARED(vector<A>, right, DEPTH *LINE / vector<A>::length);                                                 \
        product<A, bools>(task, (A *)left, (A *)right);                                                                \
    }                                                                                                                  \
    OLY_KERNEL(oly_gemm_narrow_##s, oly_cuda_gemm_task)                                                                \
    {                                                                                                                  \
        narrow_product<A, false>(task);                                                                                \
    }                                                                                                                  \
    OLY_KERNEL(oly_gemm_narrow_long_##s, oly_cuda_gemm_task)                                                           \
    {                                                                                                                  \
        narrow_product<A, true>(task);                                                                                 \
    }                                                                                                                  \
    OLY_KERNEL(oly_gemm_add_##s, oly_cuda_gemm_task)                                                                   \
    {                                                                                                                  \
        add_parts<A>(task);                                                                                            \
    }
PRODUCT(b8, uint32_t, true)
PRODUCT(i32, uint32_t, false)
PRODUCT(i64, uint64_t, false)
PRODUCT(f32, float, false)
PRODUCT(f64, double, false)
PRODUCT(c64, oly_c64, false)
PRODUCT(c128, oly_c128, false)
