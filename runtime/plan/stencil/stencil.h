/* Loops over fields that take many steps between exchanges. What other rooms may call. */
#ifndef OLY_PLAN_STENCIL_STENCIL_H
#define OLY_PLAN_STENCIL_STENCIL_H
#include "plan/model/planner.h"

/* -- linear_form.c -- */
/* A value of a loop's body as a sum of shifted parts of the carry: sum of coefficient[t] * carry[x + start[t]]. */
typedef struct oly_linear {
    int n;
    int64_t start[OLY_STENCIL_TAPS][OLY_MAX_RANK]; /* of the slice */
    double coefficient[OLY_STENCIL_TAPS];
    bool wraps
        [OLY_MAX_RANK]; /* dimensions that go round: right only where the value has all of them, as callers see to */
} oly_linear;
/* False when it is none. */
bool oly_linear_form(const oly_node *carry, const oly_node *value, oly_linear *form);

/* -- stencil.c -- */
/* Time steps that a loop over fields makes between exchanges, where an option says so; 0: as the planner likes. */
int64_t oly_halo_steps(void);
/* Lowers the loop as a stencil when it is one. *done tells. */
oly_status oly_lower_stencil(oly_planner *p, oly_frame *f, oly_node *n, bool *done);
/* -- stencil_overlap.c: its tiles that need no margins are worked while those are on their way. first: what brings the first ones. -- */
oly_status oly_overlap_stencil(oly_planner *p, oly_step *s, const oly_step *first, oly_stencil_work *work);

/* -- time_tiling.c -- */
/* Lowers the loop as steps of fields over one grid, many at once, when it is of that kind. *done tells. */
oly_status oly_lower_time_tiling(oly_planner *p, oly_frame *f, oly_node *n, bool *done);
#endif
