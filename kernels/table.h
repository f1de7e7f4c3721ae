/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of kernels/cpu for each instruction set, and the few decisions that they share with the functions
 * compiled once (chunks.c, choose.c). Inside kernels/ only. Each file of cpu/ is compiled once per instruction set, with
 * OLY_ISA its name; OLY_ISA_NAME(f) is f's name there: f_avx2. */
#ifndef OLY_KERNEL_TABLE_H
#define OLY_KERNEL_TABLE_H
#include "core/dtype_list.h"
#include "kernel.h"

/* Best first. */
#if defined(__x86_64__)
#define OLY_FOR_EACH_ISA(X) X(avx512) X(avx2) X(base)
#else
#define OLY_FOR_EACH_ISA(X) X(base)
#endif

#define OLY_PASTE_(a, b)     a##_##b
#define OLY_PASTE(a, b)      OLY_PASTE_(a, b)
#define OLY_ISA_NAME(prefix) OLY_PASTE(prefix, OLY_ISA)

static const uint8_t oly_element_bytes[OLY_N_DTYPES] __attribute__((unused)) = {
#define OLY_BYTES(a, number, name, s, T, ...) [OLY_##number] = sizeof(T),
    OLY_EVERY_TYPE(OLY_BYTES, )
#undef OLY_BYTES
};

/* -- elementwise*.c, convert.c: one tile operation on n elements. in[k] is b0, b1, b2; those not used may be NULL. The result
 * may be one of the operands of the same element size. */
typedef void oly_tile_function(int n, void *out, const void *x, const void *y, const void *z);

typedef struct oly_elementwise_table {
    /* [operation][element type][which operands are one element for all: 0 none, 1 the first, 2 the second];
     * NULL where the rows are another table's (elementwise_math.def has tables of its own) or list no such type. */
    oly_tile_function *cell[OLY_TILE_select][OLY_N_DTYPES][3];
} oly_elementwise_table;

typedef struct oly_convert_table {
    oly_tile_function *convert[OLY_N_DTYPES][OLY_N_DTYPES]; /* [from][to] */
    oly_tile_function *select[17][8]; /* [element bytes][bits: operands that are one element for all] */
    oly_tile_function *copy[17];      /* [element bytes] */
    /* out[i] = start + i * step */
    void (*iota[OLY_N_DTYPES])(int n, void *out, int64_t start, int64_t step); /* of numbers */
    /* out[r * columns + c] = in[r * row_stride + c * column_stride], and back; indexed by element bytes */
    void (*gather[17])(int64_t rows, int64_t columns, void *out, const void *in, int64_t row_stride,
                       int64_t column_stride);
    void (*scatter[17])(int64_t rows, int64_t columns, void *out, const void *in, int64_t row_stride,
                        int64_t column_stride);
    void (*fill[17])(int64_t n, void *out, const void *element);
} oly_convert_table;

/* -- random.c: cells as in oly_elementwise_table, masks as in select */
typedef struct oly_random_table {
    oly_tile_function *threefry2x32[3], *random_bits[3];
    oly_tile_function *fma32[8], *fma64[8];
} oly_random_table;

/* -- combine.c: the combiners on contiguous elements; of narrow types only pair is there */
#define OLY_FOLDED 16 /* lanes that `folded` leaves: of as many rows they are a square */
typedef struct oly_combine_table {
    /* out[i] = x[i] op y[i]; out may be x or y */
    void (*pair[OLY_N_COMBINERS][OLY_N_DTYPES])(int64_t n, void *out, const void *x, const void *y);
    /* out[i] = tree of adjacent pairs of the 8 rows x[r * stride + i], stride in elements */
    void (*eight[OLY_N_COMBINERS][OLY_N_DTYPES])(int64_t n, void *out, const void *x, int64_t stride);
    /* out[g * n + i] = (x[g * group + i] op x[g * group + stride + i]) op ...: for each group `rows` rows of n elements, a few, one after
     * the other; more: they are added to what out holds */
    void (*rows[OLY_N_COMBINERS][OLY_N_DTYPES])(int64_t n, int64_t rows, int64_t groups, void *out, const void *x,
                                                int64_t stride, int64_t group, bool more);
    /* out[0] = ((x[0] op x[1]) op x[2]) ...; n >= 1 */
    void (*chain[OLY_N_COMBINERS][OLY_N_DTYPES])(int64_t n, void *out, const void *x);
    /* out[0] = x in 64 lanes, the lanes then by halves (lane i with lane i + 32, ...); n >= 64; fetches what is `ahead` bytes further; 0: does not */
    void (*lanes[OLY_N_COMBINERS][OLY_N_DTYPES])(int64_t n, void *out, const void *x, int64_t ahead);
    /* the same as far as OLY_FOLDED lanes */
    void (*folded[OLY_N_COMBINERS][OLY_N_DTYPES])(int64_t n, void *out, const void *x);
} oly_combine_table;

/* -- how a reduction is divided, from extents alone ----------------------------------------------------------------- */
typedef struct oly_reduce_shape {
    int64_t kept;    /* elements of the result */
    int64_t run;     /* elements of the reduced dimensions after the last kept one; 1 if there are none */
    int64_t outer;   /* of the other reduced dimensions: runs that make one element of the result */
    int parts;       /* parts of the reduced elements, of `outer` or else of `run`; 1: no second phase */
    int kept_chunks; /* parts of the result, if parts is 1 */
    int last_kept;   /* dimension that is kept and longer than 1; -1: none */
} oly_reduce_shape;
oly_reduce_shape oly_reduce_divide(const oly_reduce_task *t);
/* Operands that are computed for the reduction (reduce_computed.h): the most elements of a result that are computed together with those of
 * others; the fewest of a run, and of a row with gaps behind it, that are computed by themselves. */
enum { OLY_REDUCE_WHOLE = 4096, OLY_REDUCE_LONG_RUN = 512, OLY_REDUCE_SHORT_ROW = 16, OLY_REDUCE_SHORT_RUN = 1024 };
enum { OLY_REDUCE_WINDOW = 65536 }; /* bytes that are computed at once */
/* Rows that are shorter, of several results each: are all elements of a row's results computed at once? */
static inline bool oly_reduce_short_whole(const oly_reduce_task *t, const oly_reduce_shape *s)
{
    int64_t bytes = oly_element_bytes[t->converts ? t->from : t->dtype];
    return s->run == 1 && s->last_kept >= 0 && s->parts <= 1 && t->extent[s->last_kept] < OLY_REDUCE_SHORT_ROW &&
           t->extent[s->last_kept] < s->kept && s->outer * t->extent[s->last_kept] * bytes <= OLY_REDUCE_WINDOW;
}

/* -- how a matrix product is divided -------------------------------------------------------------------------------- */
typedef struct oly_gemm_shape {
    bool blas;             /* large: by OpenBLAS */
    int64_t rows, columns; /* of a chunk's block */
    int64_t row_blocks, column_blocks;
} oly_gemm_shape;
oly_gemm_shape oly_gemm_divide(const oly_gemm_task *t);
/* Matrix products in all loops. */
static inline int64_t oly_gemm_batches(const oly_gemm_task *t)
{
    int64_t n = t->batch;
    for (int k = 0; k < t->n_outer; k++)
        n *= t->outer[k];
    return n;
}

/* The first elements of matrix product `number` of all loops. */
typedef struct oly_gemm_start {
    int64_t a, b, c;
} oly_gemm_start;
static inline oly_gemm_start oly_gemm_start_of(const oly_gemm_task *t, int64_t number)
{
    int64_t inner = number % t->batch, rest = number / t->batch;
    oly_gemm_start at = {inner * t->a_batch, inner * t->b_batch, inner * t->c_batch};
    for (int k = t->n_outer - 1; k >= 0; k--) {
        int64_t i = rest % t->outer[k];
        rest /= t->outer[k];
        at.a += i * t->a_outer[k];
        at.b += i * t->b_outer[k];
        at.c += i * t->c_outer[k];
    }
    return at;
}
/* Of a product of bfloat16, whatever the type of its result. */
oly_gemm_shape oly_gemm_bfloat_divide(const oly_gemm_task *t);
/* Products of bytes: rows and columns of a chunk's block, at most OLY_BYTES_SIDE. */
enum { OLY_BYTES_SIDE = 512 };
int64_t oly_gemm_bytes_side(const oly_gemm_task *t);

/* Can this compiler's assembler be given AMX? */
#if defined(__x86_64__) && defined(__linux__) && (__GNUC__ >= 11 || defined(__clang__))
#define OLY_HAS_MATRIX_REGISTERS 1
#endif

struct oly_reduce_source; /* reduce_computed.h */

/* -- one instruction set -------------------------------------------------------------------------------------------- */
#define OLY_ISA_FUNCTIONS(X)                                                                                           \
    X(void, tile_run,                                                                                                  \
      (const oly_tile_program *, const oly_tile_box *, const oly_tile_operand *, const oly_tile_operand *, int, int))  \
    X(void, tile_instruction_run, (const oly_tile_instruction *, unsigned, int, void *, const char *const *))          \
    X(void, reduce_run, (const oly_reduce_task *, const void *, void *, void *, int, int))                             \
    X(void, reduce_computed, (const oly_reduce_task *, const struct oly_reduce_source *, void *, void *, int, int))    \
    X(void, reduce_results, (const oly_reduce_task *, const void *, void *, int64_t, int64_t))                         \
    X(void, reduce_finish, (const oly_reduce_task *, void *, void *))                                                  \
    X(void, combine, (oly_combiner, oly_dtype, bool, int, const int *, const void *const *, void *, int64_t, int64_t)) \
    X(void, gemm_run, (const oly_gemm_task *, const void *, const void *, void *, int, int))                           \
    X(void, gemm_bytes_run, (int, const oly_gemm_task *, bool, bool, const void *, const void *, void *, int, int))    \
    X(void, gemm_bfloat_run, (const oly_gemm_task *, const void *, const void *, void *, int, int))                    \
    X(void, copy_run, (const oly_copy_task *, void *, const void *, int, int))

typedef struct oly_isa_table {
    const char *name;
#define OLY_ISA_MEMBER(type, name, parameters) type(*name) parameters;
    OLY_ISA_FUNCTIONS(OLY_ISA_MEMBER)
#undef OLY_ISA_MEMBER
} oly_isa_table;

/* Their prototypes inside cpu/: oly_tile_run_avx2 and so on. */
#ifdef OLY_ISA
#define OLY_ISA_PROTOTYPE(type, name, parameters) type OLY_ISA_NAME(oly_##name) parameters;
OLY_ISA_FUNCTIONS(OLY_ISA_PROTOTYPE)
#undef OLY_ISA_PROTOTYPE
extern const oly_elementwise_table OLY_ISA_NAME(oly_elementwise_integer), OLY_ISA_NAME(oly_elementwise_float),
    OLY_ISA_NAME(oly_elementwise_complex), OLY_ISA_NAME(oly_math_integer), OLY_ISA_NAME(oly_math_float),
    OLY_ISA_NAME(oly_math_complex);
extern const oly_convert_table OLY_ISA_NAME(oly_convert);
extern const oly_combine_table OLY_ISA_NAME(oly_combiners);
extern const oly_random_table OLY_ISA_NAME(oly_random);
#endif
#endif
