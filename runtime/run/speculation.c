/* SPDX-License-Identifier: BSD-3-Clause */
/* Iterations of loops that are launched before it is known whether there are any. See speculation.h. */
#include "run/speculation.h"
#include "core/optimisation.h"
#include "run/device_counts.h"
#include "run/executor.h"
#include "run/only_launches.h"
#include "run/prepared_steps.h"
#include "run/timed_steps.h"

/* -- which loops ----------------------------------------------------------------------------------------------------------------- */

bool oly_keeps_carries(const oly_step *s)
{
    for (int k = 0; k < s->loop.n_carry; k++)
        if (s->loop.out_slot[k] == s->loop.in_slot[k])
            return false;
    return true;
}

static oly_status mark(oly_plan *plan, oly_step *s)
{
    oly_launches sum = {0};
    if (s->loop.predicate < 0 || !oly_keeps_carries(s) || !oly_only_launches(plan, s->loop.body, &sum))
        return OLY_OK;
    oly_speculation *x = OLY_ARENA_NEW(&plan->arena, oly_speculation, 1);
    oly_prepared *own = oly_prepared_own(plan, s);
    if (!x || !own)
        return oly_out_of_memory(sizeof *own, "a program");
    x->work = sum.work;
    own->speculation = x;
    return OLY_OK;
}

static oly_status prepare_block(const oly_block *b, void *plan)
{
    for (int k = 0; k < b->n_steps; k++)
        if (b->steps[k].kind == OLY_STEP_LOOP)
            OLY_TRY(mark(plan, &b->steps[k]));
    return OLY_OK;
}

oly_status oly_speculation_prepare(oly_plan *plan)
{
    bool can = oly_executor_get()->read_begin && oly_platform_is_late() && oly_enabled(OLY_OPTIMISATION_SPECULATION);
    return can ? oly_each_block(plan->main, prepare_block, plan) : OLY_OK;
}

/* -- running them ---------------------------------------------------------------------------------------------------------------- */

/* The first that has the condition: all have the same. -1: none. */
static int reader(const oly_run *r, int slot)
{
    for (int d = 0; d < r->plan->n_devices; d++)
        if (r->plan->slots[slot].device_bytes[d] > 0)
            return d;
    return -1;
}

oly_status oly_speculation_begins(oly_run *r, const oly_step *s, int64_t i, bool *early)
{
    const oly_speculation *x = s->prepared ? s->prepared->speculation : NULL;
    *early = false;
    if (!x || !oly_may_be_in_vain(x->work, i) || oly_run_is_timed(r))
        return OLY_OK;
    int slot = s->loop.in_slot[s->loop.predicate], d = reader(r, slot);
    if (d < 0)
        return OLY_OK;
    OLY_TRY(
        oly_executor_get()->read_begin(r->plan->devices[d], r->base[oly_cell(r->plan, d, slot)], sizeof(bool), early));
    oly_count(&oly_device_counted.speculated, *early);
    return OLY_OK;
}

oly_status oly_speculation_ends(oly_run *r, const oly_step *s, oly_status launched, bool *more)
{
    bool predicate = false;
    int d = reader(r, s->loop.in_slot[s->loop.predicate]);
    oly_status st = oly_executor_get()->read_end(r->plan->devices[d], &predicate, sizeof predicate);
    *more = predicate && st == OLY_OK;
    if (launched != OLY_OK && st == OLY_OK && !predicate)
        oly_drop_message();
    return st != OLY_OK ? st : predicate ? launched : OLY_OK;
}
