/* SPDX-License-Identifier: BSD-3-Clause */
/* How a product is split over devices. Called by lower/lower_contract.c, and by choose/ to predict what lowering will
 * do. */
#ifndef OLY_PLAN_PARTITION_CUT_PRODUCT_H
#define OLY_PLAN_PARTITION_CUT_PRODUCT_H
#include "plan/model/planner.h"
#include "plan/read/read.h"
#include "graph/contract.h"

typedef struct oly_product {
    oly_planner *p;
    oly_frame *f; /* NULL: no value is placed yet */
    oly_node *node;
    const oly_contraction *c;
    oly_contraction_dims dims;
    oly_layout operand[2], out;
    oly_axis_list summed; /* axes over which partial products are reduced */
    oly_reading reading[2];
    int copy_slot[2];
    int n_copies; /* filled so far */
    oly_copy_work *copies;
} oly_product;

/* Splits the result and the contracting dimensions as `choice` says, or, if it is NULL, such that the fewest elements
 * move. Sets operand, out and summed. */
void oly_product_cut(oly_product *x, const oly_choice *choice);
/* The split without a choice: from the layouts of the operands and the preferred layout of the result, sets the layouts
 * of the computation and the axes over which partial products are reduced. */
oly_status oly_cut_product(oly_planner *p, oly_node *n, oly_layout operand[2], oly_layout *out, oly_axis_list *summed);
#endif
