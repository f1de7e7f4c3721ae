/* SPDX-License-Identifier: BSD-3-Clause */
/* Carries of loops to which reductions over devices are added: see sink_past_loops.c. Private to this room. */
#ifndef OLY_PLAN_LOWER_SINK_PAST_LOOPS_H
#define OLY_PLAN_LOWER_SINK_PAST_LOOPS_H
#include "plan/model/planner.h"
#include "plan/reduce/reduce.h"

/* Before the body is lowered: finds the carries that may be summed as partial results. */
oly_status oly_find_accumulators(oly_planner *p, const oly_frame *f, const oly_node *loop, oly_frame *body);
/* Is the node, of a body's frame, such a carry whose reduction is not known yet? Is the node the carry's next value? */
bool oly_accumulates(const oly_frame *f, const oly_node *input);
bool oly_accumulates_in(const oly_frame *f, const oly_node *input, const oly_node *output);
/* The output has been computed from partial results: the carry needs this reduction after the loop. */
void oly_accumulate(oly_frame *f, const oly_node *input, const oly_deferred *off);
/* After the loop: defers the result's reduction, if the carry was summed as partial results. */
oly_status oly_reduce_accumulated(oly_planner *p, oly_frame *f, oly_node *result, const oly_frame *body);
#endif
