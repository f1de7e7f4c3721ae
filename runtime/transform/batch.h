/* SPDX-License-Identifier: BSD-3-Clause */
/* Batching: a graph on the types of one device (shard_map) or of one element of a batch (vmap) becomes nodes of the enclosing
 * graph on whole values. A value that varies along batch axes gets one leading dimension for each, in the order of the axes;
 * one that is the same everywhere stays as it is. The leading dimensions of mesh axes are pinned to them, so that every device
 * holds its own slice and local operations stay local; collectives become operations on the leading dimensions. Called by
 * runtime/array. */
#ifndef OLY_TRANSFORM_BATCH_H
#define OLY_TRANSFORM_BATCH_H
#include "graph/graph.h"

/* The axes that are batched over. */
typedef struct oly_batch_axes {
    oly_mesh mesh;  /* axis k is mesh axis k, and Auto: planned, no part of types; NULL: one axis, 0, of vmap, pinned to
                      nothing */
    oly_mesh named; /* of vmap: the name of its axis for collectives of the body; NULL: none */
    oly_mesh split_mesh; /* of vmap: the mesh in the types of the mapped values; NULL: nothing is explicit */
    oly_axis_list split; /* its Explicit axes that split the batch; all values keep them */
    uint32_t all;        /* bits */
    int64_t size[OLY_MAX_RANK];
    const struct oly_lifted
        *active; /* of what is computed for all elements: those for which effects happen; NULL: all */
} oly_batch_axes;

/* A value in the enclosing graph: a leading dimension for each bit of axes, ascending; then its own. */
typedef struct oly_lifted {
    oly_node *node;
    uint32_t axes;
} oly_lifted;

/* Adds the body's nodes to `into`, given the counterparts of its inputs. fails OLY_SHAPE if a value would have too many
 * dimensions. */
oly_status oly_batch_graph(oly_graph *into, const oly_batch_axes *axes, const oly_graph *body, const oly_lifted *inputs,
                           oly_lifted *outputs);

/* -- the boundary of shard_map (boundary.c) ------------------------------------------------------------------------ */
/* The part of an array that one device gets by in_spec. what: for messages, "argument 0". */
oly_status oly_local_type(const oly_type *whole, oly_sharding spec, const char *what, oly_type *local);
/* x, split by its spec (of batch axes only). */
oly_status oly_split_up(oly_graph *g, const oly_batch_axes *axes, oly_node *x, oly_sharding spec, oly_lifted *out);
/* The inverse. Along axes that the spec does not name the first slice is taken. */
oly_status oly_join_up(oly_graph *g, const oly_batch_axes *axes, oly_lifted x, oly_sharding spec, oly_node **out);
/* vmap: dimension d (0 to rank - 1) of x is the batch. */
oly_status oly_batch_dimension(oly_graph *g, oly_node *x, int d, oly_lifted *out);
/* The inverse; a value that is not batched is broadcast. */
oly_status oly_unbatch_dimension(oly_graph *g, const oly_batch_axes *axes, oly_lifted x, int d, oly_node **out);
#endif
