/* SPDX-License-Identifier: BSD-3-Clause */
/* A reduction whose operand is computed as it is reduced (plan/schedule/fused_reductions.c), on CPUs. Private to the executor for CPUs (prepare_cpu.c,
 * executor_cpu.c). */
#ifndef OLY_RUN_FUSED_REDUCTION_H
#define OLY_RUN_FUSED_REDUCTION_H
#include "plan/model/steps.h"

/* Does the executor compute the operand of the reduction with it, on all devices of this process? Not where that would leave too few chunks for
 * the threads, or make the parts too small; from shapes alone. */
bool oly_is_fused(const oly_plan *plan, const oly_step *reduce);
/* A chunk of such a reduction on one device. base: of every buffer. */
void oly_run_fused(void *const *base, const oly_step *reduce, int device, int chunk, int n_chunks);
#endif
