/* SPDX-License-Identifier: BSD-3-Clause */
/* Updates of a scatter and how they are combined, for scatter.cu and scatter_counted.cu. Kernels of frequent types know their type when
 * they are compiled, so that several updates are read before they are combined; those named `any` ask for it at every element. */
#ifndef OLY_CUDA_SCATTERING_H
#define OLY_CUDA_SCATTERING_H
#include "indexing.h"

/* -- elements of a type: A is what is computed in ------------------------------------------------------------------------------------ */
template <int dtype, class T, class A> struct known_element : oly_known<dtype, T, A> {
    typedef oly_known<dtype, T, A> known;
    typedef A value;
    OLY_DEVICE void load(int, const char *base, int64_t i, A *x) { *x = known::wide(((const T *)base)[i]); }
    OLY_DEVICE void store(int, char *base, int64_t i, A x) { ((T *)base)[i] = known::narrow(x); }
    OLY_DEVICE A rounded(int, A x) { return known::wide(known::narrow(x)); }
};
template <class A> struct any_element {
    typedef A value;
    OLY_DEVICE void load(int dtype, const char *base, int64_t i, A *x) { oly_load(dtype, base, i, x); }
    OLY_DEVICE void store(int dtype, char *base, int64_t i, A x) { oly_store(dtype, base, i, x); }
    OLY_DEVICE A rounded(int dtype, A x) { return oly_rounded(dtype, x); }
};
/* Kernels `name`_f32 and so on, which call function<X>(...). OLY_SCATTER_TYPE(task) is defined by who uses it. */
#define OLY_SCATTER_KERNELS(name, task_type, function, ...)                                                            \
    OLY_KERNEL_BLOCK_BOUNDED(name##_f32, task_type, OLY_CUDA_THREADS, 4)                                               \
    {                                                                                                                  \
        function<known_element<OLY_T_f32, float, float>>(__VA_ARGS__);                                                 \
    }                                                                                                                  \
    OLY_KERNEL_BLOCK_BOUNDED(name##_f64, task_type, OLY_CUDA_THREADS, 4)                                               \
    {                                                                                                                  \
        function<known_element<OLY_T_f64, double, double>>(__VA_ARGS__);                                               \
    }                                                                                                                  \
    OLY_KERNEL_BLOCK_BOUNDED(name##_f16, task_type, OLY_CUDA_THREADS, 4)                                               \
    {                                                                                                                  \
        function<known_element<OLY_T_f16, uint16_t, float>>(__VA_ARGS__);                                              \
    }                                                                                                                  \
    OLY_KERNEL_BLOCK_BOUNDED(name##_bf16, task_type, OLY_CUDA_THREADS, 4)                                              \
    {                                                                                                                  \
        function<known_element<OLY_T_bf16, uint16_t, float>>(__VA_ARGS__);                                             \
    }                                                                                                                  \
    template <class A> OLY_DEVICE void name##_of(const task_type &task)                                                \
    {                                                                                                                  \
        function<any_element<A>>(__VA_ARGS__);                                                                         \
    }                                                                                                                  \
    OLY_KERNEL_BLOCK_BOUNDED(name##_any, task_type, OLY_CUDA_THREADS, 2)                                               \
    {                                                                                                                  \
        OLY_BY_TYPE(OLY_SCATTER_TYPE(task), name##_of, task)                                                           \
    }

/* -- places ----------------------------------------------------------------------------------------------------------------------------- */
/* Of position i; -1: dropped. */
OLY_DEVICE int64_t place_of(const oly_cuda_count_task &t, int64_t i)
{
    int64_t at[OLY_MAX_RANK], offset;
    oly_unravel(t.index.rank, t.index.extent, i, at);
    return oly_follow(t.index, at, &offset) > 0 ? offset : -1;
}
/* Its number; 0: dropped. */
OLY_DEVICE uint32_t key_of(const oly_cuda_count_task &t, int64_t i)
{
    const int64_t place = place_of(t, i);
    return place < 0 ? 0 : (uint32_t)(t.unit == 1 ? place : place / t.unit) + 1;
}

/* -- windows --------------------------------------------------------------------------------------------------------------------------- */
/* i / n and its remainder; both are not negative. */
OLY_DEVICE int64_t divided(int64_t i, int64_t n, int64_t *rest)
{
    if (n == 1) {
        *rest = 0;
        return i;
    }
    const bool few = ((uint64_t)i | (uint64_t)n) >> 32 == 0;
    const int64_t quotient = few ? (int64_t)((uint32_t)i / (uint32_t)n) : i / n;
    *rest = i - quotient * n;
    return quotient;
}
/* Offsets of element w of a window. */
OLY_DEVICE void find_element(const oly_cuda_scatter_task &t, int64_t w, int64_t *to, int64_t *from)
{
    if (t.window.rank <= 1) {
        *to = t.window.rank ? w * t.window.stride[0] : 0;
        *from = t.window.rank ? w * t.window_from[0] : 0;
        return;
    }
    int64_t at[OLY_MAX_RANK];
    oly_unravel(t.window.rank, t.window.extent, w, at);
    *to = oly_offset(t.window.rank, at, t.window.stride);
    *from = oly_offset(t.window.rank, at, t.window_from);
}
/* Where the updates of position k begin. */
OLY_DEVICE int64_t updates_at(const oly_cuda_scatter_task &t, int64_t k)
{
    return t.position.rank == 1 ? k * t.position.stride[0] : oly_offset_in(t.position, k);
}
template <class X>
OLY_DEVICE typename X::value joined(const oly_cuda_scatter_task &t, typename X::value x, typename X::value y)
{
    return X::rounded(t.dtype, oly_joined(t.combiner, x, y));
}

/* -- a warp: ACROSS elements of a window without gaps for each lane, updates of several positions, which are evenly spaced, read before they are
 * combined -------------------------------------------------------------------------------------------------------------------------------- */
enum { SPAN = OLY_CUDA_SCATTER_SPAN, ACROSS = SPAN / OLY_WARP };
typedef struct across {
    int64_t first; /* of the lane's elements, OLY_WARP apart */
    bool here[ACROSS];
} across;
/* Elements of piece `piece` of windows. */
OLY_DEVICE across elements_of(const oly_cuda_scatter_task &t, int64_t piece)
{
    across e;
    e.first = piece * SPAN + oly_lane();
    OLY_UNROLL
    for (int a = 0; a < ACROSS; a++)
        e.here[a] = e.first + a * OLY_WARP < t.n_window;
    return e;
}
/* Of the window that begins at element `at`. */
template <class X>
OLY_DEVICE void load_across(const oly_cuda_scatter_task &t, const across &e, const char *base, int64_t at,
                            typename X::value x[ACROSS])
{
    OLY_UNROLL
    for (int a = 0; a < ACROSS; a++)
        if (e.here[a])
            X::load(t.dtype, base, at + e.first + a * OLY_WARP, &x[a]);
}
template <class X>
OLY_DEVICE void store_across(const oly_cuda_scatter_task &t, const across &e, char *base, int64_t at,
                             const typename X::value x[ACROSS])
{
    OLY_UNROLL
    for (int a = 0; a < ACROSS; a++)
        if (e.here[a])
            X::store(t.dtype, base, at + e.first + a * OLY_WARP, x[a]);
}
/* Combines the updates of `count` positions with x, in their order; begun: x has a value. A lane has one of 32 positions at a time. */
template <class X>
OLY_DEVICE void combine_across(const oly_cuda_scatter_task &t, const across &e, const uint32_t *order, int64_t count,
                               bool begun, typename X::value x[ACROSS])
{
    enum { ROWS = sizeof(typename X::value) > 4 ? 4 : 8 };
    uint32_t own = oly_lane() < count ? order[oly_lane()] : 0;
    for (int64_t first = 0; first < count; first += OLY_WARP) {
        const uint32_t after = first + OLY_WARP + oly_lane() < count ? order[first + OLY_WARP + oly_lane()] : 0;
        const int here = count - first < OLY_WARP ? (int)(count - first) : (int)OLY_WARP;
        for (int done = 0; done < here; done += ROWS) {
            typename X::value next[ROWS][ACROSS];
            OLY_UNROLL
            for (int r = 0; r < ROWS; r++) {
                const uint32_t k = oly_shuffle(own, done + r);
                if (done + r < here)
                    load_across<X>(t, e, t.from, k * t.position.stride[0], next[r]);
            }
            OLY_UNROLL
            for (int r = 0; r < ROWS; r++) {
                OLY_UNROLL
                for (int a = 0; a < ACROSS; a++)
                    if (done + r < here && e.here[a])
                        x[a] = begun || first + done + r > 0 ? joined<X>(t, x[a], next[r][a]) : next[r][a];
            }
        }
        own = after;
    }
}
#endif
