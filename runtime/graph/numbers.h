/* SPDX-License-Identifier: BSD-3-Clause */
/* The C numbers of an eager call as run-time operands of its plan. A composition sees each as a constant; where the value decides
 * nothing, its constants then become inputs, so that calls with other numbers use the same plan. Called by the compositions that look at
 * values, and by runtime/array/number_operands.c. */
#ifndef OLY_GRAPH_NUMBERS_H
#define OLY_GRAPH_NUMBERS_H
#include "graph/graph.h"

enum {
    OLY_MOST_CONVERSIONS = 6, /* of a number; with more of them it is known at planning time */
    OLY_MOST_NUMBERS = 64,    /* operands of a call */
    OLY_MOST_ELEMENT_BYTES = 16
};

/* The types to which a number is converted, one after the other: each rounds. */
typedef struct oly_conversions {
    int n;
    struct {
        oly_dtype dtype;
        bool weak;
    } to[OLY_MOST_CONVERSIONS];
} oly_conversions;

/* A constant that stands for a number, or for one converted. */
typedef struct oly_number {
    struct oly_number *next;
    oly_node *node;
    int operand;
    oly_conversions conversions; /* after the first type, the one of C's numbers */
} oly_number;

/* The constant is operand k of the call. */
oly_status oly_number_begin(oly_graph *g, oly_node *constant, int k);
/* `made` is the constant `x` converted. */
oly_status oly_number_converted(oly_graph *g, const oly_node *x, oly_node *made);
/* Writes the value of a constant, given by its parameters, as an element of its type. */
void oly_number_store(const oly_params *constant, void *element);
/* The value of x is about to decide something: it stays a constant of the plan. Whether a composition calls this must not depend on
 * values, so that all ranks make the same plan of a call. */
void oly_number_fix(oly_graph *g, const oly_node *x);
/* Turns the constants of numbers that nobody has fixed into inputs, which follow the others, calls `made` for each, and forgets all
 * numbers. Bit k of *fixed: operand k stays a constant. */
typedef oly_status oly_number_made(void *context, const oly_number *number);
oly_status oly_numbers_to_inputs(oly_graph *g, uint64_t *fixed, oly_number_made *made, void *context);
#endif
