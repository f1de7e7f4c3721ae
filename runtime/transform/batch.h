/* Batching: a graph on the types of one device (shard_map) or of one element of a batch (vmap) becomes nodes of a surrounding
 * graph on whole values. A value that differs along batch axes gets one leading dimension for each, in the order of the axes;
 * one that is the same everywhere stays as it is. The leading dimensions of mesh axes are pinned to them, so that every device
 * holds its own slice and what was local stays local; collectives become operations on the leading dimensions. Called by
 * runtime/array. */
#ifndef OLY_TRANSFORM_BATCH_H
#define OLY_TRANSFORM_BATCH_H
#include "graph/graph.h"

/* What is batched over. */
typedef struct oly_batch_axes {
    oly_mesh mesh;  /* axis k is mesh axis k, and Auto: planned, no part of types; NULL: one axis, 0, of vmap, pinned to
                      nothing */
    oly_mesh named; /* of vmap: what collectives of the body call its axis; NULL: nothing */
    uint32_t all;   /* bits */
    int64_t size[OLY_MAX_RANK];
} oly_batch_axes;

/* A value in the surrounding graph: a leading dimension for each bit of axes, ascending; then its own. */
typedef struct oly_lifted {
    oly_node *node;
    uint32_t axes;
} oly_lifted;

/* Adds the body's nodes to `into`, given what its inputs are there. fails OLY_SHAPE when a value would have too many
 * dimensions. */
oly_status oly_batch_graph(oly_graph *into, const oly_batch_axes *axes, const oly_graph *body, const oly_lifted *inputs,
                           oly_lifted *outputs);

/* -- the boundary of shard_map (boundary.c) ------------------------------------------------------------------------ */
/* The part of an array that one device gets by in_spec. what: for messages, "argument 0". */
oly_status oly_local_type(const oly_type *whole, oly_sharding spec, const char *what, oly_type *local);
/* x, split by its spec (of batch axes only). */
oly_status oly_split_up(oly_graph *g, const oly_batch_axes *axes, oly_node *x, oly_sharding spec, oly_lifted *out);
/* The inverse. Axes the spec does not name: the first slice counts. */
oly_status oly_join_up(oly_graph *g, const oly_batch_axes *axes, oly_lifted x, oly_sharding spec, oly_node **out);
/* vmap: dimension d (0 to rank - 1) of x is the batch. */
oly_status oly_batch_dimension(oly_graph *g, oly_node *x, int d, oly_lifted *out);
/* The inverse; the value is repeated when it is not batched. */
oly_status oly_unbatch_dimension(oly_graph *g, const oly_batch_axes *axes, oly_lifted x, int d, oly_node **out);
#endif
