/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the batching rules. Private to runtime/transform. */
#ifndef OLY_TRANSFORM_BATCH_RULES_H
#define OLY_TRANSFORM_BATCH_RULES_H
#include "transform/batch.h"

typedef struct oly_batch {
    oly_graph *into;
    const oly_batch_axes *axes;
    oly_lifted *values; /* [nodes of the body] */
    oly_lifted *
        *results; /* [nodes of the body] of loops and branches: their results, or the nodes they are taken from */
    /* results of one call of a function of the program (graph/call.h) are nodes that share their operands, also here */
    const oly_node *call;
    oly_lifted *call_in;
} oly_batch;

/* One rule: the node's counterpart, given its operands'. `in` may be changed. */
typedef oly_status oly_batching(oly_batch *b, const oly_node *node, oly_lifted *in, oly_lifted *out);

static inline int oly_batch_lead(uint32_t axes)
{
    return __builtin_popcount(axes);
}
/* The leading dimension of an axis. */
static inline int oly_batch_place(uint32_t axes, int axis)
{
    return __builtin_popcount(axes & ((1u << axis) - 1));
}
/* Dimensions of the value itself. */
static inline int oly_batch_rank(oly_lifted x)
{
    return x.node->type.rank - oly_batch_lead(x.axes);
}

/* Broadcasts the value along these axes, too. Over Explicit axes it is split as the batch of a vmap is; one made without a mesh adapts. */
oly_status oly_batch_vary(oly_batch *b, oly_lifted *x, uint32_t axes);
/* The same, but one made without a mesh is split, too: it must have the type of another value. */
oly_status oly_batch_vary_typed(oly_batch *b, oly_lifted *x, uint32_t axes);
/* Broadcasts all n to the union of their axes. */
oly_status oly_batch_align(oly_batch *b, int n, oly_lifted *in);
/* The same value with its leading dimensions pinned to their axes; over Explicit axes split as the batch of a vmap is. */
oly_status oly_batch_pin(oly_batch *b, oly_lifted *x);
/* The value in memory, split over the batch axes in its leading dimensions and not elsewhere. */
oly_status oly_batch_settle(oly_batch *b, oly_lifted *x);
/* The sharding that pins the leading dimensions of the named axes, followed by `own` (NULL: nothing) for the value's own
 * dimensions. vmap: the batch is split if all its mesh axes are named. NULL: out of memory. */
oly_sharding oly_batch_sharding(const oly_batch *b, uint32_t axes, uint32_t named, oly_sharding own);
/* Adds the node with its operands' leading dimensions (all the same). */
oly_status oly_batch_apply(oly_batch *b, oly_op op, int n, const oly_lifted *in, const oly_params *params,
                           oly_lifted *out);
/* Prefixes params->shape (and start, step, if `part`) with the leading dimensions of x. fails OLY_SHAPE: too many. */
oly_status oly_batch_shape(oly_lifted x, bool part, oly_params *params);
/* Permutes dimensions: result dimension d is dimension order[d]. */
oly_status oly_batch_reorder(oly_batch *b, oly_node **x, const int *order);
#endif
