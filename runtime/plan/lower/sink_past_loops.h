/* Carries of loops to which reductions over devices are added: see sink_past_loops.c. Private to runtime/plan. */
#ifndef OLY_PLAN_LOWER_SINK_PAST_LOOPS_H
#define OLY_PLAN_LOWER_SINK_PAST_LOOPS_H
#include "plan/model/planner.h"
#include "plan/reduce/reduce.h"

/* Before the body is lowered: which carries of the loop may be added up in parts. */
oly_status oly_find_accumulators(oly_planner *p, const oly_frame *f, const oly_node *loop, oly_frame *body);
/* Is the node, of the frame of a body, such a carry, whose reduction is not yet known? Does this become the carry again? */
bool oly_accumulates(const oly_frame *f, const oly_node *input);
bool oly_accumulates_in(const oly_frame *f, const oly_node *input, const oly_node *output);
/* The carry's parts wait for this reduction: its output has been worked on parts. */
void oly_accumulate(oly_frame *f, const oly_node *input, const oly_deferred *off);
/* After the loop: the result waits for the reduction, if the carry was added up in parts. */
oly_status oly_reduce_accumulated(oly_planner *p, oly_frame *f, oly_node *result, const oly_frame *body);
#endif
