/* SPDX-License-Identifier: BSD-3-Clause */
/* One dimension, three neighbouring taps: u'[x] from u[x-1], u[x] and u[x+1], in registers. Compiled once per instruction
 * set (OLY_ISA names which). Called through that set's table by kernels/stencil.c only.
 *
 * The tile is kept in strip layout (stencil_strip.h) in the second-level cache. One pass over it computes DEPTH steps:
 * vector k enters at level 0, and every level outputs the vector left of the one that it received:
 *
 *      read   level 1   level 2   level 3   level 4 = written
 *      k      k-1       k-2       k-3       k-4
 *
 * Two vectors of each level are kept, so that a pass is one load and one store per 4 * 3 floating-point operations.
 *
 * The sum of three products is two fused multiply-adds after a product. Where the coefficients are powers of two and those
 * of both sides are equal (the heat equation's 1/2, 1/4, 1/4), products are exact, and the tile holds the values times the
 * side's coefficient: q = side * u, then q' = side * ((q[x] * middle/side + q[x-1]) + q[x+1]): one fused multiply-add, one
 * plain addition and one product that the two neighbours share. Additions have execution ports of their own: two
 * operations on the multiplication ports instead of three. The bits are the same unless a product loses bits to underflow;
 * the CPU records that (the underflow flag), and the tile is then computed again by fused multiply-adds alone.
 *
 * Measured (Zen 3 at 3.2 GHz, float, 2^24 points, 100 steps, one core): 18.5 Gpoint/s shared, 14.2 with fused multiply-adds
 * alone, of the 17.1 that its three operations on two ports allow. Tiles of 32K to 96K points are equally fast; tiles that
 * fit the first-level cache took a sixth longer. Sixteen registers hold four levels; rotating their roles (ROUND) saves
 * the copies between them, 8 %. */
#include "stencil_table.h"
#include <fenv.h>
#include <string.h>

/* What a level computes from left, middle, right: six orders of fused multiply-adds; three of shared products, by the
 * tap added last. */
enum { LMR, LRM, MLR, MRL, RLM, RML, SHARED_LEFT, SHARED_MIDDLE, SHARED_RIGHT, KINDS };

static const int order_of[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

/* The kind for a tile's taps; shared: one of SHARED_... */
static int kind_of(const oly_stencil_tile *t, bool shared)
{
    int first = t->offset[0][2] + 1, second = t->offset[1][2] + 1, last = t->offset[2][2] + 1;
    for (int kind = LMR; kind <= RML && !shared; kind++)
        if (order_of[kind][0] == first && order_of[kind][1] == second)
            return kind;
    return SHARED_LEFT + last;
}

#define REAL       float
#define REAL_BYTES 4
#define SUFFIX     f32
#include "stencil_1d_real.h"
#define REAL       double
#define REAL_BYTES 8
#define SUFFIX     f64
#include "stencil_1d_real.h"

#define PASTE_(a, b) a##b
#define PASTE(a, b)  PASTE_(a, b)

oly_stencil_kernel PASTE(oly_stencil_line_f32_, OLY_ISA), PASTE(oly_stencil_line_f64_, OLY_ISA);

void PASTE(oly_stencil_line_f32_, OLY_ISA)(const oly_stencil_tile *tile)
{
    compute_f32(tile);
}

void PASTE(oly_stencil_line_f64_, OLY_ISA)(const oly_stencil_tile *tile)
{
    compute_f64(tile);
}
