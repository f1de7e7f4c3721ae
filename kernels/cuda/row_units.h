/* SPDX-License-Identifier: BSD-3-Clause */
/* What generated kernels of row chains (row_chain_text.c) have in common. Reductions have the order of reduce_blocks.cu, and so its bits: the
 * elements of a unit lie in shared memory, and a warp combines them in 64 lanes. */
#ifndef OLY_CUDA_ROW_UNITS_H
#define OLY_CUDA_ROW_UNITS_H
#include "element.h"

/* As oly_combiner in kernel.h; checked in row_chain_text.c. */
enum { OLY_JOIN_SUM, OLY_JOIN_PROD, OLY_JOIN_MAX, OLY_JOIN_MIN };

/* `L` adjacent elements, moved at once where they are aligned. */
template <class T, int L> struct alignas(L == 1 ? (sizeof(T) < 8 ? sizeof(T) : 8) : sizeof(T) * L) oly_row {
    T at[L];
};

template <class T, int L> OLY_DEVICE oly_row<T, L> oly_same(T x)
{
    oly_row<T, L> all;
    OLY_UNROLL
    for (int j = 0; j < L; j++)
        all.at[j] = x;
    return all;
}

/* Is i one of 0 ... n - 1? */
template <class I> OLY_DEVICE bool oly_is_within(I i, I n)
{
    return i >= 0 && i < n;
}

/* The L elements from from[skew] on of a padded array's operand, whose rows consist of aligned groups of L: from[0] is the first one
 * of such a group. `here`, `next`: are this group and the one after it in the operand? What is not is `fill`. */
template <class T, int L, int skew> OLY_DEVICE oly_row<T, L> oly_padded(const T *from, bool here, bool next, T fill)
{
    oly_row<T, L> a = oly_same<T, L>(fill), b = a, x;
    if (here) {
        if (skew == L - 1)
            a.at[L - 1] = from[L - 1];
        else
            a = *(const oly_row<T, L> *)from;
    }
    if (skew > 0 && next) {
        if (skew == 1)
            b.at[0] = from[L];
        else
            b = *(const oly_row<T, L> *)(from + L);
    }
    OLY_UNROLL
    for (int j = 0; j < L; j++)
        x.at[j] = skew + j < L ? a.at[(skew + j) % L] : b.at[(skew + j) % L];
    return x;
}

OLY_DEVICE oly_value oly_words(uint64_t lo, uint64_t hi)
{
    oly_value v;
    v.lo = lo, v.hi = hi;
    return v;
}

/* n / extent; the divisor is oly_cuda_divisor's (fused_text.h). */
OLY_DEVICE int32_t oly_quotient(int32_t n, int64_t, uint64_t divisor)
{
    const uint32_t high = (uint32_t)((uint64_t)(uint32_t)n * (uint32_t)divisor >> 32);
    return (int32_t)((high + (uint32_t)n) >> (int)(divisor >> 32));
}
OLY_DEVICE int64_t oly_quotient(int64_t n, int64_t extent, uint64_t)
{
    return n / extent;
}

/* -- elements as accumulators, and back ------------------------------------------------------------------------------------------ */
template <int dtype> struct oly_accumulator {
    typedef float type;
};
template <> struct oly_accumulator<OLY_T_f64> {
    typedef double type;
};
template <> struct oly_accumulator<OLY_T_i32> {
    typedef int32_t type;
};
template <> struct oly_accumulator<OLY_T_i64> {
    typedef int64_t type;
};
template <int dtype> OLY_DEVICE float oly_accumulated(uint16_t x)
{
    return oly_widened(dtype, x);
}
template <int dtype> OLY_DEVICE float oly_accumulated(float x)
{
    return x;
}
template <int dtype> OLY_DEVICE double oly_accumulated(double x)
{
    return x;
}
template <int dtype> OLY_DEVICE int32_t oly_accumulated(int32_t x)
{
    return x;
}
template <int dtype> OLY_DEVICE int64_t oly_accumulated(int64_t x)
{
    return x;
}
/* The bits of an accumulator as an element. */
template <int dtype, class A> OLY_DEVICE uint64_t oly_result_bits(A x)
{
    if (dtype == OLY_T_f16 || dtype == OLY_T_bf16)
        return (uint64_t)oly_narrowed(dtype, (float)x);
    return oly_put(x).lo;
}

template <int join> OLY_DEVICE float oly_joined(float a, float b)
{
    return join == OLY_JOIN_SUM    ? a + b
           : join == OLY_JOIN_PROD ? a * b
           : join == OLY_JOIN_MAX  ? ((a != a) | (a > b) ? a : b)
                                   : ((a != a) | (a < b) ? a : b);
}
template <int join> OLY_DEVICE double oly_joined(double a, double b)
{
    return join == OLY_JOIN_SUM    ? a + b
           : join == OLY_JOIN_PROD ? a * b
           : join == OLY_JOIN_MAX  ? ((a != a) | (a > b) ? a : b)
                                   : ((a != a) | (a < b) ? a : b);
}
template <int join> OLY_DEVICE int64_t oly_joined(int64_t a, int64_t b)
{
    return join == OLY_JOIN_SUM    ? (int64_t)((uint64_t)a + (uint64_t)b)
           : join == OLY_JOIN_PROD ? (int64_t)((uint64_t)a * (uint64_t)b)
           : join == OLY_JOIN_MAX  ? (a > b ? a : b)
                                   : (a < b ? a : b);
}
template <int join> OLY_DEVICE int32_t oly_joined(int32_t a, int32_t b)
{
    return (int32_t)oly_joined<join>((int64_t)a, (int64_t)b);
}

/* -- n elements one after the other (reduce_chain.cu) -------------------------------------------------------------------------------- */
template <int dtype, int join, class T>
OLY_DEVICE typename oly_accumulator<dtype>::type oly_one_by_one(const T *x, int n)
{
    typedef typename oly_accumulator<dtype>::type A;
    A sum = n > 0 ? oly_accumulated<dtype>(x[0]) : (A)0;
    for (int i = 1; i < n; i++)
        sum = oly_joined<join>(sum, oly_accumulated<dtype>(x[i]));
    return sum;
}

/* -- n elements, at most 4096, by a warp; the result is the first lane's (by_lanes in reduce_blocks.cu) --------------------------- */
template <int dtype, int join, class T> OLY_DEVICE typename oly_accumulator<dtype>::type oly_by_lanes(const T *x, int n)
{
    typedef typename oly_accumulator<dtype>::type A;
    enum { LANES = 2 * OLY_WARP };
    const int lane = oly_lane();
    if (n < LANES)
        return oly_one_by_one<dtype, join>(x, n);
    A low = oly_accumulated<dtype>(x[lane]), high = oly_accumulated<dtype>(x[lane + OLY_WARP]);
    int i = lane + LANES;
    OLY_NO_UNROLL
    for (; i + 7 * LANES + OLY_WARP < n; i += 8 * LANES) { /* loads before they are used */
        A a[8], b[8];
        OLY_UNROLL
        for (int j = 0; j < 8; j++) {
            a[j] = oly_accumulated<dtype>(x[i + j * LANES]);
            b[j] = oly_accumulated<dtype>(x[i + j * LANES + OLY_WARP]);
        }
        OLY_UNROLL
        for (int j = 0; j < 8; j++) {
            low = oly_joined<join>(low, a[j]);
            high = oly_joined<join>(high, b[j]);
        }
    }
    OLY_NO_UNROLL
    for (; i < n; i += LANES) {
        low = oly_joined<join>(low, oly_accumulated<dtype>(x[i]));
        if (i + OLY_WARP < n)
            high = oly_joined<join>(high, oly_accumulated<dtype>(x[i + OLY_WARP]));
    }
    low = oly_joined<join>(low, high);
    for (int half = OLY_WARP / 2; half > 0; half /= 2)
        low = oly_joined<join>(low, oly_shuffle_down(low, half));
    return low;
}

/* -- results of pieces, by the block that is the last to end ------------------------------------------------------------------------ */

/* The first n lanes' values, fewer than all, in lane 0 (some_lanes in reduce_tree.cu). */
template <int join, class A> OLY_DEVICE A oly_some_lanes(A x, int n)
{
    A right = x;
    bool any = false;
    OLY_NO_UNROLL
    for (int size = 1; size < OLY_WARP; size *= 2) {
        const A left = oly_shuffle_down(x, n & ~(2 * size - 1)); /* in lane 0: the subtree of this size */
        if (n & size) {
            const A both = oly_joined<join>(left, right);
            right = any ? both : left;
            any = true;
        }
        x = oly_joined<join>(x, oly_shuffle_down(x, size));
    }
    return right;
}

/* A tree of adjacent pairs over elements [begin, end), at least one, by a warp; the result is the first lane's (tree_warps in
 * reduce_tree.cu). */
template <int join, class A> OLY_DEVICE A oly_tree(const A *in, int64_t begin, int64_t end)
{
    A level[24];
    int held = 0;
    uint32_t leaves = 0;
    OLY_NO_UNROLL
    for (int64_t i = begin; i < end; i += OLY_WARP) {
        const int64_t at = i + oly_lane();
        A x = in[at < end ? at : i];
        if (end - i < OLY_WARP) {
            level[held++] = oly_some_lanes<join>(x, (int)(end - i));
            break;
        }
        OLY_NO_UNROLL
        for (int size = 1; size < OLY_WARP; size *= 2)
            x = oly_joined<join>(x, oly_shuffle_down(x, size));
        OLY_NO_UNROLL
        for (uint32_t bits = leaves++; bits & 1; bits >>= 1)
            x = oly_joined<join>(level[--held], x);
        level[held++] = x;
    }
    A right = level[--held];
    OLY_NO_UNROLL
    while (held > 0)
        right = oly_joined<join>(level[--held], right);
    return right;
}

/* The same by a thread. */
template <int join, class A> OLY_DEVICE A oly_short_tree(const A *in, int64_t begin, int64_t end)
{
    A level[8];
    int held = 0;
    OLY_NO_UNROLL
    for (int64_t i = begin; i < end; i++) {
        A x = in[i];
        OLY_NO_UNROLL
        for (int64_t bits = i - begin; bits & 1; bits >>= 1)
            x = oly_joined<join>(level[--held], x);
        level[held++] = x;
    }
    A right = level[--held];
    OLY_NO_UNROLL
    while (held > 0)
        right = oly_joined<join>(level[--held], right);
    return right;
}

/* By all threads of a block: the pieces' results, in `parts` parts, to a result for each row. Shared memory has room for all of these and
 * those of the parts. */
template <int dtype, int join, class A, class T>
OLY_DEVICE void oly_join_pieces(const A *in, A *shared, T *out, int64_t rows, int64_t pieces, int64_t parts)
{
    enum { SHORT = 8 };
    const int warps = oly_threads() / OLY_WARP;
    const bool by_thread = (pieces + parts - 1) / parts <= SHORT;
    const int64_t step = by_thread ? oly_threads() : warps;
    A *between = shared + rows * pieces;
    OLY_NO_UNROLL
    for (int64_t i = oly_thread(); i < rows * pieces; i += oly_threads())
        shared[i] = oly_load_shared_by_blocks(in + i);
    oly_barrier();
    OLY_NO_UNROLL
    for (int64_t s = by_thread ? oly_thread() : oly_warp(); s < rows * parts; s += step) {
        const int64_t row = s / parts, part = s - row * parts;
        const int64_t begin = pieces * part / parts, end = pieces * (part + 1) / parts;
        const A *of = shared + row * pieces;
        const A all = by_thread ? oly_short_tree<join>(of, begin, end) : oly_tree<join>(of, begin, end);
        if (by_thread || oly_lane() == 0)
            between[s] = all;
    }
    oly_barrier();
    OLY_NO_UNROLL
    for (int64_t row = oly_warp(); row < rows; row += warps) {
        const A all = oly_tree<join>((const A *)between + row * parts, 0, parts);
        if (oly_lane() == 0)
            out[row] = oly_as<T>(oly_bits_value(oly_result_bits<dtype>(all)));
    }
    oly_barrier(); /* shared memory is used again */
}

/* Is this block the last one to get here? Asked by all threads, once in a launch; what the others have written before is there then. The
 * ticket is 0 before the launch, and after it. */
OLY_DEVICE bool oly_is_last(uint32_t *ticket, uint32_t *shared)
{
    oly_fence();
    oly_barrier();
    if (oly_thread() == 0)
        shared[0] = oly_atomic_add(ticket, 1u);
    oly_barrier();
    if (shared[0] != (uint32_t)(oly_blocks() - 1))
        return false;
    oly_fence();
    if (oly_thread() == 0)
        ticket[0] = 0;
    return true;
}
#endif
