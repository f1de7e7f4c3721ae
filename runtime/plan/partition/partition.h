/* SPDX-License-Identifier: BSD-3-Clause */
/* Which elements of a dimension each device has, and which elementwise operations are fused. What other rooms may
 * call. */
#ifndef OLY_PLAN_PARTITION_PARTITION_H
#define OLY_PLAN_PARTITION_PARTITION_H
#include "plan/model/planner.h"

/* -- fusion.c -- */
/* Does nothing if the groups exist. */
oly_status oly_make_groups(oly_planner *p, oly_frame *f);

/* -- partition.c -- */
#define OLY_LONGEST_CHAIN 8 /* groups that continue each other's values and are computed in one layout */
oly_status oly_settle_group(oly_planner *p, oly_frame *f, oly_group *g);

/* -- cuts.c -- */
/* What a group reads along one dimension, and whether it should be computed in the cuts of its result instead of the
 * cuts `at`. times: the elements that are read per element of the result (of a sum). */
typedef struct oly_cut_choice oly_cut_choice;
oly_cut_choice *oly_cut_choice_new(oly_planner *p);
void oly_cut_choice_clear(oly_cut_choice *c);
void oly_cut_choice_add(oly_cut_choice *c, oly_frame *f, const oly_node *read, const oly_split *split);
bool oly_cut_at_result(const oly_cut_choice *c, const oly_split *at, const oly_split *result, int64_t n, int64_t bytes,
                       int64_t times);
#endif
