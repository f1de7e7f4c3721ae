/* Nodes as expressions, for compositions of several nodes: operands meet in one type and shape as those of jax.numpy
 * functions do, and once something has failed every function here passes NULL on, so that a composition reads like its
 * formula and looks at the status at the end. Private to compose_*.c. */
#ifndef OLY_GRAPH_SKETCH_H
#define OLY_GRAPH_SKETCH_H
#include "graph/build.h"

typedef struct oly_sketch {
    oly_graph *g;
    oly_status status;
} oly_sketch;

/* One operand, as it is. */
oly_node *oly_sketch_unary(oly_sketch *s, oly_op op, oly_node *x);
/* Two operands (or three), promoted and broadcast. */
oly_node *oly_sketch_binary(oly_sketch *s, oly_op op, oly_node *x, oly_node *y);
oly_node *oly_sketch_select(oly_sketch *s, oly_node *condition, oly_node *x, oly_node *y);
/* A number as the program would write it: weak, floating or whole. */
oly_node *oly_sketch_number(oly_sketch *s, double value);
oly_node *oly_sketch_whole(oly_sketch *s, int64_t value);
/* To another type; to floating point (jnp's promote_args_inexact); bools to int32 (promote_args_numeric). */
oly_node *oly_sketch_convert(oly_sketch *s, oly_node *x, oly_dtype dtype);
oly_node *oly_sketch_floating(oly_sketch *s, oly_node *x);
oly_node *oly_sketch_numeric(oly_sketch *s, oly_node *x);
/* Both to the type they meet in, floating (numeric), in place. */
void oly_sketch_floating_pair(oly_sketch *s, oly_node **x, oly_node **y);
void oly_sketch_numeric_pair(oly_sketch *s, oly_node **x, oly_node **y);
/* False (true) in the shape and with the sharding of x. */
oly_node *oly_sketch_all(oly_sketch *s, oly_node *x, bool value);
/* Integers of x's shape, with its bits; and back. x's type and `dtype` have the same size. */
oly_node *oly_sketch_bits(oly_sketch *s, oly_node *x, oly_dtype dtype);

/* What a composition returns. */
static inline oly_status oly_sketch_done(const oly_sketch *s, oly_node *result, oly_node **out)
{
    *out = result;
    return s->status;
}

static inline oly_kind oly_kind_of(const oly_node *x)
{
    return oly_dtype_kind(x->type.dtype);
}
#endif
