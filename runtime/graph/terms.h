/* SPDX-License-Identifier: BSD-3-Clause */
/* The terms of a sum over devices along a dimension of their own: what represents an unreduced value outside a plan. */
#ifndef OLY_GRAPH_TERMS_H
#define OLY_GRAPH_TERMS_H
#include "graph/graph.h"

/* A node of type `wide` (dimension 0: the terms) sharded as `split`: the partial sums or products of each device,
 * without communication; of an unreduced input its terms, moved, or added over some of its axes. *out is NULL where the
 * node is none of these, or the summed dimension is not split evenly over those axes. */
oly_status oly_build_terms(oly_graph *g, const oly_node *node, const oly_type *wide, oly_sharding split,
                           oly_node **out);
#endif
