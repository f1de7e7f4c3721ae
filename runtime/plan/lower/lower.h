/* SPDX-License-Identifier: BSD-3-Clause */
/* From nodes with layouts to steps. The driver calls oly_lower_frame; the rest is shared by the files of this room. */
#ifndef OLY_PLAN_LOWER_LOWER_H
#define OLY_PLAN_LOWER_LOWER_H
#include "plan/read/read.h"
#include "plan/reduce/reduce.h"

/* -- lower*.c -- */
/* oly_read_operand for a layout; a constant operand (such as a broadcast number) is stored first. */
oly_status oly_read_array(oly_planner *p, oly_frame *f, const oly_node *n, const oly_layout *l, oly_reading *reading);
/* What the layout's part of a slot holds. */
oly_status oly_read_slot(oly_planner *p, const oly_layout *l, int slot, oly_reading *reading);
oly_status oly_lower_node(oly_planner *p, oly_frame *f, oly_node *n);
oly_status oly_lower_frame(oly_planner *p, oly_frame *f); /* lowering_order.c: all nodes */
oly_status oly_lower_group(oly_planner *p, oly_frame *f, oly_group *g);
oly_status oly_lower_reduce(oly_planner *p, oly_frame *f, oly_node *n);
oly_status oly_lower_contract(oly_planner *p, oly_frame *f, oly_node *n);
/* The choice for a product or convolution with n_pairs contracting pairs, as text: "by cost: ..." */
const char *oly_choice_text(oly_planner *p, const oly_node *n, int n_pairs, const oly_choice *choice);
oly_status oly_lower_write(oly_planner *p, oly_frame *f, oly_node *n);
/* What a concatenation will read of its operands; nothing for other nodes. Appends to the lists, which have room for
 * every operand. */
void oly_write_reads(oly_planner *p, oly_frame *f, const oly_node *n, int *n_read, oly_node **nodes,
                     oly_region *regions);
/* The same for paddings that drop no elements and insert none between others. */
void oly_pad_reads(oly_planner *p, oly_frame *f, const oly_node *n, int *n_read, oly_node **nodes, oly_region *regions);
oly_status oly_lower_pad(oly_planner *p, oly_frame *f, oly_node *n);
oly_status oly_lower_reshape(oly_planner *p, oly_frame *f, oly_node *n);
oly_status oly_lower_loop(oly_planner *p, oly_frame *f, oly_node *n);
oly_status oly_lower_permute(oly_planner *p, oly_frame *f, oly_node *n);
oly_status oly_lower_branch(oly_planner *p, oly_frame *f, oly_node *n);
oly_status oly_lower_local(oly_planner *p, oly_frame *f, oly_node *n);
oly_status oly_lower_call(oly_planner *p, oly_frame *f, oly_node *n);
oly_status oly_lower_window(oly_planner *p, oly_frame *f, oly_node *n);
/* Makes the node's value in layout l by one transfer, if it is a cyclic shift of a value in memory. *done says so. */
oly_status oly_lower_cyclic_shift(oly_planner *p, oly_frame *f, oly_node *n, const oly_layout *l, bool *done);

/* -- place_reduction.c -- */
/* The layout of the node's partial results, split further as its value will be, for a reduce-scatter over the axes;
 * false: there is none. */
bool oly_scattered_layout(oly_planner *p, oly_frame *f, const oly_node *n, const oly_layout *partial,
                          const oly_axis_list *axes, oly_layout *target);
/* Reduces the partial results in the node's slot over the axes: a reduce-scatter if the node's propagated layout is
 * split over some of them, else an all-reduce. Sets the node's layout and slot. */
oly_status oly_place_reduction(oly_planner *p, oly_frame *f, oly_node *n, const oly_reduction_rule *rule,
                               const oly_axis_list *axes);

/* -- sink_reductions.c: see sink_reductions.h, too -- */
/* Sinks a deferred reduction past a reduction of the same kind, whose operand is read in layout `in`: it reduces
 * partial results, and the axes of the deferred reduction are added to `axes`. */
oly_status oly_sink_reduce(oly_planner *p, oly_frame *f, const oly_node *n, const oly_layout *in, oly_combiner combiner,
                           oly_axis_list *axes);
/* If only parts of a deferred value are read, reduces only those. *done says so. */
oly_status oly_sink_parts(oly_planner *p, oly_frame *f, oly_node *n, const oly_reduction_rule *rule,
                          const oly_axis_list *axes, bool *done);

/* -- in_place_updates.c -- */
/* May a node write over its first operand's memory, when its result has layout l? Only if nothing reads the operand
 * later. */
oly_status oly_may_overwrite(oly_planner *p, oly_frame *f, const oly_node *n, const oly_layout *l, bool *yes);
/* Does a carry of a loop keep its memory? */
oly_status oly_is_written_over(oly_planner *p, const oly_graph *body, int carry, bool *yes);
#endif
