/* SPDX-License-Identifier: BSD-3-Clause */
/* Reductions over devices: all-reduce, reduce-scatter, and reductions deferred until the value is read. What other
 * rooms may call. */
#ifndef OLY_PLAN_REDUCE_REDUCE_H
#define OLY_PLAN_REDUCE_REDUCE_H
#include "plan/model/planner.h"

/* -- deferred_reduction.c, reduction_order.c -- */
/* How partial results are combined over mesh axes. */
typedef struct oly_reduction_rule {
    oly_combiner combiner;
    bool in_pairs; /* adjacent pairs, minor axis first; else sequentially, major axis first */
} oly_reduction_rule;
/* Reduces the partial results in the node's slot over the axes, in place. This is deferred until the value is first
 * read or oly_reduce_now is called; all others waiting for the same axes are then reduced with it. n NULL: all that
 * wait. */
oly_status oly_defer_reduction(oly_planner *p, oly_frame *f, oly_node *n, const oly_reduction_rule *rule,
                               const oly_axis_list *axes);
oly_status oly_reduce_now(oly_planner *p, oly_frame *f, const oly_node *n);
/* The positions whose partial results the device at `position` reduces, in nested order; counts[]: how many at each
 * level, then zeros. Returns their number; 0 if they are more than OLY_REDUCTION_GROUP, for which sources has
 * room. */
int oly_reduction_group(oly_mesh mesh, const oly_reduction_rule *rule, const oly_axis_list *axes, int position,
                        int *counts, int *sources);

/* Does n wait, and for what? NULL: it does not, or out of memory. */
typedef struct oly_deferred {
    bool any;
    oly_reduction_rule rule;
    oly_axis_list axes;
} oly_deferred;
const oly_deferred *oly_deferred_of(oly_planner *p, oly_frame *f, const oly_node *n);
/* Keeps partial results in its slot for good. Readers make a value of their own from them, which waits itself. */
void oly_keep_partial(oly_frame *f, const oly_node *n);

/* -- reduce_scatter.c -- */
/* Reduces into target_slot, with a result that is also split over those axes: every device reduces its own box of
 * `target`, which is inside its box of `partial`. */
oly_status oly_reduce_scatter(oly_planner *p, oly_block *b, const oly_node *node, const oly_reduction_rule *rule,
                              const oly_layout *partial, int slot, const oly_axis_list *axes, const oly_layout *target,
                              int target_slot);

/* -- reduction_pattern.c -- */
/* Frees the patterns that are kept for later plans. */
void oly_reduction_forget(void);
#endif
