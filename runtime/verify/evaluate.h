/* SPDX-License-Identifier: BSD-3-Clause */
/* Evaluates a graph operation by operation: each node has a plan of its own, made without optimisations; bodies of
 * loops are evaluated once per iteration, of branches the one that the index selects. It shares nothing with the plan
 * of the whole graph but kernels, the partitioning of single operations, and transfers between shardings. Private to
 * runtime/verify. */
#ifndef OLY_VERIFY_EVALUATE_H
#define OLY_VERIFY_EVALUATE_H
#include "verify/held.h"

typedef struct oly_evaluator oly_evaluator;

/* The graph is not changed and must outlive the evaluator. */
oly_status oly_evaluator_new(const oly_graph *g, oly_evaluator **e);
void oly_evaluator_free(oly_evaluator *e); /* NULL allowed */
/* Properties of the plan to compare with. mesh: of most values. taps: sums in loops may be computed with fused
 * multiply-adds (see oly_rounding_of). */
void oly_evaluator_expect(oly_evaluator *e, oly_mesh mesh, bool taps);

/* One evaluation. disturbed: 0, or a seed: every result that may be computed in another order is then moved by its
 * rounding error times `scale`. values[node]: the value of each node of the outermost graph, shared, NULL for those
 * without one; or NULL. */
typedef struct oly_evaluation {
    oly_held *const *in; /* [inputs] */
    uint64_t disturbed;
    double scale;
    oly_held **out;    /* [outputs] */
    oly_held **values; /* [n_nodes] */
} oly_evaluation;
oly_status oly_evaluate(oly_evaluator *e, const oly_evaluation *what);
#endif
