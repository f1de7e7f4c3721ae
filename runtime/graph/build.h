/* SPDX-License-Identifier: BSD-3-Clause */
/* Building single nodes, for compositions (compose.h) and passes over graphs. No node is added where it would change
 * nothing: every function then returns `x` itself. */
#ifndef OLY_GRAPH_BUILD_H
#define OLY_GRAPH_BUILD_H
#include "graph/graph.h"

/* A rank-0 number; `value` is converted to dtype. */
oly_status oly_build_number(oly_graph *g, oly_dtype dtype, double value, oly_node **out);
/* Conversion to another element type. A constant is converted at once: nothing is left for run time. */
oly_status oly_build_convert(oly_graph *g, oly_node *x, oly_dtype dtype, bool weak, oly_node **out);
/* The same, but a C number converted to bool is true unless it is 0, imaginary part included. */
oly_status oly_build_element(oly_graph *g, oly_node *x, oly_dtype dtype, oly_node **out);
/* Conversion to bool: x != 0. */
oly_status oly_build_truth(oly_graph *g, oly_node *x, oly_node **out);
/* Conversion to floating point if x is not: int64 to float64, others to float32. */
oly_status oly_build_floating(oly_graph *g, oly_node *x, oly_node **out);
/* Conversion to floating point of at least 32 bits. */
oly_status oly_build_wide(oly_graph *g, oly_node *x, oly_node **out);
/* |x|^2; real for complex x. */
oly_status oly_build_square_magnitude(oly_graph *g, oly_node *x, oly_node **out);
/* Broadcasts to a shape whose trailing dimensions are those of x, or 1 in x. */
oly_status oly_build_broadcast(oly_graph *g, oly_node *x, int rank, const int64_t *shape, oly_node **out);
oly_status oly_build_reshape(oly_graph *g, oly_node *x, int rank, const int64_t *shape, oly_node **out);
oly_status oly_build_transpose(oly_graph *g, oly_node *x, const int *axes, oly_node **out);
/* Drops the dimensions of size 1 that `drop` marks. */
oly_status oly_build_squeeze(oly_graph *g, oly_node *x, const bool *drop, oly_node **out);
/* Converts the value of a constant, given by its parameters: integers wrap, floating-point numbers truncate and saturate. */
void oly_convert_number(oly_params *number, oly_dtype dtype, bool weak);
/* -- Explicit axes (build_sharding.c) -- */
/* Reshards to `out`. On a mesh without Explicit axes this is a constraint. */
oly_status oly_build_reshard(oly_graph *g, oly_node *x, oly_sharding out, oly_node **made);
/* As oly_build_broadcast, sharded as `out` says unless it is NULL: dimensions of x may gain axes, but not change those
 * they have. */
oly_status oly_build_broadcast_to(oly_graph *g, oly_node *x, int rank, const int64_t *shape, oly_sharding out,
                                  oly_node **made);
/* Broadcasts n operands to their common shape and, where shapes differ, to their common sharding (in place). source:
 * jnp.broadcast_arrays */
oly_status oly_build_broadcast_all(oly_graph *g, int n, oly_node **in);
/* The same for the operands of a select (condition, two branches); a rank-0 condition does not count. source:
 * jnp.where */
oly_status oly_build_choice(oly_graph *g, oly_node **in);
/* Checks that x is not split: a mask made by the library (a diagonal) is about to select among its elements. fails
 * [select_conflict] */
oly_status oly_build_check_masked(const char *name, const oly_type *x);
/* Drops the sharding part of the type: the planner decides. */
oly_status oly_build_auto_axes(oly_graph *g, oly_node *x, oly_node **out);
/* Replaces the sharding part of the type by that of `out`. */
oly_status oly_build_explicit_axes(oly_graph *g, oly_node *x, oly_sharding sharding, oly_node **out);
oly_status oly_build_apply(oly_graph *g, oly_op op, int n_in, oly_node *const *in, oly_node **out);

/* Converts n operands to their promoted type (in place). */
oly_status oly_build_promoted(oly_graph *g, int n, oly_node **in);
/* Converts what is written into part of x to x's type (in place). fails OLY_DTYPE: the two have no common type. */
oly_status oly_build_convert_written(oly_graph *g, const oly_type *x, oly_node **in);
/* Broadcasts n operands to their common shape (in place). */
oly_status oly_build_common_shape(oly_graph *g, int n, oly_node **in);
/* The common shape of the leading `rank` dimensions of two operands, aligned at the end. x and y are named in
 * messages. */
oly_status oly_build_meet(const oly_type *x, int x_rank, const oly_type *y, int y_rank, oly_type *common);
/* Normalises an axis: negative ones count from the end. */
oly_status oly_build_axis(const oly_type *x, int axis, int *out);
/* The same for a dimension to be inserted into x. */
oly_status oly_build_new_axis(const oly_type *x, int axis, int *out);
#endif
