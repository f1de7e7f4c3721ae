/* SPDX-License-Identifier: BSD-3-Clause */
/* Short names for files of nothing but compositions written as expressions (graph/compose/expression.h): s is the
 * expression; g, in, recipe and out are the arguments of the composition. */
#ifndef OLY_GRAPH_EXPRESSION_WORDS_H
#define OLY_GRAPH_EXPRESSION_WORDS_H
#include "graph/compose/expression.h"

#define BEGIN            oly_expression expression = {g, OLY_OK}, *s = &expression;
#define DONE(result)     return oly_expression_done(s, result, out)
#define UNARY(op, x)     oly_expression_unary(s, OLY_OP_##op, x)
#define BINARY(op, x, y) oly_expression_binary(s, OLY_OP_##op, x, y)
#define SELECT(c, x, y)  oly_expression_select(s, c, x, y)
#define NUMBER(value)    oly_expression_number(s, value)
#define WHOLE(value)     oly_expression_whole(s, value)
#define COMPOSE(name)                                                                                                  \
    oly_status oly_compose_##name(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
#define UNUSED (void)n_in, (void)recipe
#endif
