/* SPDX-License-Identifier: BSD-3-Clause */
/* See only_launches.h. */
#include "run/only_launches.h"
#include "run/executor.h"
#include "run/replay.h"

static bool is_stencil(const oly_plan *plan, const oly_step *s, oly_launches *sum)
{
    if (s->stencil.tiling || s->awaited || s->stencil.overlaps)
        return false;
    for (int d = 0; d < plan->n_devices; d++)
        if (!oly_executor_get()->has(plan, s, d))
            return false;
    oly_launches margins = {0};
    for (int k = 0; k < 2; k++)
        if (s->stencil.margins[k] && !oly_only_launches(plan, s->stencil.margins[k], &margins))
            return false;
    const int64_t most = s->stencil.count / (s->stencil.pass > 0 ? s->stencil.pass : 1) + 1;
    double passes = (double)most;
    sum->work += s->work + margins.work * (double)s->stencil.count;
    sum->count += passes * (plan->n_devices + margins.count);
    return true;
}

static double launches_of(const oly_plan *plan, const oly_step *s)
{
    switch (s->kind) {
    case OLY_STEP_MOVE: return s->move.n_copies;
    case OLY_STEP_REDUCTION: return s->reduction.n_groups;
    default: return plan->n_devices;
    }
}

static bool is_step(const oly_plan *plan, const oly_step *s, oly_launches *sum)
{
    oly_launches inner = {0};
    if (s->kind == OLY_STEP_STENCIL)
        return is_stencil(plan, s, sum);
    if (s->kind != OLY_STEP_LOOP) {
        sum->work += s->work;
        sum->count += launches_of(plan, s);
        return oly_replays(plan, s);
    }
    if (s->loop.predicate >= 0 || !oly_only_launches(plan, s->loop.body, &inner))
        return false;
    int counters = s->loop.counter_slot >= 0 ? plan->n_devices : 0;
    sum->work += inner.work * (double)s->loop.count;
    sum->count += (inner.count + counters) * (double)s->loop.count;
    return true;
}

bool oly_only_launches(const oly_plan *plan, const oly_block *b, oly_launches *sum)
{
    for (int k = 0; k < b->n_steps; k++)
        if (!is_step(plan, &b->steps[k], sum))
            return false;
    return true;
}
