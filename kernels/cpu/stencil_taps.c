/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums of taps along rows, for linear forms that read several fields: out[i] = sum over taps of coefficient[t] *
 * in[t][i], added in the order of the other stencil kernels. Compiled once per instruction set (OLY_ISA names which).
 * Called through that set's table by kernels/stencil.c only. */
#include "stencil_table.h"
#include <string.h>

#define REAL       float
#define REAL_BYTES 4
#define SUFFIX     f32
#include "stencil_taps_real.h"
#define REAL       double
#define REAL_BYTES 8
#define SUFFIX     f64
#include "stencil_taps_real.h"

#define PASTE_(a, b) a##b
#define PASTE(a, b)  PASTE_(a, b)

oly_stencil_taps_kernel PASTE(oly_stencil_taps_f32_, OLY_ISA), PASTE(oly_stencil_taps_f64_, OLY_ISA);

void PASTE(oly_stencil_taps_f32_, OLY_ISA)(int n_taps, const double *coefficient, const void *const *in, void *out,
                                           int64_t n)
{
    taps_f32(n_taps, coefficient, in, out, n);
}

void PASTE(oly_stencil_taps_f64_, OLY_ISA)(int n_taps, const double *coefficient, const void *const *in, void *out,
                                           int64_t n)
{
    taps_f64(n_taps, coefficient, in, out, n);
}
