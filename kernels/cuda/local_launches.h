/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by launch_local.c and the files of its families. Private to kernels/cuda. */
#ifndef OLY_CUDA_LOCAL_LAUNCHES_H
#define OLY_CUDA_LOCAL_LAUNCHES_H
#include "cuda/launching.h"

/* The families: as oly_cuda_local. */
typedef oly_status oly_cuda_family(const oly_cuda_launcher *l, const oly_local_task *t, const void *const *in,
                                   void *out, void *scratch);
oly_cuda_family oly_cuda_gather, oly_cuda_slice, oly_cuda_update, oly_cuda_scatter, oly_cuda_find, oly_cuda_pick,
    oly_cuda_search, oly_cuda_arrange, oly_cuda_scan, oly_cuda_sort, oly_cuda_window, oly_cuda_convolve;

/* A box of the task, and the task with its boxes (at most two operands; others are not described). */
oly_cuda_box oly_cuda_box_of(const oly_local_operand *x, const void *base);
oly_cuda_local_task oly_cuda_describe(const oly_local_task *t, const void *const *in, void *out, void *scratch);
/* Starts a kernel with a thread for each of n elements. */
oly_status oly_cuda_start_local(const oly_cuda_launcher *l, const char *module, const char *kernel,
                                const oly_cuda_local_task *t);

/* Convolutions by tiles in registers. *launched: false: it is none for them. */
oly_status oly_cuda_convolve_blocks(const oly_cuda_launcher *l, const oly_local_task *t, const void *const *in,
                                    void *out, bool *launched);

/* A further dimension, innermost last: merged with the one before if both are evenly spaced. */
void oly_cuda_add_dimension(oly_cuda_dims *d, int64_t extent, int64_t stride);

/* -- launch_sort.c: also for scatter ------------------------------------------------------------------------------------------ */
/* The order of the elements of lines, found by one key after the other: the last key decides first. */
typedef struct oly_cuda_sorter {
    const oly_cuda_launcher *l;
    int64_t lines, n;     /* n > 0 */
    bool wide, backwards; /* keys of more than 4 bytes; equal elements in the opposite order */
    /* results, in the device's memory: numbers[now], sorted by keys[now] (of 4 or 8 bytes) */
    int now;
    char *keys[2];
    uint32_t *numbers[2];
} oly_cuda_sorter;
typedef struct oly_cuda_key {
    const void *base;
    oly_dtype dtype;
    int kind, bytes; /* OLY_CUDA_KEY_*; of the key, from the lowest on */
    int64_t step;    /* along the line */
    oly_cuda_dims line;
} oly_cuda_key;
oly_status oly_cuda_order(oly_cuda_sorter *s, const oly_cuda_key *key);
/* Numbers 0 to n - 1 sorted by their keys of `bytes` bytes, and the keys so; n > 0. only_if: in the device's memory, or NULL: nothing is
 * sorted where it is 0. */
oly_status oly_cuda_order_numbers(const oly_cuda_launcher *l, uint32_t *keys, int64_t n, int bytes,
                                  const uint32_t *only_if, const void **sorted, const uint32_t **order);
bool oly_cuda_can_sort(const oly_local_task *t);

/* -- launch_indexed.c: also for scatter ------------------------------------------------------------------------------------ */
/* Is dimension d of operand 0 one of the batch, or indexed? */
bool oly_cuda_is_indexed(const oly_local_task *t, int d);
/* in[0] into the result, unless it is there. */
oly_status oly_cuda_copy_operand(const oly_cuda_launcher *l, const oly_local_task *t, const void *in, void *out);
/* The positions of a scatter and their indexes, which give places in the result. */
oly_cuda_indexed_task oly_cuda_describe_places(const oly_local_task *t, const void *const *in);
/* Offsets of the positions of a scatter in the result, -1 for those that are dropped; *count of them. */
oly_status oly_cuda_find_places(const oly_cuda_launcher *l, const oly_local_task *t, const void *const *in,
                                int64_t *count, int64_t **places);
#endif
