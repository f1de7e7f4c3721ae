/* SPDX-License-Identifier: BSD-3-Clause */
/* Two dimensions, the cross of five points with shared products: four rows at a time, in registers. Compiled once per
 * instruction set (OLY_ISA names which). Called only by stencil_wave.c of the same set, which lays out the rows.
 *
 * As in stencil_1d.c, where coefficients are powers of two, rows hold q = side * u, and
 *
 *      q' = side * ((((q[middle] * middle/side + q[first]) + q[second]) + q[third]) + q[fourth])
 *
 * in the order of the taps: one fused multiply-add, one product and three plain additions instead of five operations on the
 * multiplication ports. Loads would then be the limit (five per result), so the kernel moves along four rows and keeps the
 * left, middle and right vectors of all of them in registers: six loads for four results. A result replaces the vector
 * above it, which has just been read for the last time. */
#include "stencil_table.h"
#include "stencil_2d.h"
#include <string.h>

#define REAL       float
#define REAL_BYTES 4
#define SUFFIX     f32
#include "stencil_2d_real.h"
#define REAL       double
#define REAL_BYTES 8
#define SUFFIX     f64
#include "stencil_2d_real.h"

void OLY_STENCIL_CROSS(f32)(const int order[4], void *const rows[6], int64_t columns, double side, double ratio)
{
    walks_f32[order[0]][order[1]][order[2]]((vector_f32 *const *)rows, columns, spread_f32((float)side),
                                            spread_f32((float)ratio));
}

void OLY_STENCIL_CROSS(f64)(const int order[4], void *const rows[6], int64_t columns, double side, double ratio)
{
    walks_f64[order[0]][order[1]][order[2]]((vector_f64 *const *)rows, columns, spread_f64(side), spread_f64(ratio));
}
