/* SPDX-License-Identifier: BSD-3-Clause */
/* Notes at steps. See prepared_steps.h. */
#include "run/prepared_steps.h"
#include "core/error.h"
#include "run/prepare_cpu.h"

oly_prepared *oly_prepared_own(oly_plan *plan, oly_step *s)
{
    oly_prepared *made = OLY_ARENA_NEW(&plan->arena, oly_prepared, 1);
    if (made && s->prepared)
        *made = *s->prepared;
    if (made)
        s->prepared = made;
    return made;
}

oly_status oly_each_block(const oly_block *b, oly_block_visitor *visit, void *context)
{
    if (!b)
        return OLY_OK;
    OLY_TRY(visit(b, context));
    for (int k = 0; k < b->n_steps; k++) {
        const oly_step *s = &b->steps[k];
        if (s->kind == OLY_STEP_LOOP)
            OLY_TRY(oly_each_block(s->loop.body, visit, context));
        for (int j = 0; s->kind == OLY_STEP_BRANCH && j < s->branch.n; j++)
            OLY_TRY(oly_each_block(s->branch.blocks[j], visit, context));
    }
    return OLY_OK;
}
