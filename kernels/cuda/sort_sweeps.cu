/* SPDX-License-Identifier: BSD-3-Clause */
/* Sorting of long lines: stable orders by radix, eight bits at a time. One kernel counts the digits of all passes; then each pass (sweep)
 * reads and writes everything once: blocks take tiles in order, order them in shared memory, and learn how many of each digit are in the
 * tiles before from what these have published. What is moved is the elements, if these are all that is asked for, or keys and numbers of
 * elements. Counts are whole numbers: the result does not depend on how they are summed. launch_sort.c launches. */
#include "ranking.h"

/* What a tile publishes of a digit: 0: nothing yet; its own count + 1; or ALL and that of all tiles up to it. */
enum { LOOK = 4 }; /* tiles looked at at once */
#define ALL 0x80000000u

/* -- keys of elements: unsigned numbers in the same order, as in cpu/sort.c ------------------------------------------------------- */
template <class K> OLY_DEVICE K ordered(const oly_cuda_sweep_task &t, K bits)
{
    const K sign = (K)((K)1 << (8 * sizeof(K) - 1)), infinity = (K)t.infinity;
    if (t.order == OLY_CUDA_ORDER_UNSIGNED)
        return bits;
    if (t.order == OLY_CUDA_ORDER_SIGNED)
        return bits ^ sign;
    const K magnitude = bits & (K)~sign; /* NaNs are equal, and so are zeros */
    bits = magnitude > infinity ? (K)(infinity | infinity >> 1) : magnitude == 0 ? (K)0 : bits;
    return (K)(bits & sign ? ~bits : bits | sign);
}

/* -- counts of all digits ----------------------------------------------------------------------------------------------------------- */
template <class K> OLY_DEVICE void count_digits(const oly_cuda_sweep_task &t)
{
    enum { AHEAD = 8 };
    OLY_SHARED(uint32_t, counts, sizeof(K) * OLY_CUDA_DIGITS);
    const int thread = oly_thread(), all = t.passes * OLY_CUDA_DIGITS;
    for (int64_t number = oly_block(); number < t.lines * t.pieces; number += oly_blocks()) {
        const int64_t line = number / t.pieces, piece = number - line * t.pieces;
        const int64_t begin = t.n * piece / t.pieces, end = t.n * (piece + 1) / t.pieces;
        const K *from = (const K *)t.from + oly_offset_in(t.from_line, line);
        for (int i = thread; i < all; i += OLY_CUDA_THREADS)
            counts[i] = 0;
        oly_barrier();
        for (int64_t i = begin + thread; i < end; i += AHEAD * OLY_CUDA_THREADS) {
            K key[AHEAD];
            OLY_UNROLL
            for (int j = 0; j < AHEAD; j++)
                key[j] = i + j * OLY_CUDA_THREADS < end ? from[(i + j * OLY_CUDA_THREADS) * t.from_step] : (K)0;
            OLY_UNROLL
            for (int j = 0; j < AHEAD; j++) {
                const K ordering = ordered(t, key[j]);
                for (int pass = 0; pass < t.passes && i + j * OLY_CUDA_THREADS < end; pass++)
                    oly_atomic_add(&counts[pass * OLY_CUDA_DIGITS + digit_of(ordering, 8 * pass)], (uint32_t)1);
            }
        }
        oly_barrier();
        for (int i = thread; i < all; i += OLY_CUDA_THREADS)
            if (counts[i] > 0)
                oly_atomic_add(&t.counts[line * all + i], counts[i]);
        oly_barrier();
    }
}

/* -- a pass -------------------------------------------------------------------------------------------------------------------------- */
/* Of the whole block: each thread's two numbers become the sums of those of the threads before. */
OLY_DEVICE void sums_before(uint32_t *x, uint32_t *y, uint32_t *warps)
{
    const int lane = oly_lane(), warp = oly_warp();
    uint32_t a = *x, b = *y;
    OLY_UNROLL
    for (int by = 1; by < OLY_WARP; by *= 2) {
        const uint32_t c = oly_shuffle_up(a, by), d = oly_shuffle_up(b, by);
        a += lane >= by ? c : 0;
        b += lane >= by ? d : 0;
    }
    if (lane == OLY_WARP - 1) {
        warps[warp] = a;
        warps[WARPS + warp] = b;
    }
    oly_barrier();
    a -= *x;
    b -= *y;
    for (int w = 0; w < warp; w++) {
        a += warps[w];
        b += warps[WARPS + w];
    }
    *x = a;
    *y = b;
}
/* How many of the thread's digit are in the line's tiles before this one. */
OLY_DEVICE uint32_t look_back(const uint32_t *chain, int64_t tile)
{
    uint32_t before = 0;
    bool found = tile == 0;
    for (int64_t k = tile - 1; !found;) {
        uint32_t seen[LOOK];
        OLY_UNROLL
        for (int b = 0; b < LOOK; b++)
            seen[b] = oly_load_shared_by_blocks(chain + (k > b ? k - b : 0) * OLY_CUDA_DIGITS);
        OLY_UNROLL
        for (int b = 0; b < LOOK; b++) {
            if (found || seen[b] == 0)
                break;
            found = (seen[b] & ALL) != 0;
            before += found ? seen[b] & ~ALL : seen[b] - 1;
            k--;
        }
    }
    return before;
}
template <class K, bool NUMBERED, int ITEMS> OLY_DEVICE void sweep(const oly_cuda_sweep_task &t)
{
    enum { TILE = ITEMS * OLY_CUDA_THREADS };
    OLY_SHARED(K, keys, TILE);
    OLY_SHARED(uint32_t, numbers, NUMBERED ? TILE : 1);
    OLY_SHARED(uint32_t, counts, WARPS * OLY_CUDA_DIGITS);
    OLY_SHARED(uint32_t, starts, OLY_CUDA_DIGITS);
    OLY_SHARED(uint32_t, moves, OLY_CUDA_DIGITS); /* from places in the tile to places in the line, modulo 2^32 */
    OLY_SHARED(uint32_t, warps, 2 * WARPS);
    OLY_SHARED(uint64_t, ticket, 1);
    const int thread = oly_thread();
    for (;;) {
        if (thread == 0)
            *ticket = oly_atomic_add(t.ticket, (uint64_t)1);
        oly_barrier();
        if ((int64_t)*ticket >= t.lines * t.tiles)
            return;
        const int64_t line = (int64_t)*ticket / t.tiles, tile = (int64_t)*ticket - line * t.tiles, first = tile * TILE;
        const int m = t.n - first < TILE ? (int)(t.n - first) : (int)TILE;
        const K *from = (const K *)t.from + oly_offset_in(t.from_line, line) + first * t.from_step;
        uint32_t *chain = t.chain + (line * t.tiles + tile) * OLY_CUDA_DIGITS + thread;
        K item[ITEMS];
        uint32_t number[NUMBERED ? ITEMS : 1], ranked[ITEMS];
        if (m == TILE && t.from_step == 1) {
            OLY_UNROLL
            for (int j = 0; j < ITEMS; j++)
                item[j] = from[item_at<ITEMS>(j)];
        } else {
            OLY_UNROLL
            for (int j = 0; j < ITEMS; j++)
                item[j] = item_at<ITEMS>(j) < m ? from[item_at<ITEMS>(j) * t.from_step] : (K)0;
        }
        OLY_UNROLL
        for (int j = 0; j < ITEMS && NUMBERED; j++)
            number[j] = item_at<ITEMS>(j) >= m ? 0
                        : t.numbers            ? t.numbers[line * t.n + first + item_at<ITEMS>(j)]
                                               : (uint32_t)first + (uint32_t)item_at<ITEMS>(j);
        uint32_t base = t.counts[line * t.passes * OLY_CUDA_DIGITS + thread];
        OLY_UNROLL
        for (int j = 0; j < ITEMS; j++)
            ranked[j] = digit_of(ordered(t, item[j]), t.shift);
        rank_items<ITEMS>(ranked, m, counts, starts);
        const uint32_t own = starts[thread];
        oly_store_shared_by_blocks(chain, tile == 0 ? ALL | own : own + 1);
        uint32_t start = own;
        sums_before(&start, &base, warps);
        starts[thread] = start;
        oly_barrier();
        OLY_UNROLL
        for (int j = 0; j < ITEMS; j++) {
            if (item_at<ITEMS>(j) >= m)
                continue;
            const uint32_t to = place_of(ranked[j], counts, starts);
            keys[to] = item[j];
            if (NUMBERED)
                numbers[to] = number[j];
        }
        const uint32_t before = look_back(chain - tile * OLY_CUDA_DIGITS, tile);
        if (tile > 0)
            oly_store_shared_by_blocks(chain, ALL | (before + own));
        moves[thread] = base + before - start;
        oly_barrier();
        K *to = (K *)t.to + oly_offset_in(t.to_line, line);
        OLY_UNROLL
        for (int j = 0; j < ITEMS; j++) {
            const int k = j * OLY_CUDA_THREADS + thread;
            if (k >= m)
                continue;
            const K moved = keys[k];
            const uint32_t at = moves[digit_of(ordered(t, moved), t.shift)] + (uint32_t)k;
            to[(t.backwards ? t.n - 1 - (int64_t)at : (int64_t)at) * t.to_step] = moved;
            if (NUMBERED)
                t.numbers_to[line * t.n + at] = numbers[k];
        }
    }
}

/* -- kernels: by the size of an element, or of a key with a number ------------------------------------------------------------------- */
#define COUNT(bytes, K)                                                                                                \
    OLY_KERNEL_BLOCK_BOUNDED(oly_sort_digits_##bytes, oly_cuda_sweep_task, OLY_CUDA_THREADS, 4)                        \
    {                                                                                                                  \
        if (!task.only_if || *task.only_if)                                                                            \
            count_digits<K>(task);                                                                                     \
    }
#define SWEEP(name, K, numbered, items, blocks)                                                                        \
    OLY_KERNEL_BLOCK_BOUNDED(oly_sort_sweep_##name, oly_cuda_sweep_task, OLY_CUDA_THREADS, blocks)                     \
    {                                                                                                                  \
        if (!task.only_if || *task.only_if)                                                                            \
            sweep<K, numbered, items>(task);                                                                           \
    }
COUNT(1, uint8_t)
COUNT(2, uint16_t)
COUNT(4, uint32_t)
COUNT(8, uint64_t)
SWEEP(1, uint8_t, false, OLY_CUDA_SWEEP_ELEMENTS, 4)
SWEEP(2, uint16_t, false, OLY_CUDA_SWEEP_ELEMENTS, 4)
SWEEP(4, uint32_t, false, OLY_CUDA_SWEEP_ELEMENTS, 4)
SWEEP(8, uint64_t, false, OLY_CUDA_SWEEP_ELEMENTS, 3)
SWEEP(numbered_4, uint32_t, true, OLY_CUDA_SWEEP_NUMBERED, 4)
SWEEP(numbered_8, uint64_t, true, OLY_CUDA_SWEEP_NUMBERED, 4)
