/* SPDX-License-Identifier: BSD-3-Clause */
/* Stencils of any taps in one to three dimensions over tiles with short rows. Compiled once per instruction set. Called through the table in
 * stencil_wave.c by kernels/stencil.c.
 *
 * The strip layout of stencil_wave.c has at least as many vectors in a row as a vector has lanes: 256 points for rows of 16. Here rows are as
 * in memory, each a whole number of vectors, and neighbours are loads that are not aligned. Slabs are held twice, even levels in one
 * copy and odd ones in the other; fixed points are in both. Of slabs with several rows as many are held as are live, slab y in slot y mod
 * slots. Rows that follow each other are swept as one line of vectors, what is between them and the fixed columns included: their values are
 * garbage, the latter are restored.
 *
 * The front moves up the slabs, `together` slabs at a time, and level s + 1 follows level s by as many slabs as the taps reach, up or down: what it
 * reads has been computed, and what it replaces, the values of level s - 1, has been read. */
#include "stencil_levels.h"
#include <string.h>

#define REAL       float
#define REAL_BYTES 4
#define SUFFIX     f32
#include "stencil_short_real.h"
#define REAL       double
#define REAL_BYTES 8
#define SUFFIX     f64
#include "stencil_short_real.h"
