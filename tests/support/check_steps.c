/* SPDX-License-Identifier: BSD-3-Clause */
/* See check_steps.h. */
#include "check_steps.h"

static int count_in(const oly_block *b, bool (*counts)(const oly_step *))
{
    int n = 0;
    for (int k = 0; b && k < b->n_steps; k++) {
        n += counts(&b->steps[k]);
        if (b->steps[k].kind == OLY_STEP_LOOP)
            n += count_in(b->steps[k].loop.body, counts);
    }
    return n;
}

int check_count_steps(const oly_plan *plan, bool (*counts)(const oly_step *))
{
    return count_in(plan->main, counts);
}
