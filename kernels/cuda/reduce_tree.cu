/* SPDX-License-Identifier: BSD-3-Clause */
/* Trees over intermediate results (reducing.h): a thread for each segment. */
#include "reducing.h"

template <class A> OLY_DEVICE void tree(const oly_cuda_tree_task &t)
{
    OLY_NO_UNROLL
    for (int64_t s = oly_index(); s < t.n; s += oly_stride()) {
        int64_t result = s / t.parts, part = s % t.parts, begin = 0, end = t.length, first = result * t.in_segment;
        if (t.mode == OLY_TREE_PARTS) {
            begin = t.length * part / t.parts;
            end = t.length * (part + 1) / t.parts;
        } else if (t.mode == OLY_TREE_PIECES) { /* segments are numbered part by part */
            part = s / t.in_element;
            first = part * t.pieces * t.in_element + s % t.in_element;
            end = (t.length * (part + 1) / t.parts - t.length * part / t.parts + t.rows - 1) / t.rows;
        } else {
            first = s * t.in_segment;
        }
        counter<oly_any<A>> c;
        c.leaves = c.held = 0;
        OLY_NO_UNROLL
        for (int64_t i = begin; i < end; i++)
            count_leaf<oly_any<A>>(c, t.combiner, read_any<A>(t.dtype, t.dtype, t.in, first + i * t.in_element));
        write_any(t.to, t.out, s, count_end<oly_any<A>>(c, t.combiner));
    }
}
OLY_KERNEL(oly_reduce_tree, oly_cuda_tree_task)
{
    OLY_BY_TYPE(task.dtype, tree, task)
}
