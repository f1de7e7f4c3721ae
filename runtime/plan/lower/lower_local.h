/* SPDX-License-Identifier: BSD-3-Clause */
/* Steps of the kernels in kernels/local.h: what lower_local.c, lower_partial.c, lower_sort.c, lower_counted.c and lower_scatter.c
 * share. Private to this room. */
#ifndef OLY_PLAN_LOWER_LOWER_LOCAL_H
#define OLY_PLAN_LOWER_LOWER_LOCAL_H
#include "plan/model/planner.h"
#include "plan/partition/sort_split.h"
#include "plan/read/read.h"

/* A step under construction: a kernel, where its operands are, where its result goes. */
typedef struct oly_local_step {
    const oly_node *node; /* whose parameters it uses */
    oly_local_op op;
    const char *what; /* for explanations */
    int n_in;
    oly_dtype dtype[OLY_LOCAL_MOST];
    oly_layout in[OLY_LOCAL_MOST];
    const oly_region *in_region[OLY_LOCAL_MOST],
        *out_region; /* boxes other than the parts of these layouts; NULL: none */
    oly_reading reading[OLY_LOCAL_MOST];
    oly_layout out;
    oly_dtype out_dtype;
    int slot;    /* of the result */
    int scratch; /* allocated with the step; partial results start from it */
    bool partial, reverse;
    bool replicated; /* devices whose boxes are equal compute the same */
    oly_axis_list
        along; /* operand 0 is read at another device, so many further along these axes; what that does not have is kept */
    int further;
    bool joins;         /* operand 0 is itself a partial result */
    oly_axis_list over; /* sum over these; where operand 0 is replicated, one device adds it */
} oly_local_step;

/* For a node: its kernel, the types of its operands, and its result. The operands' layouts are not set. NULL: out of
 * memory. */
oly_local_step *oly_local_step_new(oly_planner *p, const oly_node *n, const oly_layout *out);
/* Reads the node's operands in the layouts s->in. */
oly_status oly_local_read_operands(oly_planner *p, oly_frame *f, oly_local_step *s);
/* Adds the step; its operands have been read and its slot is allocated. */
oly_status oly_local_step_add(oly_planner *p, oly_frame *f, oly_local_step *s);

/* A node that stands for a value in a slot with layout l; only its type and source line are used. NULL: out of
 * memory. */
oly_node *oly_stand_in(oly_planner *p, const oly_node *n, oly_dtype dtype, const oly_layout *l);

/* -- lower_sort.c -- */
/* Sorts lines that are split over devices, operand and result alike, without gathering them, if that moves less or
 * gathering would take too much memory. *done says so. */
oly_status oly_lower_sort(oly_planner *p, oly_frame *f, oly_node *n, const oly_layout *own, const oly_local_step *s,
                          bool *done);

/* -- lower_partial.c -- */
/* Removes the axes, and those after them in the same dimension, from the layout. True: the layout was split over
 * some of them. */
bool oly_leave_axes(oly_layout *l, const oly_axis_list *axes);
/* Computes the node from partial results of each device's part, if that moves less than s, the step with whole
 * lines. *done says so. */
oly_status oly_lower_partial(oly_planner *p, oly_frame *f, oly_node *n, const oly_local_step *s, bool *done);

/* -- lower_counted.c -- */
/* A slice of an array from around a loop whose start follows the loop's counter, and which has whole rows, is bound to them in every
 * iteration, so that nothing is copied. *done says so. */
oly_status oly_lower_counted(oly_planner *p, oly_frame *f, oly_node *n, const oly_local_step *s, bool *done);

/* -- lower_scatter.c -- */
/* Likewise for a scatter that adds, whose updates may be split over devices. */
bool oly_scatter_joins(oly_planner *p, oly_frame *f, const oly_local_step *s); /* adds to a deferred sum */
oly_status oly_lower_scatter(oly_planner *p, oly_frame *f, oly_node *n, const oly_local_step *s, bool *done);
#endif
