/* SPDX-License-Identifier: BSD-3-Clause */
/* The slots that a step reads and writes. Called by the scheduler and by explanations. */
#ifndef OLY_PLAN_MODEL_EFFECTS_H
#define OLY_PLAN_MODEL_EFFECTS_H
#include "plan/model/steps.h"

typedef void oly_effect_visit(void *context, int slot, bool writes);
/* Calls `visit` for every slot that the step, including the blocks inside it, reads or writes on this process. A slot
 * may be visited more than once. */
void oly_step_effects(const oly_plan *plan, const oly_step *s, oly_effect_visit *visit, void *context);

/* What the step does to one slot. Takes as long as a visit of all. */
typedef struct oly_effect {
    bool reads, writes;
} oly_effect;
oly_effect oly_effect_on(const oly_plan *plan, const oly_step *s, int slot);

/* Are there steps inside it? Until steps are numbered anew (schedule_numbers.c) these may have lower numbers than steps in front of it, so that a
 * slot's `last` does not tell whether it uses the slot. */
static inline bool oly_has_blocks(const oly_step *s)
{
    return s->kind == OLY_STEP_LOOP || s->kind == OLY_STEP_BRANCH;
}
#endif
