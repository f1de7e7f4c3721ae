/* SPDX-License-Identifier: BSD-3-Clause */
/* Reductions whose last dimension is kept (reducing.h): a thread for each result, part and piece of `rows` rows. */
#include "reducing.h"

enum { LANES = 64 };

/* A tree of X::AHEAD elements, all of them read before they are combined. FLAT: rows are one dimension. */
template <class X, bool FLAT>
OLY_DEVICE typename X::value leaf_at(const oly_cuda_reduce_task &t, int64_t base, int64_t row)
{
    typename X::value x[X::AHEAD];
    OLY_UNROLL
    for (int j = 0; j < X::AHEAD; j++)
        x[j] = X::at(t, base + (FLAT ? (row + j) * t.outer.stride[0] : offset_at(t.outer, row + j)));
    OLY_UNROLL
    for (int span = 1; span < X::AHEAD; span *= 2) {
        OLY_UNROLL
        for (int j = 0; j + span < X::AHEAD; j += 2 * span)
            x[j] = X::join(t.combiner, x[j], x[j + span]);
    }
    return x[0];
}
/* A tree of N elements in registers. */
template <class X, int N>
OLY_DEVICE typename X::value whole_tree(const oly_cuda_reduce_task &t, int64_t base, int64_t row)
{
    if constexpr (N == X::AHEAD) {
        return leaf_at<X, true>(t, base, row);
    } else {
        const typename X::value left = whole_tree<X, N / 2>(t, base, row);
        return X::join(t.combiner, left, whole_tree<X, N / 2>(t, base, row + N / 2));
    }
}
template <class X>
OLY_DEVICE typename X::value tree_of(const oly_cuda_reduce_task &t, int64_t base, int64_t begin, int64_t end)
{
    enum { LEAVES = 8, WHOLE = LEAVES * X::AHEAD };
    counter<X> c;
    c.leaves = c.held = 0;
    int64_t i = begin;
    if constexpr (X::AHEAD > 1) {
        const int64_t whole = t.outer.rank == 1 ? end - WHOLE : begin - 1;
        OLY_NO_UNROLL
        for (; i <= whole; i += WHOLE)
            count_leaves<X>(c, t.combiner, whole_tree<X, WHOLE>(t, base, i), LEAVES);
    }
    OLY_NO_UNROLL
    for (; i + X::AHEAD <= end; i += X::AHEAD)
        count_leaf<X>(c, t.combiner, leaf_at<X, false>(t, base, i));
    if (i < end) { /* fewer than a leaf: a tree of their own, the last leaf */
        counter<X> rest;
        rest.leaves = rest.held = 0;
        OLY_NO_UNROLL
        for (; i < end; i++)
            count_leaf<X>(rest, t.combiner, X::at(t, base + offset_at(t.outer, i)));
        count_leaf<X>(c, t.combiner, count_end<X>(rest, t.combiner));
    }
    return count_end<X>(c, t.combiner);
}
template <class X> OLY_DEVICE void rows(const oly_cuda_reduce_task &t)
{
    const int64_t n = t.n_kept * t.parts * t.pieces;
    OLY_NO_UNROLL
    for (int64_t number = oly_index(); number < n; number += oly_stride()) {
        const int64_t k = number % t.n_kept, rest = number / t.n_kept, piece = rest % t.pieces, part = rest / t.pieces;
        const int64_t first = t.n_outer * part / t.parts, stop = t.n_outer * (part + 1) / t.parts;
        const int64_t begin = first + piece * t.rows, end = begin + t.rows < stop ? begin + t.rows : stop;
        if (begin >= end)
            continue; /* a shorter part than others */
        const int64_t base = offset_at(t.kept, k);
        typename X::value sum;
        if (stop - first < LANES) {
            sum = X::at(t, base + offset_at(t.outer, begin));
            OLY_NO_UNROLL
            for (int64_t i = begin + 1; i < end; i++)
                sum = X::join(t.combiner, sum, X::at(t, base + offset_at(t.outer, i)));
        } else {
            sum = tree_of<X>(t, base, begin, end);
        }
        X::write(t, number, sum);
    }
}
#define ROWS(name) OLY_KERNEL(name, oly_cuda_reduce_task)
OLY_REDUCE_KERNELS(ROWS, rows)
