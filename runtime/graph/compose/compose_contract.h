/* SPDX-License-Identifier: BSD-3-Clause */
/* What the compositions of products share (compose_contract.c, compose_einsum.c). Inside runtime/graph only. */
#ifndef OLY_GRAPH_COMPOSE_CONTRACT_H
#define OLY_GRAPH_COMPOSE_CONTRACT_H
#include "graph/compose/compose.h"

/* Element types that a product of x may be requested in: wider ones of its kind, and floating ones of integers. fails
 * OLY_DTYPE */
oly_status oly_product_check_type(oly_dtype x, oly_dtype wanted);
/* Converts the operands (in place) to their promoted type, or to the one the recipe requests. */
oly_status oly_product_operands(oly_graph *g, int n, oly_node **in, const oly_recipe *recipe);
/* One dot_general. sharding: the requested one of its result, or NULL. */
oly_status oly_product(oly_graph *g, oly_node *a, oly_node *b, const oly_contraction *c, oly_sharding sharding,
                       oly_node **out);
/* Places the result as the recipe requests. */
oly_status oly_product_place(oly_graph *g, oly_node *x, const oly_recipe *recipe, oly_node **out);
#endif
