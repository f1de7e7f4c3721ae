/* SPDX-License-Identifier: BSD-3-Clause */
/* Integers of a counted loop's body that are known in each iteration, because they are computed from the counter and constants. Callable
 * from graph and above. */
#ifndef OLY_GRAPH_COUNTERS_H
#define OLY_GRAPH_COUNTERS_H
#include "graph/graph.h"

/* first + i * step in iteration i = 0, 1, ... count - 1 */
typedef struct oly_counted {
    int64_t first, step, count;
} oly_counted;

/* Is `n`, of rank 0 in the body of `loop`, such a number? Not of loops that a condition ends. */
bool oly_counted_of(const oly_node *loop, const oly_node *n, oly_counted *form);
#endif
