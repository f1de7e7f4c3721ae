/* SPDX-License-Identifier: BSD-3-Clause */
/* Products of matrices of bytes: see gemm_bytes.h. Compiled once per instruction set; gives oly_gemm_bytes_run_<isa>, which only AVX-512
 * has (the others are never called: oly_byte_products). Parts of a are copied into the second cache, panels of b into the first, four
 * bytes of a sum side by side, as the instructions want them. */
#include "gemm_bytes.h"
#include "table.h"
#include "cpu/gemm_division.h"
#include "cpu/matrix_blocks.h"

#include <string.h>

#ifdef OLY_HAS_LONG_TILES
#define SIDE  OLY_BYTES_SIDE /* rows and columns of a block */
#define DEPTH 512            /* of a part */
#define QUADS (DEPTH / 4)
#define PANEL 48 /* columns of b for VNNI: TILE_VECTORS vectors */

/* A block of one product, strides in bytes, c_row in elements. */
typedef struct block {
    product p;
    bool a_signed, b_signed;
} block;

/* -- VNNI ------------------------------------------------------------------------------------------------------------------------- */

/* It multiplies bytes without a sign by bytes with one: a + 128 times b, or a times b - 128, and what that adds is subtracted. Inputs
 * past the end are zero in both. The intrinsic would make compilers spill the sums. */
#define TILE_DOT_QUADS(sum, x, y)                                                                                      \
    ({                                                                                                                 \
        __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(x), "v"(y));                                                   \
        sum;                                                                                                           \
    })
OLY_TILES(dot_quads, uint32_t, __m512i, __mmask16, 16, TILE_SET_32, _mm512_maskz_loadu_epi32, _mm512_mask_storeu_epi32,
          TILE_DOT_QUADS)

static inline __m512i four_products(__m512i sum, __m512i unsigned_bytes, __m512i signed_bytes)
{
    return TILE_DOT_QUADS(sum, unsigned_bytes, signed_bytes);
}

/* 128 in the bytes that are there of quad q, for all lanes that are. */
static inline __m512i excess(int64_t bytes)
{
    return _mm512_set1_epi32((int32_t)(bytes >= 4 ? 0x80808080u : bytes <= 0 ? 0 : 0x80808080u >> 8 * (4 - bytes)));
}

/* Rows of a without a sign, and 128 times the sum of each if b loses its own. */
static void lines_of_quads(const block *b, int64_t depth, uint32_t *to, const uint8_t *from, uint32_t *sums)
{
    const product *p = &b->p;
    for (int64_t i = 0; i < p->m; i += GROUPS) {
        __m512i total = _mm512_setzero_si512();
        for (int64_t l = 0; l < depth; l += 64) {
            __m512i v[GROUPS];
            sixteen(v, 1, true, p->m - i, depth - l, from + i * p->a_row + l * p->a_column, p->a_row, p->a_column);
            for (int q = 0; q < GROUPS; q++) {
                if (b->a_signed)
                    v[q] = _mm512_xor_si512(v[q], excess(depth - l - 4 * q));
                if (!b->b_signed)
                    total = four_products(total, v[q], _mm512_set1_epi8(1));
                _mm512_store_si512(to + (l / 4 + q) * GROUPS, v[q]);
            }
        }
        _mm512_storeu_si512(sums + i, _mm512_slli_epi32(total, 7));
        to += QUADS * GROUPS;
    }
}

/* Columns of b with a sign, and 128 times the sum of each if a loses its own. */
static void panel_of_quads(const block *b, int64_t columns, int64_t depth, uint32_t *to, const uint8_t *from,
                           uint32_t *sums)
{
    const product *p = &b->p;
    for (int64_t j = 0; j < columns; j += GROUPS) {
        __m512i total = _mm512_setzero_si512();
        for (int64_t l = 0; l < depth; l += 64) {
            __m512i v[GROUPS];
            sixteen(v, 1, true, columns - j, depth - l, from + j * p->b_column + l * p->b_row, p->b_column, p->b_row);
            for (int q = 0; q < GROUPS; q++) {
                if (!b->b_signed)
                    v[q] = _mm512_xor_si512(v[q], excess(depth - l - 4 * q));
                if (b->a_signed)
                    total = four_products(total, _mm512_set1_epi8(1), v[q]);
                _mm512_store_si512(to + (l / 4 + q) * PANEL + j, v[q]);
            }
        }
        _mm512_storeu_si512(sums + j, _mm512_slli_epi32(total, 7));
    }
}

/* What the changed signs add is subtracted first; a and b as they are read have 128 more and less than they should. */
static void correct(const block *b, int64_t depth, int64_t columns, bool first, const uint32_t *of_rows,
                    const uint32_t *of_columns, uint32_t *c)
{
    const uint32_t both = b->a_signed && !b->b_signed ? (uint32_t)depth << 14 : 0;
    for (int64_t i = 0; i < b->p.m; i++)
        for (int64_t j = 0; j < columns; j++) {
            const uint32_t more = of_rows[i] - of_columns[j] - both;
            c[i * b->p.c_row + j] = first ? more : c[i * b->p.c_row + j] + more;
        }
}

static void by_quads(const block *b, const uint8_t *of_a, const uint8_t *of_b, uint32_t *c)
{
    uint32_t lines[SIDE * QUADS] __attribute__((aligned(64))), panel[QUADS * PANEL] __attribute__((aligned(64)));
    uint32_t of_rows[SIDE], of_columns[PANEL];
    const product *p = &b->p;
    for (int64_t l = 0; l < p->k; l += DEPTH) {
        const int64_t depth = p->k - l < DEPTH ? p->k - l : DEPTH;
        lines_of_quads(b, depth, lines, of_a + l * p->a_column, of_rows);
        for (int64_t j = 0; j < p->n; j += PANEL) {
            const int64_t columns = p->n - j < PANEL ? p->n - j : PANEL;
            panel_of_quads(b, columns, depth, panel, of_b + l * p->b_row + j * p->b_column, of_columns);
            correct(b, depth, columns, l == 0, of_rows, of_columns, c + j);
            for (int64_t i = 0; i < p->m; i += TILE_ROWS) {
                tiles some = {p->m - i < TILE_ROWS ? p->m - i : TILE_ROWS,
                              columns,
                              (depth + 3) / 4,
                              1,
                              GROUPS,
                              PANEL,
                              p->c_row,
                              false,
                              0,
                              false};
                tiles_dot_quads(&some, lines + i / GROUPS * QUADS * GROUPS + i % GROUPS, panel, c + i * p->c_row + j);
            }
        }
    }
}

#ifndef OLY_HAS_MATRIX_BLOCKS
static void matrix_registers_begin(void) {}
static void matrix_registers_end(void) {}
#endif

static void run_block(oly_byte_way way, const block *b, const void *x, const void *y, void *z)
{
#ifdef OLY_HAS_MATRIX_BLOCKS
    if (way == OLY_BYTES_TILES) {
        const matrix_elements elements = b->a_signed
                                             ? (b->b_signed ? MATRIX_SIGNED_SIGNED : MATRIX_SIGNED_UNSIGNED)
                                             : (b->b_signed ? MATRIX_UNSIGNED_SIGNED : MATRIX_UNSIGNED_UNSIGNED);
        const matrix_block of = {b->p, elements, NULL};
        multiply_in_matrices(1, &of, x, y, z);
        return;
    }
#endif
    (void)way;
    by_quads(b, x, y, z);
}

void OLY_ISA_NAME(oly_gemm_bytes_run)(int way, const oly_gemm_task *t, bool a_signed, bool b_signed, const void *a,
                                      const void *b, void *c, int chunk, int n_chunks)
{
    const int64_t side = oly_gemm_bytes_side(t);
    const oly_gemm_shape s = {false, side, side, (t->m + side - 1) / side, (t->n + side - 1) / side};
    const int64_t blocks = product_blocks(t, &s);
    if (way == OLY_BYTES_TILES)
        matrix_registers_begin();
    for (int64_t k = blocks * chunk / n_chunks; k < blocks * (chunk + 1) / n_chunks; k++) {
        const product_block at = product_block_at(t, &s, k);
        const block one = {at.p, a_signed, b_signed};
        int32_t *to = (int32_t *)c + at.c;
        for (int64_t i = 0; i < one.p.m && t->k == 0; i++)
            memset(to + i * t->c_row, 0, (size_t)one.p.n * sizeof *to);
        run_block((oly_byte_way)way, &one, (const uint8_t *)a + at.a, (const uint8_t *)b + at.b, to);
    }
    if (way == OLY_BYTES_TILES)
        matrix_registers_end();
}
#else
void OLY_ISA_NAME(oly_gemm_bytes_run)(int way, const oly_gemm_task *t, bool a_signed, bool b_signed, const void *a,
                                      const void *b, void *c, int chunk, int n_chunks)
{
    (void)way, (void)t, (void)a_signed, (void)b_signed, (void)a, (void)b, (void)c, (void)chunk, (void)n_chunks;
}
#endif
