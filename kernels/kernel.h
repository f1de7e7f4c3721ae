/* SPDX-License-Identifier: BSD-3-Clause */
/* The interface of the kernels: pointers, extents and strides; no arrays, meshes or plans. One table per instruction
 * set; oly_kernels_choose selects it at start. Called by the interpreter (runtime/run) only. Nothing here allocates
 * memory, fails, or depends on how many threads run: work is divided into chunks by shape alone, and chunk results are combined
 * in a fixed order. Chunk counts and bits are the same on every instruction set with fused multiply-add. */
#ifndef OLY_KERNEL_H
#define OLY_KERNEL_H
#include "combiner_list.h"
#include <olympus/array.h>

#define OLY_TILE           1024 /* elements of a tile: a few tiles of 8-byte elements fit L1 */
#define OLY_TILE_REGISTERS 64

/* -- elementwise tile operations -----------------------------------------------------------------------------------
 * kernels/elementwise.def and elementwise_math.def list them; OLY_TILE_<name> is its number. */
typedef enum oly_tile_op {
#define OLY_TILE_UNARY(name, ...)      OLY_TILE_##name,
#define OLY_TILE_PART(name, ...)       OLY_TILE_##name,
#define OLY_TILE_TEST(name, ...)       OLY_TILE_##name,
#define OLY_TILE_BINARY(name, ...)     OLY_TILE_##name,
#define OLY_TILE_FAR_BINARY(name, ...) OLY_TILE_##name,
#define OLY_TILE_COMPARE(name, ...)    OLY_TILE_##name,
#define OLY_TILE_JOIN(name, ...)       OLY_TILE_##name,
#include "elementwise.def"
    OLY_TILE_MATH, /* elementwise_math.def from here on */
    OLY_TILE_before_math = OLY_TILE_MATH - 1,
#include "elementwise_math.def"
#undef OLY_TILE_UNARY
#undef OLY_TILE_PART
#undef OLY_TILE_TEST
#undef OLY_TILE_BINARY
#undef OLY_TILE_FAR_BINARY
#undef OLY_TILE_COMPARE
#undef OLY_TILE_JOIN
    OLY_TILE_select,  /* out = in0 (bool) ? in1 : in2; dtype is that of in1 */
    OLY_TILE_convert, /* out (dtype `to`) = in0 (dtype `dtype`); for complex numbers the real part */
    OLY_TILE_copy,    /* out (dtype `to`, of the same size) = the bits of in0 */
    OLY_TILE_iota, /* out = index along the dimension `attribute` of the box, plus that dimension's `origin`; attribute -1:
                       * the element's number in the whole array, counted row by row */
    OLY_TILE_splat, /* out = the scalar `value` */
    OLY_TILE_threefry2x32, /* out (uint64) = the block function: in0 the key, in1 the counter, first words in the upper halves */
    OLY_TILE_random_bits, /* out (uint32) = the exclusive or of the two words of threefry2x32 */
    OLY_TILE_fma,         /* out = in0 * in1 + in2 rounded once; float32, float64 */
    OLY_N_TILE_OPS
} oly_tile_op;

/* One instruction: registers are tiles. A register written by splat, or by a load whose strides are all 0, holds one element
 * that represents all ("scalar register"); instructions on scalar registers only give scalar registers. */
typedef struct oly_tile_instruction {
    uint16_t op;       /* oly_tile_op */
    uint8_t dtype;     /* of the operands (in1 for select) */
    uint8_t to;        /* of the result */
    int16_t in[3];     /* registers; -1: none */
    int16_t out;       /* register */
    int32_t attribute; /* iota: which dimension */
    union {            /* splat: the value, in the representation of `to` */
        int64_t i;
        double f;
        float f32;
        double c128[2]; /* real and imaginary part */
        float c64[2];
        int32_t i32;
        uint32_t u32;
        uint16_t u16;
        uint8_t b;
    } value;
} oly_tile_instruction;

typedef struct oly_tile_program {
    int n_instructions;
    const oly_tile_instruction *instructions;
    int n_loads, n_stores;
    const int16_t *load_register; /* [n_loads] */
    const uint8_t *load_dtype;
    const int16_t *store_register; /* [n_stores] */
    const uint8_t *store_dtype;
    int n_registers; /* at most OLY_TILE_REGISTERS */
} oly_tile_program;

/* The data of one device: an iteration box and the addresses of loads and stores. */
typedef struct oly_tile_operand {
    char *base;                   /* element (0, 0, ..., 0) of the box */
    int64_t stride[OLY_MAX_RANK]; /* in elements, may be 0 (broadcast) or negative */
} oly_tile_operand;

typedef struct oly_tile_box {
    int rank;
    int64_t extent[OLY_MAX_RANK];
    int64_t origin[OLY_MAX_RANK]; /* for iota: index of the box's first element in the whole array */
    int64_t whole[OLY_MAX_RANK];  /* for iota -1: extents of the whole array */
} oly_tile_box;

/* Number of chunks of a box (0 if empty), from its shape and the program's length alone. */
int oly_tile_chunks(const oly_tile_program *program, const oly_tile_box *box);
/* Computes chunk `chunk` of `n_chunks`. Stores may overlap loads only at the same element of the same program. */
void oly_tile_run(const oly_tile_program *program, const oly_tile_box *box, const oly_tile_operand *loads,
                  const oly_tile_operand *stores, int chunk, int n_chunks);

/* Computes one instruction other than iota and splat: n contiguous elements of operands in[0] to in[2], of which those with a bit in
 * `scalars` are one element for all; if all are, n is 1. The result may be in the memory of an operand of the same element size. */
void oly_tile_instruction_run(const oly_tile_instruction *c, unsigned scalars, int n, void *out, const char *const *in);

/* -- reductions ------------------------------------------------------------------------------------------------------ */
typedef enum oly_combiner {
#define OLY_NUMBER(a, number, ...) OLY_COMBINE_##number,
    OLY_EVERY_COMBINER(OLY_NUMBER, )
#undef OLY_NUMBER
        OLY_N_COMBINERS
} oly_combiner;

/* Reduces the dimensions with reduced[d] of a strided box into a contiguous row-major array of the kept dimensions. An empty
 * reduction gives the combiner's identity (max: -inf or the lowest value). NaN wins in max and min; complex numbers are
 * ordered by their real part, then by the imaginary one. Narrow floating types are combined in float32 and rounded once
 * (scratch holds float32). Floating sums have a fixed shape: fewer than 64 elements sequentially ((a+b)+c)+d;
 * more in fixed lanes and blocks, then trees of adjacent pairs ((a+b)+(c+d)). Integer sums wrap.
 *   chunks: independent parts. If the kept part is small (such as a full reduction), the box is split along the reduced
 *   dimensions into at most OLY_REDUCE_PARTS fixed parts: chunk c writes its partial to scratch and oly_reduce_finish
 *   combines the partials as a tree of adjacent pairs. scratch holds oly_reduce_scratch bytes (0: no second phase). */
typedef struct oly_reduce_task {
    oly_combiner combiner;
    oly_dtype dtype;
    int rank;
    int64_t extent[OLY_MAX_RANK], stride[OLY_MAX_RANK]; /* of the operand, in elements */
    bool reduced[OLY_MAX_RANK];
    bool converts;  /* the operand's elements are of type `from`, and each is converted to dtype as it is read */
    oly_dtype from; /* real */
} oly_reduce_task;
#define OLY_REDUCE_PARTS 64
int oly_reduce_chunks(const oly_reduce_task *t);
void oly_reduce_run(const oly_reduce_task *t, const void *in, void *out, void *scratch, int chunk, int n_chunks);
/* Of a task without a second phase: results [begin, end) of the kept elements in row-major order, with the same bits. in, out: of the whole task. */
void oly_reduce_results(const oly_reduce_task *t, const void *in, void *out, int64_t begin, int64_t end);
void oly_reduce_finish(const oly_reduce_task *t, void *out, void *scratch);

/* out[i] = reduction of n_sources contiguous arrays, elements [begin, end): sequentially, ((s0 op s1) op s2) ..., for
 * more than 16 within groups of 16 and then over the groups, or as a tree of adjacent pairs, (s0 op s1) op (s2 op s3).
 * out may be one of the sources. counts: nested reductions: with counts {4, 2} sources are [4][2]: for each of the 2
 * the 4 are reduced, then the 2 results; n_counts at most 4, product = n_sources. */
void oly_combine(oly_combiner c, oly_dtype dtype, bool in_pairs, int n_counts, const int *counts,
                 const void *const *sources, void *out, int64_t begin, int64_t end);
/* Writes the identity of the combiner n times. */
void oly_combine_identity(oly_combiner c, oly_dtype dtype, void *out, int64_t n);

/* -- matrix product ------------------------------------------------------------------------------------------------
 * c[b][m][n] (row-major, contiguous rows of ldc) = sum over k of a[b][m][k] * b[b][k][n]. For each operand either the row or
 * the column stride is 1 element (otherwise the caller copies first). k = 0 gives zeros. Small products: left to right with
 * fused multiply-add (narrow floating types in float32, rounded once); large ones of float32, float64 and complex numbers:
 * OpenBLAS with one thread; chunks are blocks of rows and batches, fixed by shape. */
typedef struct oly_gemm_task {
    oly_dtype dtype;
    int64_t batch, m, n, k;
    int64_t a_batch, a_row, a_column; /* strides in elements */
    int64_t b_batch, b_row, b_column;
    int64_t c_batch, c_row; /* c_column is 1 */
    int n_outer;            /* loops around the batch, outermost first */
    int64_t outer[2 * OLY_MAX_RANK], a_outer[2 * OLY_MAX_RANK], b_outer[2 * OLY_MAX_RANK], c_outer[2 * OLY_MAX_RANK];
} oly_gemm_task;
int oly_gemm_chunks(const oly_gemm_task *t);
void oly_gemm_run(const oly_gemm_task *t, const void *a, const void *b, void *c, int chunk, int n_chunks);

/* -- copies ---------------------------------------------------------------------------------------------------------- */
/* Copies a box between two strided locations that do not overlap. Strides in elements (0 in the source broadcasts). */
typedef struct oly_copy_task {
    size_t element_bytes;
    int rank;
    int64_t extent[OLY_MAX_RANK], to_stride[OLY_MAX_RANK], from_stride[OLY_MAX_RANK];
} oly_copy_task;
int oly_copy_chunks(const oly_copy_task *t);
void oly_copy_run(const oly_copy_task *t, void *to, const void *from, int chunk, int n_chunks);

/* -- stencils --------------------------------------------------------------------------------------------------------
 * u'[x] = sum over taps of coefficient[t] * u[x + offset[t]] for x inside [fixed_lo, fixed_hi) of each dimension; points
 * outside keep their value. The taps are added in the given order, each with fused multiply-add
 * (acc = fma(coefficient, value, acc), the first a product), so the bits do not depend on tiles or step counts. */
#define OLY_STENCIL_TAPS 32
typedef struct oly_stencil {
    oly_dtype dtype; /* float32 or float64 */
    int rank;        /* 1 to 3 */
    int n_taps;
    int offset[OLY_STENCIL_TAPS][3];
    double coefficient[OLY_STENCIL_TAPS];
    int radius[3]; /* largest |offset| in each dimension */
} oly_stencil;

/* One device's field, extended by `margin` cells on sides that have neighbours. */
typedef struct oly_stencil_field {
    int64_t extent[3]; /* of the extended field, in elements */
    int64_t stride[3]; /* of both source and destination; stride[rank-1] = 1 */
    int64_t write_lo[3],
        write_hi[3]; /* the part whose values after `steps` steps are computed (the device's own block) */
    int64_t fixed_lo[3],
        fixed_hi[3]; /* points of the update region, in the field's coordinates; may be outside the field */
    int64_t destination_stride[3];      /* strides of the destination */
    int64_t destination_offset[3];      /* destination coordinate = field coordinate + this */
    int64_t border_lo[3], border_hi[3]; /* cells at the ends of the written part that are tiles of their own; 0: none */
} oly_stencil_field;

/* The number of tiles of one pass, from shape and steps alone. */
int oly_stencil_chunks(const oly_stencil *s, const oly_stencil_field *f, int steps);
/* The inner tiles, which read nothing beyond [write_lo, write_hi) on some sides (bit 2d of `sides`: below in dimension d, bit
 * 2d + 1: above), so that they can be computed before the margins arrive; and their amount of work. */
typedef struct oly_stencil_share {
    int n, n_inner;
    double points, inner_points;        /* times steps, including points computed twice */
    int64_t parts[3], first[3], end[3]; /* of the grid of tiles; the inner ones are a box of it */
} oly_stencil_share;
oly_stencil_share oly_stencil_divide(const oly_stencil *s, const oly_stencil_field *f, int steps, unsigned sides);
/* The chunk number of the k-th inner tile, and of the k-th of the others. */
int oly_stencil_inner(const oly_stencil_share *t, int k);
int oly_stencil_outer(const oly_stencil_share *t, int k);
/* Computes tile `chunk`: reads source (never written), writes its part of [write_lo, write_hi) of destination with the values
 * after `steps` steps. Every point read within `steps * radius` of the written part must be inside the field, except
 * beyond [fixed_lo, fixed_hi), where only the `radius` cells next to it are read. scratch: oly_stencil_scratch bytes, one
 * per running thread. */
size_t oly_stencil_scratch(const oly_stencil *s, const oly_stencil_field *f, int steps);
void oly_stencil_run(const oly_stencil *s, const oly_stencil_field *f, int steps, const void *source, void *destination,
                     void *scratch, int chunk, int n_chunks);
/* A row of a sum of taps of several fields, added in the same order: out[i] = sum over taps of coefficient[t] * in[t][i], for n
 * elements of float32 or float64. `out` is none of the rows. */
void oly_taps_run(oly_dtype dtype, int n_taps, const double *coefficient, const void *const *in, void *out, int64_t n);

/* -- along whole dimensions, and by value ----------------------------------------------------------------------------- */
#include "local.h"

/* -- what plans ask --------------------------------------------------------------------------------------------------- */
#include "planning.h"

/* The chunk that computes this part of a product's result, one of those of oly_gemm_part_at. */
int oly_gemm_chunk_of(const oly_gemm_task *t, const oly_gemm_part *part);

/* -- choosing -------------------------------------------------------------------------------------------------------- */
/* Chooses the instruction set ("base", "avx2", "avx512", or "" for the best of this CPU). fails OLY_INVALID: unknown, or not
 * available on this CPU (the message lists those that are). */
oly_status oly_kernels_choose(const char *isa);
const char *oly_kernels_isa(void);
#endif
