/* Running stencil loops. */
#include "run/stencil_run.h"
oly_status oly_run_stencil(oly_run *r, const oly_step *step)
{
    (void)r;
    (void)step;
    return OLY_OK;
}
