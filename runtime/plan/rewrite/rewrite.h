/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes of the graph before it is planned: loop-invariant hoisting, loop fission; and, once axes are propagated, reductions of ravelled
 * arrays, scanned arrays, squeezed slices. Called by plan.c. */
#ifndef OLY_PLAN_REWRITE_REWRITE_H
#define OLY_PLAN_REWRITE_REWRITE_H
#include "plan/model/planner.h"

oly_status oly_hoist(oly_graph *g);
/* The devices of the largest mesh of an input: before layouts are known, what arrays will be split over. */
int oly_input_devices(const oly_planner *p);
/* Splits loops in which some carries only observe the fields, so that fields can be tiled in time. */
oly_status oly_split_loops(oly_planner *p);
/* Makes loops that run once of what computes fields from nearby elements of computed fields. */
oly_status oly_make_field_regions(oly_planner *p);
/* Elements that a result of a region has at least, on a device. Tests change it. */
extern int64_t oly_field_regions_least;
/* Where a reduction of all elements of a reshaped array would gather it: takes the array as it was before. Needs propagated axes; if the
 * graph has changed, frames and axes must be made again. */
oly_status oly_reduce_unravelled(oly_planner *p, oly_frame *f, bool *changed);
/* Splits arrays whose first dimension is split, and which loops go through row by row, along another dimension. Likewise. */
oly_status oly_place_scanned(oly_planner *p, oly_frame *f, bool *changed);
/* Makes views of reshapes that only drop or insert dimensions of size 1 of a part of a value. Needs propagated axes and leaves them. */
void oly_squeeze_views(oly_frame *f);
#endif
