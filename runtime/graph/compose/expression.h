/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes as expressions, for compositions of several nodes. Operands are promoted and broadcast as by jax.numpy
 * functions; after a failure every function here passes NULL on, so a composition reads like its formula and checks the
 * status once, at the end. Private to compose_*.c. */
#ifndef OLY_GRAPH_EXPRESSION_H
#define OLY_GRAPH_EXPRESSION_H
#include "graph/build.h"

typedef struct oly_expression {
    oly_graph *g;
    oly_status status;
} oly_expression;

/* One operand, unchanged. */
oly_node *oly_expression_unary(oly_expression *s, oly_op op, oly_node *x);
/* Two operands (or three), promoted and broadcast. */
oly_node *oly_expression_binary(oly_expression *s, oly_op op, oly_node *x, oly_node *y);
oly_node *oly_expression_select(oly_expression *s, oly_node *condition, oly_node *x, oly_node *y);
/* A number as the program would write it: weak, floating or integer. */
oly_node *oly_expression_number(oly_expression *s, double value);
oly_node *oly_expression_whole(oly_expression *s, int64_t value);
/* Conversions: to a type; to floating point (jnp's promote_args_inexact); of bools to int32 (promote_args_numeric). */
oly_node *oly_expression_convert(oly_expression *s, oly_node *x, oly_dtype dtype);
oly_node *oly_expression_floating(oly_expression *s, oly_node *x);
oly_node *oly_expression_numeric(oly_expression *s, oly_node *x);
/* Converts both to their promoted type, floating (numeric), in place. */
void oly_expression_floating_pair(oly_expression *s, oly_node **x, oly_node **y);
void oly_expression_numeric_pair(oly_expression *s, oly_node **x, oly_node **y);
/* False (true) in the shape and with the sharding of x. */
oly_node *oly_expression_all(oly_expression *s, oly_node *x, bool value);
/* Integers of x's shape, with its bits; and back. x's type and `dtype` have the same size. */
oly_node *oly_expression_bits(oly_expression *s, oly_node *x, oly_dtype dtype);

/* What a composition returns. */
static inline oly_status oly_expression_done(const oly_expression *s, oly_node *result, oly_node **out)
{
    *out = result;
    return s->status;
}

static inline oly_kind oly_kind_of(const oly_node *x)
{
    return oly_dtype_kind(x->type.dtype);
}
#endif
