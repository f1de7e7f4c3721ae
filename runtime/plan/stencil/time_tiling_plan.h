/* Between the files that plan loops over fields (time_tiling.h); private to them. */
#ifndef OLY_PLAN_STENCIL_TIME_TILING_PLAN_H
#define OLY_PLAN_STENCIL_TIME_TILING_PLAN_H
#include "plan/model/planner.h"
#include "plan/model/time_tiling.h"

/* time_tiling_form.c: is it an operation that a march may have? */
bool oly_tiling_sees_through(const oly_node *n);
/* What a loop's body does; *found false: nothing of this kind. */
oly_status oly_tiling_find(oly_planner *p, const oly_node *loop, oly_tiling_form *form, bool *found);
/* time_tiling_pass.c: what so many steps at once compute and need; roughly: with all corners, which takes a tenth of the time. */
oly_status oly_tiling_unroll(oly_planner *p, const oly_tiling_form *form, int steps, bool roughly,
                             oly_tiling_pass *pass);
/* What so many steps of a linear form read round what they write: boxes that together leave out most corners that nobody reads. */
oly_status oly_tiling_reach(oly_planner *p, const oly_stencil *stencil, int steps, int *n,
                            const oly_tiling_need **needs);
/* The elements of tiles and their price: seconds a step of one device's block of these extents. */
double oly_tiling_tile(const oly_tiling_form *form, const oly_tiling_pass *pass, const int64_t *extent, int64_t *tile);
/* time_tiling_overlap.c: tiles that need no margins are worked while those are on their way. first: what brings the first ones. */
oly_status oly_overlap_march(oly_planner *p, oly_step *s, const oly_step *first, oly_tiling *m,
                             oly_tiling_device *device);
#endif
