/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks of products of bytes and of bfloat16 in the matrix registers of AMX (matrix_registers.h). Parts of a are copied into the second
 * cache, panels of b into the first, as the registers want them. Each sum takes its terms in an order that follows from k alone, whatever
 * the other rows and columns of the block: results of any division of a product have the same bits. For gemm_bytes.c and gemm_bfloat.c;
 * empty where there are no such registers. */
#ifndef OLY_CPU_MATRIX_BLOCKS_H
#define OLY_CPU_MATRIX_BLOCKS_H
#include "table.h"
#include "cpu/sixteen_vectors.h"
#include <stddef.h>

#if defined(OLY_HAS_LONG_TILES) && defined(OLY_HAS_MATRIX_REGISTERS)
#define OLY_HAS_MATRIX_BLOCKS 1
#include "cpu/matrix_registers.h"

#define MATRIX_ROWS  512  /* of a in a part: in the second cache */
#define MATRIX_DEPTH 1024 /* bytes of a row of it */
#define MATRIX_SIDE  32   /* rows and columns of c in registers */

/* A block of one product, its strides in elements. */
typedef struct matrix_block {
    product p;
    matrix_elements elements;
    /* Results of bfloat16: sums of MATRIX_ROWS rows of whole registers between the parts of k, which c cannot hold. NULL: sums of 32 bits
     * are the results. */
    uint32_t *between;
} matrix_block;

/* Parts of a or of b as matrix registers: [vectors / 16][bytes / 64][16][64]. */
static inline __attribute__((always_inline)) void matrices(const int size, bool turned, int64_t vectors, int64_t bytes,
                                                           uint8_t *to, const uint8_t *from, int64_t vector,
                                                           int64_t element)
{
    const int64_t across = (vectors + GROUPS - 1) / GROUPS, steps = (bytes + 63) / 64;
    const bool dense = element == size; /* memory is read along its rows */
    for (int64_t outer = 0; outer < (dense ? across : steps); outer++)
        for (int64_t inner = 0; inner < (dense ? steps : across); inner++) {
            const int64_t x = dense ? outer : inner, l = dense ? inner : outer;
            uint8_t *matrix = to + (x * steps + l) * 1024;
            __m512i v[GROUPS];
            sixteen(v, size, turned, vectors - x * GROUPS, bytes - l * 64,
                    from + x * GROUPS * vector + l * 64 / size * element, vector, element);
            for (int q = 0; q < GROUPS; q++)
                _mm512_store_si512(matrix + 64 * q, v[q]);
        }
}

static inline void load_some_sums(int64_t rows, int64_t columns, uint32_t *whole, const uint32_t *c, int64_t c_row)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j += 16)
            _mm512_store_si512(whole + i * MATRIX_SIDE + j,
                               _mm512_maskz_loadu_epi32(first_16(columns - j), c + i * c_row + j));
}

static inline void store_some_sums(int64_t rows, int64_t columns, uint32_t *c, int64_t c_row, const uint32_t *whole)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j += 16)
            _mm512_mask_storeu_epi32(c + i * c_row + j, first_16(columns - j),
                                     _mm512_load_si512(whole + i * MATRIX_SIDE + j));
}

/* As oly_bfloat_of_float: sums are never subnormal here, which the instruction would make zero. */
static inline void store_rounded(int64_t rows, int64_t columns, uint16_t *c, int64_t c_row, const uint32_t *whole)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j += 16) {
            const __m512i sums = _mm512_load_si512(whole + i * MATRIX_SIDE + j);
            __m256i rounded;
            __asm__("vcvtneps2bf16 %1, %0" : "=v"(rounded) : "v"(sums));
            _mm256_mask_storeu_epi16(c + i * c_row + j, first_16(columns - j), rounded);
        }
}

/* What a part of k adds to at most 32 x 32 sums. */
typedef struct matrix_part {
    int64_t rows, columns, steps;
    bool first, last;
    int64_t a_row, a_step, a_below; /* of matrix_sums */
} matrix_part;

/* Sums of 32 bits, which c holds. */
static inline void add_part(const matrix_block *b, const matrix_part *part, const uint8_t *lines, const uint8_t *panel,
                            uint32_t *c)
{
    uint32_t whole[MATRIX_SIDE * MATRIX_SIDE] __attribute__((aligned(64)));
    const bool inner = part->rows == MATRIX_SIDE && part->columns == MATRIX_SIDE;
    uint32_t *to = inner ? c : whole;
    const int64_t row = (inner ? b->p.c_row : MATRIX_SIDE) * 4;
    const matrix_sums sums = {part->steps,     part->first ? NULL : to, to,          row,          row,
                              part->rows > 16, part->columns > 16,      part->a_row, part->a_step, part->a_below};
    if (!inner && !part->first)
        load_some_sums(part->rows, part->columns, whole, c, b->p.c_row);
    matrix_multiply(&sums, b->elements, lines, panel);
    if (!inner)
        store_some_sums(part->rows, part->columns, c, b->p.c_row, whole);
}

/* Sums in b->between, from the last part of k rounded to c. */
static inline void add_rounded_part(const matrix_block *b, const matrix_part *part, const uint8_t *lines,
                                    const uint8_t *panel, uint32_t *between, int64_t between_row, uint16_t *c)
{
    uint32_t whole[MATRIX_SIDE * MATRIX_SIDE] __attribute__((aligned(64)));
    const matrix_sums sums = {part->steps,
                              part->first ? NULL : between,
                              part->last ? whole : between,
                              between_row * 4,
                              (part->last ? MATRIX_SIDE : between_row) * 4,
                              part->rows > 16,
                              part->columns > 16,
                              part->a_row,
                              part->a_step,
                              part->a_below};
    matrix_multiply(&sums, b->elements, lines, panel);
    if (part->last)
        store_rounded(part->rows, part->columns, c, b->p.c_row, whole);
}

/* Can the registers be loaded from where these rows of a are? Only if nothing is missing, and no load of a row meets two lines of cache. */
static inline bool is_in_place(int64_t rows, int64_t bytes, const uint8_t *from, int64_t row)
{
    return rows % 16 == 0 && bytes % 64 == 0 && row % 64 == 0 && (uintptr_t)from % 64 == 0;
}

/* size: bytes of an element of a and b. */
static inline __attribute__((always_inline)) void
multiply_in_matrices(const int size, const matrix_block *b, const uint8_t *of_a, const uint8_t *of_b, void *c)
{
    uint8_t lines[MATRIX_ROWS * MATRIX_DEPTH] __attribute__((aligned(64)));
    uint8_t panel[MATRIX_SIDE * MATRIX_DEPTH] __attribute__((aligned(64)));
    const product *p = &b->p;
    const int64_t most = MATRIX_DEPTH / size, between_row = (p->n + MATRIX_SIDE - 1) / MATRIX_SIDE * MATRIX_SIDE;
    for (int64_t up = 0; up < p->m; up += MATRIX_ROWS)
        for (int64_t l = 0; l < p->k; l += most) {
            const int64_t height = p->m - up < MATRIX_ROWS ? p->m - up : MATRIX_ROWS;
            const int64_t depth = p->k - l < most ? p->k - l : most, steps = (depth * size + 63) / 64;
            const uint8_t *rows = of_a + (up * p->a_row + l * p->a_column) * size;
            matrix_part part = {0, 0, steps, l == 0, l + depth == p->k, 64, 1024, steps * 1024};
            if (p->a_column == 1 && is_in_place(height, depth * size, rows, p->a_row * size)) {
                part.a_row = p->a_row * size;
                part.a_step = 64;
                part.a_below = 16 * part.a_row;
            } else {
                matrices(size, false, height, depth * size, lines, rows, p->a_row * size, p->a_column * size);
                rows = lines;
            }
            for (int64_t j = 0; j < p->n; j += MATRIX_SIDE) {
                part.columns = p->n - j < MATRIX_SIDE ? p->n - j : MATRIX_SIDE;
                matrices(size, true, part.columns, depth * size, panel, of_b + (l * p->b_row + j * p->b_column) * size,
                         p->b_column * size, p->b_row * size);
                for (int64_t i = 0; i < height; i += MATRIX_SIDE) {
                    const uint8_t *line = rows + i / 16 * part.a_below;
                    const int64_t at = (up + i) * p->c_row + j;
                    part.rows = height - i < MATRIX_SIDE ? height - i : MATRIX_SIDE;
                    if (b->between)
                        add_rounded_part(b, &part, line, panel, b->between + i * between_row + j, between_row,
                                         (uint16_t *)c + at);
                    else
                        add_part(b, &part, line, panel, (uint32_t *)c + at);
                }
            }
        }
}
#endif
#endif
