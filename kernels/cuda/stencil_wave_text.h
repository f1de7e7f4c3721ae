/* SPDX-License-Identifier: BSD-3-Clause */
/* Several steps of a linear stencil in two or three dimensions as one generated kernel: a block goes along the slowest dimension once, with
 * a stage for each step, each some slabs behind the one before, all in registers. The text depends on the type, the places of taps, the
 * number of steps and the shape of a thread's patch; coefficients and boxes are in the task. Called by launch_stencil.c, which has kernels
 * for everything else, and until this one is compiled. */
#ifndef OLY_CUDA_STENCIL_WAVE_TEXT_H
#define OLY_CUDA_STENCIL_WAVE_TEXT_H
#include "cuda/launch.h"
#include "cuda/stencil_task.h"

/* How many steps of at most `most` one launch is best given; t->lo, hi: what is written at the end. 0: there is no such kernel, as what
 * taps reach would not be at hand. */
int oly_cuda_wave_steps(const oly_cuda_launcher *l, const oly_stencil *s, const oly_cuda_stencil_task *t, int most);
/* t: all but the tiles. *launched: false: not compiled (yet), and nothing is done. */
oly_status oly_cuda_wave(const oly_cuda_launcher *l, const oly_stencil *s, const oly_cuda_stencil_task *t,
                         bool *launched);
#endif
