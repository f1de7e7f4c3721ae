/* Recognising stencil loops. */
#include "plan/planner.h"
oly_status oly_lower_stencil(oly_planner *p, oly_frame *f, oly_node *n, bool *done)
{
    (void)p;
    (void)f;
    (void)n;
    *done = false;
    return OLY_OK;
}
