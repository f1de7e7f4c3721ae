/* Single nodes, or none where one would change nothing: what compositions (compose.h) and passes over graphs
 * build with. Every function gives `x` itself when the result would be the same. */
#ifndef OLY_GRAPH_BUILD_H
#define OLY_GRAPH_BUILD_H
#include "graph/graph.h"

/* A rank-0 number; `value` is converted to dtype. */
oly_status oly_build_number(oly_graph *g, oly_dtype dtype, double value, oly_node **out);
/* To another element type. A constant becomes another constant: no conversion is left for run time. */
oly_status oly_build_convert(oly_graph *g, oly_node *x, oly_dtype dtype, bool weak, oly_node **out);
/* The same, but a C number that becomes a bool is true unless it is 0: its imaginary part counts. */
oly_status oly_build_element(oly_graph *g, oly_node *x, oly_dtype dtype, oly_node **out);
/* bool: whether it is not zero. */
oly_status oly_build_truth(oly_graph *g, oly_node *x, oly_node **out);
/* To floating point, if it is not: float32, from int64 float64. */
oly_status oly_build_floating(oly_graph *g, oly_node *x, oly_node **out);
/* To floating point of at least 32 bits. */
oly_status oly_build_wide(oly_graph *g, oly_node *x, oly_node **out);
/* |x|^2, of complex numbers a real one. */
oly_status oly_build_square_magnitude(oly_graph *g, oly_node *x, oly_node **out);
/* To a shape whose trailing dimensions are those of x, each equal or 1 in x. */
oly_status oly_build_broadcast(oly_graph *g, oly_node *x, int rank, const int64_t *shape, oly_node **out);
oly_status oly_build_reshape(oly_graph *g, oly_node *x, int rank, const int64_t *shape, oly_node **out);
oly_status oly_build_transpose(oly_graph *g, oly_node *x, const int *axes, oly_node **out);
/* Without the dimensions of size 1 that `drop` marks. */
oly_status oly_build_squeeze(oly_graph *g, oly_node *x, const bool *drop, oly_node **out);
/* -- Explicit axes (build_sharding.c) -- */
/* Sharded as `out` says: of a mesh without Explicit axes, a constraint. */
oly_status oly_build_reshard(oly_graph *g, oly_node *x, oly_sharding out, oly_node **made);
/* As oly_build_broadcast, sharded as `out` says where that is not NULL: dimensions of x may get axes, not others than they have. */
oly_status oly_build_broadcast_to(oly_graph *g, oly_node *x, int rank, const int64_t *shape, oly_sharding out,
                                  oly_node **made);
/* n operands to their common shape and, when their shapes differ, common sharding (in place). source: jnp.broadcast_arrays */
oly_status oly_build_broadcast_all(oly_graph *g, int n, oly_node **in);
/* The operands of a select (condition, two branches) likewise; a rank-0 condition has no say. source: jnp.where */
oly_status oly_build_choice(oly_graph *g, oly_node **in);
/* A mask made by the library (a diagonal) chooses among the elements of x: x may not be split. fails [select_conflict] */
oly_status oly_build_check_masked(const char *name, const oly_type *x);
/* Without the sharding part of its type: the planner decides. */
oly_status oly_build_auto_axes(oly_graph *g, oly_node *x, oly_node **out);
/* With the sharding part `out` says, whatever it had. */
oly_status oly_build_explicit_axes(oly_graph *g, oly_node *x, oly_sharding sharding, oly_node **out);
oly_status oly_build_apply(oly_graph *g, oly_op op, int n_in, oly_node *const *in, oly_node **out);

/* Converts n operands to the type they meet in (in place). */
oly_status oly_build_promoted(oly_graph *g, int n, oly_node **in);
/* Broadcasts n operands to their common shape (in place). */
oly_status oly_build_common_shape(oly_graph *g, int n, oly_node **in);
/* The shape the leading `rank` dimensions of two operands meet in, aligned at the end; x and y are named in the
 * message. */
oly_status oly_build_meet(const oly_type *x, int x_rank, const oly_type *y, int y_rank, oly_type *common);
/* Axis counted from the front; negative ones count from the end. */
oly_status oly_build_axis(const oly_type *x, int axis, int *out);
/* The same for a new dimension of x. */
oly_status oly_build_new_axis(const oly_type *x, int axis, int *out);
#endif
