/* SPDX-License-Identifier: BSD-3-Clause */
/* Scatter: updates applied to the elements at the places that oly_indexed_places found. An element gets its updates in the order of their
 * positions, rounded after each, so the bits are the same in every run, and the CPU's; but for elements with more than 256 updates, which
 * are combined in pieces of up to 256 first. The result holds the operand already. */
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
OLY_KERNEL(oly_scatter_few, oly_cuda_scatter_task){
    OLY_BY_TYPE(task.dtype, apply_few, task)} OLY_KERNEL(oly_scatter_replace_few, oly_cuda_scatter_task)
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
enum { TOGETHER = 4, CHUNK = OLY_CUDA_SCATTER_CHUNK }; /* TOGETHER: updates read before they are combined */
OLY_DEVICE uint64_t key_at(const oly_cuda_scatter_task &t, int64_t j)
{
    return t.wide ? ((const uint64_t *)t.sorted)[j] : ((const uint32_t *)t.sorted)[j];
}
/* Combines updates j and on, while they are of the place and before the end. begun: x has a value. */
template <class A>
OLY_DEVICE void combine_run(const oly_cuda_scatter_task &t, int64_t from, uint64_t key, int64_t j, int64_t end,
                            bool begun, A &x)
{
    A next[TOGETHER];
    for (int m = TOGETHER; m == TOGETHER; j += TOGETHER) {
        for (m = 0; m < TOGETHER && j + m < end && key_at(t, j + m) == key;)
            m++;
        OLY_UNROLL
        for (int k = 0; k < TOGETHER; k++)
            if (k < m)
                oly_load(t.dtype, t.from, from + oly_offset_in(t.position, t.order[j + k]), &next[k]);
        OLY_UNROLL
        for (int k = 0; k < TOGETHER; k++)
            if (k < m) {
                x = begun ? oly_rounded(t.dtype, oly_joined(t.combiner, x, next[k])) : next[k];
                begun = true;
            }
    }
}
/* Many equal places: chunks of positions first, each of them in two parts: those of its first place, and those of its last, if they go on
 * beyond the chunk. A thread for each element of the window. */
template <class A> OLY_DEVICE void combine_chunks(const oly_cuda_scatter_task &t)
{
    for (int64_t i = oly_index(); i < t.n; i += oly_stride()) {
        int64_t part = i / t.n_window, first = part / 2 * CHUNK, to, from;
        int64_t end = first + CHUNK < t.count ? first + CHUNK : t.count, begin = first;
        bool last = part & 1, on = end < t.count && key_at(t, end) == key_at(t, end - 1);
        uint64_t key = key_at(t, last ? end - 1 : first);
        if (key == 0 || (last && (!on || key_at(t, first) == key)) ||
            (!last && !(on && key_at(t, end - 1) == key) && !(first > 0 && key_at(t, first - 1) == key)))
            continue;
        if (last)
            for (begin = end - 1; key_at(t, begin - 1) == key;)
                begin--;
        find_element(t, i % t.n_window, &to, &from);
        A x = A();
        combine_run(t, from, key, begin, end, false, x);
        oly_store(t.dtype, t.chunks, i, x);
    }
}
OLY_KERNEL(oly_scatter_chunks, oly_cuda_scatter_task)
{
    OLY_BY_TYPE(task.dtype, combine_chunks, task)
}
template <class A> OLY_DEVICE void apply_sorted(const oly_cuda_scatter_task &t)
{
    for (int64_t i = oly_index(); i < t.n; i += oly_stride()) {
        int64_t j = i / t.n_window, w = i % t.n_window, to, from;
        uint64_t key = key_at(t, j);
        if (key == 0 || (j > 0 && key_at(t, j - 1) == key))
            continue;
        find_element(t, w, &to, &from);
        to += (int64_t)key - 1;
        A x, next;
        oly_load(t.dtype, t.to, to, &x);
        if (j + CHUNK >= t.count || key_at(t, j + CHUNK) != key)
            combine_run(t, from, key, j, t.count, true, x);
        else
            for (int64_t c = j / CHUNK; c * CHUNK < t.count && (c * CHUNK <= j || key_at(t, c * CHUNK) == key); c++) {
                oly_load(t.dtype, t.chunks, (2 * c + (c * CHUNK < j)) * t.n_window + w, &next);
                x = oly_rounded(t.dtype, oly_joined(t.combiner, x, next));
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
        uint64_t key = key_at(task, j);
        if (key == 0 || (j + 1 < task.count && key_at(task, j + 1) == key))
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
