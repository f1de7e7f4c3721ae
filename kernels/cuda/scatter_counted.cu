/* SPDX-License-Identifier: BSD-3-Clause */
/* Scatters of many positions to many places, without sorting the positions. Where a place has few of them, an atomic exchange links each
 * position to the one before, and who computes the place orders its list. Where there are more, or windows are wide, an atomic counter for each place
 * numbers its positions, which are then listed one place after the other and ordered. Where updates replace, the last position of each place is
 * found by an atomic maximum. None of this depends on the order in which atomics are done.
 *
 * A place with too many positions (OLY_CUDA_LINKED_MOST, OLY_CUDA_COUNTED_MOST) is found on the way: then the kernels that launch_scatter.c launches
 * behind sort the positions, by scatter.cu: those of such places, or, if they were counted, all. */
#include "scattering.h"

enum { WARPS = OLY_CUDA_THREADS / OLY_WARP, MOST = OLY_CUDA_COUNTED_MOST, HELD = 8 /* updates read together */ };

/* -- keys ------------------------------------------------------------------------------------------------------------------------------------ */
OLY_KERNEL(oly_scatter_keys, oly_cuda_count_task)
{
    for (int64_t i = oly_index(); i < task.index.n; i += oly_stride())
        task.keys[i] = key_of(task, i);
}
/* Where all lanes of a warp have the same key, one of them counts for all. */
OLY_KERNEL_BLOCK(oly_scatter_count, oly_cuda_count_task)
{
    const bool counting = !oly_any(oly_load_shared_by_blocks(task.state) != 0); /* or only keys are of use */
    const int64_t n = task.index.n;
    for (int64_t i = oly_index(); i - oly_lane() < n; i += oly_stride()) {
        const bool here = i < n;
        const uint32_t key = here ? key_of(task, i) : 0;
        uint32_t rank = 0;
        if (here)
            task.keys[i] = key;
        if (!counting)
            continue;
        if (oly_all(key == oly_shuffle(key, 0))) {
            if (key && oly_lane() == 0)
                rank = oly_atomic_add(&task.counts[key], (uint32_t)OLY_WARP);
            rank = oly_shuffle(rank, 0) + (uint32_t)oly_lane();
        } else if (key) {
            rank = oly_atomic_add(&task.counts[key], (uint32_t)1);
        }
        if (here)
            task.ranks[i] = (uint8_t)rank;
        if (key && rank >= MOST)
            oly_store_shared_by_blocks(task.state, (uint32_t)1);
    }
}

/* -- lists of positions --------------------------------------------------------------------------------------------------------------------- */
/* Each key's part of `order`: in whatever order blocks ask for theirs. A thread has four keys. */
struct alignas(16) four {
    uint32_t at[4];
};
OLY_KERNEL_BLOCK(oly_scatter_allocate, oly_cuda_count_task)
{
    OLY_SHARED(uint32_t, warps, WARPS);
    OLY_SHARED(uint32_t, base, 1);
    const int64_t keys = task.places + 1, tile = 4 * OLY_CUDA_THREADS;
    if (*task.state)
        return;
    for (int64_t first = oly_block() * tile; first < keys; first += oly_blocks() * tile) {
        const int64_t i = first + 4 * oly_thread();
        four counts = {{0, 0, 0, 0}};
        if (i < keys)
            counts = *(const four *)(task.counts + i);
        const uint32_t own = counts.at[0] + counts.at[1] + counts.at[2] + counts.at[3];
        uint32_t sum = own;
        OLY_UNROLL
        for (int by = 1; by < OLY_WARP; by *= 2) {
            const uint32_t before = oly_shuffle_up(sum, by);
            sum += oly_lane() >= by ? before : 0;
        }
        if (oly_lane() == OLY_WARP - 1)
            warps[oly_warp()] = sum;
        oly_barrier();
        if (oly_thread() == 0) {
            uint32_t all = 0;
            for (int w = 0; w < WARPS; w++) {
                const uint32_t here = warps[w];
                warps[w] = all;
                all += here;
            }
            *base = all ? oly_atomic_add(&task.state[1], all) : 0;
        }
        oly_barrier();
        uint32_t start = *base + warps[oly_warp()] + sum - own;
        four starts;
        OLY_UNROLL
        for (int k = 0; k < 4; k++) {
            starts.at[k] = start;
            start += counts.at[k];
        }
        if (i < keys)
            *(four *)(task.starts + i) = starts;
        oly_barrier();
    }
}
OLY_KERNEL(oly_scatter_list, oly_cuda_count_task)
{
    enum { AHEAD = 4 };
    if (*task.state)
        return;
    for (int64_t i = oly_index(); i < task.index.n; i += AHEAD * oly_stride()) {
        uint32_t key[AHEAD], to[AHEAD];
        OLY_UNROLL
        for (int j = 0; j < AHEAD; j++)
            key[j] = i + j * oly_stride() < task.index.n ? task.keys[i + j * oly_stride()] : 0;
        OLY_UNROLL
        for (int j = 0; j < AHEAD; j++)
            to[j] = key[j] ? task.starts[key[j]] + task.ranks[i + j * oly_stride()] : 0;
        OLY_UNROLL
        for (int j = 0; j < AHEAD; j++)
            if (key[j])
                task.order[to[j]] = (uint32_t)(i + j * oly_stride());
    }
}
/* The positions of each place in their order: a warp for each. */
OLY_KERNEL_BLOCK(oly_scatter_arrange, oly_cuda_count_task)
{
    OLY_SHARED(uint32_t, lists, WARPS * MOST);
    uint32_t *list = lists + oly_warp() * MOST;
    if (*task.state)
        return;
    for (int64_t place = oly_index() / OLY_WARP; place < task.places; place += oly_stride() / OLY_WARP) {
        const int count = (int)task.counts[place + 1];
        if (count < 2)
            continue;
        uint32_t *order = task.order + task.starts[place + 1];
        for (int i = oly_lane(); i < count; i += OLY_WARP)
            list[i] = order[i];
        oly_warp_barrier();
        for (int i = oly_lane(); i < count; i += OLY_WARP) {
            const uint32_t own = list[i];
            int before = 0;
            for (int j = 0; j < count; j++)
                before += list[j] < own;
            order[before] = own;
        }
        oly_warp_barrier();
    }
}

/* -- updates, combined: a thread for each element of a window, ------------------------------------------------------------------------------ */
template <class X>
OLY_DEVICE void combine_held(const oly_cuda_scatter_task &t, int64_t from, const uint32_t (&held)[HELD], uint32_t count,
                             typename X::value &x)
{
    typename X::value next[HELD];
    OLY_UNROLL
    for (int h = 0; h < HELD; h++)
        if (h < (int)count)
            X::load(t.dtype, t.from, from + updates_at(t, held[h]), &next[h]);
    OLY_UNROLL
    for (int h = 0; h < HELD; h++)
        if (h < (int)count)
            x = joined<X>(t, x, next[h]);
}
template <class X> OLY_DEVICE void apply_arranged(const oly_cuda_count_task &task)
{
    const oly_cuda_scatter_task &t = task.updates;
    if (*task.state)
        return;
    for (int64_t i = oly_index(); i < t.n; i += oly_stride()) {
        int64_t w, place = divided(i, t.n_window, &w), to, from;
        const uint32_t count = task.counts[place + 1];
        if (count == 0)
            continue;
        const uint32_t *order = task.order + task.starts[place + 1];
        find_element(t, w, &to, &from);
        to += place * task.unit;
        typename X::value x;
        X::load(t.dtype, t.to, to, &x);
        for (uint32_t done = 0; done < count; done += HELD) {
            uint32_t held[HELD];
            OLY_UNROLL
            for (int h = 0; h < HELD; h++)
                held[h] = done + h < count ? order[done + h] : 0;
            combine_held<X>(t, from, held, count - done, x);
        }
        X::store(t.dtype, t.to, to, x);
    }
}
/* or a warp for a place and SPAN elements of its window, which has no gaps; the positions are in their order. */
template <class X> OLY_DEVICE void apply_counted_rows(const oly_cuda_count_task &task)
{
    const oly_cuda_scatter_task &t = task.updates;
    const int64_t pieces = (t.n_window + SPAN - 1) / SPAN;
    if (*task.state)
        return;
    for (int64_t u = oly_index() / OLY_WARP; u < task.places * pieces; u += oly_stride() / OLY_WARP) {
        int64_t piece, place = divided(u, pieces, &piece);
        const uint32_t count = task.counts[place + 1], start = task.starts[place + 1];
        if (count == 0)
            continue;
        const across e = elements_of(t, piece);
        typename X::value x[ACROSS];
        load_across<X>(t, e, t.to, place * task.unit, x);
        combine_across<X>(t, e, task.order + start, count, true, x);
        store_across<X>(t, e, t.to, place * task.unit, x);
    }
}
#define OLY_SCATTER_TYPE(task) (task).updates.dtype
OLY_SCATTER_KERNELS(oly_scatter_arranged, oly_cuda_count_task, apply_arranged, task)
OLY_SCATTER_KERNELS(oly_scatter_counted_rows, oly_cuda_count_task, apply_counted_rows, task)

/* -- lists ------------------------------------------------------------------------------------------------------------------------------------ */
/* counts: of each key, 1 + the position that was linked last; order: of each position, 1 + the one before. 0: none. */
#define TOO_MANY UINT32_MAX
OLY_KERNEL(oly_scatter_link, oly_cuda_count_task)
{
    for (int64_t i = oly_index(); i < task.index.n; i += oly_stride()) {
        const uint32_t key = key_of(task, i);
        task.keys[i] = key;
        if (key)
            task.order[i] = oly_atomic_exchange(&task.counts[key], (uint32_t)i + 1);
    }
}
/* The first HELD positions of a list that are not before `least`, in their order; returns how many there are, at most
 * OLY_CUDA_LINKED_MOST + 1. Positions count from 1. */
OLY_DEVICE uint32_t first_of_list(const oly_cuda_count_task &task, uint32_t head, uint32_t least,
                                  uint32_t (&held)[HELD])
{
    uint32_t count = 0;
    OLY_UNROLL
    for (int h = 0; h < HELD; h++)
        held[h] = UINT32_MAX;
    for (uint32_t at = head; at && count <= OLY_CUDA_LINKED_MOST; at = task.order[at - 1]) {
        count++;
        if (at < least)
            continue;
        uint32_t k = at;
        OLY_UNROLL
        for (int h = 0; h < HELD; h++) {
            const uint32_t less = held[h] < k ? held[h] : k;
            k = held[h] < k ? k : held[h];
            held[h] = less;
        }
    }
    return count;
}
template <class X> OLY_DEVICE void apply_linked(const oly_cuda_count_task &task)
{
    const oly_cuda_scatter_task &t = task.updates;
    for (int64_t i = oly_index(); i < t.n; i += oly_stride()) {
        int64_t w, place = divided(i, t.n_window, &w), to, from;
        const uint32_t head = oly_load_shared_by_blocks(&task.counts[place + 1]);
        uint32_t held[HELD];
        if (head == 0 || head == TOO_MANY)
            continue;
        const uint32_t count = first_of_list(task, head, 0, held);
        if (count > OLY_CUDA_LINKED_MOST) {
            oly_store_shared_by_blocks(&task.counts[place + 1], TOO_MANY);
            oly_store_shared_by_blocks(task.state, (uint32_t)1);
            continue;
        }
        find_element(t, w, &to, &from);
        to += place * task.unit;
        typename X::value x;
        X::load(t.dtype, t.to, to, &x);
        for (uint32_t done = 0; done < count; done += HELD) {
            if (done > 0)
                first_of_list(task, head, held[HELD - 1] + 2, held);
            OLY_UNROLL
            for (int h = 0; h < HELD; h++)
                held[h]--;
            combine_held<X>(t, from, held, count - done, x);
        }
        X::store(t.dtype, t.to, to, x);
    }
}
OLY_SCATTER_KERNELS(oly_scatter_linked, oly_cuda_count_task, apply_linked, task)
/* Only the positions of places that have too many are left. */
OLY_KERNEL(oly_scatter_crowded, oly_cuda_count_task)
{
    if (*task.state == 0)
        return;
    for (int64_t i = oly_index(); i < task.index.n; i += oly_stride())
        if (task.keys[i] && task.counts[task.keys[i]] != TOO_MANY)
            task.keys[i] = 0;
}

/* -- updates that replace -------------------------------------------------------------------------------------------------------------------- */
/* Late positions first: of many for the same place most then find that a later one is there. */
OLY_KERNEL(oly_scatter_last, oly_cuda_count_task)
{
    for (int64_t j = oly_index(); j < task.index.n; j += oly_stride()) {
        const int64_t i = task.index.n - 1 - j;
        const uint32_t key = key_of(task, i), number = (uint32_t)i + 1;
        task.keys[i] = key;
        if (key && oly_load_shared_by_blocks(&task.counts[key]) < number)
            oly_atomic_max(&task.counts[key], number);
    }
}
OLY_KERNEL(oly_scatter_replace_last, oly_cuda_count_task)
{
    const oly_cuda_scatter_task &t = task.updates;
    const int bytes = oly_bytes_of(t.dtype);
    for (int64_t i = oly_index(); i < t.n; i += oly_stride()) {
        int64_t w, k = divided(i, t.n_window, &w), to, from;
        const uint32_t key = task.keys[k];
        if (key == 0 || task.counts[key] != (uint32_t)k + 1)
            continue;
        find_element(t, w, &to, &from);
        oly_store_bits(bytes, t.to + (to + (int64_t)(key - 1) * task.unit) * bytes,
                       oly_load_bits(bytes, t.from + (from + updates_at(t, k)) * bytes));
    }
}
/* The same, where there are not many more places than positions: neighbouring threads write neighbouring elements. */
OLY_KERNEL(oly_scatter_replace_places, oly_cuda_count_task)
{
    const oly_cuda_scatter_task &t = task.updates;
    const int bytes = oly_bytes_of(t.dtype);
    for (int64_t i = oly_index(); i < t.n; i += oly_stride()) {
        int64_t w, place = divided(i, t.n_window, &w), to, from;
        const uint32_t last = task.counts[place + 1];
        if (last == 0)
            continue;
        find_element(t, w, &to, &from);
        oly_store_bits(bytes, t.to + (to + place * task.unit) * bytes,
                       oly_load_bits(bytes, t.from + (from + updates_at(t, last - 1)) * bytes));
    }
}
