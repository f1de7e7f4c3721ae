/* SPDX-License-Identifier: BSD-3-Clause */
/* Reductions of strided boxes, with the order of cpu/reduce.c and so its bits: the elements of a result one after the other where they
 * are few; else trees of adjacent pairs over rows, or blocks of 4096 elements in 64 lanes and trees over blocks and runs. A tree
 * of adjacent pairs divides at powers of 2, so its subtrees are computed by different threads and joined by oly_reduce_tree.
 * launch_reduce.c chooses the kernels. */
#include "combining.h"

enum { WARPS = OLY_CUDA_THREADS / OLY_WARP, BLOCK = 4096, LANES = 64, AHEAD = 8 };

OLY_DEVICE int64_t offset_at(const oly_cuda_dims &d, int64_t index)
{
    int64_t offset = 0;
    for (int i = d.rank - 1; i > 0; i--) {
        int64_t next = index / d.extent[i];
        offset += (index - next * d.extent[i]) * d.stride[i];
        index = next;
    }
    return d.rank > 0 ? offset + index * d.stride[0] : 0;
}

/* A function of its own: inlined everywhere it would be most of the program. */
__device__ __noinline__ static oly_value converted(int from, int to, const char *at)
{
    return oly_convert(from, to, oly_load_bits(oly_bytes_of(from), at));
}

template <class A> OLY_DEVICE A element_at(const oly_cuda_reduce_task &t, int64_t offset)
{
    A x;
    if (t.from == t.dtype) {
        oly_read(t.dtype, t.in, offset, &x);
        return x;
    }
    oly_value v = converted(t.from, t.dtype, t.in + offset * oly_bytes_of(t.from));
    oly_read(t.dtype, (const char *)&v, 0, &x);
    return x;
}

/* -- few elements: one after the other; a thread for each result. Rows are `outer`, elements of a row `run` -------------------------- */
template <class A> OLY_DEVICE void chain(const oly_cuda_reduce_task &t)
{
    for (int64_t k = oly_index(); k < t.n_kept; k += oly_stride()) {
        int64_t base = offset_at(t.kept, k), n = t.n_outer * t.n_run;
        A sum = element_at<A>(t, base);
        for (int64_t i = 1; i < n; i++)
            sum = oly_combined(t.combiner, sum,
                               element_at<A>(t, base + offset_at(t.outer, i / t.n_run) + offset_at(t.run, i % t.n_run)));
        oly_write(t.to, t.out, k, sum);
    }
}
OLY_KERNEL(oly_reduce_chain, oly_cuda_reduce_task)
{
    OLY_BY_TYPE(task.dtype, chain, task)
}

/* -- rows: the last dimension is kept; a thread for each result, part and piece of `rows` rows ---------------------------------------- */
/* A tree over a sequence that arrives one by one: level l holds the result of 2^l leaves. */
template <class A> struct counter {
    A level[40];
    int64_t leaves;
    int held;
};
template <class A> OLY_DEVICE void count_leaf(counter<A> &c, int combiner, A leaf)
{
    for (int64_t bits = c.leaves; bits & 1; bits >>= 1)
        leaf = oly_combined(combiner, c.level[--c.held], leaf);
    c.level[c.held++] = leaf;
    c.leaves++;
}
template <class A> OLY_DEVICE A count_end(counter<A> &c, int combiner)
{
    A right = c.level[--c.held];
    while (c.held > 0)
        right = oly_combined(combiner, c.level[--c.held], right);
    return right;
}
template <class A> OLY_DEVICE A tree_of(const oly_cuda_reduce_task &t, int64_t base, int64_t begin, int64_t end)
{
    counter<A> c;
    c.leaves = c.held = 0;
    int64_t i = begin;
    for (; i + AHEAD <= end; i += AHEAD) { /* eight elements are read before they are combined */
        A x[AHEAD];
        OLY_UNROLL
        for (int j = 0; j < AHEAD; j++)
            x[j] = element_at<A>(t, base + offset_at(t.outer, i + j));
        OLY_UNROLL
        for (int span = 1; span < AHEAD; span *= 2) {
            OLY_UNROLL
            for (int j = 0; j + span < AHEAD; j += 2 * span)
                x[j] = oly_combined(t.combiner, x[j], x[j + span]);
        }
        count_leaf(c, t.combiner, x[0]);
    }
    if (i < end) { /* fewer than eight: a tree of their own, the last leaf */
        counter<A> rest;
        rest.leaves = rest.held = 0;
        for (; i < end; i++)
            count_leaf(rest, t.combiner, element_at<A>(t, base + offset_at(t.outer, i)));
        count_leaf(c, t.combiner, count_end(rest, t.combiner));
    }
    return count_end(c, t.combiner);
}
template <class A> OLY_DEVICE void rows(const oly_cuda_reduce_task &t)
{
    int64_t n = t.n_kept * t.parts * t.pieces;
    for (int64_t number = oly_index(); number < n; number += oly_stride()) {
        int64_t k = number % t.n_kept, rest = number / t.n_kept, piece = rest % t.pieces, part = rest / t.pieces;
        int64_t begin = t.n_outer * part / t.parts, stop = t.n_outer * (part + 1) / t.parts, end;
        bool few = stop - begin < LANES;
        begin += piece * t.rows;
        end = begin + t.rows < stop ? begin + t.rows : stop;
        if (begin >= end)
            continue; /* a shorter part than others */
        int64_t base = offset_at(t.kept, k);
        A sum;
        if (few) {
            sum = element_at<A>(t, base + offset_at(t.outer, begin));
            for (int64_t i = begin + 1; i < end; i++)
                sum = oly_combined(t.combiner, sum, element_at<A>(t, base + offset_at(t.outer, i)));
        } else {
            sum = tree_of<A>(t, base, begin, end);
        }
        oly_write(t.to, t.out, number, sum);
    }
}
OLY_KERNEL(oly_reduce_rows, oly_cuda_reduce_task)
{
    OLY_BY_TYPE(task.dtype, rows, task)
}

/* -- blocks of a run: a warp for each result, row and block; a lane has the CPU's lanes l and l + 32 ----------------------------------- */
OLY_DEVICE int64_t down(int64_t x, int by)
{
    return oly_shuffle_down(x, by);
}
OLY_DEVICE uint64_t down(uint64_t x, int by)
{
    return oly_shuffle_down(x, by);
}
OLY_DEVICE float down(float x, int by)
{
    return oly_shuffle_down(x, by);
}
OLY_DEVICE double down(double x, int by)
{
    return oly_shuffle_down(x, by);
}
OLY_DEVICE oly_c64 down(oly_c64 x, int by)
{
    return oly_w_of(oly_shuffle_down(x.re, by), oly_shuffle_down(x.im, by));
}
OLY_DEVICE oly_c128 down(oly_c128 x, int by)
{
    return oly_z_of(oly_shuffle_down(x.re, by), oly_shuffle_down(x.im, by));
}
template <class A> OLY_DEVICE void blocks(const oly_cuda_reduce_task &t)
{
    int lane = oly_lane();
    int64_t n = t.n_kept * t.n_outer * t.pieces, row_stride = t.run.rank == 1 ? t.run.stride[0] : 0;
    for (int64_t number = oly_block() * WARPS + oly_warp(); number < n; number += oly_blocks() * WARPS) {
        int64_t block = number % t.pieces, rest = number / t.pieces, outer = rest % t.n_outer;
        int64_t base = offset_at(t.kept, rest / t.n_outer) + offset_at(t.outer, outer), begin = block * BLOCK;
        int64_t end = begin + BLOCK < t.n_run ? begin + BLOCK : t.n_run;
        A low, high;
        if (end - begin < LANES) { /* one after the other, by the first lane */
            low = element_at<A>(t, base + offset_at(t.run, begin));
            for (int64_t i = begin + 1; i < end && lane == 0; i++)
                low = oly_combined(t.combiner, low, element_at<A>(t, base + offset_at(t.run, i)));
        } else {
            int64_t i = begin + lane;
            low = element_at<A>(t, base + offset_at(t.run, i));
            high = element_at<A>(t, base + offset_at(t.run, i + OLY_WARP));
            i += LANES;
            if (t.run.rank == 1) /* four rounds of loads before they are used */
                for (; i + 3 * LANES + OLY_WARP < end; i += 4 * LANES) {
                    A x[8];
                    OLY_UNROLL
                    for (int j = 0; j < 8; j++)
                        x[j] = element_at<A>(t, base + (i + j * OLY_WARP) * row_stride);
                    OLY_UNROLL
                    for (int j = 0; j < 8; j += 2) {
                        low = oly_combined(t.combiner, low, x[j]);
                        high = oly_combined(t.combiner, high, x[j + 1]);
                    }
                }
            for (; i < end; i += LANES) {
                low = oly_combined(t.combiner, low, element_at<A>(t, base + offset_at(t.run, i)));
                if (i + OLY_WARP < end)
                    high = oly_combined(t.combiner, high, element_at<A>(t, base + offset_at(t.run, i + OLY_WARP)));
            }
            low = oly_combined(t.combiner, low, high);
            for (int half = OLY_WARP / 2; half > 0; half /= 2)
                low = oly_combined(t.combiner, low, down(low, half));
        }
        if (lane == 0)
            oly_write(t.to, t.out, number, low);
    }
}
OLY_KERNEL_BLOCK_BOUNDED(oly_reduce_blocks, oly_cuda_reduce_task, OLY_CUDA_THREADS, 2)
{
    OLY_BY_TYPE(task.dtype, blocks, task)
}

/* -- trees over intermediate results: a thread for each segment ------------------------------------------------------------------------ */
template <class A> OLY_DEVICE void tree(const oly_cuda_tree_task &t)
{
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
        counter<A> c;
        c.leaves = c.held = 0;
        for (int64_t i = begin; i < end; i++) {
            A x;
            oly_read(t.dtype, t.in, first + i * t.in_element, &x);
            count_leaf(c, t.combiner, x);
        }
        oly_write(t.to, t.out, s, count_end(c, t.combiner));
    }
}
OLY_KERNEL(oly_reduce_tree, oly_cuda_tree_task)
{
    OLY_BY_TYPE(task.dtype, tree, task)
}
