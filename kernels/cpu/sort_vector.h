/* SPDX-License-Identifier: BSD-3-Clause */
/* Sorting unsigned keys in vectors of 512 bits: partitions by a pivot down to pieces that fit 16 registers, which a bitonic
 * network sorts (Batcher, "Sorting networks and their applications", 1968; partitions by compressed vectors as in Bramas,
 * "A novel hybrid quicksort algorithm vectorized using AVX-512 on Intel Skylake", 2017). In place; not stable, which
 * nobody sees: equal keys are the same.
 *
 * For sort.c alone, which includes it once per key where the instruction set has such vectors, with
 *
 *     KEY_BITS    32 or 64
 *     KEY         an unsigned integer of so many bits
 *     LANE_MASK   a bit for each of the keys in a vector
 *     NAME(f)     the name of function f for this key
 */
#define JOIN_(a, b)       a##b
#define JOIN(a, b)        JOIN_(a, b)
#define JOIN_MASK_(a, b)  a##b##_mask
#define JOIN_MASK(a, b)   JOIN_MASK_(a, b)
#define LANES             (512 / KEY_BITS)
#define ONE_EACH(x)       JOIN(_mm512_set1_epi, KEY_BITS)(x)
#define SMALLER(x, y)     JOIN(_mm512_min_epu, KEY_BITS)(x, y)
#define PERMUTED(lane, x) JOIN(_mm512_permutexvar_epi, KEY_BITS)(lane, x)
#define COMPRESSED(m, x)  JOIN(_mm512_maskz_compress_epi, KEY_BITS)(m, x)
#define STORE_LANES       JOIN(_mm512_mask_storeu_epi, KEY_BITS)
#define FIRST_LANES(n)    ((LANE_MASK)_bzhi_u32(~0u, (unsigned)(n)))
#define INLINE            static inline __attribute__((always_inline))

/* -- networks: loops with constant bounds, unrolled, so that v is registers ------------------------------------------------- */

INLINE __m512i NAME(lane_numbers)(void)
{
    KEY number[LANES];
    for (int i = 0; i < LANES; i++)
        number[i] = (KEY)i;
    return _mm512_loadu_si512(number);
}

/* Compares each lane with lane ^ `with`; the smaller key goes to the lower lane. */
INLINE __m512i NAME(exchange)(__m512i v, const int with)
{
    const int top = with >= 8 ? 8 : with >= 4 ? 4 : with >= 2 ? 2 : 1;
    const __m512i lane = NAME(lane_numbers)();
    const LANE_MASK upper = JOIN_MASK(_mm512_test_epi, KEY_BITS)(lane, ONE_EACH(top));
    const __m512i w = PERMUTED(_mm512_xor_si512(lane, ONE_EACH(with)), v);
    return JOIN(_mm512_mask_max_epu, KEY_BITS)(SMALLER(v, w), upper, v, w);
}

INLINE __m512i NAME(sorted_lanes)(__m512i v)
{
    v = NAME(exchange)(v, 1);
    v = NAME(exchange)(NAME(exchange)(v, 3), 1);
    v = NAME(exchange)(NAME(exchange)(NAME(exchange)(v, 7), 2), 1);
    if (LANES == 16)
        v = NAME(exchange)(NAME(exchange)(NAME(exchange)(NAME(exchange)(v, 15), 4), 2), 1);
    return v;
}

/* Sorts 2 m vectors whose halves are sorted. */
INLINE void NAME(merge_vectors)(__m512i *v, const int m)
{
    const __m512i backwards = _mm512_xor_si512(ONE_EACH(LANES - 1), NAME(lane_numbers)());
    __m512i high[NETWORK / 2];
    _Pragma("GCC unroll 8") for (int i = 0; i < m; i++)
    {
        const __m512i w = PERMUTED(backwards, v[2 * m - 1 - i]);
        high[i] = JOIN(_mm512_max_epu, KEY_BITS)(v[i], w);
        v[i] = SMALLER(v[i], w);
    }
    _Pragma("GCC unroll 8") for (int i = 0; i < m; i++) v[m + i] = high[i];
    _Pragma("GCC unroll 4") for (int half = m / 2; half > 0; half /= 2)
        _Pragma("GCC unroll 16") for (int i = 0; i < 2 * m; i++) if (!(i & half))
    {
        const __m512i x = v[i], y = v[i + half];
        v[i] = SMALLER(x, y);
        v[i + half] = JOIN(_mm512_max_epu, KEY_BITS)(x, y);
    }
    _Pragma("GCC unroll 16") for (int i = 0; i < 2 * m; i++)
    {
        if (LANES == 16)
            v[i] = NAME(exchange)(v[i], 8);
        v[i] = NAME(exchange)(NAME(exchange)(NAME(exchange)(v[i], 4), 2), 1);
    }
}

INLINE LANE_MASK NAME(lanes_of)(int64_t n, int vector)
{
    const int64_t left = n - vector * LANES;
    return left >= LANES ? (LANE_MASK)-1 : left <= 0 ? (LANE_MASK)0 : FIRST_LANES(left);
}

/* Up to `count` vectors of keys; what is missing counts as the largest key. */
INLINE void NAME(network_of)(int64_t n, KEY *a, const int count)
{
    __m512i v[NETWORK];
    _Pragma("GCC unroll 16") for (int i = 0; i < count; i++) v[i] =
        NAME(sorted_lanes)(JOIN(_mm512_mask_loadu_epi, KEY_BITS)(ONE_EACH(-1), NAME(lanes_of)(n, i), a + i * LANES));
    _Pragma("GCC unroll 4") for (int m = 1; m < count; m *= 2)
        _Pragma("GCC unroll 8") for (int i = 0; i < count; i += 2 * m) NAME(merge_vectors)(v + i, m);
    _Pragma("GCC unroll 16") for (int i = 0; i < count; i++) STORE_LANES(a + i * LANES, NAME(lanes_of)(n, i), v[i]);
}

static void NAME(network)(int64_t n, KEY *a)
{
    if (n <= LANES)
        NAME(network_of)(n, a, 1);
    else if (n <= 2 * LANES)
        NAME(network_of)(n, a, 2);
    else if (n <= 4 * LANES)
        NAME(network_of)(n, a, 4);
    else if (n <= 8 * LANES)
        NAME(network_of)(n, a, 8);
    else
        NAME(network_of)(n, a, NETWORK);
}

/* -- partitions --------------------------------------------------------------------------------------------------------- */

/* Stores the keys of v (of its lanes `here`) below the pivot at *low, the others below *high. room: a whole vector may be
 * written at *low. Registers are compressed, not memory, which some processors do slowly. */
INLINE void NAME(divide_vector)(__m512i v, LANE_MASK here, __m512i pivot, const bool equal_below, const bool room,
                                KEY **low, KEY **high)
{
    const LANE_MASK above = equal_below ? JOIN_MASK(_mm512_mask_cmpgt_epu, KEY_BITS)(here, v, pivot)
                                        : JOIN_MASK(_mm512_mask_cmpge_epu, KEY_BITS)(here, v, pivot);
    const LANE_MASK below = (LANE_MASK)(here & ~above);
    const int n_above = __builtin_popcount(above), n_below = __builtin_popcount(below);
    if (room)
        _mm512_storeu_si512(*low, COMPRESSED(below, v));
    else
        STORE_LANES(*low, FIRST_LANES(n_below), COMPRESSED(below, v));
    *low += n_below;
    *high -= n_above;
    STORE_LANES(*high, FIRST_LANES(n_above), COMPRESSED(above, v));
}

/* Moves the keys below the pivot (equal_below: and those equal to it) to the front of at least NETWORK vectors; returns how
 * many. Vectors at both ends and the rest that fills none are kept in registers: room to write. */
INLINE int64_t NAME(divide_at)(int64_t n, KEY *a, KEY pivot, const bool equal_below)
{
    const int step = UNROLLED * LANES;
    const LANE_MASK all = (LANE_MASK)-1, rest = FIRST_LANES(n % LANES);
    const __m512i p = ONE_EACH((__typeof__(_Generic((KEY)0, uint64_t : (long long)0, default : 0)))pivot);
    KEY *low = a, *high = a + n, *begin = a + step, *end = a + n - n % LANES;
    __m512i first[UNROLLED], last[UNROLLED], v[UNROLLED];
    const __m512i tail = JOIN(_mm512_maskz_loadu_epi, KEY_BITS)(rest, end);
    end -= step;
    _Pragma("GCC unroll 8") for (int i = 0; i < UNROLLED; i++)
    {
        first[i] = _mm512_loadu_si512(a + i * LANES);
        last[i] = _mm512_loadu_si512(end + i * LANES);
    }
    while (end - begin >= step) { /* from the side where there is less room: then both have room for all that is read */
        const bool from_end = high - end < begin - low;
        const KEY *from = from_end ? end - step : begin;
        end -= from_end ? step : 0;
        begin += from_end ? 0 : step;
        _Pragma("GCC unroll 8") for (int i = 0; i < UNROLLED; i++) v[i] = _mm512_loadu_si512(from + i * LANES);
        _Pragma("GCC unroll 8") for (int i = 0; i < UNROLLED; i++)
            NAME(divide_vector)(v[i], all, p, equal_below, true, &low, &high);
    }
    while (end > begin) {
        const bool from_end = high - end < begin - low;
        const KEY *from = from_end ? end - LANES : begin;
        end -= from_end ? LANES : 0;
        begin += from_end ? 0 : LANES;
        NAME(divide_vector)(_mm512_loadu_si512(from), all, p, equal_below, true, &low, &high);
    }
    _Pragma("GCC unroll 8") for (int i = 0; i < UNROLLED; i++)
    {
        NAME(divide_vector)(first[i], all, p, equal_below, false, &low, &high);
        NAME(divide_vector)(last[i], all, p, equal_below, false, &low, &high);
    }
    NAME(divide_vector)(tail, rest, p, equal_below, false, &low, &high);
    return low - a;
}

/* The median of keys at drawn places, so that no order of keys that occurs is bad; of few keys, of a vector in the middle. */
static KEY NAME(pivot)(int64_t n, const KEY *a)
{
    KEY sample[NETWORK * LANES];
    if (n < FEW_SAMPLED) {
        _mm512_storeu_si512(sample, NAME(sorted_lanes)(_mm512_loadu_si512(a + n / 2 - LANES / 2)));
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
#undef LANES
#undef ONE_EACH
#undef SMALLER
#undef PERMUTED
#undef COMPRESSED
#undef STORE_LANES
#undef FIRST_LANES
#undef INLINE
#undef KEY_BITS
#undef KEY
#undef LANE_MASK
#undef NAME
