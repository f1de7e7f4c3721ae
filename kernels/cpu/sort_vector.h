/* SPDX-License-Identifier: BSD-3-Clause */
/* Sorting unsigned keys in vectors: partitions by a pivot down to pieces that fit NETWORK registers, which a bitonic
 * network sorts (Batcher, "Sorting networks and their applications", 1968; partitions by compressed vectors as in Bramas,
 * "A novel hybrid quicksort algorithm vectorized using AVX-512 on Intel Skylake", 2017). In place; not stable, which
 * nobody sees: equal keys are the same.
 *
 * For sort.c alone, which includes it once per key where the instruction set has such vectors, with
 *
 *     KEY_BITS    32 or 64
 *     KEY         an unsigned integer of so many bits
 *     NAME(f)     the name of function f for this key
 */
#include "cpu/sort_registers.h"

/* -- networks: loops with constant bounds, unrolled, so that v is registers ------------------------------------------------- */

/* Compares each lane with lane ^ `with`; the smaller key goes to the lower lane. */
INLINE VECTOR NAME(exchange)(VECTOR v, const int with)
{
    const int top = with >= 8 ? 8 : with >= 4 ? 4 : with >= 2 ? 2 : 1;
    const VECTOR w = NAME(permuted)(v, with);
    return NAME(upper_of)(SMALLER(v, w), LARGER(v, w), top);
}

/* Sorts each half of lanes that have been merged. */
INLINE VECTOR NAME(merged_lanes)(VECTOR v, const int lanes)
{
    if (lanes > 8)
        v = NAME(exchange)(v, 8);
    if (lanes > 4)
        v = NAME(exchange)(v, 4);
    if (lanes > 2)
        v = NAME(exchange)(v, 2);
    return NAME(exchange)(v, 1);
}

INLINE VECTOR NAME(sorted_lanes)(VECTOR v)
{
    v = NAME(exchange)(v, 1);
    v = NAME(merged_lanes)(NAME(exchange)(v, 3), 2);
    if (LANES >= 8)
        v = NAME(merged_lanes)(NAME(exchange)(v, 7), 4);
    if (LANES >= 16)
        v = NAME(merged_lanes)(NAME(exchange)(v, 15), 8);
    return v;
}

/* Sorts 2 m vectors whose halves are sorted. */
INLINE void NAME(merge_vectors)(VECTOR *v, const int m)
{
    VECTOR high[NETWORK / 2];
    _Pragma("GCC unroll 8") for (int i = 0; i < m; i++)
    {
        const VECTOR w = NAME(permuted)(v[2 * m - 1 - i], LANES - 1);
        high[i] = LARGER(v[i], w);
        v[i] = SMALLER(v[i], w);
    }
    _Pragma("GCC unroll 8") for (int i = 0; i < m; i++) v[m + i] = high[i];
    _Pragma("GCC unroll 4") for (int half = m / 2; half > 0; half /= 2)
        _Pragma("GCC unroll 16") for (int i = 0; i < 2 * m; i++) if (!(i & half))
    {
        const VECTOR x = v[i], y = v[i + half];
        v[i] = SMALLER(x, y);
        v[i + half] = LARGER(x, y);
    }
    _Pragma("GCC unroll 16") for (int i = 0; i < 2 * m; i++) v[i] = NAME(merged_lanes)(v[i], LANES);
}

INLINE void NAME(merge_pairs)(VECTOR *v, const int m, const int count)
{
    if (m < count)
        _Pragma("GCC unroll 8") for (int i = 0; i < count; i += 2 * m) NAME(merge_vectors)(v + i, m);
}

/* Up to `count` vectors of keys; what is missing counts as the largest key. */
INLINE void NAME(network_of)(int64_t n, KEY *a, const int count)
{
    VECTOR v[NETWORK];
    _Pragma("GCC unroll 16") for (int i = 0; i < count; i++) v[i] =
        NAME(sorted_lanes)(NAME(load_first)(n - i * LANES, a + i * LANES));
    NAME(merge_pairs)(v, 1, count);
    NAME(merge_pairs)(v, 2, count);
    NAME(merge_pairs)(v, 4, count);
    NAME(merge_pairs)(v, 8, count);
    _Pragma("GCC unroll 16") for (int i = 0; i < count; i++) NAME(store_first)(n - i * LANES, a + i * LANES, v[i]);
}

static void NAME(network)(int64_t n, KEY *a)
{
    if (n <= LANES)
        NAME(network_of)(n, a, 1);
    else if (n <= 2 * LANES)
        NAME(network_of)(n, a, 2);
    else if (n <= 4 * LANES)
        NAME(network_of)(n, a, 4);
    else if (NETWORK > 8 && n <= 8 * LANES)
        NAME(network_of)(n, a, 8);
    else
        NAME(network_of)(n, a, NETWORK);
}

/* -- partitions --------------------------------------------------------------------------------------------------------- */

/* Moves the keys below the pivot (equal_below: and those equal to it) to the front of at least NETWORK vectors; returns how
 * many. Vectors at both ends and the rest that fills none are kept in registers: room to write. */
INLINE int64_t NAME(divide_at)(int64_t n, KEY *a, KEY pivot, const bool equal_below)
{
    const int step = UNROLLED * LANES;
    const VECTOR p = NAME(each)(pivot);
    KEY *low = a, *high = a + n, *begin = a + step, *end = a + n - n % LANES;
    VECTOR first[UNROLLED], last[UNROLLED], v[UNROLLED];
    const KEY *rest = end;
    end -= step;
    _Pragma("GCC unroll 8") for (int i = 0; i < UNROLLED; i++)
    {
        first[i] = NAME(load)(a + i * LANES);
        last[i] = NAME(load)(end + i * LANES);
    }
    NAME(divide_rest)(n % LANES, rest, pivot, equal_below, &low, &high);
    while (end - begin >= step) { /* from the side where there is less room: then both have room for all that is read */
        const bool from_end = high - end < begin - low;
        const KEY *from = from_end ? end - step : begin;
        end -= from_end ? step : 0;
        begin += from_end ? 0 : step;
        _Pragma("GCC unroll 8") for (int i = 0; i < UNROLLED; i++) v[i] = NAME(load)(from + i * LANES);
        _Pragma("GCC unroll 8") for (int i = 0; i < UNROLLED; i++)
            NAME(divide_vector)(v[i], p, equal_below, true, &low, &high);
    }
    while (end > begin) {
        const bool from_end = high - end < begin - low;
        const KEY *from = from_end ? end - LANES : begin;
        end -= from_end ? LANES : 0;
        begin += from_end ? 0 : LANES;
        NAME(divide_vector)(NAME(load)(from), p, equal_below, true, &low, &high);
    }
    _Pragma("GCC unroll 8") for (int i = 0; i < UNROLLED; i++)
    {
        NAME(divide_vector)(first[i], p, equal_below, false, &low, &high);
        NAME(divide_vector)(last[i], p, equal_below, false, &low, &high);
    }
    return low - a;
}

/* The median of keys at drawn places, so that no order of keys that occurs is bad; of few keys, of a vector in the middle. */
static KEY NAME(pivot)(int64_t n, const KEY *a)
{
    KEY sample[NETWORK * LANES];
    if (n < FEW_SAMPLED) {
        NAME(store)(sample, NAME(sorted_lanes)(NAME(load)(a + n / 2 - LANES / 2)));
        return sample[LANES / 2];
    }
    for (uint64_t i = 0; i < SAMPLES; i++)
        sample[i] = a[drawn_place(i, n)];
    NAME(network)(SAMPLES, sample);
    return sample[SAMPLES / 2];
}

/* Divides more than NETWORK vectors of keys in two: none of the first is above one of the second. Returns the number of the
 * first; *equal: those are all the same, nothing is left to do. */
static int64_t NAME(divide)(int64_t n, KEY *a, bool *equal)
{
    const KEY pivot = NAME(pivot)(n, a);
    const int64_t below = NAME(divide_at)(n, a, pivot, false);
    *equal = below == 0; /* the pivot is the smallest key: divided behind its equals */
    return below > 0 ? below : NAME(divide_at)(n, a, pivot, true);
}

/* -- the whole ---------------------------------------------------------------------------------------------------------- */

static void NAME(vector_sort)(int64_t n, KEY *a)
{
    while (n > NETWORK * LANES) {
        bool equal;
        const int64_t first = NAME(divide)(n, a, &equal), second = n - first;
        if (first <= second) { /* the shorter part by a call: at most log2(n) of them are active */
            if (!equal)
                NAME(vector_sort)(first, a);
            a += first;
            n = second;
        } else {
            NAME(vector_sort)(second, a + first);
            if (equal)
                return;
            n = first;
        }
    }
    NAME(network)(n, a);
}

#undef JOIN_
#undef JOIN
#undef JOIN_MASK_
#undef JOIN_MASK
#undef VECTOR
#undef LANES
#undef SMALLER
#undef LARGER
#undef INLINE
#undef KEY_BITS
#undef KEY
#undef NAME
