/* SPDX-License-Identifier: BSD-3-Clause */
/* The division of work: numbers of chunks and the forms of reductions and matrix products, from shapes alone, the same on
 * every instruction set. Also the identities of the combiners. Called by the interpreter (the oly_..._chunks of kernel.h)
 * and by kernels/cpu (the oly_..._divide of table.h). */
#include "gemm_bfloat.h"
#include "gemm_bytes.h"
#include "reduce_computed.h"
#include "table.h"
#include "core/min_max.h"
#include <math.h>

#define MOST_CHUNKS    64
#define ENOUGH_WORK    32768  /* element operations worth a chunk: about 10 microseconds */
#define ENOUGH_BYTES   262144 /* to copy */
#define REDUCE_BLOCK   4096   /* as in cpu/reduce.c: runs are split between blocks */
#define LONG_ROW       1024   /* results side by side: shorter pieces of rows far apart are read more slowly */
#define SHORT_ROW      128    /* the least, to have */
#define FEW_CHUNKS     4      /* so many chunks */
#define MANY_RUNS      16     /* the same of results of short runs, which are transposed so many at a time */
#define SOME_RUNS      8
#define SMALL_PRODUCT  (32 * 32 * 32)
#define PRODUCT_CHUNKS 16
#define LEAST_ROWS     128 /* of a block for OpenBLAS: fewer are inefficient */
#define LEAST_COLUMNS  256
#define ROW_BLOCKS     4 /* and no more if columns give enough: squares copy less and can start with some columns */

static int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}
static int64_t product_of(int rank, const int64_t *extent)
{
    int64_t n = 1;
    for (int d = 0; d < rank; d++)
        n *= extent[d];
    return n;
}
static int chunks_for(double work, double enough)
{
    return work < 2 * enough ? 1 : work >= enough * MOST_CHUNKS ? MOST_CHUNKS : (int)(work / enough);
}

int oly_tile_chunks(const oly_tile_program *program, const oly_tile_box *box)
{
    int64_t elements = product_of(box->rank, box->extent);
    return elements == 0 ? 0 : chunks_for((double)elements * (program->n_instructions + 1), ENOUGH_WORK);
}

int oly_copy_chunks(const oly_copy_task *t)
{
    int64_t elements = product_of(t->rank, t->extent);
    return elements == 0 ? 0 : chunks_for((double)elements * (double)t->element_bytes, ENOUGH_BYTES);
}

/* -- reductions ----------------------------------------------------------------------------------------------------- */

/* Chunks of results that are computed together: long pieces of them, as far as some processors have work. */
static int together_chunks(int64_t kept, int wanted, int64_t long_piece, int64_t short_piece)
{
    int64_t most = oly_larger(kept / long_piece, oly_smaller(kept / short_piece, FEW_CHUNKS));
    return (int)oly_smaller(wanted, oly_larger(most, 1));
}

/* Results for each index of which everything is computed: those of the dimensions before the first reduced one. */
static int64_t leading_results(const oly_reduce_task *t)
{
    int64_t n = 1;
    for (int d = 0; d < t->rank && !t->reduced[d]; d++)
        n *= t->extent[d];
    return n;
}

oly_reduce_shape oly_reduce_divide(const oly_reduce_task *t)
{
    oly_reduce_shape s = {1, 1, 1, 1, 1, t->rank - 1};
    while (s.last_kept >= 0 && (t->reduced[s.last_kept] || t->extent[s.last_kept] == 1))
        s.last_kept--;
    for (int d = 0; d < t->rank; d++)
        *(!t->reduced[d] ? &s.kept : d < s.last_kept ? &s.outer : &s.run) *= t->extent[d];
    if (s.kept == 0 || s.outer == 0 || s.run == 0)
        return s;
    int wanted = chunks_for((double)s.kept * (double)s.outer * (double)s.run, ENOUGH_WORK);
    bool wide = s.run == 1; /* adjacent results: narrow parts of rows are slow */
    if (s.kept >= (wide ? 64 : 1) * (int64_t)wanted) {
        bool short_runs = s.outer > 1 && !wide && s.run <= OLY_REDUCE_SHORT_RUN;
        s.kept_chunks = wide         ? together_chunks(s.kept, wanted, LONG_ROW, SHORT_ROW)
                        : short_runs ? together_chunks(s.kept, wanted, MANY_RUNS, SOME_RUNS)
                                     : wanted;
        return s;
    }
    if (wide && leading_results(t) >= wanted) { /* few side by side, but many times */
        s.kept_chunks = wanted;
        return s;
    }
    int64_t pieces = s.outer > 1 ? s.outer / (wide ? 8 : 1) : divide_up(s.run, REDUCE_BLOCK);
    s.parts = (int)oly_smaller(oly_smaller(wanted, OLY_REDUCE_PARTS), oly_larger(pieces, 1));
    s.kept_chunks = s.parts > 1 ? 1 : (int)oly_smaller(wanted, s.kept);
    return s;
}

int oly_reduce_chunks(const oly_reduce_task *t)
{
    oly_reduce_shape s = oly_reduce_divide(t);
    return s.kept == 0 ? 0 : s.parts > 1 ? s.parts : s.kept_chunks;
}

/* Long sequences of short runs, or of short rows with gaps between them, would be computed in pieces that are too small. */
bool oly_reduce_may_compute(const oly_reduce_task *t)
{
    oly_reduce_shape s = oly_reduce_divide(t);
    if (s.kept == 0 || s.outer == 0 || s.run == 0)
        return false;
    if (s.run == 1 && s.last_kept >= 0)
        return t->extent[s.last_kept] == s.kept || t->extent[s.last_kept] >= OLY_REDUCE_SHORT_ROW ||
               oly_reduce_short_whole(t, &s);
    return s.run == 1 || s.run >= OLY_REDUCE_LONG_RUN || s.outer * s.run <= OLY_REDUCE_WHOLE;
}

size_t oly_reduce_scratch(const oly_reduce_task *t)
{
    oly_reduce_shape s = oly_reduce_divide(t);
    return s.parts > 1
               ? (size_t)s.parts * (size_t)s.kept * oly_element_bytes[oly_is_narrow(t->dtype) ? OLY_FLOAT32 : t->dtype]
               : 0;
}

/* -- combiners ------------------------------------------------------------------------------------------------------ */

/* What each identity of combiner_list.h is for a kind of element; floating ones have no combiners of bits. */
#define FILL(T, ZERO, ONE, LOWEST, HIGHEST, BITS)                                                                      \
    {                                                                                                                  \
        const T identities[] = {ZERO, ONE, LOWEST, HIGHEST, BITS};                                                     \
        for (int64_t i = 0; i < n; i++)                                                                                \
            ((T *)out)[i] = identities[identity];                                                                      \
        break;                                                                                                         \
    }
#define INTEGER(a, number, name, s, T, U, S, W, least, most)                                                           \
    case OLY_##number:                                                                                                 \
        FILL(T, 0, 1, least, most, (T)-1)
#define NARROW(a, number, name, s, T, of, to, top, digits, least, ...)                                                 \
    case OLY_##number:                                                                                                 \
        FILL(T, 0, OLY_ONE_BITS(digits, least), (T)((top) | 1 << (8 * sizeof(T) - 1)), top, 0)
#define FLOATING(a, number, name, s, T, ...)                                                                           \
    case OLY_##number: FILL(T, 0, 1, -INFINITY, INFINITY, 0)
void oly_combine_identity(oly_combiner c, oly_dtype dtype, void *out, int64_t n)
{
    enum { ZERO, ONE, LOWEST, HIGHEST, BITS };
#define IDENTITY(a, number, name, as_bool, op, identity, ...) [OLY_COMBINE_##number] = identity,
    static const uint8_t identities_of[OLY_N_COMBINERS] = {OLY_EVERY_COMBINER(IDENTITY, )};
    int identity = identities_of[c];
    switch (dtype) {
        OLY_INTEGER_TYPES(INTEGER, )
        OLY_NARROW_TYPES(NARROW, )
        OLY_WIDE_TYPES(FLOATING, )
        OLY_COMPLEX_TYPES(FLOATING, )
    default: FILL(uint8_t, 0, 1, 0, 1, 1)
    }
}

/* -- matrix products ------------------------------------------------------------------------------------------------ */

/* Small products are one block each. Large ones are split by rows and columns until there are PRODUCT_CHUNKS blocks of at least
 * ENOUGH_WORK and of a size that suits OpenBLAS. */
/* Fewer blocks of rows and more of columns, with the same total, if OpenBLAS then copies less: rows of a once for each
 * block of columns, columns of b once for each block of rows. */
static void make_squarer(const oly_gemm_task *t, oly_gemm_shape *s, int64_t wanted, int64_t most_columns)
{
    int64_t blocks = s->row_blocks * s->column_blocks;
    for (int64_t rows = s->row_blocks - 1; rows >= 1; rows--) {
        int64_t columns = oly_smaller(wanted / rows, most_columns);
        if (rows * columns >= blocks && t->m * columns + t->n * rows < t->m * s->column_blocks + t->n * s->row_blocks)
            s->row_blocks = rows, s->column_blocks = columns;
    }
}

/* Can OpenBLAS read a matrix with these strides? If not, it prints a line and computes nothing. */
static bool is_blas_matrix(int64_t rows, int64_t columns, int64_t row, int64_t column)
{
    return (column == 1 && row >= columns && row < INT32_MAX) || (row == 1 && column >= rows && column < INT32_MAX);
}

/* Of a matrix that a vector is multiplied with, whose rows memory has one after the other: long pieces, so that it is read in long runs. */
enum { LEAST_PIECE = 256, LONG_PIECE = 2048, ENOUGH_PIECES = 8 };
static int64_t piece_of_rows(int64_t length)
{
    return oly_larger(LEAST_PIECE, oly_smaller(LONG_PIECE, length / ENOUGH_PIECES));
}

/* The side of square blocks that each copy their rows and columns: the largest, at most `most` and at least 128, that gives so many. */
static int64_t side_of_squares(const oly_gemm_task *t, int64_t most, int64_t wanted)
{
    enum { SMALLEST = 128 };
    int64_t side = most;
    while (side > SMALLEST && oly_gemm_batches(t) * divide_up(t->m, side) * divide_up(t->n, side) < wanted)
        side /= 2;
    return side;
}

/* Not more blocks of one product than chunks, so that results of chunks can be sent (oly_gemm_parts). */
oly_gemm_shape oly_gemm_bfloat_divide(const oly_gemm_task *t)
{
    enum { LARGEST = 512 };
    int64_t side = side_of_squares(t, LARGEST, PRODUCT_CHUNKS);
    while (divide_up(t->m, side) * divide_up(t->n, side) > MOST_CHUNKS)
        side *= 2;
    return (oly_gemm_shape){false, side, side, divide_up(t->m, side), divide_up(t->n, side)};
}

oly_gemm_shape oly_gemm_divide(const oly_gemm_task *t)
{
    if (t->dtype == OLY_BFLOAT16)
        return oly_gemm_bfloat_divide(t);
    oly_gemm_shape s = {false, t->m, t->n, 1, 1};
    double work = (double)t->m * (double)t->n * (double)t->k;
    bool floating = t->dtype >= OLY_FLOAT32, vector = t->m < 4 || t->n < 4;
    bool fits = t->m < INT32_MAX && t->n < INT32_MAX && t->k < INT32_MAX &&
                is_blas_matrix(t->m, t->k, t->a_row, t->a_column) &&
                is_blas_matrix(t->k, t->n, t->b_row, t->b_column) && is_blas_matrix(t->m, t->n, t->c_row, 1);
    s.blas = floating && !vector && fits && t->k > 1 && work >= SMALL_PRODUCT;
    int64_t wanted = oly_smaller(PRODUCT_CHUNKS, (int64_t)(work / (s.blas ? 16.0 * SMALL_PRODUCT : 2.0 * ENOUGH_WORK)));
    if (wanted > 1)
        wanted = divide_up(wanted, oly_larger(oly_gemm_batches(t), 1));
    if (wanted <= 1)
        return s;
    int64_t least_rows = s.blas ? LEAST_ROWS : 8, least_columns = s.blas ? LEAST_COLUMNS : LEAST_PIECE;
    if (t->m == 1 && t->b_column == 1)
        least_columns = piece_of_rows(t->n);
    if (t->n == 1 && t->a_row == 1)
        least_rows = piece_of_rows(t->m);
    s.row_blocks = oly_larger(1, oly_smaller(wanted, t->m / least_rows));
    int64_t most_columns = oly_larger(1, t->n / least_columns);
    if (s.blas && s.row_blocks > ROW_BLOCKS)
        s.row_blocks = oly_larger(ROW_BLOCKS, divide_up(wanted, most_columns));
    s.row_blocks = oly_smaller(s.row_blocks, oly_larger(1, t->m / least_rows));
    s.column_blocks = oly_larger(1, oly_smaller(wanted / s.row_blocks, most_columns));
    if (s.blas)
        make_squarer(t, &s, wanted, most_columns);
    s.rows = divide_up(divide_up(t->m, s.row_blocks), 8) * 8;
    s.columns = divide_up(divide_up(t->n, s.column_blocks), 16) * 16;
    s.row_blocks = divide_up(t->m, s.rows);
    s.column_blocks = divide_up(t->n, s.columns);
    return s;
}

int oly_gemm_chunks(const oly_gemm_task *t)
{
    int64_t batches = oly_gemm_batches(t);
    if (batches == 0 || t->m == 0 || t->n == 0)
        return 0;
    oly_gemm_shape s = oly_gemm_divide(t);
    int64_t blocks = batches * s.row_blocks * s.column_blocks;
    double work = (double)batches * (double)t->m * (double)t->n * (double)oly_larger(t->k, 1);
    return (int)oly_smaller(blocks, chunks_for(t->dtype == OLY_BFLOAT16 ? work / 8 : work, ENOUGH_WORK));
}

int oly_gemm_bfloat_chunks(const oly_gemm_task *t)
{
    oly_gemm_task like = *t;
    like.dtype = OLY_BFLOAT16;
    return oly_gemm_chunks(&like);
}

/* A chunk is one block: there are as many (oly_gemm_divide makes blocks of at least ENOUGH_WORK). */
int oly_gemm_parts(const oly_gemm_task *t)
{
    oly_gemm_shape s = oly_gemm_divide(t);
    int chunks = oly_gemm_chunks(t);
    return oly_gemm_batches(t) == 1 && chunks == s.row_blocks * s.column_blocks ? chunks : 0;
}

oly_gemm_part oly_gemm_part_at(const oly_gemm_task *t, int k)
{
    oly_gemm_shape s = oly_gemm_divide(t);
    int64_t row = k / s.column_blocks * s.rows, column = k % s.column_blocks * s.columns;
    return (oly_gemm_part){row, oly_smaller(t->m - row, s.rows), column, oly_smaller(t->n - column, s.columns)};
}

int oly_gemm_chunk_of(const oly_gemm_task *t, const oly_gemm_part *part)
{
    oly_gemm_shape s = oly_gemm_divide(t);
    return (int)(part->row / s.rows * s.column_blocks + part->column / s.columns);
}

int64_t oly_gemm_bytes_side(const oly_gemm_task *t)
{
    return side_of_squares(t, OLY_BYTES_SIDE, 4);
}

int oly_gemm_bytes_chunks(const oly_gemm_task *t)
{
    int64_t batches = oly_gemm_batches(t), side = oly_gemm_bytes_side(t);
    if (batches == 0 || t->m == 0 || t->n == 0)
        return 0;
    double work = (double)batches * (double)t->m * (double)t->n * (double)oly_larger(t->k, 1);
    return (int)oly_smaller(batches * divide_up(t->m, side) * divide_up(t->n, side),
                            chunks_for(work / 16, ENOUGH_WORK));
}
