/* From nodes with layouts to steps. oly_lower_frame is what the driver calls; the rest is for the files of this room. */
#ifndef OLY_PLAN_LOWER_LOWER_H
#define OLY_PLAN_LOWER_LOWER_H
#include "plan/read/read.h"
#include "plan/reduce/reduce.h"

/* -- lower*.c -- */
/* oly_read_operand of a layout; a constant operand (a broadcast number) is written out first. */
oly_status oly_read_array(oly_planner *p, oly_frame *f, const oly_node *n, const oly_layout *l, oly_reading *reading);
oly_status oly_lower_node(oly_planner *p, oly_frame *f, oly_node *n);
oly_status oly_lower_frame(oly_planner *p, oly_frame *f); /* lowering_order.c: all nodes */
oly_status oly_lower_group(oly_planner *p, oly_frame *f, oly_group *g);
oly_status oly_lower_reduce(oly_planner *p, oly_frame *f, oly_node *n);
oly_status oly_lower_contract(oly_planner *p, oly_frame *f, oly_node *n);
/* What was chosen of a product, or a convolution, of so many contracting pairs: "by price: ..." */
const char *oly_choice_text(oly_planner *p, const oly_node *n, int n_pairs, const oly_choice *choice);
oly_status oly_lower_write(oly_planner *p, oly_frame *f, oly_node *n);
/* What concatenations will read of their operands; of other nodes nothing. Adds to the lists, which have room for each operand. */
void oly_write_reads(oly_planner *p, oly_frame *f, const oly_node *n, int *n_read, oly_node **nodes,
                     oly_region *regions);
/* The same of paddings, which leave no elements out nor any between. */
void oly_pad_reads(oly_planner *p, oly_frame *f, const oly_node *n, int *n_read, oly_node **nodes, oly_region *regions);
oly_status oly_lower_pad(oly_planner *p, oly_frame *f, oly_node *n);
oly_status oly_lower_reshape(oly_planner *p, oly_frame *f, oly_node *n);
oly_status oly_lower_loop(oly_planner *p, oly_frame *f, oly_node *n);
oly_status oly_lower_permute(oly_planner *p, oly_frame *f, oly_node *n);
oly_status oly_lower_branch(oly_planner *p, oly_frame *f, oly_node *n);
oly_status oly_lower_local(oly_planner *p, oly_frame *f, oly_node *n);
oly_status oly_lower_window(oly_planner *p, oly_frame *f, oly_node *n);
/* As oly_read_operand; a constant is written out first. */
oly_status oly_read_array(oly_planner *p, oly_frame *f, const oly_node *n, const oly_layout *l, oly_reading *reading);
/* May a node write over the memory of its first operand, when its result has layout l? Only when nobody else will look at it. */
bool oly_may_overwrite(oly_planner *p, oly_frame *f, const oly_node *n, const oly_layout *l);
/* Makes the node's value in layout l where it is a roll of a value in memory. *done tells. */
oly_status oly_lower_cyclic_shift(oly_planner *p, oly_frame *f, oly_node *n, const oly_layout *l, bool *done);

/* -- place_reduction.c -- */
/* The layout of the node's partials, cut further where its value shall be, for a scatter over the axes; false: there is none. */
bool oly_scattered_layout(oly_planner *p, oly_frame *f, const oly_node *n, const oly_axis_list *axes,
                          oly_layout *target);
/* Puts the partials of a node together, which lie in its slot and layout, over the axes: scattered where its propagated layout
 * is cut over some of them, else for everybody. Sets the node's layout and slot. */
oly_status oly_place_reduction(oly_planner *p, oly_frame *f, oly_node *n, const oly_reduction_rule *rule,
                               const oly_axis_list *axes);

/* -- sink_reductions.c: see sink_reductions.h, too -- */
/* A reduction of a value that waits for one of the same kind, read in layout `in`: works on its partials, and over these axes,
 * too. */
oly_status oly_sink_reduce(oly_planner *p, oly_frame *f, const oly_node *n, const oly_layout *in, oly_combiner combiner,
                           oly_axis_list *axes);
/* A value of which only parts are read: only they are folded. *done tells. */
oly_status oly_sink_parts(oly_planner *p, oly_frame *f, oly_node *n, const oly_reduction_rule *rule,
                          const oly_axis_list *axes, bool *done);

/* -- in_place_carries.c -- */
oly_status oly_is_written_over(oly_planner *p, const oly_graph *body, int carry, bool *yes);
#endif
