/* SPDX-License-Identifier: BSD-3-Clause */
/* Four rows of a two-dimensional cross at a time: defined in stencil_2d.c, used by stencil_wave.c of the same
 * instruction set. */
#ifndef OLY_STENCIL_2D_H
#define OLY_STENCIL_2D_H
#include <stdint.h>

#define PASTE3_(a, b, c)          a##b##_##c
#define PASTE3(a, b, c)           PASTE3_(a, b, c)
#define OLY_STENCIL_CROSS(suffix) PASTE3(oly_stencil_cross_, suffix, OLY_ISA)

enum { CROSS_UP, CROSS_DOWN, CROSS_LEFT, CROSS_RIGHT };

/* Writes the next step of rows[1] ... rows[4], in strip layout with ghosts, to rows[0] ... rows[3]. order: the
 * neighbours in the order in which they are added. */
void OLY_STENCIL_CROSS(f32)(const int order[4], void *const rows[6], int64_t columns, double side, double ratio);
void OLY_STENCIL_CROSS(f64)(const int order[4], void *const rows[6], int64_t columns, double side, double ratio);
#endif
