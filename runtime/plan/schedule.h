/* When the steps of a plan run: what schedule.c and its helpers share. Private to runtime/plan. */
#ifndef OLY_PLAN_SCHEDULE_H
#define OLY_PLAN_SCHEDULE_H
#include "plan/planner.h"

/* -- uses.c -- */
typedef void oly_use_visit(void *context, int slot, bool writes);
/* Names every slot the step reads or writes on this process, some more than once; those of blocks inside it too. */
void oly_step_uses(const oly_plan *plan, const oly_step *s, oly_use_visit *visit, void *context);
#endif
