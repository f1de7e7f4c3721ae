/* SPDX-License-Identifier: BSD-3-Clause */
/* Sinking deferred reductions past linear operations: what sink_reductions.c and sink_through_groups.c offer the
 * lowerings. Private to this room. */
#ifndef OLY_PLAN_LOWER_SINK_REDUCTIONS_H
#define OLY_PLAN_LOWER_SINK_REDUCTIONS_H
#include "plan/model/planner.h"
#include "plan/reduce/reduce.h"

/* -- sink_reductions.c -- */
/* The deferred value that the operand is, directly or through views with no other reader; NULL: it is none. */
oly_node *oly_deferred_root(oly_frame *f, const oly_node *operand);
/* Is a dimension split over one of the axes? */
bool oly_cut_over(const oly_layout *l, const oly_axis_list *axes);
/* Computes a product with a deferred value from its partial results, if the result is smaller; adds the axes of the
 * deferred reduction to those that are summed over. */
oly_status oly_sink_product(oly_planner *p, oly_frame *f, const oly_node *n, const oly_layout operand[2],
                            const oly_layout *out, oly_axis_list *axes, oly_reduction_rule *rule);
/* Does the node reduce a deferred value further, to a smaller one, with the same combiner? */
bool oly_reduces_further(oly_frame *f, const oly_node *n);
/* lower_local.c: does the node, whose other operands are ready, add to a deferred value, and may it do so before the
 * value is reduced? */
oly_status oly_adds_to_sum(oly_planner *p, oly_frame *f, const oly_node *n, bool *adds);
/* A reshape that leaves every element in place, of a deferred value: defers the result instead, if less is reduced
 * later. */
oly_status oly_sink_reshape(oly_planner *p, oly_frame *f, const oly_node *n, const oly_layout *in,
                            const oly_layout *out, oly_deferred *off);

/* -- sink_through_groups.c -- */
/* Computes the parts of a group that combine deferred values of the same reduction linearly from their partial
 * results, and defers the results; these nodes leave the group. Everything that the group reads must be ready or
 * deferred. */
oly_status oly_sink_group(oly_planner *p, oly_frame *f, oly_group *g);
/* Will a linear reader of the value be smaller? */
bool oly_shrinks_later(oly_frame *f, const oly_node *n);

/* -- lower.c -- */
/* Nodes of a group that are computed from partial results: a complete operand is added only on the first device of
 * each group along the axes. */
typedef struct oly_partial_work {
    oly_axis_list axes;
    int n_partials;
    oly_node *const *partials; /* deferred values; nodes read them directly or through views */
    bool adds_complete;
} oly_partial_work;
/* Steps for a settled group. work: NULL if all operands are complete. */
oly_status oly_lower_part(oly_planner *p, oly_frame *f, const oly_group *g, const oly_partial_work *work);
#endif
