/* The order of steps, their overlap with exchanges, and scratch memory. What the driver calls. */
#ifndef OLY_PLAN_SCHEDULE_SCHEDULE_H
#define OLY_PLAN_SCHEDULE_SCHEDULE_H
#include "plan/model/planner.h"

oly_status oly_schedule(oly_planner *p);

oly_status oly_assign_memory(oly_planner *p);
/* May this output be written over this input's memory where that is donated? Its cost grows with the plan's steps. */
bool oly_output_may_take(const oly_plan *plan, int input, int output);
#endif
