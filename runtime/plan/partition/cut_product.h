/* The split of a product over devices. Called by lower/lower_contract.c, and by choose/, which asks what lowering will do. */
#ifndef OLY_PLAN_PARTITION_CUT_PRODUCT_H
#define OLY_PLAN_PARTITION_CUT_PRODUCT_H
#include "plan/model/planner.h"
#include "plan/read/read.h"
#include "graph/contract.h"

typedef struct oly_product {
    oly_planner *p;
    oly_frame *f; /* NULL: nothing lies anywhere yet */
    oly_node *node;
    const oly_contraction *c;
    oly_contraction_dims dims;
    oly_layout operand[2], out;
    oly_axis_list summed; /* axes over which partial products are folded */
    oly_reading reading[2];
    int copy_slot[2];
    int n_copies; /* filled so far */
    oly_copy_work *copies;
} oly_product;

/* Splits the loop over the result, and the contracting dimensions: as chosen by price, or, choice NULL, as moves least. Sets operand,
 * out and summed. */
void oly_product_cut(oly_product *x, const oly_choice *choice);
/* The split without a choice by price: given where its operands are and its result had better be, sets the layouts it is computed in,
 * and the axes over which partial products are summed. */
oly_status oly_cut_product(oly_planner *p, oly_node *n, oly_layout operand[2], oly_layout *out, oly_axis_list *summed);
#endif
