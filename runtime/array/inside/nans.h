/* SPDX-License-Identifier: BSD-3-Clause */
/* OLYMPUS_CHECK_NANS: checks of every operation. Called by compiled.c before a graph is planned. */
#ifndef OLY_ARRAY_INSIDE_NANS_H
#define OLY_ARRAY_INSIDE_NANS_H
#include "graph/graph.h"

/* Adds a check for every operation that could make a NaN, in bodies too. */
oly_status oly_check_nans(oly_graph *g);
#endif
