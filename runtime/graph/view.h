/* SPDX-License-Identifier: BSD-3-Clause */
/* Views: operations whose result has the operand's elements under other indexes. The detail of a VIEW row in the table
 * says which kind. Callable from graph and above. */
#ifndef OLY_GRAPH_VIEW_H
#define OLY_GRAPH_VIEW_H
#include "graph/graph.h"

/* Index i of a result dimension is element start + step * i of operand dimension `from`; -1: of none (the elements
 * repeat). */
typedef struct oly_view_dim {
    int from;
    int64_t start, step;
} oly_view_dim;

/* Of every dimension of the node's result. */
void oly_view_of(const oly_node *node, oly_view_dim *dims);
/* Does a reshape only add or drop dimensions of one element? Then it is placed as its operand; from[d]: dimension of
 * the operand, or -1. */
bool oly_is_thin(const oly_node *node, int8_t *from);
/* Is it a slice of its operand, with this step in every dimension? */
bool oly_is_part(const oly_node *node, int64_t step);
#endif
