/* SPDX-License-Identifier: BSD-3-Clause */
/* Products of float32 and float64 of any size with AVX-512 or AVX2: parts of the operands that fit the caches are copied and multiplied in
 * registers (gemm_tile.h). Each element is summed from left to right over BLOCK_DEPTH terms, then over these sums, whatever the other
 * blocks: as accurate for many terms as OpenBLAS. For gemm.c alone. */
#ifndef OLY_CPU_GEMM_BLOCKS_H
#define OLY_CPU_GEMM_BLOCKS_H
#include "cpu/gemm_tile.h"
#include "cpu/transpose.h"

/* Initial value of sums. If there is a single product it is the result as it is: a zero keeps its sign. */
#define BEGIN(T, k) ((T)((k) == 1 ? -0.0 : 0.0))

#ifdef OLY_HAS_TILES
#define BLOCK_DEPTH 128    /* so that a panel of b, which the tiles of all rows read, stays in the first cache */
#define BLOCK_BYTES 131072 /* of a, which stay in the second */
#define FEW_ROWS    32     /* rows of b are read in place: copying them would take longer than what it saves */
#define FEW_PANELS  2      /* the same for rows of a */

OLY_TURN(f32, float, 16, transpose_16, uint32_t)
OLY_TURN(f64, double, 8, transpose_8x8, uint64_t)

/* lines_<s>: rows of a as tiles read them: dense where they are dense in a, else in groups of TILE_ROWS side by side.
 * panel_<s>: a piece of b with dense rows. */
#define BLOCKS(s, T, lanes)                                                                                            \
    static void lines_##s(int64_t rows, int64_t depth, T *to, const T *from, int64_t row, int64_t column)              \
    {                                                                                                                  \
        if (column == 1) {                                                                                             \
            for (int64_t i = 0; i < rows; i++)                                                                         \
                for (int64_t l = 0; l < depth; l++)                                                                    \
                    to[i * BLOCK_DEPTH + l] = from[i * row + l];                                                       \
            return;                                                                                                    \
        }                                                                                                              \
        for (int64_t i = 0; i < rows; i += TILE_ROWS) {                                                                \
            T *group = to + i * BLOCK_DEPTH;                                                                           \
            const T *at = from + i * row;                                                                              \
            if (row == 1 && rows - i >= TILE_ROWS)                                                                     \
                for (int64_t l = 0; l < depth; l++)                                                                    \
                    for (int64_t r = 0; r < TILE_ROWS; r++)                                                            \
                        group[l * TILE_ROWS + r] = at[l * column + r];                                                 \
            else                                                                                                       \
                for (int64_t l = 0; l < depth; l++)                                                                    \
                    for (int64_t r = 0; r < TILE_ROWS && r < rows - i; r++)                                            \
                        group[l * TILE_ROWS + r] = at[l * column + r * row];                                           \
        }                                                                                                              \
    }                                                                                                                  \
    static void panel_##s(int64_t depth, int64_t width, T *to, int64_t to_row, const T *from, int64_t row,             \
                          int64_t column)                                                                              \
    {                                                                                                                  \
        if (row == 1 && column != 1)                                                                                   \
            turn_##s(width, depth, to, to_row, from, column);                                                          \
        else                                                                                                           \
            pack_##s(depth, width, to, to_row, from, row, column);                                                     \
    }                                                                                                                  \
    static void blocks_##s(const product *p, const T *a, const T *b, T *c)                                             \
    {                                                                                                                  \
        enum { MOST_ROWS = BLOCK_BYTES / BLOCK_DEPTH / sizeof(T), WIDEST = TILE_VECTORS * (lanes) };                   \
        T lines[(MOST_ROWS + TILE_ROWS) * BLOCK_DEPTH] __attribute__((aligned(64)));                                   \
        T panel[BLOCK_DEPTH * WIDEST] __attribute__((aligned(64)));                                                    \
        const int64_t panels = (p->n + WIDEST - 1) / WIDEST;                                                           \
        const int64_t columns = ((p->n + panels - 1) / panels + (lanes)-1) / (lanes) * (lanes);                        \
        const bool b_in_place = p->b_column == 1 && p->m <= FEW_ROWS;                                                  \
        const bool a_in_place = p->a_column == 1 && panels <= FEW_PANELS;                                              \
        for (int64_t l = 0; l < p->k; l += BLOCK_DEPTH)                                                                \
            for (int64_t i = 0; i < p->m; i += MOST_ROWS) {                                                            \
                const int64_t rows = p->m - i < MOST_ROWS ? p->m - i : MOST_ROWS;                                      \
                const int64_t depth = p->k - l < BLOCK_DEPTH ? p->k - l : BLOCK_DEPTH;                                 \
                const T *of = a + i * p->a_row + l * p->a_column;                                                      \
                if (!a_in_place)                                                                                       \
                    lines_##s(rows, depth, lines, of, p->a_row, p->a_column);                                          \
                for (int64_t j = 0; j < p->n; j += columns) {                                                          \
                    const int64_t width = p->n - j < columns ? p->n - j : columns;                                     \
                    const T *piece = b + l * p->b_row + j * p->b_column;                                               \
                    T *to = c + i * p->c_row + j;                                                                      \
                    if (!b_in_place)                                                                                   \
                        panel_##s(depth, width, panel, WIDEST, piece, p->b_row, p->b_column);                          \
                    tiles t = {rows,     width,  depth,          0,   1, b_in_place ? p->b_row : WIDEST,               \
                               p->c_row, l == 0, BEGIN(T, p->k), true};                                                \
                    if (p->a_column == 1) {                                                                            \
                        t.a_row = a_in_place ? p->a_row : BLOCK_DEPTH;                                                 \
                        tiles_##s(&t, a_in_place ? of : lines, b_in_place ? piece : panel, to);                        \
                        continue;                                                                                      \
                    }                                                                                                  \
                    t.a_row = 1, t.a_column = TILE_ROWS;                                                               \
                    for (int64_t r = 0; r < rows; r += TILE_ROWS) {                                                    \
                        t.rows = rows - r < TILE_ROWS ? rows - r : TILE_ROWS;                                          \
                        tiles_##s(&t, lines + r * BLOCK_DEPTH, b_in_place ? piece : panel, to + r * p->c_row);         \
                    }                                                                                                  \
                }                                                                                                      \
            }                                                                                                          \
    }
#ifdef OLY_HAS_LONG_TILES
BLOCKS(f32, float, 16)
BLOCKS(f64, double, 8)
#else
BLOCKS(f32, float, 8)
BLOCKS(f64, double, 4)
#endif
#endif
#endif
