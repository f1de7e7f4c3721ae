/* SPDX-License-Identifier: BSD-3-Clause */
/* Scatter: updates applied to the elements at the places of their positions. An element gets its updates in the order of their
 * positions, rounded after each, so the bits are the same in every run, and the CPU's; but for elements with more than 256 updates, which
 * are combined in pieces of up to 256 first. The result holds the operand already. Here: few positions, and those sorted by their places;
 * scatter_counted.cu has many positions that are not sorted, scatter_atomic.cu integers whose order does not matter. */
#include "scattering.h"

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

/* -- many positions, sorted by their places ------------------------------------------------------------------------------------------------ */
enum { TOGETHER = 8, CHUNK = OLY_CUDA_SCATTER_CHUNK }; /* TOGETHER: updates read before they are combined */
OLY_DEVICE uint64_t key_at(const oly_cuda_scatter_task &t, int64_t j)
{
    return t.wide ? ((const uint64_t *)t.sorted)[j] : ((const uint32_t *)t.sorted)[j];
}
/* The first of positions [from, to) whose key is not less. */
OLY_DEVICE int64_t first_not_less(const oly_cuda_scatter_task &t, int64_t from, int64_t to, uint64_t key)
{
    while (from < to) {
        const int64_t middle = from + (to - from) / 2;
        if (key_at(t, middle) < key)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}
/* Combines updates [j, end), at least one. */
template <class X>
OLY_DEVICE typename X::value combine_part(const oly_cuda_scatter_task &t, int64_t from, int64_t j, int64_t end)
{
    enum { MANY = sizeof(typename X::value) > 4 ? 8 : 16 };
    typename X::value x, next[MANY];
    X::load(t.dtype, t.from, from + updates_at(t, t.order[j]), &x);
    for (j++; j < end; j += MANY) {
        OLY_UNROLL
        for (int k = 0; k < MANY; k++)
            if (j + k < end)
                X::load(t.dtype, t.from, from + updates_at(t, t.order[j + k]), &next[k]);
        OLY_UNROLL
        for (int k = 0; k < MANY; k++)
            if (j + k < end)
                x = joined<X>(t, x, next[k]);
    }
    return x;
}
/* Combines updates j and on, while they are of the place, with x. */
template <class X>
OLY_DEVICE void combine_run(const oly_cuda_scatter_task &t, int64_t from, uint64_t key, int64_t j, typename X::value &x)
{
    for (int m = TOGETHER; m == TOGETHER; j += TOGETHER) {
        uint64_t keys[TOGETHER];
        uint32_t order[TOGETHER];
        typename X::value next[TOGETHER];
        OLY_UNROLL
        for (int k = 0; k < TOGETHER; k++) {
            keys[k] = j + k < t.count ? key_at(t, j + k) : 0;
            order[k] = j + k < t.count ? t.order[j + k] : 0;
        }
        m = 0;
        OLY_UNROLL
        for (int k = 0; k < TOGETHER; k++)
            m += m == k && keys[k] == key;
        OLY_UNROLL
        for (int k = 0; k < TOGETHER; k++)
            if (k < m)
                X::load(t.dtype, t.from, from + updates_at(t, order[k]), &next[k]);
        OLY_UNROLL
        for (int k = 0; k < TOGETHER; k++)
            if (k < m)
                x = joined<X>(t, x, next[k]);
    }
}

/* Many equal places: chunks of positions first, each of them in two parts: those of its first place, and those of its last, if they go on
 * beyond the chunk. Is there something to combine in this part? Positions [begin, end), of this key. */
OLY_DEVICE bool find_part(const oly_cuda_scatter_task &t, int64_t part, int64_t *begin, int64_t *end, uint64_t *key)
{
    const int64_t first = part / 2 * CHUNK, past = first + CHUNK < t.count ? first + CHUNK : t.count;
    const uint64_t of_first = key_at(t, first), of_last = key_at(t, past - 1);
    const bool last = part & 1, on = past < t.count && key_at(t, past) == of_last;
    *key = last ? of_last : of_first;
    *begin = first;
    *end = past;
    if (*key == 0 || (last && (!on || of_first == of_last)) ||
        (!last && !(on && of_first == of_last) && !(first > 0 && key_at(t, first - 1) == of_first)))
        return false;
    if (last)
        *begin = first_not_less(t, first, past, of_last);
    else if (of_first != of_last)
        *end = first_not_less(t, first, past, of_first + 1);
    return true;
}
/* Where what was combined of chunk c begins, for a place whose first position is j. */
OLY_DEVICE int64_t chunk_at(const oly_cuda_scatter_task &t, int64_t c, int64_t j)
{
    return (2 * c + (c * CHUNK < j)) * t.n_window;
}

/* A thread for each element of a window, */
template <class X> OLY_DEVICE void combine_chunks(const oly_cuda_scatter_task &t)
{
    for (int64_t i = oly_index(); i < t.n; i += oly_stride()) {
        int64_t w, part = divided(i, t.n_window, &w), begin, end, to, from;
        uint64_t key;
        if (!find_part(t, part, &begin, &end, &key))
            continue;
        find_element(t, w, &to, &from);
        X::store(t.dtype, t.chunks, i, combine_part<X>(t, from, begin, end));
    }
}
template <class X> OLY_DEVICE void apply_sorted(const oly_cuda_scatter_task &t)
{
    for (int64_t i = oly_index(); i < t.n; i += oly_stride()) {
        int64_t w, j = divided(i, t.n_window, &w), to, from;
        const uint64_t key = key_at(t, j);
        if (key == 0 || (j > 0 && key_at(t, j - 1) == key))
            continue;
        find_element(t, w, &to, &from);
        to += ((int64_t)key - 1) * t.unit;
        typename X::value x;
        X::load(t.dtype, t.to, to, &x);
        if (j + CHUNK >= t.count || key_at(t, j + CHUNK) != key) {
            combine_run<X>(t, from, key, j, x);
        } else {
            const int64_t last = (first_not_less(t, j + CHUNK, t.count, key + 1) - 1) / CHUNK;
            for (int64_t c = j / CHUNK; c <= last; c += TOGETHER) {
                typename X::value next[TOGETHER];
                OLY_UNROLL
                for (int k = 0; k < TOGETHER; k++)
                    if (c + k <= last)
                        X::load(t.dtype, t.chunks, chunk_at(t, c + k, j) + w, &next[k]);
                OLY_UNROLL
                for (int k = 0; k < TOGETHER; k++)
                    if (c + k <= last)
                        x = joined<X>(t, x, next[k]);
            }
        }
        X::store(t.dtype, t.to, to, x);
    }
}

/* or a warp for SPAN of them, of windows that are wide enough and have no gaps. */
OLY_DEVICE int64_t pieces_of(const oly_cuda_scatter_task &t)
{
    return (t.n_window + SPAN - 1) / SPAN;
}
template <class X> OLY_DEVICE void combine_chunk_rows(const oly_cuda_scatter_task &t)
{
    const int64_t chunks = (t.count + CHUNK - 1) / CHUNK, pieces = pieces_of(t), warps = oly_stride() / OLY_WARP;
    for (int64_t u = oly_index() / OLY_WARP; u < 2 * chunks * pieces; u += warps) {
        int64_t piece, part = divided(u, pieces, &piece), begin, end;
        uint64_t key;
        if (!find_part(t, part, &begin, &end, &key))
            continue;
        const across e = elements_of(t, piece);
        typename X::value x[ACROSS];
        combine_across<X>(t, e, t.order + begin, end - begin, false, x);
        store_across<X>(t, e, t.chunks, part * t.n_window, x);
    }
}
template <class X>
OLY_DEVICE void apply_row(const oly_cuda_scatter_task &t, const across &e, int64_t j, int64_t end, uint64_t key)
{
    const int64_t at = ((int64_t)key - 1) * t.unit;
    typename X::value x[ACROSS], next[ACROSS];
    load_across<X>(t, e, t.to, at, x);
    if (end - j <= CHUNK) {
        combine_across<X>(t, e, t.order + j, end - j, true, x);
    } else {
        for (int64_t c = j / CHUNK; c <= (end - 1) / CHUNK; c++) {
            load_across<X>(t, e, t.chunks, chunk_at(t, c, j), next);
            for (int a = 0; a < ACROSS; a++)
                if (e.here[a])
                    x[a] = joined<X>(t, x[a], next[a]);
        }
    }
    store_across<X>(t, e, t.to, at, x);
}
template <class X> OLY_DEVICE void apply_sorted_rows(const oly_cuda_scatter_task &t)
{
    enum { POSITIONS = OLY_CUDA_SCATTER_GROUP };
    const int64_t groups = (t.count + POSITIONS - 1) / POSITIONS, pieces = pieces_of(t);
    for (int64_t u = oly_index() / OLY_WARP; u < groups * pieces; u += oly_stride() / OLY_WARP) {
        int64_t piece, first = divided(u, pieces, &piece) * POSITIONS;
        const int64_t j = first + oly_lane();
        const uint64_t key = j < t.count ? key_at(t, j) : 0;
        uint64_t before = oly_shuffle_up(key, 1);
        if (oly_lane() == 0)
            before = first > 0 ? key_at(t, first - 1) : 0;
        const uint32_t change = oly_ballot(key != before);
        const across e = elements_of(t, piece);
        for (int lane = 0; lane < POSITIONS; lane++) {
            const uint64_t of = oly_shuffle(key, lane);
            if (!(change >> lane & 1) || of == 0)
                continue;
            const uint32_t after = lane == OLY_WARP - 1 ? 0 : change >> (lane + 1);
            int64_t end = first + lane + 1;
            if (after)
                end += OLY_WARP - 1 - oly_leading_zeros((uint32_t)(after & (0u - after)));
            else
                end = first_not_less(t, first + OLY_WARP < t.count ? first + OLY_WARP : t.count, t.count, of + 1);
            apply_row<X>(t, e, first + lane, end, of);
        }
    }
}
#define OLY_SCATTER_TYPE(task) (task).dtype
#define SORTED(name, function)                                                                                         \
    template <class X> OLY_DEVICE void function##_if(const oly_cuda_scatter_task &task)                                \
    {                                                                                                                  \
        if (!task.only_if || *task.only_if)                                                                            \
            function<X>(task);                                                                                         \
    }                                                                                                                  \
    OLY_SCATTER_KERNELS(name, oly_cuda_scatter_task, function##_if, task)
SORTED(oly_scatter_chunks, combine_chunks)
SORTED(oly_scatter_sorted, apply_sorted)
SORTED(oly_scatter_chunk_rows, combine_chunk_rows)
SORTED(oly_scatter_sorted_rows, apply_sorted_rows)
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
        oly_store_bits(bytes, task.to + (to + ((int64_t)key - 1) * task.unit) * bytes,
                       oly_load_bits(bytes, task.from + (from + oly_offset_in(task.position, task.order[j])) * bytes));
    }
}
