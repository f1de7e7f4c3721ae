/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside shard_map: operands that are equal along a Manual axis, in operations with others that vary along it. */
#ifndef OLY_GRAPH_VARYING_H
#define OLY_GRAPH_VARYING_H
#include "graph/graph.h"

/* Where operands vary along different axes, makes all vary along the union (node pvary), as JAX's implicit pcast does;
 * *in then points to aligned[8]. Loops keep theirs. */
oly_status oly_vary_operands(oly_graph *g, oly_op op, int n_in, oly_node *const **in, oly_node **aligned);
/* x, made to vary along these axes too. */
oly_status oly_build_vary(oly_graph *g, oly_node *x, oly_mesh mesh, unsigned axes, oly_node **out);
/* Outputs of graphs of which one will be selected: each varies along the union of the axes of its alternatives. */
oly_status oly_vary_outputs(int n_graphs, oly_graph *const *graphs);
#endif
