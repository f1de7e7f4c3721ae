/* SPDX-License-Identifier: BSD-3-Clause */
/* The order of steps, overlap with exchanges, and scratch memory. Called by plan.c. */
#ifndef OLY_PLAN_SCHEDULE_SCHEDULE_H
#define OLY_PLAN_SCHEDULE_SCHEDULE_H
#include "plan/model/planner.h"

/* direct_writes.c, counted_writes.c, direct_reads.c: before the others, in this order */
oly_status oly_write_directly(oly_planner *p);
oly_status oly_write_counted(oly_planner *p);
oly_status oly_read_directly(oly_planner *p);
extern int64_t
    oly_direct_reads_least; /* bytes of a device's block: smaller ones are copied in a few microseconds. Tests set it */
oly_status oly_schedule(oly_planner *p);

/* fused_reductions.c, fused_products.c, row_chains.c */
void oly_fuse_reductions(oly_plan *plan);
void oly_fuse_products(oly_plan *plan);
void oly_chain_rows(oly_plan *plan);
extern int64_t oly_row_chains_least; /* bytes of a device's rows in a chain: fewer stay in cache anyway. Tests set it */

oly_status oly_assign_memory(oly_planner *p);
/* May this output be written over this input's memory when the input is donated? Takes time linear in the steps of
 * the plan. */
bool oly_output_may_take(const oly_plan *plan, int input, int output);
#endif
