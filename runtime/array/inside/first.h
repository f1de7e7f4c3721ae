/* SPDX-License-Identifier: BSD-3-Clause */
/* The first element for which a condition does not hold, and values there: a minimum over all devices, and sums over devices of which
 * one is not zero, so that every process knows them. Private to runtime/array/inside. */
#ifndef OLY_ARRAY_INSIDE_FIRST_H
#define OLY_ARRAY_INSIDE_FIRST_H
#include "core/text.h"
#include "graph/graph.h"

typedef struct oly_first {
    oly_graph *g;
    oly_type shape;   /* of the condition */
    oly_node *chosen; /* which element is the first that fails; NULL: the condition is one number */
} oly_first;

/* fails: whether there is one; where: its number, row by row. */
oly_status oly_first_find(oly_first *s, oly_node *condition, oly_node **fails, oly_node **where);
/* The value where the condition fails, of an array that broadcasts to its shape; another array stays whole. */
oly_status oly_first_value(oly_first *s, oly_node **x);
/* Appends " at index (3, 1)". */
void oly_first_index(oly_text *t, const oly_type *condition, uint64_t number);
#endif
