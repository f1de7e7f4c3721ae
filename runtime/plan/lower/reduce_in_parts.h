/* SPDX-License-Identifier: BSD-3-Clause */
/* Large sums over devices that are reduced part by part. Private to this room. */
#ifndef OLY_PLAN_LOWER_REDUCE_IN_PARTS_H
#define OLY_PLAN_LOWER_REDUCE_IN_PARTS_H
#include "plan/model/planner.h"

/* Will a sum over devices whose terms are in an input, and which would be reduce-scattered to layout `to`, be
 * reduced in parts by the placement that reads it instead? */
bool oly_reduces_in_parts(oly_planner *p, oly_frame *f, const oly_node *sum, const oly_layout *to);
/* A placement of a deferred sum whose terms are in an input: reduces it in parts into a new slot with layout `to`,
 * if doing so at once would take more memory than partial results may. *done says so. */
oly_status oly_reduce_in_parts(oly_planner *p, oly_frame *f, const oly_node *place, const oly_layout *to, int *slot,
                               bool *done);
#endif
