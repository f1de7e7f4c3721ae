/* SPDX-License-Identifier: BSD-3-Clause */
/* Several steps of a linear stencil in one or two dimensions, or one in three, as one generated kernel: each thread keeps a patch of the
 * field in registers through all steps, lanes exchange columns by shuffles, warps rows through shared memory. The text depends on the type
 * and the places of taps; coefficients, boxes and the number of steps are in the task. Called by launch_stencil.c for what is not for
 * stencil_wave_text.h; it has a kernel for everything else, and until this one is compiled. */
#ifndef OLY_CUDA_STENCIL_TEXT_H
#define OLY_CUDA_STENCIL_TEXT_H
#include "cuda/launch.h"
#include "cuda/stencil_task.h"

/* Whether taps reach no further than a thread's patch. */
bool oly_cuda_patch_fits(const oly_stencil *s, const oly_cuda_stencil_task *t);
/* How many steps of at most `most` one launch is best given. */
int oly_cuda_patch_steps(const oly_stencil *s, const oly_cuda_stencil_task *t, int most);
/* t: all but the tiles. *launched: false: not compiled (yet), and nothing is done. */
oly_status oly_cuda_patch(const oly_cuda_launcher *l, const oly_stencil *s, const oly_cuda_stencil_task *t,
                          bool *launched);
#endif
