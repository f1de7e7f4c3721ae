/* SPDX-License-Identifier: BSD-3-Clause */
/* Which steps of a plan are replayed. See replay.h. */
#include "run/replay.h"
#include "core/optimisation.h"
#include "core/timeline.h"
#include "run/executor.h"

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
    oly_prepared *made = OLY_ARENA_NEW(&plan->arena, oly_prepared, 1);
    if (!s || !made)
        return oly_out_of_memory(sizeof *s, "a program");
    *s = (oly_segment){.block = b, .first = first, .n = n};
    if (step->prepared)
        *made = *step->prepared;
    made->segment = s;
    step->prepared = made;
    return OLY_OK;
}

static oly_status prepare_block(oly_plan *plan, const oly_block *b)
{
    for (int k = 0, n; b && k < b->n_steps; k += n ? n : 1) {
        const oly_step *s = &b->steps[k];
        for (n = 0; k + n < b->n_steps && oly_replays(plan, &b->steps[k + n]); n++)
            ;
        OLY_TRY(add_segment(plan, b, k, n));
        if (s->kind == OLY_STEP_LOOP)
            OLY_TRY(prepare_block(plan, s->loop.body));
        for (int j = 0; s->kind == OLY_STEP_BRANCH && j < s->branch.n; j++)
            OLY_TRY(prepare_block(plan, s->branch.blocks[j]));
    }
    return OLY_OK;
}

static bool is_on(void)
{
    return oly_executor_get()->replay && oly_platform_is_late() && oly_enabled(OLY_OPTIMISATION_GRAPH_REPLAY);
}

oly_status oly_replay_prepare(oly_plan *plan)
{
    return is_on() ? prepare_block(plan, plan->main) : OLY_OK;
}

static void forget_block(const oly_block *b)
{
    for (int k = 0; b && k < b->n_steps; k++) {
        const oly_step *s = &b->steps[k];
        oly_segment *segment = oly_segment_at(s);
        if (segment && segment->kept)
            oly_executor_get()->forget(segment);
        if (s->kind == OLY_STEP_LOOP)
            forget_block(s->loop.body);
        for (int j = 0; s->kind == OLY_STEP_BRANCH && j < s->branch.n; j++)
            forget_block(s->branch.blocks[j]);
    }
}

void oly_replay_forget(const oly_plan *plan)
{
    if (oly_executor_get()->forget)
        forget_block(plan->main);
}

oly_status oly_replay_run(oly_run *r, oly_segment *s, bool *done)
{
    *done = false;
    return oly_times_steps() ? OLY_OK : oly_executor_get()->replay(r, s, done);
}
