/* SPDX-License-Identifier: BSD-3-Clause */
/* Loops over fields that take many steps between exchanges. What other rooms may call. */
#ifndef OLY_PLAN_STENCIL_STENCIL_H
#define OLY_PLAN_STENCIL_STENCIL_H
#include "plan/model/planner.h"

/* -- linear_form.c -- */
/* A value of a loop's body as a linear form of the carry: the sum of coefficient[t] * carry[x + start[t]]. */
typedef struct oly_linear {
    int n;
    int64_t start[OLY_STENCIL_TAPS][OLY_MAX_RANK]; /* start of the slice */
    double coefficient[OLY_STENCIL_TAPS];
    bool wraps[OLY_MAX_RANK]; /* periodic dimensions; the value must span them, which callers check */
} oly_linear;
/* False: the value is no linear form. */
bool oly_linear_form(const oly_node *carry, const oly_node *value, oly_linear *form);

/* -- stencil.c -- */
/* Time steps between exchanges, if an option sets them; 0: the planner chooses. */
int64_t oly_halo_steps(void);
/* Lowers the loop as a stencil if it is one; sets *done then. */
oly_status oly_lower_stencil(oly_planner *p, oly_frame *f, oly_node *n, bool *done);
/* stencil_overlap.c: computes the tiles that need no margins while these are on their way. first: the step that brings
 * the first ones. */
oly_status oly_overlap_stencil(oly_planner *p, oly_step *s, const oly_step *first, oly_stencil_work *work);

/* -- time_tiling.c -- */
/* Lowers the loop as time tiling over several fields of one grid, if it has that form; sets *done then. */
oly_status oly_lower_time_tiling(oly_planner *p, oly_frame *f, oly_node *n, bool *done);
#endif
