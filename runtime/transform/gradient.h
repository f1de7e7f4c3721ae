/* Differentiation of graphs: adds nodes that compute derivatives to a graph that is being made. Called by runtime/array
 * (oly_grad and its kin), and by the rules of loops and branches. */
#ifndef OLY_TRANSFORM_GRADIENT_H
#define OLY_TRANSFORM_GRADIENT_H
#include "graph/graph.h"

/* Reverse mode: the cotangents of `wrt` (any nodes of g), given those of `out`, which have out's types; a NULL stands for zero.
 * gradient[k] becomes NULL where nothing of `out` depends on wrt[k] in a differentiable way. Walks backwards from the outputs,
 * operation by operation (the column `gradient` of ops.def).
 *   fails  OLY_INVALID, naming the call, when the way back meets an operation that has no derivative */
oly_status oly_gradient(oly_graph *g, int n_out, oly_node *const *out, oly_node *const *cotangent, int n_wrt,
                        oly_node *const *wrt, oly_node **gradient);

/* Forward mode: the tangents of `out`, given those of `wrt` (NULL: zero). The pullback is linear in its cotangents; it is
 * recorded and then transposed, so that reverse rules are all there is. tangent[k] NULL: zero. */
oly_status oly_pushforward(oly_graph *g, int n_out, oly_node *const *out, int n_wrt, oly_node *const *wrt,
                           oly_node *const *wrt_tangent, oly_node **tangent);

/* Zeros of a node's type, that of its sharding included. */
oly_status oly_zeros_like(oly_graph *g, const oly_node *node, oly_node **zeros);

/* May a derivative be taken with respect to values of this type? */
static inline bool oly_differentiable(oly_dtype dtype)
{
    return oly_dtype_kind(dtype) >= OLY_KIND_FLOAT;
}
#endif
