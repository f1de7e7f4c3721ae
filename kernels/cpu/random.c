/* SPDX-License-Identifier: BSD-3-Clause */
/* Tile operations behind random numbers: the block function Threefry-2x32 (20 rounds) on words of two 32-bit halves,
 * the first in the upper half, and x * y + z rounded once. Compiled once per instruction set; gives oly_random_<isa>,
 * used by the tile interpreters. */
#include "table.h"

#define UNUSED(name) const void *name __attribute__((unused))

/* -- Threefry --------------------------------------------------------------------------------------------------------- */
static inline uint32_t rotated(uint32_t x, int by)
{
    return x << by | x >> (32 - by);
}

#define ROUND(by) x0 += x1, x1 = rotated(x1, by) ^ x0
/* Four rounds, then two of the three words of the key and the number of groups so far are added. */
#define EVEN_GROUP(a, b, count) ROUND(13), ROUND(15), ROUND(26), ROUND(6), x0 += a, x1 += b + count
#define ODD_GROUP(a, b, count)  ROUND(17), ROUND(29), ROUND(16), ROUND(24), x0 += a, x1 += b + count

static inline void threefry(uint32_t k0, uint32_t k1, uint32_t *first, uint32_t *second)
{
    const uint32_t k2 = k0 ^ k1 ^ 0x1BD11BDAu;
    uint32_t x0 = *first + k0, x1 = *second + k1;
    EVEN_GROUP(k1, k2, 1);
    ODD_GROUP(k2, k0, 2);
    EVEN_GROUP(k0, k1, 3);
    ODD_GROUP(k1, k2, 4);
    EVEN_GROUP(k2, k0, 5);
    *first = x0;
    *second = x1;
}

#define JOINED(first, second) ((uint64_t)(first) << 32 | (second))
#define MIXED(first, second)  ((first) ^ (second))

/* Words are split into halves a block at a time, so that the rounds run on full vectors of halves. sk, sc: 1, or 0
 * where the operand is one element for all. */
#define BLOCK 64
#define BLOCKS(name, T, result_of, variant, sk, sc)                                                                    \
    static void name##_##variant(int n, void *out, const void *pk, const void *pc, UNUSED(z))                          \
    {                                                                                                                  \
        const uint64_t *keys = pk, *counters = pc;                                                                     \
        const uint64_t key0 = keys[0], counter0 = counters[0];                                                         \
        T *result = out;                                                                                               \
        for (int begin = 0; begin < n; begin += BLOCK) {                                                               \
            int m = n - begin < BLOCK ? n - begin : BLOCK;                                                             \
            uint32_t k0[BLOCK], k1[BLOCK], first[BLOCK], second[BLOCK];                                                \
            for (int i = 0; i < m; i++) {                                                                              \
                const uint64_t key = sk ? keys[begin + i] : key0, counter = sc ? counters[begin + i] : counter0;       \
                k0[i] = (uint32_t)(key >> 32);                                                                         \
                k1[i] = (uint32_t)key;                                                                                 \
                first[i] = (uint32_t)(counter >> 32);                                                                  \
                second[i] = (uint32_t)counter;                                                                         \
            }                                                                                                          \
            for (int i = 0; i < m; i++)                                                                                \
                threefry(sk ? k0[i] : (uint32_t)(key0 >> 32), sk ? k1[i] : (uint32_t)key0, &first[i], &second[i]);     \
            for (int i = 0; i < m; i++)                                                                                \
                result[begin + i] = result_of(first[i], second[i]);                                                    \
        }                                                                                                              \
    }
#define BLOCKS_OF(name, T, result_of)                                                                                  \
    BLOCKS(name, T, result_of, vv, 1, 1)                                                                               \
    BLOCKS(name, T, result_of, sv, 0, 1)                                                                               \
    BLOCKS(name, T, result_of, vs, 1, 0)
BLOCKS_OF(threefry2x32, uint64_t, JOINED)
BLOCKS_OF(random_bits, uint32_t, MIXED)

/* -- fused multiply-add ------------------------------------------------------------------------------------------------ */
#define FUSED(s, T, fused, mask)                                                                                       \
    static void fma_##s##_##mask(int n, void *out, const void *px, const void *py, const void *pz)                     \
    {                                                                                                                  \
        const T *x = px, *y = py, *z = pz;                                                                             \
        const T x0 = x[0], y0 = y[0], z0 = z[0];                                                                       \
        T *result = out;                                                                                               \
        _Pragma("GCC ivdep") for (int i = 0; i < n; i++) result[i] =                                                   \
            fused((mask)&1 ? x0 : x[i], (mask)&2 ? y0 : y[i], (mask)&4 ? z0 : z[i]);                                   \
    }
#define ALL_FUSED(s, T, fused)                                                                                         \
    FUSED(s, T, fused, 0)                                                                                              \
    FUSED(s, T, fused, 1)                                                                                              \
    FUSED(s, T, fused, 2)                                                                                              \
    FUSED(s, T, fused, 3) FUSED(s, T, fused, 4) FUSED(s, T, fused, 5) FUSED(s, T, fused, 6) FUSED(s, T, fused, 7)
ALL_FUSED(f32, float, __builtin_fmaf)
ALL_FUSED(f64, double, __builtin_fma)

#define ALL_MASKS(f)                                                                                                   \
    {                                                                                                                  \
        f##_0, f##_1, f##_2, f##_3, f##_4, f##_5, f##_6, f##_7                                                         \
    }
const oly_random_table OLY_ISA_NAME(oly_random) = {
    .threefry2x32 = {threefry2x32_vv, threefry2x32_sv, threefry2x32_vs},
    .random_bits = {random_bits_vv, random_bits_sv, random_bits_vs},
    .fma32 = ALL_MASKS(fma_f32),
    .fma64 = ALL_MASKS(fma_f64),
};
