/* SPDX-License-Identifier: BSD-3-Clause */
/* Stencils of any taps in one to three dimensions: a wavefront through time over one tile. Compiled once per instruction
 * set (OLY_ISA names which); holds that set's table. Called through the table by kernels/stencil.c only.
 *
 * Level s is the field after s steps. The front moves up the slabs, `block` slabs at a time; behind it, level s+1 follows
 * level s by as many slabs as the taps reach up, so every level reads values that have just been computed:
 *
 *      slab      0 1 2 3 4 5 6 7 8 9
 *      level 0   . . . . . . . . L L     L: loaded (strip layout)
 *      level 1   . . . . . . . 1 1       1, 2: computed now
 *      level 2   . . . . . . 2 2         then stored, if it is the last level
 *
 * Slab y of level s is kept in slot (y - s * shift) mod slots: shift is the reach downwards, so that a new slab replaces
 * the lowest slab that it is computed from, or one more where it reads points of that slab which the sweep has passed.
 * All live slabs together are steps * (reach + shift) + block of them, sized for the caches by stencil.c.
 *
 * Slabs that are adjacent in memory are swept as one line of vectors, ghosts included (their values are garbage until
 * they are recomputed), so the hot loop is long and has no remainders. Fixed points (rows and columns beside the update
 * region) are restored after the sweep.
 *
 * A tap list takes one fused multiply-add per tap, in the given order; the cross of two dimensions has a faster kernel
 * where its products are shared (stencil_2d.c).
 *
 * Measured (Zen 3 at 3.2 GHz, float, CPU time of one core shared with other programs): 2-D cross 4096^2 6.9 Gpoint/s
 * shared, 5.1 by fused multiply-adds; the loop of stencil_2d.c alone 15.5 in the first-level cache and 13.3 from the
 * second. 3-D cross 256^3 1.9. What helped: wide rows in three dimensions (560 points instead of 160, 1.7 times), 32 steps
 * instead of 16 in two (1.3 times). What made no difference: prefetching the next rows, loading rows strip by strip
 * instead of as one piece, eight slabs at a time. */
#include "stencil_table.h"
#include "stencil_2d.h"
#include "stencil_levels.h"
#include <fenv.h>
#include <stdlib.h>
#include <string.h>

/* The five points of two dimensions that stencil_2d.c supports: products shared, the middle among the first two. */
static bool is_shared_cross(const oly_stencil_tile *t)
{
    int distance = 0, middle = 0;
    for (int i = 0; i < t->n_taps; i++) {
        int d = abs(t->offset[i][0]) + abs(t->offset[i][1]) + abs(t->offset[i][2]);
        distance += d * d;
        middle += d == 0 && i < 2;
    }
    return t->side != 0 && t->n_taps == 5 && middle == 1 && distance == 4 && t->below[0] == 1 && t->above[0] == 1 &&
           t->below[2] == 1 && t->above[2] == 1;
}

#define REAL       float
#define REAL_BYTES 4
#define SUFFIX     f32
#include "stencil_wave_real.h"
#define REAL       double
#define REAL_BYTES 8
#define SUFFIX     f64
#include "stencil_wave_real.h"

#define PASTE_(a, b) a##b
#define PASTE(a, b)  PASTE_(a, b)

oly_stencil_kernel PASTE(oly_stencil_line_f32_, OLY_ISA), PASTE(oly_stencil_line_f64_, OLY_ISA);
oly_stencil_kernel PASTE(oly_stencil_short_f32_, OLY_ISA), PASTE(oly_stencil_short_f64_, OLY_ISA);
oly_stencil_taps_kernel PASTE(oly_stencil_taps_f32_, OLY_ISA), PASTE(oly_stencil_taps_f64_, OLY_ISA);

const oly_stencil_table PASTE(oly_stencil_table_, OLY_ISA) = {
    .line = {PASTE(oly_stencil_line_f32_, OLY_ISA), PASTE(oly_stencil_line_f64_, OLY_ISA)},
    .wave = {compute_f32, compute_f64},
    .short_rows = {PASTE(oly_stencil_short_f32_, OLY_ISA), PASTE(oly_stencil_short_f64_, OLY_ISA)},
    .vector_bytes = STENCIL_VECTOR_BYTES,
    .taps = {PASTE(oly_stencil_taps_f32_, OLY_ISA), PASTE(oly_stencil_taps_f64_, OLY_ISA)},
};
