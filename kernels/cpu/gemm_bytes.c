/* SPDX-License-Identifier: BSD-3-Clause */
/* Products of matrices of bytes: see gemm_bytes.h. Compiled once per instruction set; gives oly_gemm_bytes_run_<isa>, which only AVX-512
 * has (the others are never called: oly_byte_products). Parts of a are copied into the second cache, panels of b into the first, four
 * bytes of a sum side by side, as the instructions want them. */
#include "gemm_bytes.h"
#include "table.h"
#include "cpu/gemm_registers.h"
#include "cpu/transpose.h"

#include <string.h>

#ifdef OLY_HAS_LONG_TILES
#include "cpu/matrix_registers.h"

#define SIDE   OLY_BYTES_SIDE /* rows and columns of a block */
#define DEPTH  512            /* of a part */
#define QUADS  (DEPTH / 4)
#define PANEL  48 /* columns of b for VNNI: TILE_VECTORS vectors */
#define GROUPS 16 /* rows of a, or columns of b, in a matrix register; quads in its other direction */

/* A block of one product, strides in bytes, c_row in elements. */
typedef struct block {
    product p;
    bool a_signed, b_signed;
} block;

/* -- rearranging ------------------------------------------------------------------------------------------------------------------ */

/* Lane x: bytes x of four rows of 16 bytes, the first row lowest. */
static inline __m512i quads(__m128i r0, __m128i r1, __m128i r2, __m128i r3)
{
    const __m512i lanes = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i bytes = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    __m512i v = _mm512_inserti32x4(_mm512_castsi128_si512(r0), r1, 1);
    v = _mm512_inserti32x4(_mm512_inserti32x4(v, r2, 2), r3, 3);
    return _mm512_shuffle_epi8(_mm512_permutexvar_epi32(lanes, v), bytes);
}

static inline __m128i row_of_16(const uint8_t *from)
{
    return _mm_loadu_si128((const __m128i *)(const void *)from);
}

/* The same where only some rows and columns are there; others are zero. */
static inline __m512i some_quads(const uint8_t *from, int64_t row, int64_t rows, __mmask16 some)
{
    __m128i r[4];
    for (int k = 0; k < 4; k++)
        r[k] = k < rows ? _mm_maskz_loadu_epi8(some, from + k * row) : _mm_setzero_si128();
    return quads(r[0], r[1], r[2], r[3]);
}

static inline __mmask16 first_16(int64_t n)
{
    return (__mmask16)(n >= 16 ? 0xffff : (1 << n) - 1);
}

static inline __mmask64 first_64(int64_t n)
{
    return n >= 64 ? ~(__mmask64)0 : ((__mmask64)1 << n) - 1;
}

/* 16 vectors (rows of a, columns of b) of 64 bytes of their sums, `vector` bytes apart and `byte` bytes between the bytes of one; absent
 * ones are zero. turned: lane x of out[q] has quad q of vector x; else out[x] has all of vector x. */
static inline void sixteen(__m512i out[GROUPS], bool turned, int64_t vectors, int64_t bytes, const uint8_t *from,
                           int64_t vector, int64_t byte)
{
    const bool dense = byte == 1;
    if (dense) {
        for (int64_t x = 0; x < GROUPS; x++)
            out[x] = x < vectors ? _mm512_maskz_loadu_epi8(first_64(bytes), from + x * vector) : _mm512_setzero_si512();
    } else if (vectors >= GROUPS && bytes >= 64) {
        for (int64_t q = 0; q < GROUPS; q++, from += 4 * byte)
            out[q] =
                quads(row_of_16(from), row_of_16(from + byte), row_of_16(from + 2 * byte), row_of_16(from + 3 * byte));
    } else {
        for (int64_t q = 0; q < GROUPS; q++)
            out[q] = some_quads(from + 4 * q * byte, byte, bytes - 4 * q, first_16(vectors));
    }
    if (dense == turned) {
        __m512 v[GROUPS];
        for (int x = 0; x < GROUPS; x++)
            v[x] = _mm512_castsi512_ps(out[x]);
        transpose_vectors(v);
        for (int x = 0; x < GROUPS; x++)
            out[x] = _mm512_castps_si512(v[x]);
    }
}

/* -- matrix registers ------------------------------------------------------------------------------------------------------------- */

#ifdef OLY_HAS_MATRIX_REGISTERS
/* Parts of a or of b as matrix registers: [vectors / 16][bytes / 64][16][64]. */
static void matrices(bool turned, int64_t vectors, int64_t bytes, uint8_t *to, const uint8_t *from, int64_t vector,
                     int64_t byte)
{
    for (int64_t x = 0; x < vectors; x += GROUPS)
        for (int64_t l = 0; l < bytes; l += 64, to += 1024) {
            __m512i v[GROUPS];
            sixteen(v, turned, vectors - x, bytes - l, from + x * vector + l * byte, vector, byte);
            for (int q = 0; q < GROUPS; q++)
                _mm512_store_si512(to + 64 * q, v[q]);
        }
}

/* Some columns and rows of c, which are not whole matrix registers, from or to a whole one. */
static void partly(bool store, int64_t rows, int64_t columns, int32_t *c, int64_t c_row, int32_t *whole)
{
    for (int64_t i = 0; i < rows && i < 32; i++)
        for (int64_t j = 0; j < columns && j < 32; j++)
            if (store)
                c[i * c_row + j] = whole[i * 32 + j];
            else
                whole[i * 32 + j] = c[i * c_row + j];
}

static void by_matrices(const block *b, const uint8_t *of_a, const uint8_t *of_b, int32_t *c)
{
    uint8_t lines[SIDE * DEPTH] __attribute__((aligned(64))), panel[32 * DEPTH] __attribute__((aligned(64)));
    int32_t whole[32 * 32] __attribute__((aligned(64)));
    const product *p = &b->p;
    matrix_registers_begin();
    for (int64_t l = 0; l < p->k; l += DEPTH) {
        const int64_t depth = p->k - l < DEPTH ? p->k - l : DEPTH, steps = (depth + 63) / 64;
        matrices(false, p->m, depth, lines, of_a + l * p->a_column, p->a_row, p->a_column);
        for (int64_t j = 0; j < p->n; j += 32) {
            const int64_t columns = p->n - j < 32 ? p->n - j : 32;
            matrices(true, columns, depth, panel, of_b + l * p->b_row + j * p->b_column, p->b_column, p->b_row);
            for (int64_t i = 0; i < p->m; i += 32) {
                const int64_t rows = p->m - i < 32 ? p->m - i : 32;
                const bool inner = rows == 32 && columns == 32;
                int32_t *to = c + i * p->c_row + j;
                matrix_sums sums = {steps, inner ? to : whole, (inner ? p->c_row : 32) * 4,
                                    l > 0, rows > 16,          columns > 16};
                if (!inner && l > 0)
                    partly(false, rows, columns, to, p->c_row, whole);
                matrix_multiply(&sums, b->a_signed, b->b_signed, lines + i / 16 * steps * 1024, panel);
                if (!inner)
                    partly(true, rows, columns, to, p->c_row, whole);
            }
        }
    }
    matrix_registers_end();
}
#endif

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
            sixteen(v, true, p->m - i, depth - l, from + i * p->a_row + l * p->a_column, p->a_row, p->a_column);
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
            sixteen(v, true, columns - j, depth - l, from + j * p->b_column + l * p->b_row, p->b_column, p->b_row);
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

static void run_block(oly_byte_way way, const block *b, const void *x, const void *y, void *z)
{
#ifdef OLY_HAS_MATRIX_REGISTERS
    if (way == OLY_BYTES_TILES) {
        by_matrices(b, x, y, z);
        return;
    }
#endif
    (void)way;
    by_quads(b, x, y, z);
}

void OLY_ISA_NAME(oly_gemm_bytes_run)(int way, const oly_gemm_task *t, bool a_signed, bool b_signed, const void *a,
                                      const void *b, void *c, int chunk, int n_chunks)
{
    const int64_t side = oly_gemm_bytes_side(t), down = (t->m + side - 1) / side, across = (t->n + side - 1) / side;
    const int64_t blocks = oly_gemm_batches(t) * down * across;
    for (int64_t k = blocks * chunk / n_chunks; k < blocks * (chunk + 1) / n_chunks; k++) {
        const int64_t column = k % across * side, row = k / across % down * side;
        const oly_gemm_start at = oly_gemm_start_of(t, k / across / down);
        const block one = {{t->m - row < side ? t->m - row : side, t->n - column < side ? t->n - column : side, t->k,
                            t->a_row, t->a_column, t->b_row, t->b_column, t->c_row},
                           a_signed,
                           b_signed};
        int32_t *to = (int32_t *)c + at.c + row * t->c_row + column;
        for (int64_t i = 0; i < one.p.m && t->k == 0; i++)
            memset(to + i * t->c_row, 0, (size_t)one.p.n * sizeof *to);
        run_block((oly_byte_way)way, &one, (const uint8_t *)a + at.a + row * t->a_row,
                  (const uint8_t *)b + at.b + column * t->b_column, to);
    }
}
#else
void OLY_ISA_NAME(oly_gemm_bytes_run)(int way, const oly_gemm_task *t, bool a_signed, bool b_signed, const void *a,
                                      const void *b, void *c, int chunk, int n_chunks)
{
    (void)way, (void)t, (void)a_signed, (void)b_signed, (void)a, (void)b, (void)c, (void)chunk, (void)n_chunks;
}
#endif
