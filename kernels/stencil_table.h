/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by kernels/stencil.c and the stencil kernels of each instruction set (kernels/cpu/stencil_*.c): the description of one
 * tile, and the table of kernels. Dimensions are always three here: slab, row, column; a field of two dimensions has
 * slabs of one row, a field of one dimension a single slab of one row. */
#ifndef OLY_STENCIL_TABLE_H
#define OLY_STENCIL_TABLE_H
#include "kernel.h"

/* One tile: `steps` steps of the points in [update_lo, update_hi), which are all inside [fixed_lo, fixed_hi), from the
 * points in [window_lo, window_hi). Coordinates are those of the field. */
typedef struct oly_stencil_tile {
    int steps, n_taps;
    int offset[OLY_STENCIL_TAPS][3];
    double coefficient[OLY_STENCIL_TAPS];
    int below[3], above[3]; /* how far taps reach towards lower and higher indices, at least 0 */
    int64_t update_lo[3], update_hi[3], window_lo[3], window_hi[3], fixed_lo[3], fixed_hi[3];
    int64_t source_stride[3], destination_stride[3];
    const void *source; /* element window_lo */
    void *destination;  /* element update_lo */
    void *scratch;      /* aligned to 64 bytes */
    int shift, block;   /* see cpu/stencil_wave.c: slots between time steps, slabs swept together */
    int64_t slots;
    int64_t together, behind; /* see cpu/stencil_short.c: slabs swept together, slabs between levels */
    double side, ratio;       /* coefficient of the other taps, middle / side, where products are exact and shared
                         * (cpu/stencil_1d.c); 0 elsewhere */
} oly_stencil_tile;

typedef void oly_stencil_kernel(const oly_stencil_tile *tile);

/* kernel.h, oly_taps_run: of one type. */
typedef void oly_stencil_taps_kernel(int n_taps, const double *coefficient, const void *const *in, void *out,
                                     int64_t n);

typedef struct oly_stencil_table {
    oly_stencil_kernel *line[2];       /* float32, float64: one dimension, three neighbouring taps */
    oly_stencil_kernel *wave[2];       /* anything else */
    oly_stencil_kernel *short_rows[2]; /* the same, where rows are short */
    int vector_bytes;
    oly_stencil_taps_kernel *taps[2];
} oly_stencil_table;

extern const oly_stencil_table oly_stencil_table_base;
extern const oly_stencil_table oly_stencil_table_avx2;
extern const oly_stencil_table oly_stencil_table_avx512;

/* Elements of scratch that a row of `columns` points takes at most, on any instruction set: see cpu/stencil_strip.h. */
#define OLY_STENCIL_LANES  16 /* most lanes of a vector */
#define OLY_STENCIL_GHOSTS 8  /* most vectors next to a row, on each side */

/* Selects the table; called by oly_kernels_choose with a valid name. */
void oly_stencil_choose(const char *isa);
#endif
