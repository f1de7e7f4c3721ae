/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks of the keys of a tile by one digit, for the kernels of sorting: a block of OLY_CUDA_THREADS threads, each with ITEMS keys, in stable
 * order. Item j of a thread is element warp * 32 * ITEMS + 32 * j + lane. */
#ifndef OLY_CUDA_RANKING_H
#define OLY_CUDA_RANKING_H
#include "boxes.h"

enum { WARPS = OLY_CUDA_THREADS / OLY_WARP };

template <int ITEMS> OLY_DEVICE int item_at(int j)
{
    return oly_warp() * OLY_WARP * ITEMS + j * OLY_WARP + oly_lane();
}
template <class K> OLY_DEVICE uint32_t digit_of(K key, int shift)
{
    return (uint32_t)(key >> shift) & (OLY_CUDA_DIGITS - 1);
}
/* items: digits; then digit << 16 | rank: how many items of the same digit are before it, in its warp. counts[warp][digit]: in warps
 * before; total[digit]: in all. Of the tile's items the first m are there. */
template <int ITEMS> OLY_DEVICE void rank_items(uint32_t *items, int m, uint32_t *counts, uint32_t *total)
{
    int warp = oly_warp(), lane = oly_lane(), thread = oly_thread();
    for (int w = 0; w < WARPS; w++)
        counts[w * OLY_CUDA_DIGITS + thread] = 0;
    oly_barrier();
    OLY_UNROLL
    for (int j = 0; j < ITEMS; j++) {
        if (item_at<ITEMS>(j) - lane >= m)
            continue; /* the whole warp */
        const uint32_t digit = items[j];
        uint32_t peers = oly_ballot(item_at<ITEMS>(j) < m), before = 0;
        OLY_UNROLL
        for (int bit = 0; bit < 8; bit++) {
            uint32_t set = oly_ballot(digit >> bit & 1);
            peers &= digit >> bit & 1 ? set : ~set;
        }
        /* of equal digits the lowest lane counts for all */
        int leader = peers ? OLY_WARP - 1 - oly_leading_zeros((uint32_t)(peers & (0u - peers))) : lane;
        if (item_at<ITEMS>(j) < m && leader == lane)
            before = oly_atomic_add(&counts[warp * OLY_CUDA_DIGITS + digit], (uint32_t)oly_count_ones(peers));
        before = oly_shuffle(before, leader);
        items[j] = digit << 16 | (before + (uint32_t)oly_count_ones(peers & (((uint32_t)1 << lane) - 1)));
    }
    oly_barrier();
    uint32_t sum = 0;
    for (int w = 0; w < WARPS; w++) {
        uint32_t here = counts[w * OLY_CUDA_DIGITS + thread];
        counts[w * OLY_CUDA_DIGITS + thread] = sum;
        sum += here;
    }
    total[thread] = sum;
    oly_barrier();
}
/* An item's place in the ordered tile. starts[digit]: of the first of a digit. */
OLY_DEVICE uint32_t place_of(uint32_t item, const uint32_t *counts, const uint32_t *starts)
{
    const uint32_t digit = item >> 16;
    return starts[digit] + counts[oly_warp() * OLY_CUDA_DIGITS + digit] + (item & 0xffff);
}
#endif
