/* SPDX-License-Identifier: BSD-3-Clause */
/* Reduce-scatter over groups of any length, level by level (reduce_scatter_tree.c). Called by reduce_scatter.c. */
#ifndef OLY_PLAN_REDUCE_REDUCE_SCATTER_TREE_H
#define OLY_PLAN_REDUCE_REDUCE_SCATTER_TREE_H
#include "plan/model/planner.h"
#include "plan/reduce/reduce.h"

/* As oly_reduce_scatter. */
oly_status oly_scatter_levels(oly_planner *p, oly_block *b, const oly_node *node, const oly_reduction_rule *rule,
                              const oly_layout *partial, int slot, const oly_axis_list *axes, const oly_layout *target,
                              int target_slot);
#endif
