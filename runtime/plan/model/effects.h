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
#endif
