/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by kernels/local.c (division of the work, compiled once) and the kernels of each instruction set (kernels/cpu). Inside
 * kernels/ only. */
#ifndef OLY_LOCAL_TABLE_H
#define OLY_LOCAL_TABLE_H
#include "local.h"
#include "table.h"

typedef void oly_local_function(const oly_local_task *t, const void *const *in, void *out, void *scratch, int phase,
                                int chunk, int n_chunks);
typedef struct oly_local_table {
    oly_local_function *run[OLY_N_LOCAL_OPS];
} oly_local_table;

extern const oly_local_table oly_local_base;
#if defined(__x86_64__)
extern const oly_local_table oly_local_avx2;
extern const oly_local_table oly_local_avx512;
#endif

#ifdef OLY_ISA
oly_local_function OLY_ISA_NAME(oly_sort_run), OLY_ISA_NAME(oly_scan_run), OLY_ISA_NAME(oly_argreduce_run),
    OLY_ISA_NAME(oly_pick_run), OLY_ISA_NAME(oly_search_run), OLY_ISA_NAME(oly_gather_run),
    OLY_ISA_NAME(oly_scatter_run), OLY_ISA_NAME(oly_dynamic_slice_run), OLY_ISA_NAME(oly_dynamic_update_run),
    OLY_ISA_NAME(oly_convolve_run), OLY_ISA_NAME(oly_window_run), OLY_ISA_NAME(oly_arrange_run);
#endif

/* Rows of sparse matrices (cpu/sparse.c). */
typedef bool oly_sparse_function(const oly_sparse_task *t);
typedef bool oly_gathered_sum_function(const oly_gathered_sum_task *t);
oly_sparse_function oly_sparse_run_base;
oly_gathered_sum_function oly_gathered_sum_run_base;
#if defined(__x86_64__)
oly_sparse_function oly_sparse_run_avx2, oly_sparse_run_avx512;
oly_gathered_sum_function oly_gathered_sum_run_avx2, oly_gathered_sum_run_avx512;
#endif

/* Selects the table; called by oly_kernels_choose with a valid name. */
void oly_local_choose(const char *isa);

/* Scratch for sorting one line: two buffers for its keys, two for their numbers, of these sizes in bytes. */
typedef struct oly_sort_room {
    size_t keys, numbers;
    bool wide; /* numbers of 8 bytes, not 4 */
} oly_sort_room;

static inline oly_sort_room oly_sort_room_of(const oly_local_task *t)
{
    size_t n = (size_t)t->in[0].extent[t->dimension], width = 4;
    bool values = t->op == OLY_LOCAL_SORT, is_complex = false;
    for (int k = 0; k < t->n_in; k++) {
        width = oly_element_bytes[t->in[k].dtype] > 4 ? 8 : width;
        is_complex = is_complex || t->in[k].dtype == OLY_COMPLEX64 || t->in[k].dtype == OLY_COMPLEX128;
    }
    oly_sort_room r = {.keys = (n * width + 7) / 8 * 8, .wide = n > UINT32_MAX};
    r.numbers = values && !is_complex ? 0 : (n * (r.wide ? 8 : 4) + 7) / 8 * 8;
    return r;
}
/* Elements that partial results occupy at the start of scratch. */
static inline size_t oly_partial_bytes(const oly_local_task *t)
{
    size_t n = oly_element_bytes[t->in[0].dtype];
    for (int d = 0; d < t->out.rank; d++)
        n *= (size_t)t->out.extent[d];
    return t->partial ? (n + 7) / 8 * 8 : 0;
}
static inline size_t oly_sort_room_bytes(const oly_local_task *t)
{
    oly_sort_room r = oly_sort_room_of(t);
    return 2 * (r.keys + r.numbers);
}

/* How often a single long line is divided in two before its pieces are sorted, by one chunk each; 0: chunks sort whole lines. Its
 * phases: loading, each division, sorting, and for OLY_LOCAL_SORT restoring zeros and NaNs. Scratch for the borders. */
int oly_sort_divisions(const oly_local_task *t);
#define OLY_SORT_PIECES        16
#define OLY_SORT_BORDERS_BYTES 1024

/* Parts into which lines are split if there are few; bytes of the results of one part for 256 lines. */
int oly_scan_parts(const oly_local_task *t);
#define OLY_SCAN_CARRY (256 * 16)

/* The dimension of the result that a scatter's chunks split, and copies of what they keep. */
int oly_scatter_cut(const oly_local_task *t);

/* -- convolutions: the result falls into blocks of rows (features of one group) by strips of places ------------------------ */
#define OLY_CONVOLVE_ROWS  64
#define OLY_CONVOLVE_STRIP 256
typedef struct oly_convolve_blocks {
    int64_t per_group;                 /* features of the result in a group */
    int64_t first, groups, row_blocks; /* groups that the box has features of, blocks of each */
    int64_t batch, places, strips;
} oly_convolve_blocks;

static inline oly_convolve_blocks oly_convolve_divide(const oly_local_task *t)
{
    const oly_local_operand *out = &t->out;
    oly_convolve_blocks b = {.batch = out->extent[0], .places = 1};
    int64_t groups = t->window->groups * t->window->batch_groups, begin = out->origin[1],
            end = out->origin[1] + out->extent[1];
    b.per_group = out->size[1] / groups > 0 ? out->size[1] / groups : 1;
    b.first = begin / b.per_group;
    b.groups = end > begin ? (end - 1) / b.per_group - b.first + 1 : 0;
    b.row_blocks = (b.per_group + OLY_CONVOLVE_ROWS - 1) / OLY_CONVOLVE_ROWS;
    for (int d = 2; d < out->rank; d++)
        b.places *= out->extent[d];
    b.strips = (b.places + OLY_CONVOLVE_STRIP - 1) / OLY_CONVOLVE_STRIP;
    return b;
}

/* Are the elements of each of the kernel's rows copied side by side first, into scratch? Where they are apart, as those of kernels whose features come
 * last, each is read for every strip. */
static inline bool oly_convolve_packs(const oly_local_task *t)
{
    enum { FEWEST_RESULTS = 64 }; /* of a feature: fewer take less time than the copy */
    const oly_local_operand *w = &t->in[1];
    int64_t dense = 1, results = t->out.extent[0];
    bool apart = false;
    if (t->op != OLY_LOCAL_CONVOLVE || (t->out.dtype != OLY_FLOAT32 && t->out.dtype != OLY_FLOAT64))
        return false;
    for (int d = 2; d < t->out.rank; d++)
        results *= t->out.extent[d];
    for (int d = w->rank - 1; d > 0; d--) {
        apart = apart || (w->extent[d] > 1 && w->stride[d] != dense);
        dense *= w->extent[d];
    }
    return apart && results >= FEWEST_RESULTS;
}

/* -- lines: positions in all dimensions of the result but one (or none) ---------------------------------------------- */
static inline int64_t oly_local_count(const oly_local_operand *x, int without)
{
    int64_t n = 1;
    for (int d = 0; d < x->rank; d++)
        n *= d == without ? 1 : x->extent[d];
    return n;
}

/* Offset in elements of line `index` (row-major number among the dimensions of `extent` except `without`). */
static inline int64_t oly_local_offset(int rank, const int64_t *extent, const int64_t *stride, int without,
                                       int64_t index)
{
    int64_t offset = 0;
    for (int d = rank - 1; d >= 0 && index > 0; d--) {
        if (d == without || extent[d] == 1)
            continue;
        offset += index % extent[d] * stride[d];
        index /= extent[d];
    }
    return offset;
}
#endif
