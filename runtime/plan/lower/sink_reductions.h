/* Reductions over devices put off past what is linear: what sink_reductions.c and sink_through_groups.c share with those that lower. Private to
 * runtime/plan. */
#ifndef OLY_PLAN_LOWER_SINK_REDUCTIONS_H
#define OLY_PLAN_LOWER_SINK_REDUCTIONS_H
#include "plan/model/planner.h"
#include "plan/reduce/reduce.h"

/* -- sink_reductions.c -- */
/* The value that the operand is, directly or through views that nothing else reads, if it waits; else NULL. */
oly_node *oly_deferred_root(oly_frame *f, const oly_node *operand);
/* Is a dimension cut over one of the axes? */
bool oly_cut_over(const oly_layout *l, const oly_axis_list *axes);
/* A product with a value that waits, whose result is smaller: works on its partials; adds to the axes that are summed over. */
oly_status oly_sink_product(oly_planner *p, oly_frame *f, const oly_node *n, const oly_layout operand[2],
                            const oly_layout *out, oly_axis_list *axes, oly_reduction_rule *rule);
/* Does the node reduce a value that waits once more, to less, by the same combiner? */
bool oly_reduces_further(oly_frame *f, const oly_node *n);
/* lower_local.c: does the node, whose other operands are there, add to a value that waits, and may before that is put together? */
oly_status oly_adds_to_sum(oly_planner *p, oly_frame *f, const oly_node *n, bool *adds);
/* A reshape that leaves every element where it is, of a value that waits, if it is less later: the result waits. */
oly_status oly_sink_reshape(oly_planner *p, oly_frame *f, const oly_node *n, const oly_layout *in,
                            const oly_layout *out, oly_deferred *off);

/* -- sink_through_groups.c -- */
/* Works those parts of a group that only put together values which wait alike on their partials; what comes of it waits. They
 * are no more among what is left of the group. All that the group reads must be there, or wait. */
oly_status oly_sink_group(oly_planner *p, oly_frame *f, oly_group *g);
/* Will what reads the value, and is linear, be smaller? */
bool oly_shrinks_later(oly_frame *f, const oly_node *n);

/* -- lower.c -- */
/* Nodes of a group worked on partials: what is complete is added on the first device of each group along the axes. */
typedef struct oly_partial_work {
    oly_axis_list axes;
    int n_partials;
    oly_node *const *partials; /* what waits; nodes read it directly or through views */
    bool adds_complete;
} oly_partial_work;
/* Steps for a settled group. work: NULL for values that are complete. */
oly_status oly_lower_part(oly_planner *p, oly_frame *f, const oly_group *g, const oly_partial_work *work);
#endif
