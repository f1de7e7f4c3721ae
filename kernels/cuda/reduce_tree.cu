/* SPDX-License-Identifier: BSD-3-Clause */
/* Trees over intermediate results (reducing.h): a thread for each segment, or a warp where they are long. */
#include "reducing.h"

struct segment {
    int64_t begin, end, first; /* elements; where element 0 is */
};
OLY_DEVICE segment segment_at(const oly_cuda_tree_task &t, int64_t s)
{
    const int64_t result = s / t.parts, part = s % t.parts;
    segment g = {0, t.length, s * t.in_segment};
    if (t.mode == OLY_TREE_PARTS) {
        g.begin = t.length * part / t.parts;
        g.end = t.length * (part + 1) / t.parts;
        g.first = result * t.in_segment;
    } else if (t.mode == OLY_TREE_PIECES) { /* segments are numbered part by part */
        const int64_t of = s / t.in_element;
        g.first = of * t.pieces * t.in_element + s % t.in_element;
        g.end = (t.length * (of + 1) / t.parts - t.length * of / t.parts + t.rows - 1) / t.rows;
    }
    return g;
}
template <class A> OLY_DEVICE A element_of(const oly_cuda_tree_task &t, const segment &g, int64_t i)
{
    return read_any<A>(t.dtype, t.dtype, t.in, g.first + i * t.in_element);
}

template <class A> OLY_DEVICE void tree(const oly_cuda_tree_task &t)
{
    typedef oly_any<A> X;
    OLY_NO_UNROLL
    for (int64_t s = oly_index(); s < t.n; s += oly_stride()) {
        const segment g = segment_at(t, s);
        counter<X> c;
        c.leaves = c.held = 0;
        OLY_NO_UNROLL
        for (int64_t i = g.begin; i < g.end; i++)
            count_leaf<X>(c, t.combiner, element_of<A>(t, g, i));
        write_any(t.to, t.out, s, count_end<X>(c, t.combiner));
    }
}
OLY_KERNEL(oly_reduce_tree, oly_cuda_tree_task)
{
    OLY_BY_TYPE(task.dtype, tree, task)
}

/* The first n lanes' values, fewer than all: subtrees of the sizes of n's bits, the right ones combined first. In lane 0. */
template <class A> OLY_DEVICE A some_lanes(int combiner, A x, int n)
{
    A right = x;
    bool any = false;
    OLY_NO_UNROLL
    for (int size = 1; size < OLY_WARP; size *= 2) {
        const A left = down(x, n & ~(2 * size - 1)); /* in lane 0: the subtree of this size */
        if (n & size) {
            const A both = combined_any(combiner, left, right);
            right = any ? both : left;
            any = true;
        }
        x = combined_any(combiner, x, down(x, size));
    }
    return right;
}
template <class A> OLY_DEVICE void tree_warps(const oly_cuda_tree_task &t)
{
    typedef oly_any<A> X;
    const int warps = oly_threads() / OLY_WARP;
    OLY_NO_UNROLL
    for (int64_t s = oly_block() * warps + oly_warp(); s < t.n; s += oly_blocks() * warps) {
        const segment g = segment_at(t, s);
        counter<X> c; /* of lane 0; the others' values are of no use */
        c.leaves = c.held = 0;
        OLY_NO_UNROLL
        for (int64_t i = g.begin; i < g.end; i += OLY_WARP) {
            const int64_t n = g.end - i, at = i + oly_lane();
            A x = element_of<A>(t, g, at < g.end ? at : i);
            if (n < OLY_WARP) {
                c.level[c.held++] = some_lanes(t.combiner, x, (int)n);
                break;
            }
            OLY_NO_UNROLL
            for (int size = 1; size < OLY_WARP; size *= 2)
                x = combined_any(t.combiner, x, down(x, size));
            count_leaf<X>(c, t.combiner, x);
        }
        const A all = count_end<X>(c, t.combiner);
        if (oly_lane() == 0)
            write_any(t.to, t.out, s, all);
    }
}
OLY_KERNEL_BLOCK(oly_reduce_tree_warps, oly_cuda_tree_task)
{
    OLY_BY_TYPE(task.dtype, tree_warps, task)
}
