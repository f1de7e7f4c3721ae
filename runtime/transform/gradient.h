/* SPDX-License-Identifier: BSD-3-Clause */
/* Differentiation of graphs: adds nodes that compute derivatives to a graph under construction. Called by runtime/array (oly_grad
 * and its relatives), and by the rules of loops and branches. */
#ifndef OLY_TRANSFORM_GRADIENT_H
#define OLY_TRANSFORM_GRADIENT_H
#include "graph/graph.h"

/* Reverse mode: the cotangents of `wrt` (any nodes of g), given those of `out`, which have out's types; NULL means zero.
 * gradient[k] becomes NULL if `out` does not depend differentiably on wrt[k]. Walks backwards from the outputs,
 * operation by operation (the column `gradient` of ops.def).
 *   fails  OLY_INVALID, naming the call, if the walk meets an operation without a derivative */
oly_status oly_gradient(oly_graph *g, int n_out, oly_node *const *out, oly_node *const *cotangent, int n_wrt,
                        oly_node *const *wrt, oly_node **gradient);

/* Forward mode: the tangents of `out`, given those of `wrt` (NULL: zero). The pullback is linear in its cotangents; it is
 * recorded and then transposed, so that only reverse rules are needed. tangent[k] NULL: zero. */
oly_status oly_pushforward(oly_graph *g, int n_out, oly_node *const *out, int n_wrt, oly_node *const *wrt,
                           oly_node *const *wrt_tangent, oly_node **tangent);

/* Zeros of a node's type, including its sharding. */
oly_status oly_zeros_like(oly_graph *g, const oly_node *node, oly_node **zeros);

/* May a derivative be taken with respect to values of this type? */
static inline bool oly_differentiable(oly_dtype dtype)
{
    return oly_dtype_kind(dtype) >= OLY_KIND_FLOAT;
}
#endif
