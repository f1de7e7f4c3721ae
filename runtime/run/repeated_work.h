/* SPDX-License-Identifier: BSD-3-Clause */
/* Steps that several devices of this process would compute alike: random numbers, reductions, sorts, lookups, scatters and products of
 * arrays that they all hold. CPU devices share processors and memory, so the first of them computes, with all threads, and the others get copies of its
 * result, where that takes less time. Private to the executor for CPUs (prepare_cpu.c, executor_cpu.c, forecast.c). */
#ifndef OLY_RUN_REPEATED_WORK_H
#define OLY_RUN_REPEATED_WORK_H
#include "run/prepare_cpu.h"

typedef struct oly_repeats {
    const int *first; /* [n_devices] the device that computes for this one: itself, or one before it */
    int n_first;      /* devices that compute */
    int n_copies;
    const oly_copy_work *copies;
    oly_prepared prepared; /* their chunks */
    double work;           /* elements copied */
} oly_repeats;

/* Do all devices compute the same? And may one of them do it for the others? */
bool oly_has_same_work(const oly_plan *plan, const oly_step *s);
bool oly_computes_alike(const oly_plan *plan, const oly_step *s);
/* Do the two move the same box, from the same place in their slots to the same place of one slot? Whose memory it comes from is not
 * compared. */
bool oly_is_same_copy(const oly_plan *plan, const oly_copy_work *a, const oly_copy_work *b);
/* In the plan's arena. *found: NULL: every device computes for itself. fails OLY_MEMORY. */
oly_status oly_find_repeats(oly_plan *plan, const oly_step *s, const oly_repeats **found);
/* How many devices get such copies of a step's results, or read the same memory (held_once.h). For explanations. */
int oly_served_devices(const oly_plan *plan, const oly_step *s);
#endif
