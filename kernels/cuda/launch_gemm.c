/* SPDX-License-Identifier: BSD-3-Clause */
/* Launches of matrix products: gemm.cu, gemm_bytes.cu. */
#include "cuda/launching.h"
#include "core/dtype_list.h"
#include "core/error.h"
#include "core/min_max.h"
#include "core/optimisation.h"
#include "table.h"

/* NARROW: of so few rows or columns a block of gemm.cu has mostly nothing to do. LONG: a sum that is worth being computed in parts, if
 * there are no more than FEW results. */
enum {
    SIDE = 64,
    NARROW = 16,
    WORTH_READING_AHEAD = 16,
    LONG = 4096,
    FEW = 1 << 14,
    MOST_PARTS = 64,
    LEAST_DEPTH = 512
};
/* Threads of a block of gemm_bytes.cu. LEAST_EXACT: elements that are worth a part of a sum of integers, where blocks would be fewer than
 * twice the processors. */
enum { BYTE_THREADS = 128, LEAST_EXACT = 256 };

bool oly_cuda_has_gemm(const oly_gemm_task *t)
{
    (void)t;
    return true;
}

typedef enum kernel { WIDE_PRODUCT, NARROW_PRODUCT, ADD_PARTS, NARROW_LONG } kernel;
/* The type in which is computed. */
#define KERNELS(s)                                                                                                     \
    {                                                                                                                  \
        "oly_gemm_" #s, "oly_gemm_narrow_" #s, "oly_gemm_add_" #s, "oly_gemm_narrow_long_" #s                          \
    }
enum { B8, I32, I64, F32, F64, C64, C128 };
static const char *const kernels[][4] = {
    [B8] = KERNELS(b8),   [I32] = KERNELS(i32), [I64] = KERNELS(i64),  [F32] = KERNELS(f32),
    [F64] = KERNELS(f64), [C64] = KERNELS(c64), [C128] = KERNELS(c128)};
static const int accumulator_bytes[] = {[B8] = 4, [I32] = 4, [I64] = 8, [F32] = 4, [F64] = 8, [C64] = 8, [C128] = 16};

static int accumulator(oly_dtype dtype)
{
    switch (dtype) {
    case OLY_BOOL: return B8;
    case OLY_FLOAT64: return F64;
    case OLY_COMPLEX64: return C64;
    case OLY_COMPLEX128: return C128;
    case OLY_INT64:
    case OLY_UINT64: return I64;
    default: return dtype < OLY_FLOAT8_E4M3FN ? I32 : F32;
    }
}

static int64_t tiles_of(const oly_gemm_task *t)
{
    return (t->m + SIDE - 1) / SIDE * ((t->n + SIDE - 1) / SIDE);
}

/* Of a part of a sum that is exact in any order: parts keep the device busy. */
static int64_t exact_depth(const oly_cuda_launcher *l, int64_t tiles, int64_t k)
{
    int64_t fitting = 2 * (int64_t)l->processors / tiles;
    int64_t parts = oly_larger(1, oly_smaller(oly_smaller(fitting, k / LEAST_EXACT), MOST_PARTS));
    return ((k + parts - 1) / parts + 15) / 16 * 16;
}

/* Of others by the shape of the whole product, so that results have the same bits when it is computed in pieces. */
static void divide(const oly_cuda_launcher *l, const oly_gemm_task *t, int64_t batches, oly_cuda_gemm_task *g)
{
    g->depth = t->k;
    if (accumulator(t->dtype) <= I64) { /* exact in any order */
        g->depth = exact_depth(l, tiles_of(t) * batches, t->k);
        g->parts = g->depth > 0 ? (t->k + g->depth - 1) / g->depth : 1;
        return;
    }
    if (t->k >= LONG && t->m * t->n * batches <= FEW)
        g->depth = oly_larger(LEAST_DEPTH, (t->k / MOST_PARTS + 15) / 16 * 16);
    g->parts = g->depth > 0 ? (t->k + g->depth - 1) / g->depth : 1;
}

static oly_status launch(const oly_cuda_launcher *l, const oly_cuda_gemm_task *g, kernel kind)
{
    const oly_gemm_task *t = &g->task;
    int64_t results = t->m * t->n * g->batches, tiles = tiles_of(t);
    unsigned blocks = kind == WIDE_PRODUCT
                          ? oly_cuda_blocks(l, tiles * g->batches * g->parts, 1)
                          : oly_cuda_blocks(l, results * (kind == ADD_PARTS ? 1 : g->parts), OLY_CUDA_THREADS);
    return oly_cuda_start(l, "gemm", kernels[accumulator(t->dtype)][kind], blocks, OLY_CUDA_THREADS, g, sizeof *g);
}

/* -- bytes ------------------------------------------------------------------------------------------------------------------------ */

static oly_status launch_bytes(const oly_cuda_launcher *l, const oly_cuda_gemm_task *whole, bool a_signed,
                               bool b_signed)
{
    static const char *const names[] = {"oly_gemm_bytes_uu", "oly_gemm_bytes_us", "oly_gemm_bytes_su",
                                        "oly_gemm_bytes_ss"};
    oly_cuda_gemm_task g = *whole;
    oly_gemm_task *t = &g.task;
    int64_t tiles = tiles_of(t) * g.batches;
    g.depth = exact_depth(l, tiles, t->k);
    g.parts = g.depth > 0 ? (t->k + g.depth - 1) / g.depth : 1;
    if (g.parts > 1) {
        void *partial;
        OLY_TRY(l->scratch(l->context, (size_t)(g.parts * g.batches * t->m * t->n) * sizeof(uint32_t), &partial));
        g.partial = partial;
    }
    OLY_TRY(oly_cuda_start(l, "gemm_bytes", names[2 * a_signed + b_signed], oly_cuda_blocks(l, tiles * g.parts, 1),
                           BYTE_THREADS, &g, sizeof g));
    return g.parts > 1 ? launch(l, &g, ADD_PARTS) : OLY_OK;
}

oly_status oly_cuda_gemm_bytes(const oly_cuda_launcher *l, const oly_gemm_task *t, bool a_signed, bool b_signed,
                               const void *a, const void *b, void *c)
{
    oly_cuda_gemm_task g = {.task = *t, .a = a, .b = b, .c = c, .batches = oly_gemm_batches(t)};
    g.task.dtype = OLY_UINT32; /* which has the bits of int32 */
    return g.batches == 0 || t->m == 0 || t->n == 0 ? OLY_OK : launch_bytes(l, &g, a_signed, b_signed);
}

/* -- products of one type ------------------------------------------------------------------------------------------------------- */

/* A rectangle of the result. */
static oly_status launch_part(const oly_cuda_launcher *l, const oly_cuda_gemm_task *whole, const oly_gemm_part *part)
{
    oly_cuda_gemm_task g = *whole;
    oly_gemm_task *t = &g.task;
    int64_t bytes = (int64_t)oly_dtype_size(t->dtype);
    kernel narrow = g.depth < WORTH_READING_AHEAD ? NARROW_PRODUCT : NARROW_LONG;
    kernel kind = t->m < NARROW || t->n < NARROW ? narrow : WIDE_PRODUCT;
    t->m = part->rows;
    t->n = part->columns;
    g.a += part->row * t->a_row * bytes;
    g.b += part->column * t->b_column * bytes;
    g.c += (part->row * t->c_row + part->column) * bytes;
    /* The bits of signed integers are those of unsigned ones. */
    if (t->dtype >= OLY_INT8 && t->dtype <= OLY_INT64)
        t->dtype = (oly_dtype)(t->dtype - OLY_INT8 + OLY_UINT8);
    if (t->dtype == OLY_UINT8 && kind == WIDE_PRODUCT && oly_enabled(OLY_OPTIMISATION_BYTE_PRODUCTS))
        return launch_bytes(l, &g, false, false);
    OLY_TRY(launch(l, &g, kind));
    return g.parts > 1 ? launch(l, &g, ADD_PARTS) : OLY_OK;
}

/* The next rectangle of results: parts [*k, ...) that are beside each other. */
static oly_gemm_part next_part(const oly_gemm_part *parts, int n, int *k)
{
    oly_gemm_part p = parts[(*k)++];
    for (; *k < n; (*k)++) {
        const oly_gemm_part *q = &parts[*k];
        if (q->row == p.row && q->rows == p.rows && q->column == p.column + p.columns)
            p.columns += q->columns;
        else if (q->column == p.column && q->columns == p.columns && q->row == p.row + p.rows)
            p.rows += q->rows;
        else
            break;
    }
    return p;
}

oly_status oly_cuda_gemm(const oly_cuda_launcher *l, const oly_gemm_task *t, const oly_gemm_part *parts, int n_parts,
                         const void *a, const void *b, void *c)
{
    oly_cuda_gemm_task g = {.task = *t, .a = a, .b = b, .c = c, .batches = oly_gemm_batches(t)};
    oly_gemm_part all = {0, t->m, 0, t->n};
    if (g.batches == 0 || t->m == 0 || t->n == 0)
        return OLY_OK;
    divide(l, t, g.batches, &g);
    if (g.parts > 1) {
        int64_t sums = g.parts * g.batches * t->m * t->n;
        void *partial;
        OLY_TRY(l->scratch(l->context, (size_t)(sums * accumulator_bytes[accumulator(t->dtype)]), &partial));
        g.partial = partial;
    }
    if (!parts)
        return launch_part(l, &g, &all);
    for (int k = 0; k < n_parts;) {
        oly_gemm_part p = next_part(parts, n_parts, &k);
        OLY_TRY(launch_part(l, &g, &p));
    }
    return OLY_OK;
}
