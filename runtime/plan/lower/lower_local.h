/* Steps of the kernels in kernels/local.h: what lower_local.c, lower_partial.c, lower_sort.c and lower_scatter.c share. Private to runtime/plan. */
#ifndef OLY_PLAN_LOWER_LOWER_LOCAL_H
#define OLY_PLAN_LOWER_LOWER_LOCAL_H
#include "plan/model/planner.h"
#include "plan/partition/sort_split.h"
#include "plan/read/read.h"

/* One step in the making: a kernel, where its operands lie, where its result goes. */
typedef struct oly_local_step {
    const oly_node *node; /* whose parameters it takes */
    oly_local_op op;
    const char *what; /* for explanations */
    int n_in;
    oly_dtype dtype[OLY_LOCAL_MOST];
    oly_layout in[OLY_LOCAL_MOST];
    const oly_region *in_region[OLY_LOCAL_MOST],
        *out_region; /* boxes that are no parts of these layouts; NULL: they are */
    oly_reading reading[OLY_LOCAL_MOST];
    oly_layout out;
    oly_dtype out_dtype;
    int slot;    /* of the result */
    int scratch; /* made with the step; partial results begin it */
    bool partial, reverse;
    bool joins; /* operand 0 is in parts that add up, too */
    oly_axis_list
        over; /* partial results of what writes add up over these: where operand 0 is alike, one device has it */
} oly_local_step;

/* For a node: its kernel, operands' types, and result. The layouts of operands are still open. NULL: out of memory. */
oly_local_step *oly_local_step_new(oly_planner *p, const oly_node *n, const oly_layout *out);
/* Brings the node's operands to the layouts in s->in. */
oly_status oly_local_read_operands(oly_planner *p, oly_frame *f, oly_local_step *s);
/* Adds the step; its operands are there, its slot is. */
oly_status oly_local_step_add(oly_planner *p, oly_frame *f, oly_local_step *s);

/* Only its type (and line) counts: stands for a value in a slot, laid out so. NULL: out of memory. */
oly_node *oly_stand_in(oly_planner *p, const oly_node *n, oly_dtype dtype, const oly_layout *l);

/* -- lower_sort.c -- */
/* Lowers a node that sorts lines which are spread over devices, and whose result shall be, too, without gathering them. *done
 * tells: where that moves less, or would take too much memory. */
oly_status oly_lower_sort(oly_planner *p, oly_frame *f, oly_node *n, const oly_layout *own, const oly_local_step *s,
                          bool *done);

/* -- lower_partial.c -- */
/* Cut by none of the axes, nor by those behind them. True: some of them did cut. */
bool oly_leave_axes(oly_layout *l, const oly_axis_list *axes);
/* Lowers the node, whose operands and result would lie as s says, by the results of parts where that moves less. *done tells. */
oly_status oly_lower_partial(oly_planner *p, oly_frame *f, oly_node *n, const oly_local_step *s, bool *done);

/* -- lower_scatter.c -- */
/* The same of a scatter that adds, whose updates may be divided among devices. */
bool oly_scatter_joins(oly_planner *p, oly_frame *f, const oly_local_step *s); /* onto a sum that waits */
oly_status oly_lower_scatter(oly_planner *p, oly_frame *f, oly_node *n, const oly_local_step *s, bool *done);
#endif
