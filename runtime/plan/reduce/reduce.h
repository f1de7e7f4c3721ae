/* Reductions over devices: all-reduce, reduce-scatter, and those that are deferred until the value is read. What other rooms may call. */
#ifndef OLY_PLAN_REDUCE_REDUCE_H
#define OLY_PLAN_REDUCE_REDUCE_H
#include "plan/model/planner.h"

/* -- deferred_reduction.c, reduction_order.c -- */
/* Adds steps that combine partial results over mesh axes; the partials are in `slot` in layout l, and so is the result. */
typedef struct oly_reduction_rule {
    oly_combiner combiner;
    bool in_pairs; /* adjacent pairs, minor axis first; else one after the other, major axis first */
} oly_reduction_rule;
/* Folds the partials in the node's slot over the axes, in place: when the value is read first or oly_reduce_now is called, with all
 * others over the same axes that wait by then. n NULL: all that wait. */
oly_status oly_defer_reduction(oly_planner *p, oly_frame *f, oly_node *n, const oly_reduction_rule *rule,
                               const oly_axis_list *axes);
oly_status oly_reduce_now(oly_planner *p, oly_frame *f, const oly_node *n);
/* The positions whose partials the device at `position` folds, in nested order, counts[] (zeros after the last) of each level:
 * how many; 0 when they are more than OLY_REDUCTION_GROUP, for which sources has room. */
int oly_reduction_group(oly_mesh mesh, const oly_reduction_rule *rule, const oly_axis_list *axes, int position,
                        int *counts, int *sources);

/* Does n wait, and for what? NULL: it does not, or out of memory. */
typedef struct oly_deferred {
    bool any;
    oly_reduction_rule rule;
    oly_axis_list axes;
} oly_deferred;
const oly_deferred *oly_deferred_of(oly_planner *p, oly_frame *f, const oly_node *n);
/* In its slot are partials for good: who reads them makes a value of them that waits itself. */
void oly_keep_partial(oly_frame *f, const oly_node *n);

/* -- reduce_scatter.c -- */
/* The same into target_slot, cut over those axes too: every device folds its own box of `target`, which lies in its box of
 * `partial`. */
oly_status oly_reduce_scatter(oly_planner *p, oly_block *b, const oly_node *node, const oly_reduction_rule *rule,
                              const oly_layout *partial, int slot, const oly_axis_list *axes, const oly_layout *target,
                              int target_slot);

/* -- reduction_pattern.c -- */
/* Frees the patterns that are kept for later plans. */
void oly_reduction_forget(void);
#endif
