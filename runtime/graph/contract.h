/* SPDX-License-Identifier: BSD-3-Clause */
/* The parameters of products, as compositions, type rules, factors and the planner read them. Callable from graph and
 * above. */
#ifndef OLY_GRAPH_CONTRACT_H
#define OLY_GRAPH_CONTRACT_H
#include "graph/graph.h"

/* The role of a dimension of a dot_general operand. */
typedef enum { OLY_DIM_FREE, OLY_DIM_BATCH, OLY_DIM_CONTRACT } oly_dim_role;

/* The dimensions of both operands by role. */
typedef struct oly_contraction_dims {
    oly_dim_role role[2][OLY_MAX_RANK]; /* [operand][dimension] */
    int number[2][OLY_MAX_RANK];        /* of its pair; free dimensions are numbered per operand */
    int n_free[2];
    int free[2][OLY_MAX_RANK];   /* the free dimensions */
    int result[2][OLY_MAX_RANK]; /* position in the result; -1: summed over */
} oly_contraction_dims;

/* Checks that every dimension is named at most once, exists, and that pairs have equal sizes: OLY_SHAPE. */
oly_status oly_contraction_read(const oly_type *left, const oly_type *right, const oly_contraction *c,
                                oly_contraction_dims *dims);
/* Places of dimension d of a window over n elements; 0 when the window does not fit. fails OLY_SHAPE: padding removes more than
 * there is; OLY_OVERFLOW. The window's numbers have been checked. */
oly_status oly_window_places(const oly_sliding_window *w, int d, int64_t n, int64_t *places);
/* Elements n become with d - 1 of padding between each two. */
static inline int64_t oly_dilated(int64_t n, int64_t d)
{
    return n > 0 ? (n - 1) * d + 1 : 0;
}
#endif
