/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes of the graph before it is planned: loop-invariant hoisting and loop fission. Called by plan.c. */
#ifndef OLY_PLAN_REWRITE_REWRITE_H
#define OLY_PLAN_REWRITE_REWRITE_H
#include "plan/model/planner.h"

oly_status oly_hoist(oly_graph *g);
/* Splits loops in which some carries only observe the fields, so that fields can be tiled in time. */
oly_status oly_split_loops(oly_planner *p);
#endif
