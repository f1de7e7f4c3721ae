/* SPDX-License-Identifier: BSD-3-Clause */
/* Matrix products c = a b. Compiled once per instruction set; gives oly_gemm_run_<isa>. Large floating-point products
 * go to OpenBLAS, except, with AVX-512, those that are narrow in one direction, where it is slow; the others are computed here:
 * each element of c from left to right over k with fused multiply-add (where the instruction set has it), vectorised along a row
 * of c, or along a column where c is narrow. A single long dot product, and, with AVX-512, products with few vectors are summed in lanes. */
#include "table.h"
#include "cpu/gemm_blocks.h"
#include "cpu/gemm_division.h"
#include "cpu/gemm_few.h"
#include "cpu/gemm_side.h"
#include "cpu/gemm_tile.h"
#include "cpu/gemm_together.h"
#include "cpu/strip.h"
#include "cpu/transpose.h"
#include <cblas.h>

#define STRIP        256  /* columns of c computed together: their sums stay in L1 */
#define LONG_STRIP   2048 /* of a vector's product: memory is read in long runs */
#define DEPTH        64   /* rows of a packed block of b */
#define LANES        32   /* of a long dot product */
#define LONG_DOT     4096
#define NARROW_ROWS  64  /* of c, of narrow types, computed together */
#define NARROW_STRIP 240 /* columns */

/* -- blocks in registers --------------------------------------------------------------------------------------------- */
#ifdef OLY_HAS_TILES
/* The rows of a product with a packed piece of b. */
static void tiled_rows(const product *p, int64_t l, int64_t depth, int64_t width, const uint32_t *a,
                       const uint32_t *piece, uint32_t *c)
{
    tiles all = {p->m, width, depth, p->a_row, p->a_column, TILE_STRIP, p->c_row, l == 0, 0, false};
    tiles_uint32_t(&all, a + l * p->a_column, piece, c);
}
/* Pieces whose values fit 16 bits are multiplied in pairs: sums wrap, so every way gives the same bits. */
static void tiled_uint32_t(const product *p, const uint32_t *a, const uint32_t *b, uint32_t *c)
{
    uint32_t packed[TILE_DEPTH * TILE_STRIP], pairs[TILE_DEPTH / 2 * TILE_STRIP], lines[TILE_DEPTH / 2 * TILE_ROWS];
    for (int64_t j = 0; j < p->n; j += TILE_STRIP) {
        int64_t width = p->n - j < TILE_STRIP ? p->n - j : TILE_STRIP;
        for (int64_t l = 0; l < p->k; l += TILE_DEPTH) {
            int64_t depth = p->k - l < TILE_DEPTH ? p->k - l : TILE_DEPTH;
            const uint32_t *piece = b + l * p->b_row + j * p->b_column;
            bool fit = pack_pairs(depth, width, pairs, 1, TILE_STRIP, piece, p->b_column, p->b_row), wide = false;
            for (int64_t i = 0; i < p->m; i += TILE_ROWS) {
                product rows = *p;
                rows.m = p->m - i < TILE_ROWS ? p->m - i : TILE_ROWS;
                const uint32_t *of = a + i * p->a_row;
                uint32_t *to = c + i * p->c_row + j;
                tiles some = {rows.m, width, (depth + 1) / 2, TILE_DEPTH / 2, 1, TILE_STRIP, p->c_row, l == 0,
                              0,      false};
                if (fit &&
                    pack_pairs(depth, rows.m, lines, TILE_DEPTH / 2, 1, of + l * p->a_column, p->a_row, p->a_column)) {
                    tiles_of_pairs(&some, lines, pairs, to);
                    continue;
                }
                if (!wide)
                    pack_uint32_t(depth, width, packed, TILE_STRIP, piece, p->b_row, p->b_column);
                wide = true;
                tiled_rows(&rows, l, depth, width, of, packed, to);
            }
        }
    }
}
#endif

/* T: element type; MADD(acc, a, b). Unsigned types represent the signed ones: the same bits, and wrapping is
 * defined. */
#define GEMM(s, T, MADD)                                                                                               \
    OLY_STRIP(s, T, MADD)                                                                                              \
    /* rows of c, a strip of columns at a time; a piece of b whose rows are not dense is packed first */               \
    static void wide_##s(const product *p, const T *a, const T *b, T *c)                                               \
    {                                                                                                                  \
        T packed[DEPTH * STRIP];                                                                                       \
        const int64_t strip = p->m == 1 && p->b_column == 1 ? LONG_STRIP : STRIP;                                      \
        for (int64_t j = 0; j < p->n; j += strip) {                                                                    \
            int64_t width = p->n - j < strip ? p->n - j : strip;                                                       \
            const T begin = BEGIN(T, p->k);                                                                            \
            for (int64_t i = 0; i < p->m; i++)                                                                         \
                for (int64_t x = 0; x < width; x++)                                                                    \
                    c[i * p->c_row + j + x] = begin;                                                                   \
            for (int64_t l = 0; l < p->k; l += DEPTH) {                                                                \
                int64_t depth = p->k - l < DEPTH ? p->k - l : DEPTH, b_row = p->b_row;                                 \
                const T *piece = b + l * p->b_row + j * p->b_column;                                                   \
                if (p->b_column != 1) {                                                                                \
                    for (int64_t x = 0; x < width; x++)                                                                \
                        for (int64_t y = 0; y < depth; y++)                                                            \
                            packed[y * STRIP + x] = piece[y * p->b_row + x * p->b_column];                             \
                    piece = packed;                                                                                    \
                    b_row = STRIP;                                                                                     \
                }                                                                                                      \
                for (int64_t i = 0; i < p->m; i++)                                                                     \
                    strip_##s(depth, width, c + i * p->c_row + j, a + i * p->a_row + l * p->a_column, p->a_column,     \
                              piece, b_row);                                                                           \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    /* dot products of x with 8 vectors of y, side by side so that their additions overlap */                          \
    static void dots_##s(int64_t k, const T *x, int64_t x_stride, const T *y, int64_t y_vector, int64_t y_stride,      \
                         T *sums)                                                                                      \
    {                                                                                                                  \
        const T begin = BEGIN(T, k);                                                                                   \
        T s0 = begin, s1 = begin, s2 = begin, s3 = begin, s4 = begin, s5 = begin, s6 = begin, s7 = begin;              \
        for (int64_t l = 0; l < k; l++) {                                                                              \
            const T v = x[l * x_stride], *at = y + l * y_stride;                                                       \
            s0 = MADD(s0, at[0], v);                                                                                   \
            s1 = MADD(s1, at[y_vector], v);                                                                            \
            s2 = MADD(s2, at[2 * y_vector], v);                                                                        \
            s3 = MADD(s3, at[3 * y_vector], v);                                                                        \
            s4 = MADD(s4, at[4 * y_vector], v);                                                                        \
            s5 = MADD(s5, at[5 * y_vector], v);                                                                        \
            s6 = MADD(s6, at[6 * y_vector], v);                                                                        \
            s7 = MADD(s7, at[7 * y_vector], v);                                                                        \
        }                                                                                                              \
        sums[0] = s0, sums[1] = s1, sums[2] = s2, sums[3] = s3;                                                        \
        sums[4] = s4, sums[5] = s5, sums[6] = s6, sums[7] = s7;                                                        \
    }                                                                                                                  \
    static T dot_##s(int64_t k, const T *x, int64_t x_stride, const T *y, int64_t y_stride)                            \
    {                                                                                                                  \
        T sum = BEGIN(T, k);                                                                                           \
        for (int64_t l = 0; l < k; l++)                                                                                \
            sum = MADD(sum, x[l * x_stride], y[l * y_stride]);                                                         \
        return sum;                                                                                                    \
    }                                                                                                                  \
    static T long_dot_##s(int64_t k, const T *x, int64_t x_stride, const T *y, int64_t y_stride)                       \
    {                                                                                                                  \
        T lane[LANES] = {0};                                                                                           \
        int64_t l = 0;                                                                                                 \
        if (x_stride == 1 && y_stride == 1)                                                                            \
            for (; l + LANES <= k; l += LANES)                                                                         \
                for (int j = 0; j < LANES; j++)                                                                        \
                    lane[j] = MADD(lane[j], x[l + j], y[l + j]);                                                       \
        for (; l < k; l++)                                                                                             \
            lane[l % LANES] = MADD(lane[l % LANES], x[l * x_stride], y[l * y_stride]);                                 \
        for (int half = LANES / 2; half > 0; half /= 2)                                                                \
            for (int j = 0; j < half; j++)                                                                             \
                lane[j] = SUM(T, lane[2 * j], lane[2 * j + 1]);                                                        \
        return lane[0];                                                                                                \
    }                                                                                                                  \
    /* count results, `step` elements apart, of x with vectors of y */                                                 \
    static void vector_##s(int64_t count, int64_t k, const T *x, int64_t x_stride, const T *y, int64_t y_vector,       \
                           int64_t y_stride, T *c, int64_t step)                                                       \
    {                                                                                                                  \
        int64_t i = 0;                                                                                                 \
        for (; i + 8 <= count; i += 8) {                                                                               \
            T sums[8];                                                                                                 \
            dots_##s(k, x, x_stride, y + i * y_vector, y_vector, y_stride, sums);                                      \
            for (int r = 0; r < 8; r++)                                                                                \
                c[(i + r) * step] = sums[r];                                                                           \
        }                                                                                                              \
        for (; i < count; i++)                                                                                         \
            c[i * step] = dot_##s(k, x, x_stride, y + i * y_vector, y_stride);                                         \
    }                                                                                                                  \
    static void product_##s(const product *p, bool long_dot, const T *a, const T *b, T *c)                             \
    {                                                                                                                  \
        if (long_dot) {                                                                                                \
            for (int64_t i = 0; i < p->m; i++)                                                                         \
                for (int64_t j = 0; j < p->n; j++)                                                                     \
                    c[i * p->c_row + j] =                                                                              \
                        long_dot_##s(p->k, a + i * p->a_row, p->a_column, b + j * p->b_column, p->b_row);              \
            return;                                                                                                    \
        }                                                                                                              \
        if (SIDE_BY_SIDE(s, p, a, b, c))                                                                               \
            return;                                                                                                    \
        if (p->m == 1 && p->b_column != 1 && p->b_row == 1) {                                                          \
            VECTOR_OF(s, p->n, p->k, a, p->a_column, b, p->b_column, 1, c, 1);                                         \
        } else if (p->n < 4 && p->a_column == 1) {                                                                     \
            for (int64_t j = 0; j < p->n; j++)                                                                         \
                VECTOR_OF(s, p->m, p->k, b + j * p->b_column, p->b_row, a, p->a_row, 1, c + j, p->c_row);              \
        } else if (p->n == 1 && p->c_row == 1) { /* c is a column: the row of the transposed product */                \
            product turned = {1, p->m, p->k, 0, p->b_row, p->a_column, p->a_row, p->m};                                \
            if (TILED_OR_NOT(s, &turned, b, a, c))                                                                     \
                wide_##s(&turned, b, a, c);                                                                            \
        } else if (TILED_OR_NOT(s, p, a, b, c)) {                                                                      \
            wide_##s(p, a, b, c);                                                                                      \
        }                                                                                                              \
    }
/* True where there is no such function, or it would not be faster. */
#define TILED_OR_NOT(s, p, a, b, c) _Generic((c), TILED_TYPES default : wide_needed)(p, a, b, c)
static bool wide_needed(const product *p, const void *a, const void *b, void *c)
{
    (void)p, (void)a, (void)b, (void)c;
    return true;
}
/* False where there is no such function, or it is not for this product. */
#define SIDE_BY_SIDE(s, p, a, b, c) _Generic((c), SIDE_TYPES default : no_side)(p, a, b, c)
static bool no_side(const product *p, const void *a, const void *b, void *c)
{
    (void)p, (void)a, (void)b, (void)c;
    return false;
}
#ifdef OLY_HAS_TILES
#define LEAST_TILED 4 /* rows */
#define TRY_TILED(s, T, multiply, row)                                                                                 \
    static bool try_##s(const product *p, const T *a, const T *b, T *c)                                                \
    {                                                                                                                  \
        if (p->m < LEAST_TILED || p->k == 0)                                                                           \
            return !row(p, a, b, c);                                                                                   \
        multiply(p, a, b, c);                                                                                          \
        return false;                                                                                                  \
    }
#define NO_ROW(p, a, b, c) false
TRY_TILED(f32, float, blocks_f32, try_row_f32)
TRY_TILED(f64, double, blocks_f64, try_row_f64)
TRY_TILED(uint32_t, uint32_t, tiled_uint32_t, NO_ROW)
#define TILED_TYPES float * : try_f32, double * : try_f64, uint32_t * : try_uint32_t,
#define SIDE_TYPES  float * : try_side_f32, double * : try_side_f64,
#else
#define TILED_TYPES
#define SIDE_TYPES
#endif
/* Dot products with several vectors: vector_<s>, or what is faster. */
#define VECTOR_OF(s, ...)                                  VECTOR_##s(__VA_ARGS__)
#define VECTOR_uint8_t                                     vector_uint8_t
#define VECTOR_uint16_t                                    vector_uint16_t
#define VECTOR_uint32_t                                    vector_uint32_t
#define VECTOR_uint64_t                                    vector_uint64_t
#define VECTOR_b8                                          vector_b8
#define VECTOR_c64                                         vector_c64
#define VECTOR_c128                                        vector_c128
#define SUM(T, x, y)                                       ((T)((x) + (y)))
#define GEMM_INTEGERS(a, number, name, s, T, U, S, W, ...) GEMM(U, U, WRAPPED_##W)
OLY_UNSIGNED_TYPES(GEMM_INTEGERS, )
#ifdef OLY_HAS_TILES
#define VECTOR_f32(count, k, x, x_stride, y, y_vector, one, c, step)                                                   \
    do {                                                                                                               \
        if (!try_one_f32(count, k, x, x_stride, y, y_vector, c, step))                                                 \
            vector_f32(count, k, x, x_stride, y, y_vector, 1, c, step);                                                \
    } while (0)
#define VECTOR_f64(count, k, x, x_stride, y, y_vector, one, c, step)                                                   \
    do {                                                                                                               \
        if (!try_one_f64(count, k, x, x_stride, y, y_vector, c, step))                                                 \
            vector_f64(count, k, x, x_stride, y, y_vector, 1, c, step);                                                \
    } while (0)
#else
#define VECTOR_f32 vector_f32
#define VECTOR_f64 vector_f64
#endif
GEMM(f32, float, FUSED_F32)
GEMM(f64, double, FUSED_F64)
GEMM(c64, float _Complex, FUSED_C64)
GEMM(c128, double _Complex, FUSED_C128)
#undef SUM
#define SUM(T, x, y) ((T)((x) | (y)))
GEMM(b8, uint8_t, LOGICAL)

/* Narrow types: blocks of a and b are widened, sums are float32 and rounded once. Strides are in elements. */
static void widen_line(oly_dtype dtype, int64_t n, float *out, const char *from, int64_t stride)
{
    const oly_convert_table *moves = &OLY_ISA_NAME(oly_convert);
    char dense[STRIP * sizeof(uint16_t)] __attribute__((aligned(64)));
    if (stride != 1) {
        moves->gather[oly_element_bytes[dtype]](1, n, dense, from, 0, stride);
        from = dense;
    }
    moves->convert[dtype][OLY_FLOAT32]((int)n, out, from, NULL, NULL);
}
/* sums[height][width] += lines[height][depth] piece[depth][width] */
static void rows_of_sums(int64_t height, int64_t width, int64_t depth, const float *lines, const float *piece,
                         float *sums)
{
#ifdef OLY_HAS_TILES
    tiles all = {height, width, depth, DEPTH, 1, NARROW_STRIP, NARROW_STRIP, false, 0, false};
    tiles_f32(&all, lines, piece, sums);
#else
    for (int64_t x = 0; x < height; x++)
        strip_f32(depth, width, sums + x * NARROW_STRIP, lines + x * DEPTH, 1, piece, NARROW_STRIP);
#endif
}
static void product_narrow(oly_dtype dtype, const product *p, const char *a, const char *b, char *c)
{
    int64_t bytes = oly_element_bytes[dtype];
    float sums[NARROW_ROWS * NARROW_STRIP], piece[DEPTH * NARROW_STRIP], lines[NARROW_ROWS * DEPTH];
    oly_tile_function *narrow = OLY_ISA_NAME(oly_convert).convert[OLY_FLOAT32][dtype];
    for (int64_t i = 0; i < p->m; i += NARROW_ROWS)
        for (int64_t j = 0; j < p->n; j += NARROW_STRIP) {
            int64_t width = p->n - j < NARROW_STRIP ? p->n - j : NARROW_STRIP,
                    height = p->m - i < NARROW_ROWS ? p->m - i : NARROW_ROWS;
            for (int64_t x = 0; x < height * NARROW_STRIP; x++)
                sums[x] = BEGIN(float, p->k);
            for (int64_t l = 0; l < p->k; l += DEPTH) {
                int64_t depth = p->k - l < DEPTH ? p->k - l : DEPTH;
                for (int64_t y = 0; y < depth; y++)
                    widen_line(dtype, width, piece + y * NARROW_STRIP,
                               b + ((l + y) * p->b_row + j * p->b_column) * bytes, p->b_column);
                for (int64_t x = 0; x < height; x++)
                    widen_line(dtype, depth, lines + x * DEPTH, a + ((i + x) * p->a_row + l * p->a_column) * bytes,
                               p->a_column);
                rows_of_sums(height, width, depth, lines, piece, sums);
            }
            for (int64_t x = 0; x < height; x++)
                narrow((int)width, c + ((i + x) * p->c_row + j) * bytes, sums + x * NARROW_STRIP, NULL, NULL);
        }
}

static void blas_f32(const product *p, const float *a, const float *b, float *c)
{
    bool a_turned = p->a_column != 1, b_turned = p->b_column != 1;
    cblas_sgemm(CblasRowMajor, a_turned ? CblasTrans : CblasNoTrans, b_turned ? CblasTrans : CblasNoTrans, (int)p->m,
                (int)p->n, (int)p->k, 1, a, (int)(a_turned ? p->a_column : p->a_row), b,
                (int)(b_turned ? p->b_column : p->b_row), 0, c, (int)p->c_row);
}
static void blas_f64(const product *p, const double *a, const double *b, double *c)
{
    bool a_turned = p->a_column != 1, b_turned = p->b_column != 1;
    cblas_dgemm(CblasRowMajor, a_turned ? CblasTrans : CblasNoTrans, b_turned ? CblasTrans : CblasNoTrans, (int)p->m,
                (int)p->n, (int)p->k, 1, a, (int)(a_turned ? p->a_column : p->a_row), b,
                (int)(b_turned ? p->b_column : p->b_row), 0, c, (int)p->c_row);
}

#define BLAS_COMPLEX(s, T, gemm)                                                                                       \
    static void blas_##s(const product *p, const T *a, const T *b, T *c)                                               \
    {                                                                                                                  \
        const T one = 1, zero = 0;                                                                                     \
        bool a_turned = p->a_column != 1, b_turned = p->b_column != 1;                                                 \
        gemm(CblasRowMajor, a_turned ? CblasTrans : CblasNoTrans, b_turned ? CblasTrans : CblasNoTrans, (int)p->m,     \
             (int)p->n, (int)p->k, &one, a, (int)(a_turned ? p->a_column : p->a_row), b,                               \
             (int)(b_turned ? p->b_column : p->b_row), &zero, c, (int)p->c_row);                                       \
    }
BLAS_COMPLEX(c64, float _Complex, cblas_cgemm)
BLAS_COMPLEX(c128, double _Complex, cblas_zgemm)

/* Large products that are narrow in one direction: OpenBLAS copies more than it multiplies. False: it is not one of them. Of the task,
 * not of the block, so that bits do not depend on the division. */
#ifdef OLY_HAS_TILES
#define NARROW 128
#define TRY_NARROW(s, T)                                                                                               \
    static bool try_narrow_##s(const oly_gemm_task *t, const product *p, const T *a, const T *b, T *c)                 \
    {                                                                                                                  \
        if (t->m > NARROW && t->n > NARROW && t->k > NARROW)                                                           \
            return false;                                                                                              \
        if (!try_few_##s(p, a, b, c))                                                                                  \
            product_##s(p, false, a, b, c);                                                                            \
        return true;                                                                                                   \
    }
TRY_NARROW(f32, float)
TRY_NARROW(f64, double)
#define LARGE_REAL(s, t, p, x, y, z)                                                                                   \
    do {                                                                                                               \
        if (!try_narrow_##s(t, p, x, y, z))                                                                            \
            blas_##s(p, x, y, z);                                                                                      \
    } while (0)
#else
#define LARGE_REAL(s, t, p, x, y, z) blas_##s(p, x, y, z)
#endif
#define LARGE_COMPLEX(s, t, p, x, y, z) blas_##s(p, x, y, z)

static void run_block(const oly_gemm_task *t, const oly_gemm_shape *shape, const product *p, const char *a,
                      const char *b, char *c)
{
    bool long_dot = t->k >= LONG_DOT && t->m * t->n < 8;
    const void *x = a, *y = b;
    void *z = c;
    switch (t->dtype) {
    case OLY_BOOL: product_b8(p, long_dot, x, y, z); break;
#define RUN_INTEGERS(a, number, name, s, T, U, ...)                                                                    \
    case OLY_##number:                                                                                                 \
        product_##U(p, long_dot, x, y, z);                                                                             \
        break;
#define RUN_NARROW(a, number, ...)                                                                                     \
    case OLY_##number:                                                                                                 \
        product_narrow(t->dtype, p, x, y, z);                                                                          \
        break;
#define RUN(LARGE, number, name, s, ...)                                                                               \
    case OLY_##number:                                                                                                 \
        if (shape->blas)                                                                                               \
            LARGE(s, t, p, x, y, z);                                                                                   \
        else                                                                                                           \
            product_##s(p, long_dot, x, y, z);                                                                         \
        break;
        OLY_INTEGER_TYPES(RUN_INTEGERS, )
        OLY_NARROW_TYPES(RUN_NARROW, )
        OLY_WIDE_TYPES(RUN, LARGE_REAL)
        OLY_COMPLEX_TYPES(RUN, LARGE_COMPLEX)
    default: break;
    }
}

/* TOGETHER products from number `first` on, of one block each. */
static void run_together(const oly_gemm_task *t, const void *a, const void *b, void *c, int64_t first)
{
    oly_gemm_start at = oly_gemm_start_of(t, first);
    if (t->dtype == OLY_FLOAT32)
        products_together_f32(t, (const float *)a + at.a, (const float *)b + at.b, (float *)c + at.c);
    else
        products_together_f64(t, (const double *)a + at.a, (const double *)b + at.b, (double *)c + at.c);
}

void OLY_ISA_NAME(oly_gemm_run)(const oly_gemm_task *t, const void *a, const void *b, void *c, int chunk, int n_chunks)
{
    int64_t batches = oly_gemm_batches(t);
    if (batches == 0 || t->m == 0 || t->n == 0)
        return;
    oly_gemm_shape s = oly_gemm_divide(t);
    int64_t bytes = oly_element_bytes[t->dtype], blocks = batches * s.row_blocks * s.column_blocks;
    if (blocks == 1 && n_chunks == 1) { /* small products, whose time divisions would double */
        product all = {t->m, t->n, t->k, t->a_row, t->a_column, t->b_row, t->b_column, t->c_row};
        run_block(t, &s, &all, a, b, c);
        return;
    }
    int64_t end = blocks * (chunk + 1) / n_chunks;
    bool real = t->dtype == OLY_FLOAT32 || t->dtype == OLY_FLOAT64, together = real && !s.blas && is_together(t);
    for (int64_t block = blocks * chunk / n_chunks; block < end; block++) {
        if (together && block + TOGETHER <= end && block % t->batch + TOGETHER <= t->batch) {
            run_together(t, a, b, c, block);
            block += TOGETHER - 1;
            continue;
        }
        const product_block one = product_block_at(t, &s, block);
        run_block(t, &s, &one.p, (const char *)a + one.a * bytes, (const char *)b + one.b * bytes,
                  (char *)c + one.c * bytes);
    }
}
