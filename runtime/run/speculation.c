/* SPDX-License-Identifier: BSD-3-Clause */
/* Iterations of loops that are launched before it is known whether there are any. See speculation.h. */
#include "run/speculation.h"
#include "core/optimisation.h"
#include "run/device_counts.h"
#include "run/executor.h"
#include "run/replay.h"
#include "run/timed_steps.h"

/* What a GPU computes, in element-operations, while a condition goes to the host and the next launches come back: some 20 microseconds.
 * An iteration that is launched in vain may take as long as the iterations before it would have spent waiting, so a loop takes at
 * most twice the time that it would take with the better of both ways. */
enum { ROUND_TRIP = 2000000 };

/* -- which loops ----------------------------------------------------------------------------------------------------------------- */

static bool may_run_early(const oly_plan *plan, const oly_block *b, double *work);

static bool is_early_stencil(const oly_plan *plan, const oly_step *s, double *work)
{
    if (s->stencil.tiling || s->awaited || s->stencil.overlaps)
        return false;
    for (int d = 0; d < plan->n_devices; d++)
        if (!oly_executor_get()->has(plan, s, d))
            return false;
    double margins = 0;
    for (int k = 0; k < 2; k++)
        if (s->stencil.margins[k] && !may_run_early(plan, s->stencil.margins[k], &margins))
            return false;
    *work += s->work + margins * (double)s->stencil.count;
    return true;
}

/* Launches alone: no messages, nothing that the host reads, prints, checks or calls. */
static bool may_step_run_early(const oly_plan *plan, const oly_step *s, double *work)
{
    double inner = 0;
    if (s->kind == OLY_STEP_STENCIL)
        return is_early_stencil(plan, s, work);
    if (s->kind != OLY_STEP_LOOP) {
        *work += s->work;
        return oly_replays(plan, s);
    }
    if (s->loop.predicate >= 0 || !may_run_early(plan, s->loop.body, &inner))
        return false;
    *work += inner * (double)s->loop.count;
    return true;
}

static bool may_run_early(const oly_plan *plan, const oly_block *b, double *work)
{
    for (int k = 0; k < b->n_steps; k++)
        if (!may_step_run_early(plan, &b->steps[k], work))
            return false;
    return true;
}

/* The next iteration must not write what the condition's reader and the result need. */
static bool keeps_carries(const oly_step *s)
{
    for (int k = 0; k < s->loop.n_carry; k++)
        if (s->loop.out_slot[k] == s->loop.in_slot[k])
            return false;
    return true;
}

static oly_status mark(oly_plan *plan, oly_step *s)
{
    double work = 0;
    if (s->loop.predicate < 0 || !keeps_carries(s) || !may_run_early(plan, s->loop.body, &work))
        return OLY_OK;
    oly_speculation *x = OLY_ARENA_NEW(&plan->arena, oly_speculation, 1);
    oly_prepared *made = OLY_ARENA_NEW(&plan->arena, oly_prepared, 1);
    if (!x || !made)
        return oly_out_of_memory(sizeof *made, "a program");
    if (s->prepared)
        *made = *s->prepared;
    x->work = work;
    made->speculation = x;
    s->prepared = made;
    return OLY_OK;
}

static oly_status prepare_block(oly_plan *plan, const oly_block *b)
{
    for (int k = 0; k < b->n_steps; k++) {
        oly_step *s = &b->steps[k];
        if (s->kind == OLY_STEP_LOOP) {
            OLY_TRY(mark(plan, s));
            OLY_TRY(prepare_block(plan, s->loop.body));
        }
        for (int j = 0; s->kind == OLY_STEP_BRANCH && j < s->branch.n; j++)
            OLY_TRY(prepare_block(plan, s->branch.blocks[j]));
    }
    return OLY_OK;
}

oly_status oly_speculation_prepare(oly_plan *plan)
{
    bool can = oly_executor_get()->read_begin && oly_platform_is_late() && oly_enabled(OLY_OPTIMISATION_SPECULATION);
    return can ? prepare_block(plan, plan->main) : OLY_OK;
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
    if (!x || x->work > (double)ROUND_TRIP * (double)(i + 1) || oly_times_steps())
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
