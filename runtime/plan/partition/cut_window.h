/* SPDX-License-Identifier: BSD-3-Clause */
/* How sliding windows are split over devices. Called by lower/lower_window.c, and by choose/ to predict what lowering
 * will do. */
#ifndef OLY_PLAN_PARTITION_CUT_WINDOW_H
#define OLY_PLAN_PARTITION_CUT_WINDOW_H
#include "plan/model/planner.h"
#include "plan/read/read.h"

typedef struct oly_sliding {
    oly_planner *p;
    oly_frame *f;
    oly_node *node;
    const oly_sliding_window *w;
    oly_layout out;
    oly_region seen;      /* of operand 0 */
    oly_layout kernel;    /* operand 1 of a convolution */
    oly_axis_list summed; /* axes over which partial sums are reduced */
    oly_reading reading[2];
} oly_sliding;

/* Sets out, seen, kernel and summed: as the node's choice says, or such that the fewest elements move. */
void oly_sliding_cut(oly_sliding *s);
/* The split of a convolution without a choice: sets the layouts of the result and of the kernel. */
void oly_cut_convolution(oly_planner *p, oly_node *n, const oly_layout operand[2], oly_layout *out, oly_layout *kernel);
#endif
