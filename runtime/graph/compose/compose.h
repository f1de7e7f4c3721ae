/* SPDX-License-Identifier: BSD-3-Clause */
/* The public operations as nodes: promotion, weak numbers, broadcasting, and operations made of others (mean, relu,
 * matmul). Each takes operand nodes and parameters and adds nodes to the graph. runtime/array/operations/operations.c
 * hands them to the dispatcher, which calls them while tracing and, once per signature, for eager calls. */
#ifndef OLY_GRAPH_COMPOSE_H
#define OLY_GRAPH_COMPOSE_H
#include "graph/graph.h"

/* What a composition needs besides its operands; hashed and compared as memory. */
typedef struct oly_recipe {
    oly_op op; /* the elementwise or reduction row */
    oly_params params;
    bool keepdims;
    bool all_axes;
    bool tiled, invariant; /* collectives */
    bool dtype_given;      /* products: params.dtype is the requested element type */
    bool numbers_wrap;     /* C integers may exceed their type, and are converted as arrays would be */
    /* convolutions, windowed reductions: params.window is NULL, and points here when a node is added */
    oly_sliding_window window;
    const char *notation; /* einsum: from oly_intern_text, so that equal notations are one pointer */
} oly_recipe;

typedef oly_status oly_compose(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out);

oly_compose oly_compose_unary;    /* recipe.op; numbers of any type */
oly_compose oly_compose_floating; /* unary after conversion of integers to floating */
oly_compose oly_compose_binary;   /* promote, broadcast, apply */
oly_compose oly_compose_divide;   /* true division */
oly_compose oly_compose_relu;
oly_compose oly_compose_where;
oly_compose oly_compose_convert; /* to params.dtype */
oly_compose oly_compose_astype;  /* the same; to bool: x != 0 */
oly_compose oly_compose_part;    /* recipe.op: real, imag, conj; also of real numbers */
oly_compose oly_compose_complex; /* of real and imaginary parts */
oly_compose oly_compose_reduce;  /* sum, prod, max, min over params.axes (or all), keepdims */
oly_compose oly_compose_mean;
oly_compose oly_compose_reshape;   /* params.shape with at most one -1 */
oly_compose oly_compose_transpose; /* params.axes, n_axes 0: reversed */
oly_compose oly_compose_broadcast; /* to params.shape */
/* How slices and updates treat a dimension, in params.axes[d]. */
enum { OLY_PART_KEPT, OLY_PART_DROPPED, OLY_PART_REVERSED };
oly_compose oly_compose_slice;  /* params.start, shape, step (1 or more), axes */
oly_compose oly_compose_update; /* in[1] converted and broadcast to the part (dropped dimensions as in slice) */
oly_compose oly_compose_concatenate;
oly_compose oly_compose_iota;       /* params.shape, dimension, dtype */
oly_compose oly_compose_full;       /* in[0] converted to params.dtype, broadcast to params.shape */
oly_compose oly_compose_place;      /* params.sharding */
oly_compose oly_compose_reshard;    /* Explicit axes as params.sharding says */
oly_compose oly_compose_constraint; /* as place, but only checked over Explicit axes */
/* Collectives (compose_collective.c) over params.over, Manual axes of params.mesh. The tiled forms keep the dimensions
 * and split or concatenate them. */
oly_compose oly_compose_pvary;
oly_compose oly_compose_psum; /* recipe.op: psum, pmax, pmin */
oly_compose oly_compose_pmean;
oly_compose oly_compose_all_gather;   /* at params.dimension; invariant: in its type */
oly_compose oly_compose_psum_scatter; /* params.dimension */
oly_compose oly_compose_all_to_all;   /* params.dimension is split, params.axes[0] inserted */
oly_compose oly_compose_ppermute;     /* params.permutation */
oly_compose oly_compose_axis_index;
/* Along one dimension, params.dimension, or all_axes: the flattened array (compose_along.c). */
oly_compose oly_compose_sort;      /* params.reverse: descending */
oly_compose oly_compose_argsort;   /* of several keys too; params.reverse: descending; params.dtype: of the indexes */
oly_compose oly_compose_top_k;     /* positions of the params.count largest */
oly_compose oly_compose_running;   /* recipe.op, params.reverse; bools as params.dtype */
oly_compose oly_compose_argreduce; /* recipe.op over params.axes (or all_axes), keepdims, params.dtype */
oly_compose oly_compose_searchsorted; /* params.reverse: side right */
/* By value (compose_index.c). params.index_mode; params.dimension, or all_axes: flattened; params.sharding: of the
 * result. */
oly_compose oly_compose_take;
oly_compose oly_compose_take_along;
oly_compose oly_compose_apply_along;   /* the same, with indexes known to be in range */
oly_compose oly_compose_at_get;        /* in[1], in[2], ... index the leading dimensions */
oly_compose oly_compose_at_update;     /* recipe.op (a scatter) of the last operand */
oly_compose oly_compose_dynamic_slice; /* params.shape */
oly_compose oly_compose_dynamic_update_slice;
oly_compose oly_compose_segment_sum; /* params.count segments */
oly_compose oly_compose_bincount;    /* params.count bins of params.dtype */

/* -- products (compose_contract.c, compose_einsum.c): params.sharding is the requested sharding of the result,
 * dtype_given its type */
oly_compose oly_compose_dot_general; /* params.contraction */
oly_compose oly_compose_matmul;
oly_compose oly_compose_dot;
oly_compose oly_compose_inner;
oly_compose oly_compose_outer;
oly_compose oly_compose_vdot;
oly_compose oly_compose_einsum; /* notation */
/* Windows (compose_window.c): params.window. */
oly_compose oly_compose_conv;      /* notation: the order of dimensions, or NULL */
oly_compose oly_compose_convolve;  /* params.dimension: 0 full, 1 same, 2 valid */
oly_compose oly_compose_correlate; /* the same */
oly_compose oly_compose_window;    /* recipe.op */
oly_compose oly_compose_avg_pool;
#endif
