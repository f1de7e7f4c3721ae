/* SPDX-License-Identifier: BSD-3-Clause */
/* What sort_vector.h needs of an instruction set, for keys of KEY_BITS bits: vectors of 512 bits (AVX-512), or of 256 (AVX2), in which
 * 64-bit keys have their highest bit inverted, as only signed ones can be compared. For sort_vector.h alone, which includes it once per
 * key:
 *
 *     VECTOR, LANES                       a vector, and the keys in it
 *     NAME(load), NAME(store)             a whole vector of keys
 *     NAME(each)                          the same key in all lanes
 *     NAME(load_first), NAME(store_first) of up to n keys (n may be negative); what is missing is the largest key
 *     SMALLER, LARGER                     of each lane
 *     NAME(permuted)(v, with)             lane i has lane i ^ with
 *     NAME(upper_of)(x, y, top)           y in lanes that have the bit `top`, else x
 *     NAME(divide_vector), NAME(divide_rest)  see below */
#define JOIN_(a, b)      a##b
#define JOIN(a, b)       JOIN_(a, b)
#define JOIN_MASK_(a, b) a##b##_mask
#define JOIN_MASK(a, b)  JOIN_MASK_(a, b)
#define INLINE           static inline __attribute__((always_inline))

#ifdef __AVX512F__

#define VECTOR           __m512i
#define LANES            (512 / KEY_BITS)
#define LANE_MASK        JOIN(__mmask, LANES_OF_512)
#define ONE_EACH(x)      JOIN(_mm512_set1_epi, KEY_BITS)(x)
#define SMALLER(x, y)    JOIN(_mm512_min_epu, KEY_BITS)(x, y)
#define LARGER(x, y)     JOIN(_mm512_max_epu, KEY_BITS)(x, y)
#define COMPRESSED(m, x) JOIN(_mm512_maskz_compress_epi, KEY_BITS)(m, x)
#define STORE_LANES      JOIN(_mm512_mask_storeu_epi, KEY_BITS)
#define FIRST_LANES(n)   ((LANE_MASK)_bzhi_u32(~0u, (unsigned)(n)))
#if KEY_BITS == 32
#define LANES_OF_512 16
#else
#define LANES_OF_512 8
#endif

INLINE VECTOR NAME(load)(const KEY *a)
{
    return _mm512_loadu_si512(a);
}
INLINE void NAME(store)(KEY *a, VECTOR v)
{
    _mm512_storeu_si512(a, v);
}
INLINE VECTOR NAME(each)(KEY a)
{
    return ONE_EACH((__typeof__(_Generic((KEY)0, uint64_t : (long long)0, default : 0)))a);
}
INLINE LANE_MASK NAME(lanes_of)(int64_t n)
{
    return n >= LANES ? (LANE_MASK)-1 : n <= 0 ? (LANE_MASK)0 : FIRST_LANES(n);
}
INLINE VECTOR NAME(load_first)(int64_t n, const KEY *a)
{
    return JOIN(_mm512_mask_loadu_epi, KEY_BITS)(ONE_EACH(-1), NAME(lanes_of)(n), a);
}
INLINE void NAME(store_first)(int64_t n, KEY *a, VECTOR v)
{
    STORE_LANES(a, NAME(lanes_of)(n), v);
}

INLINE VECTOR NAME(lane_numbers)(void)
{
    KEY number[LANES];
    for (int i = 0; i < LANES; i++)
        number[i] = (KEY)i;
    return _mm512_loadu_si512(number);
}
INLINE VECTOR NAME(permuted)(VECTOR v, const int with)
{
    return JOIN(_mm512_permutexvar_epi, KEY_BITS)(_mm512_xor_si512(NAME(lane_numbers)(), ONE_EACH(with)), v);
}
INLINE VECTOR NAME(upper_of)(VECTOR x, VECTOR y, const int top)
{
    const LANE_MASK upper = JOIN_MASK(_mm512_test_epi, KEY_BITS)(NAME(lane_numbers)(), ONE_EACH(top));
    return JOIN(_mm512_mask_mov_epi, KEY_BITS)(x, upper, y);
}

/* Stores the keys of v below the pivot (equal_below: and those equal to it) at *low, the others below *high. room: a whole vector may be
 * written at *low; else *low to *high is room for v and for whole vectors. Registers are compressed, not memory, which some processors do
 * slowly. */
INLINE void NAME(divide_vector)(VECTOR v, VECTOR pivot, const bool equal_below, const bool room, KEY **low, KEY **high)
{
    const LANE_MASK above =
        equal_below ? JOIN_MASK(_mm512_cmpgt_epu, KEY_BITS)(v, pivot) : JOIN_MASK(_mm512_cmpge_epu, KEY_BITS)(v, pivot);
    const LANE_MASK below = (LANE_MASK)~above;
    const int n_above = __builtin_popcount(above), n_below = __builtin_popcount(below);
    if (room)
        _mm512_storeu_si512(*low, COMPRESSED(below, v));
    else
        STORE_LANES(*low, FIRST_LANES(n_below), COMPRESSED(below, v));
    *low += n_below;
    *high -= n_above;
    STORE_LANES(*high, FIRST_LANES(n_above), COMPRESSED(above, v));
}
/* Of n < LANES keys. */
INLINE void NAME(divide_rest)(int64_t n, const KEY *a, KEY pivot, const bool equal_below, KEY **low, KEY **high)
{
    const LANE_MASK here = FIRST_LANES(n);
    const VECTOR v = JOIN(_mm512_maskz_loadu_epi, KEY_BITS)(here, a), p = NAME(each)(pivot);
    const LANE_MASK above = equal_below ? JOIN_MASK(_mm512_mask_cmpgt_epu, KEY_BITS)(here, v, p)
                                        : JOIN_MASK(_mm512_mask_cmpge_epu, KEY_BITS)(here, v, p);
    const LANE_MASK below = (LANE_MASK)(here & ~above);
    const int n_above = __builtin_popcount(above), n_below = __builtin_popcount(below);
    STORE_LANES(*low, FIRST_LANES(n_below), COMPRESSED(below, v));
    *low += n_below;
    *high -= n_above;
    STORE_LANES(*high, FIRST_LANES(n_above), COMPRESSED(above, v));
}
#undef LANES_OF_512
#undef ONE_EACH
#undef COMPRESSED
#undef STORE_LANES
#undef FIRST_LANES
#undef LANE_MASK

#else

#define VECTOR  __m256i
#define LANES   (256 / KEY_BITS)
#define AT(a)   ((const __m256i *)(const void *)(a))

/* Between keys and what is compared. */
INLINE VECTOR NAME(ordered)(VECTOR v)
{
    return KEY_BITS == 64 ? _mm256_xor_si256(v, _mm256_set1_epi64x(INT64_MIN)) : v;
}
INLINE VECTOR NAME(load)(const KEY *a)
{
    return NAME(ordered)(_mm256_loadu_si256(AT(a)));
}
INLINE void NAME(store)(KEY *a, VECTOR v)
{
    _mm256_storeu_si256((__m256i *)(void *)a, NAME(ordered)(v));
}
INLINE VECTOR NAME(each)(KEY a)
{
    return KEY_BITS == 32 ? _mm256_set1_epi32((int32_t)a) : NAME(ordered)(_mm256_set1_epi64x((long long)a));
}
INLINE VECTOR NAME(first_lanes)(int64_t n)
{
    static const int32_t ones[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
    return _mm256_loadu_si256(AT(ones + 8 - (n < 0 ? 0 : n) * (KEY_BITS / 32)));
}
INLINE VECTOR NAME(load_first)(int64_t n, const KEY *a)
{
    if (n >= LANES)
        return NAME(load)(a);
    const VECTOR here = NAME(first_lanes)(n);
    const VECTOR v = _mm256_maskload_epi32((const int *)(const void *)a, here);
    return NAME(ordered)(_mm256_or_si256(v, _mm256_xor_si256(here, _mm256_set1_epi32(-1))));
}
INLINE void NAME(store_first)(int64_t n, KEY *a, VECTOR v)
{
    if (n >= LANES)
        NAME(store)(a, v);
    else if (n > 0)
        _mm256_maskstore_epi32((int *)(void *)a, NAME(first_lanes)(n), NAME(ordered)(v));
}
INLINE VECTOR NAME(smaller)(VECTOR x, VECTOR y)
{
    return KEY_BITS == 32 ? _mm256_min_epu32(x, y) : _mm256_blendv_epi8(x, y, _mm256_cmpgt_epi64(x, y));
}
INLINE VECTOR NAME(larger)(VECTOR x, VECTOR y)
{
    return KEY_BITS == 32 ? _mm256_max_epu32(x, y) : _mm256_blendv_epi8(y, x, _mm256_cmpgt_epi64(x, y));
}
#define SMALLER NAME(smaller)
#define LARGER  NAME(larger)

/* In numbers of 32 bits. */
INLINE VECTOR NAME(permuted)(VECTOR v, const int with)
{
    const VECTOR number = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_permutevar8x32_epi32(v, _mm256_xor_si256(number, _mm256_set1_epi32(with * (KEY_BITS / 32))));
}
INLINE VECTOR NAME(upper_of)(VECTOR x, VECTOR y, const int top)
{
    const VECTOR number = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), bit = _mm256_set1_epi32(top * (KEY_BITS / 32));
    return _mm256_blendv_epi8(x, y, _mm256_cmpeq_epi32(_mm256_and_si256(number, bit), bit));
}

/* As above. One permutation puts the keys below the pivot in front of the others; the whole vector is stored at *low and below *high:
 * what should not be there is overwritten later. So room is asked for that at both ends, or exactly for v, where both are the same. */
INLINE void NAME(divide_vector)(VECTOR v, VECTOR pivot, const bool equal_below, const bool room, KEY **low, KEY **high)
{
    (void)room;
    /* A bit for each 32 bits: lanes of 64 have two. */
    const VECTOR in = KEY_BITS == 32
                          ? _mm256_cmpeq_epi32(equal_below ? _mm256_min_epu32(v, pivot) : _mm256_max_epu32(v, pivot), v)
                      : equal_below ? _mm256_cmpgt_epi64(v, pivot)
                                    : _mm256_cmpgt_epi64(pivot, v);
    const bool in_below = (KEY_BITS == 32) == equal_below;
    const unsigned below = (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(in)) ^ (in_below ? 0 : 255);
    const int n_below = __builtin_popcount(below) / (KEY_BITS / 32);
    const VECTOR lane = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)&lane_orders[below]));
    const VECTOR both = _mm256_permutevar8x32_epi32(v, lane);
    NAME(store)(*low, both);
    NAME(store)(*high - LANES, both);
    *low += n_below;
    *high -= LANES - n_below;
}
/* Of n < LANES keys. */
INLINE void NAME(divide_rest)(int64_t n, const KEY *a, KEY pivot, const bool equal_below, KEY **low, KEY **high)
{
    KEY rest[LANES];
    memcpy(rest, a, (size_t)n * sizeof *rest);
    for (int64_t k = 0; k < n; k++) {
        const bool below = equal_below ? rest[k] <= pivot : rest[k] < pivot;
        **low = (*high)[-1] = rest[k];
        *low += below;
        *high -= !below;
    }
}
#undef AT
#endif
