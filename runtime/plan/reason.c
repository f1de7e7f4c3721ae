/* Reasons: why values lie as they do. Noted by whoever chooses axes, told by explanations. */
#include "plan/planner.h"

void oly_note_reason(oly_planner *p, oly_value *v, int d, oly_reason reason)
{
    oly_reason *r = OLY_PLAN_NEW(p, oly_reason, 1);
    if (!r)
        return; /* the plan is none the worse; what fails next says that memory is short */
    *r = reason;
    r->dimension = d;
    r->next = v->reasons;
    v->reasons = r;
}
