/* SPDX-License-Identifier: BSD-3-Clause */
/* Scatter: updates applied to the elements at the places that oly_indexed_places found. An element gets its updates in the order of their
 * positions, rounded after each, so the bits are the CPU's and the same in every run. The result holds the operand already. */
#include "boxes.h"

/* Offsets of element w of a window. */
OLY_DEVICE void find_element(const oly_cuda_scatter_task &t, int64_t w, int64_t *to, int64_t *from)
{
    int64_t at[OLY_MAX_RANK];
    oly_unravel(t.window.rank, t.window.extent, w, at);
    *to = oly_offset(t.window.rank, at, t.window.stride);
    *from = oly_offset(t.window.rank, at, t.window_from);
}

/* -- few positions: a thread for each element of a window and each batch, which visits all positions of the batch --------------------- */
template <class A> OLY_DEVICE void apply_few(const oly_cuda_scatter_task &t)
{
    for (int64_t i = oly_index(); i < t.n; i += oly_stride()) {
        int64_t batch = i / t.n_window, to, from;
        find_element(t, i % t.n_window, &to, &from);
        for (int64_t k = batch * t.each; k < (batch + 1) * t.each; k++) {
            if (t.place[k] < 0)
                continue;
            A x, y;
            oly_load(t.dtype, t.to, to + t.place[k], &x);
            oly_load(t.dtype, t.from, from + oly_offset_in(t.position, k), &y);
            oly_store(t.dtype, t.to, to + t.place[k], oly_joined(t.combiner, x, y));
        }
    }
}
OLY_KERNEL(oly_scatter_few, oly_cuda_scatter_task)
{
    OLY_BY_TYPE(task.dtype, apply_few, task)
}
OLY_KERNEL(oly_scatter_replace_few, oly_cuda_scatter_task)
{
    int bytes = oly_bytes_of(task.dtype);
    for (int64_t i = oly_index(); i < task.n; i += oly_stride()) {
        int64_t batch = i / task.n_window, to, from;
        find_element(task, i % task.n_window, &to, &from);
        for (int64_t k = batch * task.each; k < (batch + 1) * task.each; k++)
            if (task.place[k] >= 0)
                oly_store_bits(bytes, task.to + (to + task.place[k]) * bytes,
                               oly_load_bits(bytes, task.from + (from + oly_offset_in(task.position, k)) * bytes));
    }
}

/* -- many positions, sorted by their places: a thread for each element of the window of the first of equal places ----------------------- */
enum { TOGETHER = 4 }; /* updates read before they are combined */
template <class A> OLY_DEVICE void apply_sorted(const oly_cuda_scatter_task &t)
{
    for (int64_t i = oly_index(); i < t.n; i += oly_stride()) {
        int64_t j = i / t.n_window, to, from;
        uint64_t key = t.sorted[j];
        if (key == 0 || (j > 0 && t.sorted[j - 1] == key))
            continue;
        find_element(t, i % t.n_window, &to, &from);
        to += (int64_t)key - 1;
        A x, next[TOGETHER];
        oly_load(t.dtype, t.to, to, &x);
        for (int m = TOGETHER; m == TOGETHER; j += TOGETHER) {
            for (m = 0; m < TOGETHER && j + m < t.count && t.sorted[j + m] == key;)
                m++;
            OLY_UNROLL
            for (int k = 0; k < TOGETHER; k++)
                if (k < m)
                    oly_load(t.dtype, t.from, from + oly_offset_in(t.position, t.order[j + k]), &next[k]);
            OLY_UNROLL
            for (int k = 0; k < TOGETHER; k++)
                if (k < m)
                    x = oly_rounded(t.dtype, oly_joined(t.combiner, x, next[k]));
        }
        oly_store(t.dtype, t.to, to, x);
    }
}
OLY_KERNEL(oly_scatter_sorted, oly_cuda_scatter_task)
{
    OLY_BY_TYPE(task.dtype, apply_sorted, task)
}
/* Of the last of equal places. */
OLY_KERNEL(oly_scatter_replace_sorted, oly_cuda_scatter_task)
{
    int bytes = oly_bytes_of(task.dtype);
    for (int64_t i = oly_index(); i < task.n; i += oly_stride()) {
        int64_t j = i / task.n_window, to, from;
        uint64_t key = task.sorted[j];
        if (key == 0 || (j + 1 < task.count && task.sorted[j + 1] == key))
            continue;
        find_element(task, i % task.n_window, &to, &from);
        oly_store_bits(bytes, task.to + (to + (int64_t)key - 1) * bytes,
                       oly_load_bits(bytes, task.from + (from + oly_offset_in(task.position, task.order[j])) * bytes));
    }
}

/* -- integers whose order does not matter: a thread for each update ------------------------------------------------------------------------ */
template <class T> OLY_DEVICE void apply_atomically(const oly_cuda_scatter_task &t)
{
    for (int64_t i = oly_index(); i < t.n; i += oly_stride()) {
        int64_t k = i / t.n_window, to, from;
        if (t.place[k] < 0)
            continue;
        find_element(t, i % t.n_window, &to, &from);
        T *at = (T *)t.to + to + t.place[k], x = ((const T *)t.from)[from + oly_offset_in(t.position, k)];
        if (t.combiner == OLY_COMBINE_SUM)
            oly_atomic_add(at, x);
        else if (t.combiner == OLY_COMBINE_MIN)
            oly_atomic_min(at, x);
        else
            oly_atomic_max(at, x);
    }
}
OLY_KERNEL(oly_scatter_atomic, oly_cuda_scatter_task)
{
    switch (task.dtype) {
    case OLY_T_i32: apply_atomically<int32_t>(task); break;
    case OLY_T_u32: apply_atomically<uint32_t>(task); break;
    case OLY_T_i64: apply_atomically<int64_t>(task); break;
    default: apply_atomically<uint64_t>(task); break;
    }
}
