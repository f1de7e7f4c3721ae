/* SPDX-License-Identifier: BSD-3-Clause */
/* The receivers of a block, enumerated from the splits in time proportional to their number, independent of the
 * number of devices. Private to runtime/plan. */
#ifndef OLY_PLAN_MOVE_FIND_RECEIVERS_H
#define OLY_PLAN_MOVE_FIND_RECEIVERS_H
#include "plan/model/planner.h"

/* A set of mesh positions: a range of parts in each dimension, fixed coordinates along some axes, any along the
 * others. */
typedef struct oly_receivers {
    const oly_region *to;
    int fixed[OLY_MAX_RANK];                     /* coordinate along each axis; -1: any */
    int first[OLY_MAX_RANK], last[OLY_MAX_RANK]; /* range of parts of each dimension */
    int n_free, free_axis[OLY_MAX_RANK];         /* axes that split no dimension and are not fixed */
    int part[OLY_MAX_RANK], at[OLY_MAX_RANK];    /* the next position: parts, and coordinates along the free axes */
    bool none;
} oly_receivers;

/* The positions of to's mesh whose boxes may meet `box`. Where fixed[axis] >= 0 their coordinate along that axis
 * equals it. */
oly_receivers oly_receivers_of(const oly_region *to, const oly_box *box, const int *fixed);
/* The next position; false: no more. */
bool oly_receivers_next(oly_receivers *r, int *position);
#endif
