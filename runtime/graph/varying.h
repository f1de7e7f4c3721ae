/* Values inside shard_map that are the same along a manual axis, and operations with others that vary along it. */
#ifndef OLY_GRAPH_VARYING_H
#define OLY_GRAPH_VARYING_H
#include "graph/graph.h"

/* Where operands vary along different axes, all are made to vary along the union (node pvary), as JAX's implicit pcast does; *in
 * then points to aligned[8]. Loops keep theirs. */
oly_status oly_vary_operands(oly_graph *g, oly_op op, int n_in, oly_node *const **in, oly_node **aligned);
/* x, varying along these axes too. */
oly_status oly_build_vary(oly_graph *g, oly_node *x, oly_mesh mesh, unsigned axes, oly_node **out);
/* Results of graphs of which one will be chosen: each varies along the axes that it varies along in any of them. */
oly_status oly_vary_outputs(int n_graphs, oly_graph *const *graphs);
#endif
