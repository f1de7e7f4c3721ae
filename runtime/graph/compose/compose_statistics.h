/* SPDX-License-Identifier: BSD-3-Clause */
/* Compositions built on reductions, see compose.h: all and any, variance, normalised exponentials. Dimensions are named
 * as for oly_compose_reduce. */
#ifndef OLY_GRAPH_COMPOSE_STATISTICS_H
#define OLY_GRAPH_COMPOSE_STATISTICS_H
#include "graph/compose/compose.h"

oly_compose oly_compose_any;
oly_compose oly_compose_all;
oly_compose oly_compose_var; /* params.start[0]: subtracted from the number of elements */
oly_compose oly_compose_std;
oly_compose oly_compose_logsumexp;
oly_compose oly_compose_softmax;     /* keepdims is not read */
oly_compose oly_compose_log_softmax; /* keepdims is not read */
oly_compose oly_compose_one_hot;     /* shape[0] classes along params.dimension of the result; dtype */
#endif
