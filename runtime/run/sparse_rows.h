/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a chain of rows (row_blocks.h) that multiplies a sparse matrix with a vector: a lookup of the vector's elements, their products
 * with the matrix's, and a scatter that adds these to the rows. Private to the executor for CPUs (row_blocks.c). */
#ifndef OLY_RUN_SPARSE_ROWS_H
#define OLY_RUN_SPARSE_ROWS_H
#include "plan/model/steps.h"

/* Numbers of steps of the chain, and of operands among those of all its steps. */
typedef struct oly_sparse_rows {
    int lookup; /* the step; -1: the chain does not end so */
    int x, column, gathered, value, product, row, out;
} oly_sparse_rows;

/* What a device computes in the chain's n steps. operands: how many each step has. */
oly_sparse_rows oly_sparse_rows_of(const oly_step *first, int n, int device, const int *operands);
#endif
