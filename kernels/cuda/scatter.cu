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
