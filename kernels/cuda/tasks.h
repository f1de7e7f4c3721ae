/* SPDX-License-Identifier: BSD-3-Clause */
/* The structs that the kernels of this folder take, filled by launch*.c. Plain data, read as C and as CUDA C++. Pointers are
 * addresses of the device; strides count elements. */
#ifndef OLY_CUDA_TASKS_H
#define OLY_CUDA_TASKS_H
#if defined __cplusplus && !defined OLYMPUS_LIBRARY
#define OLYMPUS_LIBRARY /* public functions are no macros: oly_rank of device.h is another */
#endif
#include "kernel.h"

enum { OLY_CUDA_THREADS = 256, OLY_CUDA_OPERANDS = 128 };

/* copy.cu: n elements of a box of `rank` dimensions, innermost last. */
typedef struct oly_cuda_copy_task {
    char *to;
    const char *from;
    int64_t n;
    int32_t rank;
    int32_t tile; /* the dimension in which the source is dense, if that is not the innermost (transposes); else -1 */
    int64_t extent[OLY_MAX_RANK], to_stride[OLY_MAX_RANK], from_stride[OLY_MAX_RANK];
} oly_cuda_copy_task;

typedef struct oly_cuda_fill_task {
    char *to;
    int64_t n;
    uint64_t element[2];
} oly_cuda_fill_task;

/* tile.cu: an instruction of a tile program. Of an iota `attribute` is the number of its row of strides and value[0] its origin. */
typedef struct oly_cuda_instruction {
    uint16_t op;
    uint8_t dtype, to;
    int16_t in[3], out;
    int32_t attribute, unused;
    uint64_t value[2];
} oly_cuda_instruction;

/* What does not change from call to call, in the device's memory; followed by the instructions and, for each operand (loads, stores,
 * iotas), `rank` strides. */
typedef struct oly_cuda_program {
    int32_t rank, n_loads, n_stores, n_instructions;
    int64_t n;
    int64_t extent[OLY_MAX_RANK];
    int16_t reg[OLY_CUDA_OPERANDS];
    uint8_t dtype[OLY_CUDA_OPERANDS];
} oly_cuda_program;

typedef struct oly_cuda_tile_task {
    const oly_cuda_program *program;
    char *base[OLY_CUDA_OPERANDS];
} oly_cuda_tile_task;

/* reduce_*.cu: some dimensions of a box, merged. */
typedef struct oly_cuda_dims {
    int32_t rank, unused;
    int64_t extent[OLY_MAX_RANK], stride[OLY_MAX_RANK];
} oly_cuda_dims;

typedef struct oly_cuda_reduce_task {
    const char *in;
    char *out;
    int32_t combiner;
    int32_t from, dtype; /* of the elements in memory, and of those combined */
    int32_t to;          /* of what is written: dtype, or the type in which it is combined */
    int32_t parts;       /* of the reduced elements: by `outer` if it is more than 1, else by blocks of `run` */
    int32_t unused;
    int64_t n_kept, n_outer, n_run;
    int64_t pieces; /* of each part (rows) or run (blocks); a result is written for each */
    int64_t rows;   /* of a piece: a power of 2 */
    oly_cuda_dims kept, outer, run;
} oly_cuda_reduce_task;

/* reduce_tree.cu: segments of intermediate results, each combined as a tree of adjacent pairs. */
enum {
    OLY_TREE_UNIFORM, /* segment s: `length` elements from s * in_segment on, in_element apart */
    OLY_TREE_PARTS, /* s = result * parts + part: elements [length * part / parts, length * (part + 1) / parts) of the result */
    OLY_TREE_PIECES, /* s = part * in_element + result: the pieces of `rows` rows of a part of `length` rows */
};
typedef struct oly_cuda_tree_task {
    const char *in;
    char *out;
    int32_t combiner, dtype, to, mode;
    int64_t n, length, parts, in_segment, in_element, pieces, rows;
} oly_cuda_tree_task;

/* combine.cu: a reduction of several arrays; the order is a program for a stack: k < 128: load source k; 255: combine the two at
 * the top. */
enum { OLY_CUDA_SOURCES = 64, OLY_CUDA_STACK = 16 };
typedef struct oly_cuda_combine_task {
    const char *source[OLY_CUDA_SOURCES];
    char *out[OLY_CUDA_SOURCES];
    int64_t begin, end;
    int32_t combiner, dtype, n_steps, n_outs;
    uint8_t step[2 * OLY_CUDA_SOURCES];
} oly_cuda_combine_task;

/* gemm.cu: of signed integers task.dtype is the unsigned type. */
typedef struct oly_cuda_gemm_task {
    oly_gemm_task task;
    const char *a, *b;
    char *c;
    char *partial;                 /* of more than one part: the sums [parts][batches][m][n] */
    int64_t batches, parts, depth; /* parts of k, each but the last of `depth` elements */
} oly_cuda_gemm_task;

/* A part of an array. */
typedef struct oly_cuda_box {
    char *base; /* NULL: no elements */
    int32_t dtype, rank;
    int64_t size[OLY_MAX_RANK], origin[OLY_MAX_RANK], extent[OLY_MAX_RANK], stride[OLY_MAX_RANK];
} oly_cuda_box;

/* indexed.cu: n elements of a dense or strided box (`stride`), and those of an array at positions that indexes give: in each
 * dimension of the box `at_stride` further in the array, and along each axis at index + shift, plus the box's own index in
 * dimension `along`. */
enum { OLY_CUDA_START = OLY_INDEX_PROMISE + 1 }; /* as mode: indexes are moved into [0, size] */
enum { OLY_CUDA_FEW = 4 };                       /* dimensions of which kernels have all in registers */
typedef struct oly_cuda_axis {
    const char *index;
    int32_t wide;             /* int64, not int32 */
    int32_t along;            /* -1: none */
    int64_t size;             /* of the array */
    int64_t shift, low, high; /* elements [low, high) are here, the first at offset 0 */
    int64_t step;
    int64_t stride[OLY_MAX_RANK]; /* of the indexes, in the box */
} oly_cuda_axis;
typedef struct oly_cuda_indexed_task {
    char *to;
    const char *from;
    int64_t n;
    int32_t rank, n_axes, mode, bytes;
    uint64_t value[2][2]; /* read for indexes outside the array, and for elements that are not here */
    int64_t extent[OLY_MAX_RANK], stride[OLY_MAX_RANK], at_stride[OLY_MAX_RANK];
    oly_cuda_axis axis[OLY_MAX_RANK];
} oly_cuda_indexed_task;

/* scatter.cu: `count` positions, each with a window of updates, applied in their order where they meet; more than a chunk of them in
 * chunks. */
enum {
    OLY_CUDA_SCATTER_CHUNK = 256,
    OLY_CUDA_SCATTER_SPAN = 64, /* elements of a window that a warp computes together */
    OLY_CUDA_SCATTER_GROUP =
        8, /* sorted positions that it looks at: few, as it takes the places among them one after the other */
    OLY_CUDA_SCATTER_BINS = 8192, /* sums of a block */
};
typedef struct oly_cuda_scatter_task {
    char *to;
    const char *from;
    const int64_t *place;             /* of each position, in `to`; -1: dropped */
    const uint32_t *order;            /* positions sorted by place, and their places; NULL: not sorted */
    const void *sorted;               /* their keys: uint64_t if `wide`, else uint32_t; place / unit + 1 */
    char *chunks;                     /* what is combined first: two parts of each chunk, of n_window elements */
    const uint32_t *only_if;          /* nothing is done where it points to 0; NULL: no such condition */
    int64_t n, count, each, n_window; /* threads with work; positions, those of a batch; elements of a window */
    int64_t unit;                     /* places are multiples of it */
    int32_t dtype, combiner;          /* -1: replaced */
    int32_t wide, unused;
    oly_cuda_dims position; /* of the updates */
    oly_cuda_dims window;   /* of `to` */
    int64_t window_from[OLY_MAX_RANK];
} oly_cuda_scatter_task;

/* scatter_counted.cu: positions by their keys, without sorting them. `counts` and `state` are zeros at first. scatter_atomic.cu: the indexes and
 * updates only. */
enum {
    OLY_CUDA_COUNTED_MOST = OLY_CUDA_SCATTER_CHUNK,
    OLY_CUDA_LINKED_MOST = 32
}; /* positions of a place; of more, `state` says so */
typedef struct oly_cuda_count_task {
    oly_cuda_indexed_task index; /* the positions' indexes, in `to` */
    uint32_t *keys;              /* of each position: place / unit + 1; 0: dropped */
    uint8_t *ranks;              /* how many of its place were counted before it */
    uint32_t *counts; /* of each key; or, of lists and where updates replace, 1 + the last of its positions */
    uint32_t *starts,
        *order;      /* of each key, where its positions begin in `order`; of lists, 1 + the position before each */
    uint32_t *state; /* [0]: 1: a place has too many positions; [1]: how much of `order` is taken */
    int64_t places, unit;
    oly_cuda_scatter_task updates;
} oly_cuda_count_task;

/* find.cu: the first of the largest (smallest) of `length` elements, for n results, in `pieces` pieces of them. */
typedef struct oly_cuda_find_task {
    const char *in;
    const int64_t *numbers; /* when pieces are joined: of the elements at `in` */
    char *to,
        *elements; /* numbers; the elements found (NULL: not asked for). Of several pieces: n of the first, n of the second, ... */
    int32_t dtype, wide, smallest, lanes; /* lanes: threads for each result and piece, a power of 2 */
    int64_t n, length, pieces, first;
    oly_cuda_dims kept, reduced;
    int64_t weight[OLY_MAX_RANK]; /* of reduced dimensions, in an element's number */
} oly_cuda_find_task;

/* scan.cu: running results of n lines of `length` elements, each in `segments` segments. A block holds so many elements of the type of the
 * computation in shared memory: those of a tile, with gaps, and a sum for each thread. */
enum { OLY_CUDA_SCAN_SHARED = 2048 + OLY_CUDA_THREADS + OLY_CUDA_THREADS };
enum { OLY_CUDA_SCAN_SPAN = 32 }; /* scan_tiles.cu: tiles of a group, and groups of a thousand */
typedef struct oly_cuda_scan_task {
    const char *in;
    char *out;          /* NULL: none */
    char *totals;       /* of each line's segments, in the type of the computation; NULL: not asked for */
    const char *carry;  /* totals as running results: segment s goes on from that of s - 1; NULL: each begins anew */
    const char *before; /* results of this line's other parts; NULL: none */
    uint64_t *
        chain; /* scan_tiles.cu, zeros at first: tiles that blocks have taken, then totals of tiles, groups and thousands */
    int64_t n, length, segments;
    int64_t in_step, out_step, before_step;
    int32_t dtype, to, combiner, reverse; /* combiner -1: logarithm of the sum of exponentials */
    int32_t part, parts, total_to,
        columns; /* total_to: the type of totals; columns: lines are not along the last dimension */
    oly_cuda_dims line;
    int64_t out_stride[OLY_MAX_RANK], before_stride[OLY_MAX_RANK];
} oly_cuda_scan_task;

/* sort.cu: `lines` lines of n elements in stable order. A pass orders numbers of elements by one key of each; keys and numbers of a line
 * follow each other. */
enum {
    OLY_CUDA_SORT_WARP = 32,   /* elements that a warp orders, */
    OLY_CUDA_SORT_TILE = 2048, /* and a block */
    OLY_CUDA_DIGITS = 256,
};
enum {
    OLY_CUDA_KEY_VALUE,  /* NaNs are equal, and so are zeros */
    OLY_CUDA_KEY_TOTAL,  /* all bits count, the largest first */
    OLY_CUDA_KEY_COUNTS, /* numbers that are not negative first */
    OLY_CUDA_KEY_PLACE,  /* int64 from -1 on */
};
typedef struct oly_cuda_sort_task {
    const char *in; /* the elements that keys are made of */
    int64_t lines, n, step;
    oly_cuda_dims line;
    int32_t kind, dtype, wide, backwards; /* wide: keys of 8 bytes, not 4; backwards: numbers descend at first */
    int32_t key_bytes, first;             /* first: there are no numbers yet */
    char *keys, *keys_to;
    uint32_t *numbers, *numbers_to;
} oly_cuda_sort_task;

/* sort_sweeps.cu: `lines` lines of n elements, or of keys with numbers that follow each other; a pass orders them by the digit at `shift`. */
enum {
    OLY_CUDA_SWEEP_ELEMENTS = 16, /* of a thread, in a tile */
    OLY_CUDA_SWEEP_NUMBERED = 8,
};
enum { OLY_CUDA_ORDER_UNSIGNED, OLY_CUDA_ORDER_SIGNED, OLY_CUDA_ORDER_FLOATING };
typedef struct oly_cuda_sweep_task {
    const char *from;
    char *to;
    const uint32_t *numbers; /* NULL: from 0 on in each line, if any are moved */
    uint32_t *numbers_to;
    uint64_t *ticket;                /* tiles that blocks have taken, 0 at first */
    uint32_t *chain;                 /* what tiles have published of each digit, 0 at first */
    uint32_t *counts;                /* of each line, pass and digit; of the pass, for sweeps */
    int64_t lines, n, tiles, pieces; /* pieces: of a line, counted by a block */
    int64_t from_step, to_step;
    oly_cuda_dims from_line, to_line;
    uint64_t infinity;                       /* its bits, or those of the largest number where the type has none */
    int32_t order, passes, shift, backwards; /* backwards: written from the line's end on */
    const uint32_t *only_if;                 /* as in a scatter */
} oly_cuda_sweep_task;

/* Operations of local.h on one or two boxes. */
typedef struct oly_cuda_local_task {
    int32_t op, n_in, dimension, reverse, n_batch, n_axes, part, partial;
    int32_t axes[OLY_MAX_RANK];
    char *scratch;
    int64_t n;
    uint64_t value[2];
    oly_cuda_box out, in[2];
    oly_sliding_window window;
} oly_cuda_local_task;

/* What is written of the order found. */
typedef struct oly_cuda_ordered_task {
    oly_cuda_local_task task;
    const uint32_t *numbers;
    char *elements;               /* top k: of the numbers; NULL: not asked for */
    int64_t lines, length, count; /* elements of a line, written and in all */
} oly_cuda_ordered_task;
#endif
