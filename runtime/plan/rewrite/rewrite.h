/* Changes of the graph before anything is planned: loop-invariant hoisting and loop fission. What the driver calls. */
#ifndef OLY_PLAN_REWRITE_REWRITE_H
#define OLY_PLAN_REWRITE_REWRITE_H
#include "plan/model/planner.h"

oly_status oly_hoist(oly_graph *g);
/* Parts loops that only look at their fields: those take several steps at once. */
oly_status oly_split_loops(oly_planner *p);
#endif
