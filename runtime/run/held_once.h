/* SPDX-License-Identifier: BSD-3-Clause */
/* Values that every CPU device of this process would hold alike, such as replicated results: one buffer, in which the first device's
 * share of each step that makes it is computed with all threads, is that of all devices. Steps run one after the other on all devices of a
 * run, so what a step writes is read only after that. A run that donates memory for such a value, of which each device has
 * its own, gives each device its own again: they may take over what is donated. Private to runtime/run.
 *
 * Left out are values that a loop writes, or a step that computes different things on the devices; small ones, whose memory is in the cache and is passed on from call to call sooner if
 * each device has its own, and memory that another value takes over while it is still read. */
#ifndef OLY_RUN_HELD_ONCE_H
#define OLY_RUN_HELD_ONCE_H
#include "plan/model/steps.h"
#include "run/prepare_cpu.h"

typedef struct oly_held_once {
    int n;              /* groups of slots: those that the same steps write are held once together */
    const int *of_slot; /* [n_slots] of the plan: its group; -1: each device has its own */
} oly_held_once;

/* Finds them once all steps are prepared. fails OLY_MEMORY. */
oly_status oly_find_held_once(oly_plan *plan);
/* Is the value of these addresses (by oly_cell) held once? */
static inline bool oly_is_held_once(const oly_plan *plan, void *const *base, int slot)
{
    return plan->n_devices > 1 && base[oly_cell(plan, 1, slot)] == base[oly_cell(plan, 0, slot)];
}
/* How a step is to be run: for the first device alone if its results are held once. */
static inline const oly_prepared *oly_prepared_for(const oly_plan *plan, void *const *base, const oly_step *s)
{
    const oly_prepared *p = s->prepared;
    return p && p->once && oly_is_held_once(plan, base, p->once_slot) ? p->once : p;
}
#endif
