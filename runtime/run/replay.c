/* SPDX-License-Identifier: BSD-3-Clause */
/* Which steps of a plan are replayed. See replay.h. */
#include "run/replay.h"
#include "core/optimisation.h"
#include "run/executor.h"
#include "run/prepared_steps.h"
#include "run/timed_steps.h"

static bool devices_have(const oly_plan *plan, const oly_step *s)
{
    for (int d = 0; d < plan->n_devices; d++)
        if (oly_step_has_work(s, d) && !oly_executor_get()->has(plan, s, d))
            return false;
    return true;
}

/* Steps that exchange take numbers (tickets), also where a process has nothing to send. */
bool oly_replays(const oly_plan *plan, const oly_step *s)
{
    switch (s->kind) {
    case OLY_STEP_TILE:
    case OLY_STEP_REDUCE:
    case OLY_STEP_LOCAL: return devices_have(plan, s);
    case OLY_STEP_GEMM: return !s->exchange && devices_have(plan, s);
    case OLY_STEP_MOVE: return !s->exchange && !plan->distributed;
    case OLY_STEP_REDUCTION: return !s->exchange && !s->second && !s->reduction.levels && !plan->distributed;
    default: return false;
    }
}

static oly_status add_segment(oly_plan *plan, const oly_block *b, int first, int n)
{
    oly_step *step = &b->steps[first];
    if (n * plan->n_devices == 0)
        return OLY_OK;
    oly_segment *s = OLY_ARENA_NEW(&plan->arena, oly_segment, 1);
    oly_prepared *own = oly_prepared_own(plan, step);
    if (!s || !own)
        return oly_out_of_memory(sizeof *s, "a program");
    *s = (oly_segment){.block = b, .first = first, .n = n};
    own->segment = s;
    return OLY_OK;
}

static oly_status prepare_block(const oly_block *b, void *plan)
{
    for (int k = 0, n; k < b->n_steps; k += n ? n : 1) {
        for (n = 0; k + n < b->n_steps && oly_replays(plan, &b->steps[k + n]); n++)
            ;
        OLY_TRY(add_segment(plan, b, k, n));
    }
    return OLY_OK;
}

static bool is_on(void)
{
    return oly_executor_get()->replay && oly_platform_is_late() && oly_enabled(OLY_OPTIMISATION_GRAPH_REPLAY);
}

oly_status oly_replay_prepare(oly_plan *plan)
{
    return is_on() ? oly_each_block(plan->main, prepare_block, plan) : OLY_OK;
}

static oly_status forget_block(const oly_block *b, void *unused)
{
    (void)unused;
    for (int k = 0; k < b->n_steps; k++) {
        oly_segment *segment = oly_segment_at(&b->steps[k]);
        if (segment && segment->kept)
            oly_executor_get()->forget(segment);
    }
    return OLY_OK;
}

void oly_replay_forget(const oly_plan *plan)
{
    if (oly_executor_get()->forget)
        (void)oly_each_block(plan->main, forget_block, NULL);
}

oly_status oly_replay_run(oly_run *r, oly_segment *s, bool *done)
{
    *done = false;
    return oly_run_is_timed(r) ? OLY_OK : oly_executor_get()->replay(r, s, done);
}
