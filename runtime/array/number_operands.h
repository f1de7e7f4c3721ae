/* SPDX-License-Identifier: BSD-3-Clause */
/* The C numbers of an eager call as arrays of rank 0 that its plan takes as inputs, after the arrays of the call. Private to
 * runtime/array. */
#ifndef OLY_ARRAY_NUMBER_OPERANDS_H
#define OLY_ARRAY_NUMBER_OPERANDS_H
#include "array/array.h"
#include "graph/numbers.h"
#include <olympus/ops.h>

/* One input of a plan. */
typedef struct oly_number_operand {
    int operand; /* of the call */
    oly_conversions conversions;
    oly_operand given; /* what `array` stands for */
    oly_array array;   /* held; NULL: none yet */
} oly_number_operand;

typedef struct oly_number_operands {
    int n;
    oly_number_operand each[OLY_MOST_NUMBERS];
} oly_number_operands;

/* A C number as the parameters of a constant: weak, and of the default type of its kind. */
void oly_number_params(const oly_operand *x, oly_params *params);
/* A new rank-0 array of the number, of a type that a number converts to without an operation. The result belongs to the open
 * scope. */
oly_status oly_number_scalar(const oly_operand *x, oly_dtype dtype, oly_array *scalar);
/* Turns the numbers of a composed graph that may be inputs into such: lists them, with an array for each that stands for the number of
 * this call. fixed: operands (bits) whose values the graph depends on. */
oly_status oly_number_operands_list(oly_graph *g, const oly_operand *in, oly_number_operands *list, uint64_t *fixed);
/* The arrays for a call with these operands; those of the last call where the numbers are the same. */
oly_status oly_number_operands_renew(int n, oly_number_operand *list, const oly_operand *in, oly_array *arrays);
void oly_number_operands_release(int n, oly_number_operand *list);
#endif
