/* SPDX-License-Identifier: BSD-3-Clause */
/* Scatters of integers whose order does not matter: sums, largest and smallest of 32 and 64 bits, by atomic operations. Sums of few places are
 * summed by each block in shared memory first, as in histograms, where many updates meet. */
#include "scattering.h"

template <class T> OLY_DEVICE void apply_atomically(const oly_cuda_count_task &task)
{
    const oly_cuda_scatter_task &t = task.updates;
    for (int64_t i = oly_index(); i < t.n; i += oly_stride()) {
        int64_t w, k = divided(i, t.n_window, &w), to, from;
        const int64_t place = place_of(task, k);
        if (place < 0)
            continue;
        find_element(t, w, &to, &from);
        T *at = (T *)t.to + to + place, x = ((const T *)t.from)[from + updates_at(t, k)];
        if (t.combiner == OLY_COMBINE_SUM)
            oly_atomic_add(at, x);
        else if (t.combiner == OLY_COMBINE_MIN)
            oly_atomic_min(at, x);
        else
            oly_atomic_max(at, x);
    }
}
OLY_KERNEL(oly_scatter_atomic, oly_cuda_count_task)
{
    switch (task.updates.dtype) {
    case OLY_T_i32: apply_atomically<int32_t>(task); break;
    case OLY_T_u32: apply_atomically<uint32_t>(task); break;
    case OLY_T_i64: apply_atomically<int64_t>(task); break;
    default: apply_atomically<uint64_t>(task); break;
    }
}

/* Elements of 32 bits, whose sums wrap. */
OLY_KERNEL_BLOCK(oly_scatter_bins, oly_cuda_count_task)
{
    enum { AHEAD = 4 };
    OLY_SHARED(uint32_t, bins, OLY_CUDA_SCATTER_BINS);
    const oly_cuda_scatter_task &t = task.updates;
    const int places = (int)task.places;
    for (int b = oly_thread(); b < places; b += OLY_CUDA_THREADS)
        bins[b] = 0;
    oly_barrier();
    for (int64_t i = oly_index(); i < t.count; i += AHEAD * oly_stride()) {
        int64_t place[AHEAD];
        uint32_t x[AHEAD];
        OLY_UNROLL
        for (int j = 0; j < AHEAD; j++) {
            const int64_t k = i + j * oly_stride();
            place[j] = k < t.count ? place_of(task, k) : -1;
            x[j] = k < t.count ? ((const uint32_t *)t.from)[updates_at(t, k)] : 0;
        }
        OLY_UNROLL
        for (int j = 0; j < AHEAD; j++)
            if (place[j] >= 0)
                oly_atomic_add(&bins[task.unit == 1 ? place[j] : place[j] / task.unit], x[j]);
    }
    oly_barrier();
    for (int b = oly_thread(); b < places; b += OLY_CUDA_THREADS)
        if (bins[b])
            oly_atomic_add((uint32_t *)t.to + b * task.unit, bins[b]);
}
