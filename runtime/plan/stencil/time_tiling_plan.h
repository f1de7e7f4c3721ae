/* SPDX-License-Identifier: BSD-3-Clause */
/* Private to the files that plan loops over fields (time_tiling.h). */
#ifndef OLY_PLAN_STENCIL_TIME_TILING_PLAN_H
#define OLY_PLAN_STENCIL_TIME_TILING_PLAN_H
#include "plan/model/planner.h"
#include "plan/model/time_tiling.h"

/* time_tiling_form.c: may a loop over fields contain this operation? */
bool oly_tiling_sees_through(const oly_node *n);
/* Do the carries and operations of a counted loop allow one over fields? Most of those are one. */
bool oly_tiling_may_be_found(const oly_node *loop);
/* What a loop's body computes; *found false: it is no loop over fields. */
oly_status oly_tiling_find(oly_planner *p, const oly_node *loop, oly_tiling_form *form, bool *found);
/* time_tiling_fuse.c: the programs that machine code computes. */
oly_status oly_tiling_fuse(oly_planner *p, oly_tiling_form *form);
/* time_tiling_pass.c: what this many steps in one pass compute and need. roughly: one box per value, corners included,
 * which takes a tenth of the time. */
oly_status oly_tiling_unroll(oly_planner *p, const oly_tiling_form *form, int steps, bool roughly,
                             oly_tiling_pass *pass);
/* What this many steps of a linear form read around what they write: boxes that together omit most of the corners that
 * are never read. */
oly_status oly_tiling_reach(oly_planner *p, const oly_stencil *stencil, int steps, int *n,
                            const oly_tiling_need **needs);
/* Sets the extents of tiles and returns their cost: seconds per step, for one device's block of these extents. */
double oly_tiling_tile(const oly_tiling_form *form, const oly_tiling_pass *pass, const int64_t *extent, int64_t *tile);
/* time_tiling_overlap.c: computes the tiles that need no margins while these are on their way. first: the step that
 * brings the first ones. */
oly_status oly_overlap_tiling(oly_planner *p, oly_step *s, const oly_step *first, oly_tiling *m,
                              oly_tiling_device *device);
#endif
