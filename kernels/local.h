/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels that read more than one element of an operand at a time: along whole dimensions (sorting, running sums, argmax) and
 * by index (gather, scatter, dynamic slices). The interface is like that of kernel.h: pointers, extents and strides; work
 * divided by shape alone; the same bits on every instruction set. */
#ifndef OLY_LOCAL_H
#define OLY_LOCAL_H
#include <olympus/array.h>

typedef enum oly_local_op {
    OLY_LOCAL_SORT, /* in[0] ascending along `dimension`; NaN last, zeros of both signs are equal, equal ones keep their
                        * order; reverse: the same from the end */
    OLY_LOCAL_ARGSORT, /* where the elements in that order were; in[0] decides before in[1], ...; reverse: descending (NaN first),
                        * equal ones still keep their order. Complex elements: real part, then imaginary */
    OLY_LOCAL_TOP_K, /* where the largest were, largest first, as many as `out` has along `dimension`; of equal ones the
                        * first; -NaN < -inf < ... < -0 < +0 < ... < inf < NaN */
    OLY_LOCAL_CUMSUM, /* running results along `dimension`; reverse: from the end; narrow types in float32 */
    OLY_LOCAL_CUMPROD,
    OLY_LOCAL_CUMMAX, /* NaN wins */
    OLY_LOCAL_CUMMIN,
    OLY_LOCAL_CUMLOGSUMEXP,
    OLY_LOCAL_ARGMAX, /* row-major number, within the dimensions `axes`, of the largest; the first NaN wins, else the first */
    OLY_LOCAL_ARGMIN,
    OLY_LOCAL_SEARCHSORTED, /* how many elements of a line of in[0] are less than (reverse: at most) an element of in[1]; lines
                             * belong to the `n_batch` leading dimensions */
    OLY_LOCAL_GATHER, /* in[0][batch, ...], of which the dimensions `axes` are indexed by in[1], in[2], ...; the result has the
                       * batch dimensions, those of the indexes, and what is left of in[0] */
    OLY_LOCAL_SCATTER,     /* in[0] with the elements that a gather would read replaced by those of the last operand */
    OLY_LOCAL_SCATTER_ADD, /* or combined with them, in row-major order of the indexes */
    OLY_LOCAL_SCATTER_MUL,
    OLY_LOCAL_SCATTER_MIN,
    OLY_LOCAL_SCATTER_MAX,
    OLY_LOCAL_DYNAMIC_SLICE,  /* of each batch the part of in[0] that starts at in[1], in[2], ... (which have the batch
                               * dimensions only), moved inside */
    OLY_LOCAL_DYNAMIC_UPDATE, /* in[0] with in[1] written at in[2], in[3], ... */
    /* combine the results of several devices for their parts of a dimension (the `partial` results of the operations above) */
    OLY_LOCAL_PICK, /* in[0] elements, in[1] their numbers: the number of the largest along `axes` (reverse: smallest), as ARGMAX */
    /* lines sorted over several devices */
    OLY_LOCAL_LENGTHEN, /* in[0], then, along `dimension`, elements that come after all others */
    OLY_LOCAL_NUMBER, /* numbers of in[0]'s elements within the whole `dimension` (reverse: from its end), then its size */
    OLY_LOCAL_TAKE, /* the elements of in[0] at positions in[1] along `dimension`; reverse: reversed */
    OLY_LOCAL_CONVOLVE, /* in[0] [batch, features, ...] with the kernels in[1] [out, features, ...]: sums of products, `window` */
    OLY_LOCAL_WINDOW_SUM, /* the elements of in[0] at each position of `window`, combined */
    OLY_LOCAL_WINDOW_PROD,
    OLY_LOCAL_WINDOW_MAX,
    OLY_LOCAL_WINDOW_MIN,
    OLY_N_LOCAL_OPS
} oly_local_op;

/* The kind of an operation, as far as planning needs it. */
typedef enum oly_local_way {
    OLY_LOCAL_ORDERS,   /* sorts lines */
    OLY_LOCAL_LARGEST,  /* finds the largest of lines */
    OLY_LOCAL_RUNS,     /* running results along lines */
    OLY_LOCAL_FINDS,    /* the position of the largest (reverse: smallest) */
    OLY_LOCAL_SEARCHES, /* finds positions in lines */
    OLY_LOCAL_READS,    /* reads in[0] at indexes */
    OLY_LOCAL_WRITES,   /* the result is in[0] with parts replaced */
    OLY_LOCAL_CUTS,     /* a part of in[0] */
    OLY_LOCAL_ARRANGES, /* moves elements along lines */
} oly_local_way;
oly_local_way oly_local_way_of(oly_local_op op);
/* The type in which running results are computed, so that they are rounded once. */
oly_dtype oly_local_running_dtype(oly_local_op op, oly_dtype elements);
bool oly_local_finds_smallest(oly_local_op op);

/* The treatment of indexes outside the array. */
typedef enum oly_index_mode {
    OLY_INDEX_FILL, /* a gather gives NaN, the lowest integer, the largest unsigned one, true; a scatter drops them */
    OLY_INDEX_CLIP, /* the nearest index inside */
    OLY_INDEX_WRAP, /* the index modulo the size */
    OLY_INDEX_PROMISE, /* none occur: a gather clips, a scatter (and the derivative of the gather) drops */
} oly_index_mode;

#define OLY_LOCAL_MOST 16 /* operands */

/* A window that slides over the last `rank` dimensions of an operand: position o of the result reads, at tap k, the operand at
 * (o * stride - lo + k * dilation) / base_dilation if that is an integer and inside, else padding. */
#define OLY_MAX_WINDOW 6
typedef struct oly_sliding_window {
    int64_t rank;
    int64_t size[OLY_MAX_WINDOW], stride[OLY_MAX_WINDOW];
    int64_t lo[OLY_MAX_WINDOW], hi[OLY_MAX_WINDOW]; /* padding before and after; negative: removed */
    int64_t base_dilation[OLY_MAX_WINDOW], dilation[OLY_MAX_WINDOW];
    int64_t groups, batch_groups; /* convolution: of features, of the batch; 1: a single group */
} oly_sliding_window;

/* A box of an array. Indexes are int32 or int64. */
typedef struct oly_local_operand {
    oly_dtype dtype;
    int rank;
    int64_t size[OLY_MAX_RANK];                         /* of the whole array */
    int64_t origin[OLY_MAX_RANK], extent[OLY_MAX_RANK]; /* of the box */
    int64_t stride[OLY_MAX_RANK];                       /* in elements; the result is a dense row-major box */
} oly_local_operand;

typedef struct oly_local_task {
    oly_local_op op;
    int n_in;
    const oly_local_operand *in;
    oly_local_operand out;
    int dimension;
    bool reverse;
    int n_batch;
    int n_axes, axes[OLY_MAX_RANK];
    oly_index_mode mode;
    /* partial: operand 0 is a part along the dimensions of the operation, or the result one of several that are summed.
     *   running results        gives only the part's result (extent 1; narrow types as float32, of cumlogsumexp float64); an
     *                          empty part gives the identity
     *   ARGMAX, ARGMIN, TOP_K  gives numbers within the whole array (-1: none), and the elements in scratch
     *   GATHER, DYNAMIC_SLICE  elements of other parts are such that a sum ignores them; keeps: they are left as they are
     *   SCATTER_ADD            so is the part of the result beyond operand 0's box, which may be smaller, before the updates */
    bool partial, keeps;
    int part; /* running results with in[1], the results of all parts: which part this is */
    const oly_sliding_window *window;
} oly_local_task;

/* A task has phases, each divided into chunks; a phase begins when the one before has ended. in[k] points to the first element of
 * operand k's box, and may be NULL if that is empty. Only for scatters and updates may `out` be in[0]. scratch holds
 * oly_local_scratch bytes (planning.h), 8-byte aligned. */
int oly_local_phases(const oly_local_task *t);
int oly_local_chunks(const oly_local_task *t, int phase);
/* How many of the chunks are worth it where a device has so many threads: those of scatters may all read all indexes. The results are the same in any
 * number of chunks. */
int oly_local_chunks_worth(const oly_local_task *t, int chunks, int threads);
void oly_local_run(const oly_local_task *t, const void *const *in, void *out, void *scratch, int phase, int chunk,
                   int n_chunks);
/* y[row[k] - low] += value[k] * x[column[k]], k < n, in order, rounded after each operation. */
typedef struct oly_sparse_task {
    oly_dtype dtype; /* float32 or float64 */
    int64_t n;
    const int32_t *row, *column;
    const void *value, *x;
    void *y;
    int64_t low, high, n_x; /* of the rows that y has; of x */
} oly_sparse_task;
/* False: nothing is done, since rows do not ascend or are short, or an index is outside. */
bool oly_sparse_run(const oly_sparse_task *t);

/* y[i * line + j] = the sum over k < width, in order, of value[i * width + k] * x[column[i * width + k] * x_row + j], i < n, j < line, rounded
 * after each operation; value NULL: of x[...] alone. */
typedef struct oly_gathered_sum_task {
    oly_dtype dtype; /* float32 or float64 */
    int64_t n, width, line;
    const int32_t *column;
    const void *value, *x;
    int64_t x_row, n_x; /* from a row of x to the next, in elements; rows */
    void *y;
} oly_gathered_sum_task;
/* False: nothing is done, since an index is outside. */
bool oly_gathered_sum_run(const oly_gathered_sum_task *t);
double oly_local_work_of(const oly_local_task *t); /* approximate element-operations */
#endif
