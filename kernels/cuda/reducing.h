/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the kernels of reductions (reduce_*.cu), which have the order of cpu/reduce.c and so its bits: the elements of a result
 * one after the other where they are few; else trees of adjacent pairs over rows, or blocks of 4096 elements in 64 lanes and trees over
 * blocks and runs. A tree of adjacent pairs divides at powers of 2, so its subtrees are computed by different threads and
 * joined by oly_reduce_tree. launch_reduce.c chooses the kernels.
 *
 * Each is compiled for frequent types and combiners (oly_of: all of it inlined, named oly_reduce_<kernel>_<type>_<combiner>), and once
 * for all others (oly_any: functions are called for every element, so that there is little code). */
#ifndef OLY_CUDA_REDUCING_H
#define OLY_CUDA_REDUCING_H
#define OLY_SHORT_CODE
#include "combining.h"

OLY_CALLED int64_t offset_of_many(const oly_cuda_dims &d, int64_t index)
{
    int64_t offset = 0;
    OLY_NO_UNROLL
    for (int i = d.rank - 1; i > 0; i--) {
        int64_t next = index / d.extent[i];
        offset += (index - next * d.extent[i]) * d.stride[i];
        index = next;
    }
    return offset + index * d.stride[0];
}
OLY_DEVICE int64_t offset_at(const oly_cuda_dims &d, int64_t index)
{
    return d.rank > 1 ? offset_of_many(d, index) : index * d.stride[0]; /* without dimensions the index is 0 */
}

/* -- what a kernel does with elements: reads one, combines two, writes a result ------------------------------------------------ */
OLY_CALLED oly_value converted(int from, int to, const char *at)
{
    return oly_convert(from, to, oly_load_bits(oly_bytes_of(from), at));
}
template <class A> OLY_CALLED A read_any(int from, int dtype, const char *base, int64_t offset)
{
    A x;
    if (from == dtype) {
        oly_read(dtype, base, offset, &x);
        return x;
    }
    oly_value v = converted(from, dtype, base + offset * oly_bytes_of(from));
    oly_read(dtype, (const char *)&v, 0, &x);
    return x;
}
template <class A> OLY_CALLED A combined_any(int combiner, A a, A b)
{
    return oly_combined(combiner, a, b);
}
template <class A> OLY_CALLED void write_any(int to, char *base, int64_t i, A x)
{
    oly_write(to, base, i, x);
}
template <class A> struct oly_any {
    typedef A value;
    enum { AHEAD = 1 }; /* elements that are read before they are combined */
    OLY_DEVICE A at(const oly_cuda_reduce_task &t, int64_t offset)
    {
        return read_any<A>(t.from, t.dtype, t.in, offset);
    }
    OLY_DEVICE A join(int combiner, A a, A b) { return combined_any(combiner, a, b); }
    OLY_DEVICE void write(const oly_cuda_reduce_task &t, int64_t i, A x) { write_any(t.to, t.out, i, x); }
};

/* A type and a combiner known here; A: the accumulator. */
template <int dtype, class A, int combiner> struct oly_of {
    typedef A value;
    enum { AHEAD = 8 };
    OLY_DEVICE A at(const oly_cuda_reduce_task &t, int64_t offset)
    {
        A x;
        oly_read(dtype, t.in, offset, &x);
        return x;
    }
    OLY_DEVICE A join(int, A a, A b) { return oly_combined(combiner, a, b); }
    OLY_DEVICE void write(const oly_cuda_reduce_task &t, int64_t i, A x)
    {
        if (!oly_is_narrow_type(dtype) || t.to == dtype)
            oly_write(dtype, t.out, i, x);
        else
            oly_write(OLY_T_f32, t.out, i, x); /* an intermediate result */
    }
};

/* The kernels of template <class X> void f(const oly_cuda_reduce_task &), for the frequent types and combiners (launch_reduce.c has the
 * same list) and for any. */
#define OLY_REDUCE_NUMBERS(KERNEL, f, s, A)                                                                            \
    OLY_REDUCE_KERNEL(KERNEL, f, s, A, sum, SUM)                                                                       \
    OLY_REDUCE_KERNEL(KERNEL, f, s, A, max, MAX)                                                                       \
    OLY_REDUCE_KERNEL(KERNEL, f, s, A, min, MIN)
#define OLY_REDUCE_KERNEL(KERNEL, f, s, A, name, number)                                                               \
    KERNEL(oly_reduce_##f##_##s##_##name)                                                                              \
    {                                                                                                                  \
        f<oly_of<OLY_T_##s, A, OLY_COMBINE_##number>>(task);                                                           \
    }
#define OLY_REDUCE_KERNELS(KERNEL, f)                                                                                  \
    OLY_REDUCE_NUMBERS(KERNEL, f, f32, float)                                                                          \
    OLY_REDUCE_NUMBERS(KERNEL, f, f64, double)                                                                         \
    OLY_REDUCE_NUMBERS(KERNEL, f, f16, float)                                                                          \
    OLY_REDUCE_NUMBERS(KERNEL, f, bf16, float)                                                                         \
    OLY_REDUCE_NUMBERS(KERNEL, f, i32, int32_t)                                                                        \
    OLY_REDUCE_NUMBERS(KERNEL, f, i64, int64_t)                                                                        \
    OLY_REDUCE_KERNEL(KERNEL, f, i8, int64_t, max, MAX)                                                                \
    OLY_REDUCE_KERNEL(KERNEL, f, i8, int64_t, min, MIN)                                                                \
    OLY_REDUCE_KERNEL(KERNEL, f, u8, uint64_t, max, MAX)                                                               \
    OLY_REDUCE_KERNEL(KERNEL, f, u8, uint64_t, min, MIN)                                                               \
    OLY_REDUCE_KERNEL(KERNEL, f, f32, float, prod, PROD)                                                               \
    OLY_REDUCE_KERNEL(KERNEL, f, f64, double, prod, PROD)                                                              \
    OLY_REDUCE_KERNEL(KERNEL, f, c64, oly_c64, sum, SUM)                                                               \
    OLY_REDUCE_KERNEL(KERNEL, f, b8, uint32_t, or, OR)                                                                 \
    OLY_REDUCE_KERNEL(KERNEL, f, b8, uint32_t, and, AND)                                                               \
    template <class A> OLY_DEVICE void f##_any(const oly_cuda_reduce_task &t)                                          \
    {                                                                                                                  \
        f<oly_any<A>>(t);                                                                                              \
    }                                                                                                                  \
    KERNEL(oly_reduce_##f)                                                                                             \
    {                                                                                                                  \
        OLY_BY_TYPE(task.dtype, f##_any, task)                                                                         \
    }

/* -- of the lane `by` lanes up ------------------------------------------------------------------------------------------------- */
OLY_DEVICE int32_t down(int32_t x, int by)
{
    return oly_shuffle_down(x, by);
}
OLY_DEVICE uint32_t down(uint32_t x, int by)
{
    return oly_shuffle_down(x, by);
}
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

/* -- a tree over a sequence that arrives one by one: level l holds the result of 2^l leaves ------------------------------------- */
template <class X> struct counter {
    typename X::value level[40];
    int64_t leaves;
    int held;
};
/* A tree of `size` leaves, a power of 2, after a multiple of as many. */
template <class X> OLY_DEVICE void count_leaves(counter<X> &c, int combiner, typename X::value tree, int size)
{
    OLY_NO_UNROLL
    for (int64_t trees = c.leaves / size; trees & 1; trees >>= 1)
        tree = X::join(combiner, c.level[--c.held], tree);
    c.level[c.held++] = tree;
    c.leaves += size;
}
template <class X> OLY_DEVICE void count_leaf(counter<X> &c, int combiner, typename X::value leaf)
{
    count_leaves<X>(c, combiner, leaf, 1);
}
template <class X> OLY_DEVICE typename X::value count_end(counter<X> &c, int combiner)
{
    typename X::value right = c.level[--c.held];
    OLY_NO_UNROLL
    while (c.held > 0)
        right = X::join(combiner, c.level[--c.held], right);
    return right;
}
#endif
