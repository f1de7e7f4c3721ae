/* SPDX-License-Identifier: BSD-3-Clause */
/* Compositions that rearrange elements, see compose.h. The comments name the parts of the recipe that each reads. */
#ifndef OLY_GRAPH_COMPOSE_REARRANGE_H
#define OLY_GRAPH_COMPOSE_REARRANGE_H
#include "graph/compose/compose.h"

oly_compose oly_compose_pad; /* in[1] rank 0; params.start: before, shape: after, step: 1 + elements between */
/* params.start: before, shape: after, dimension: oly_surround */
typedef enum oly_surround {
    OLY_SURROUND_EDGE,
    OLY_SURROUND_REFLECT,
    OLY_SURROUND_SYMMETRIC,
    OLY_SURROUND_WRAP
} oly_surround;
oly_compose oly_compose_surround;
oly_compose oly_compose_rev;              /* params.axes, or all_axes */
oly_compose oly_compose_roll;             /* params.axes by params.start; all_axes: flattened, by start[0] */
oly_compose oly_compose_tile;             /* params.shape: how often, for the last params.rank dimensions */
oly_compose oly_compose_repeat;           /* shape[0] times along params.dimension; all_axes: flattened */
oly_compose oly_compose_squeeze;          /* params.axes; all_axes: all of size 1 */
oly_compose oly_compose_expand_dims;      /* params.axes of the result */
oly_compose oly_compose_stack;            /* params.dimension of the result */
oly_compose oly_compose_broadcast_in_dim; /* operand dimension d becomes params.axes[d] of params.shape */
oly_compose oly_compose_diff;             /* shape[0] times along params.dimension */
oly_compose oly_compose_eye;              /* params.shape: rows, columns; start[0]: which diagonal; dtype */
oly_compose oly_compose_tri;              /* the same, and all below it */
oly_compose oly_compose_tril;             /* start[0]: the last diagonal that stays */
oly_compose oly_compose_triu;             /* start[0]: the first diagonal that stays */
oly_compose oly_compose_diagonal;         /* params.axes[0], [1]; start[0]: which */
oly_compose oly_compose_diag;             /* the matrix of a vector, or the diagonal of a matrix; start[0]: which */
oly_compose oly_compose_trace;            /* as oly_compose_diagonal */
oly_compose oly_compose_linspace; /* in: ends; shape[0] numbers; start[0]: whether the second end is included; dtype */
oly_compose oly_compose_progression; /* in: first, step; shape[0] numbers; dtype */

/* Elements [begin, end) of dimension d; x itself if that is all of them. */
oly_status oly_rearrange_part(oly_graph *g, oly_node *x, int d, int64_t begin, int64_t end, oly_node **out);
#endif
