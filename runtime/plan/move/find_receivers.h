/* Who takes something of a block, found from the splits: the work is that of the receivers there are, whatever the number of
 * devices. Private to runtime/plan. */
#ifndef OLY_PLAN_MOVE_FIND_RECEIVERS_H
#define OLY_PLAN_MOVE_FIND_RECEIVERS_H
#include "plan/model/planner.h"

/* Positions of a mesh: each dimension's part in a range, some axes fixed, the others anything. */
typedef struct oly_receivers {
    const oly_region *to;
    int fixed[OLY_MAX_RANK];                     /* coordinate along each axis; -1: any */
    int first[OLY_MAX_RANK], last[OLY_MAX_RANK]; /* parts of each dimension */
    int n_free, free_axis[OLY_MAX_RANK];         /* axes that cut no dimension and are not fixed */
    int part[OLY_MAX_RANK], at[OLY_MAX_RANK];    /* where it stands: parts, and coordinates along the free axes */
    bool none;
} oly_receivers;

/* The positions of to's mesh whose boxes may meet `box`, and whose coordinates along the axes with fixed[axis] >= 0 are those. */
oly_receivers oly_receivers_of(const oly_region *to, const oly_box *box, const int *fixed);
/* The next one; false: no more. */
bool oly_receivers_next(oly_receivers *r, int *position);
#endif
