/* SPDX-License-Identifier: BSD-3-Clause */
/* Products in registers (gemm_registers.h) of float32, float64 and 32-bit integers, and the copies of their operands. Integers whose values
 * fit 16 bits are multiplied in pairs. For gemm.c alone; empty where the instruction set has no such vectors. */
#ifndef OLY_CPU_GEMM_TILE_H
#define OLY_CPU_GEMM_TILE_H
#include "cpu/gemm_real_tiles.h"

#ifdef OLY_HAS_LONG_TILES
#define TILE_WRAPPED(sum, x, y) _mm512_add_epi32(sum, _mm512_mullo_epi32(x, y))
#define TILE_PAIRS(sum, x, y)   _mm512_add_epi32(sum, _mm512_madd_epi16(x, y))
OLY_TILES(uint32_t, uint32_t, __m512i, __mmask16, 16, TILE_SET_32, _mm512_maskz_loadu_epi32, _mm512_mask_storeu_epi32,
          TILE_WRAPPED)
OLY_TILES(pairs, uint32_t, __m512i, __mmask16, 16, TILE_SET_32, _mm512_maskz_loadu_epi32, _mm512_mask_storeu_epi32,
          TILE_PAIRS)

/* The same with the instruction for it, where the processor has it. Not its intrinsic: compilers then spill the sums. */
#define TILE_DOT_PAIRS(sum, x, y)                                                                                      \
    ({                                                                                                                 \
        __asm__("vpdpwssd %2, %1, %0" : "+v"(sum) : "v"(x), "v"(y));                                                   \
        sum;                                                                                                           \
    })
OLY_TILES(dot_pairs, uint32_t, __m512i, __mmask16, 16, TILE_SET_32, _mm512_maskz_loadu_epi32, _mm512_mask_storeu_epi32,
          TILE_DOT_PAIRS)
static void tiles_of_pairs(const tiles *p, const uint32_t *a, const uint32_t *b, uint32_t *c)
{
    (__builtin_cpu_supports("avx512vnni") ? tiles_dot_pairs : tiles_pairs)(p, a, b, c);
}
#elif defined(OLY_HAS_TILES)
#define TILE_WRAPPED(sum, x, y) _mm256_add_epi32(sum, _mm256_mullo_epi32(x, y))
#define TILE_PAIRS(sum, x, y)   _mm256_add_epi32(sum, _mm256_madd_epi16(x, y))
OLY_TILES(uint32_t, uint32_t, __m256i, uint8_t, 8, TILE_SET_32, tile_load_32, tile_store_32, TILE_WRAPPED)
OLY_TILES(pairs, uint32_t, __m256i, uint8_t, 8, TILE_SET_32, tile_load_32, tile_store_32, TILE_PAIRS)
static void tiles_of_pairs(const tiles *p, const uint32_t *a, const uint32_t *b, uint32_t *c)
{
    tiles_pairs(p, a, b, c);
}
#endif

#ifdef OLY_HAS_TILES

/* A piece of a matrix, dense: to[y * width + x] = from[y * row + x * column]. */
#define OLY_PACK(s, T)                                                                                                 \
    static void pack_##s(int64_t depth, int64_t width, T *to, int64_t to_row, const T *from, int64_t row,              \
                         int64_t column)                                                                               \
    {                                                                                                                  \
        if (column == 1)                                                                                               \
            for (int64_t y = 0; y < depth; y++)                                                                        \
                for (int64_t x = 0; x < width; x++)                                                                    \
                    to[y * to_row + x] = from[y * row + x];                                                            \
        else                                                                                                           \
            for (int64_t x = 0; x < width; x++)                                                                        \
                for (int64_t y = 0; y < depth; y++)                                                                    \
                    to[y * to_row + x] = from[y * row + x * column];                                                   \
    }
OLY_PACK(f32, float)
OLY_PACK(f64, double)
OLY_PACK(uint32_t, uint32_t)

/* Elements 2y and 2y + 1 of each row side by side in 16 bits each, the one after the last as zero: to[x * to_row + y *
 * to_column]. False: a value does not fit. */
#define PAIR(high, even, odd) ((high) |= ((even) + 0x8000u) | ((odd) + 0x8000u), ((even)&0xffffu) | (odd) << 16)
static bool pack_pairs(int64_t depth, int64_t width, uint32_t *to, int64_t to_row, int64_t to_column,
                       const uint32_t *from, int64_t row, int64_t column)
{
    uint32_t high = 0;
    if (row == 1 && to_row == 1) { /* rows of b */
        for (int64_t y = 0; y + 2 <= depth; y += 2)
            for (int64_t x = 0; x < width; x++)
                to[y / 2 * to_column + x] = PAIR(high, from[y * column + x], from[(y + 1) * column + x]);
    } else if (column == 1 && to_column == 1) { /* rows of a */
        for (int64_t x = 0; x < width; x++)
            for (int64_t y = 0; y + 2 <= depth; y += 2)
                to[x * to_row + y / 2] = PAIR(high, from[x * row + y], from[x * row + y + 1]);
    } else {
        for (int64_t x = 0; x < width; x++)
            for (int64_t y = 0; y + 2 <= depth; y += 2)
                to[x * to_row + y / 2 * to_column] =
                    PAIR(high, from[x * row + y * column], from[x * row + (y + 1) * column]);
    }
    for (int64_t x = 0; x < width && depth % 2; x++)
        to[x * to_row + depth / 2 * to_column] = PAIR(high, from[x * row + (depth - 1) * column], 0u);
    return high < 0x10000u;
}
#endif
#endif
