/* SPDX-License-Identifier: BSD-3-Clause */
/* Elementwise groups that an executor may leave out, because the one step that reads their results can read their operands instead: for
 * fused_reductions.c and fused_products.c. */
#ifndef OLY_PLAN_SCHEDULE_FUSED_GROUPS_H
#define OLY_PLAN_SCHEDULE_FUSED_GROUPS_H
#include "plan/model/planner.h"

/* The group that writes the slot, if it can be computed when step k of the block is; NULL: none. */
oly_step *oly_group_before(const oly_plan *plan, const oly_block *b, int k, const oly_slot *slot);
/* The same for a group that is divided into parts (direct_reads.c): how many there are, in their order; 0: none. */
int oly_group_parts_before(const oly_plan *plan, const oly_block *b, int k, int slot,
                           oly_step *parts[OLY_MOST_OPERAND_STEPS]);
/* What the reader (a reduction or a product) writes must not be read by the group (a carry that a loop updates in place); and a second
 * result of the group may be written over a donated input, which must not live longer then. */
bool oly_group_may_wait(const oly_plan *plan, const oly_step *group, const oly_step *reader);
/* The step with this number may compute the group by itself: what the group reads lives until then. */
void oly_group_take(oly_plan *plan, oly_step *group, int number);
/* Calls visit for step k of the block b, for every step of a block and of the blocks inside it, which come first. */
typedef void oly_step_visit(oly_plan *plan, const oly_block *b, int k);
void oly_for_steps(oly_plan *plan, const oly_block *b, oly_step_visit *visit);
#endif
