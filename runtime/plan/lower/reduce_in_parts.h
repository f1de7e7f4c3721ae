/* Large sums over devices that are finished part by part. Private to runtime/plan. */
#ifndef OLY_PLAN_LOWER_REDUCE_IN_PARTS_H
#define OLY_PLAN_LOWER_REDUCE_IN_PARTS_H
#include "plan/model/planner.h"

/* Will a sum over devices whose terms lie in an input, and which would be scattered to layout `to` first, rather be finished in
 * parts by the place that reads it? */
bool oly_reduces_in_parts(oly_planner *p, oly_frame *f, const oly_node *sum, const oly_layout *to);
/* A place whose operand is a sum over devices that waits, with its terms in an input: finishes it into a new slot in layout
 * `to`, where doing so at once would take more memory than partial results may. *done tells. */
oly_status oly_reduce_in_parts(oly_planner *p, oly_frame *f, const oly_node *place, const oly_layout *to, int *slot,
                               bool *done);
#endif
