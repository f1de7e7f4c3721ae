/* SPDX-License-Identifier: BSD-3-Clause */
/* Where an operation goes: into the open trace or, eagerly, through the plan cache. Called only by the public functions
 * of runtime/array. */
#ifndef OLY_ARRAY_DISPATCH_H
#define OLY_ARRAY_DISPATCH_H
#include "graph/compose/compose.h"
#include <olympus/index.h>

/* Applies a composition to operands (arrays, traced arrays or C numbers). Raises errors; NULL on failure or if an
 * operand of kind 'a' is NULL. The result belongs to the open scope. */
oly_array oly_dispatch(oly_compose *compose, int n_in, const oly_operand *in, const oly_recipe *recipe);
/* A C number as a constant. */
oly_status oly_number_node(oly_graph *g, const oly_operand *x, oly_node **node);
/* Reads a reduction's dimensions and options into its recipe. fails OLY_PARSE, OLY_INVALID */
oly_status oly_read_reduce_options(const oly_reduce_options *options, oly_recipe *recipe);
void oly_dispatch_reset(void); /* empties the cache; at finalize */
#endif
