/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums of what is looked up: the lookup of some elements or rows of an array for each row of the positions, perhaps their products with
 * weights, and the sum over a row's positions. A sparse matrix stored with as many elements in each row, the mean of neighbours in a graph and
 * bags of embeddings are such. Found in chains of rows, by the planner, for which they are worth a chain (schedule/row_chains.c), and by the
 * executor for CPUs, which computes all three steps in one pass (run/row_blocks.c). */
#ifndef OLY_PLAN_MODEL_GATHERED_SUMS_H
#define OLY_PLAN_MODEL_GATHERED_SUMS_H
#include "plan/model/steps.h"

typedef struct oly_gathered_sum {
    int lookup, product, sum; /* numbers of steps of the chain; product: -1: there are no weights */
    int x, column, gathered, value, multiplied,
        out;             /* of operands among those of all its steps; value, multiplied: -1: none */
    int64_t width, line; /* positions of a row, elements of x for each of them */
} oly_gathered_sum;

/* What a device computes in the chain's n steps: the sum whose last step is step k, of which the others are in the chain, and whose values in between
 * no other step of the chain uses. operands: how many each step has. False: step k is none. */
bool oly_gathered_sum_of(const oly_plan *plan, const oly_step *first, int n, int k, int device, const int *operands,
                         oly_gathered_sum *sum);
#endif
