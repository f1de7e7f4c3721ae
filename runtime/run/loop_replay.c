/* SPDX-License-Identifier: BSD-3-Clause */
/* Which loops are replayed, and how many iterations at once. See loop_replay.h. */
#include "run/loop_replay.h"
#include "core/optimisation.h"
#include "run/executor.h"
#include "run/only_launches.h"
#include "run/prepared_steps.h"
#include "run/speculation.h"
#include "run/timed_steps.h"

/* Launches of a graph, which the host records one by one; iterations of a counted loop in one: fewer than LEAST gain little over the graph
 * of a body, and where an iteration is MUCH work, the device is busy for longer than the host takes to launch it. */
enum { MOST_LAUNCHES = 256, LEAST = 4, MOST = 32, MUCH = 100000000 };

/* -- which loops ------------------------------------------------------------------------------------------------------------- */

static int64_t common_multiple(int64_t a, int64_t b)
{
    int64_t x = a, y = b;
    while (y) {
        int64_t rest = x % y;
        x = y;
        y = rest;
    }
    return a / x * b;
}

/* Iterations after which all carries are in the buffers in which they were. */
static int64_t period_of(const oly_step *s)
{
    int64_t period = 1;
    for (int k = 0; k < s->loop.n_carry && period <= MOST; k++) {
        const oly_passed_carry *x = s->loop.passed ? &s->loop.passed[k] : NULL;
        if (s->loop.out_slot[k] != s->loop.in_slot[k] && !(x && x->from >= 0))
            period = common_multiple(period, 2 + (x ? x->n_more : 0));
    }
    return period;
}

/* As many as divide the loop well: what is left over is launched one by one. */
static int unrolled(const oly_step *s, int64_t first, int64_t period, double launches)
{
    int64_t left = s->loop.count - first, most = (int64_t)(MOST_LAUNCHES / (launches > 1 ? launches : 1));
    most = (most < MOST ? most : MOST) / period * period;
    if (most < LEAST || left < LEAST)
        return 0;
    int64_t graphs = (left + most - 1) / most, n = left / graphs / period * period;
    return n < LEAST ? 0 : (int)n;
}

static int unrolled_counted(const oly_plan *plan, const oly_step *s, const oly_loop_replay *l, double launches)
{
    int counters = s->loop.counter_slot >= 0 ? plan->n_devices : 0;
    if (!oly_enabled(OLY_OPTIMISATION_LOOP_GRAPHS) || l->work > MUCH)
        return 0;
    return unrolled(s, l->first, l->period, launches + counters);
}

static int unrolled_conditional(const oly_step *s, oly_loop_replay *l, double launches)
{
    if (!oly_enabled(OLY_OPTIMISATION_CONDITIONAL_GRAPHS) || s->loop.counter_slot >= 0 || l->period > OLY_MOST_PERIOD ||
        l->period * launches > MOST_LAUNCHES)
        return 0;
    l->exact = l->period != 2 || s->loop.oldest > 0 || !oly_keeps_carries(s) || !oly_may_be_in_vain(l->work, l->first);
    return l->period;
}

static oly_status mark(oly_plan *plan, oly_step *s)
{
    oly_launches sum = {0};
    oly_loop_replay found = {.step = s, .first = 1 + s->loop.oldest};
    int64_t period = period_of(s);
    if (period > MOST || !oly_only_launches(plan, s->loop.body, &sum))
        return OLY_OK;
    found.period = (int)period;
    found.work = sum.work;
    found.unrolled = s->loop.predicate < 0 ? unrolled_counted(plan, s, &found, sum.count)
                                           : unrolled_conditional(s, &found, sum.count);
    if (!found.unrolled)
        return OLY_OK;
    oly_loop_replay *l = OLY_ARENA_NEW(&plan->arena, oly_loop_replay, 1);
    oly_prepared *own = oly_prepared_own(plan, s);
    if (!l || !own)
        return oly_out_of_memory(sizeof *own, "a program");
    *l = found;
    own->replay = l;
    return OLY_OK;
}

static oly_status prepare_block(const oly_block *b, void *plan)
{
    for (int k = 0; k < b->n_steps; k++)
        if (b->steps[k].kind == OLY_STEP_LOOP)
            OLY_TRY(mark(plan, &b->steps[k]));
    return OLY_OK;
}

static bool is_on(void)
{
    return oly_executor_get()->iterate && oly_platform_is_late() && oly_enabled(OLY_OPTIMISATION_GRAPH_REPLAY);
}

oly_status oly_loop_replay_prepare(oly_plan *plan)
{
    return is_on() ? oly_each_block(plan->main, prepare_block, plan) : OLY_OK;
}

/* -- keeping and running them ----------------------------------------------------------------------------------------------- */

static oly_loop_replay *replay_of(const oly_step *s)
{
    return s->prepared ? s->prepared->replay : NULL;
}

static oly_status forget_block(const oly_block *b, void *unused)
{
    (void)unused;
    for (int k = 0; k < b->n_steps; k++) {
        oly_loop_replay *l = replay_of(&b->steps[k]);
        if (l && l->kept)
            oly_executor_get()->forget_loop(l);
    }
    return OLY_OK;
}

void oly_loop_replay_forget(const oly_plan *plan)
{
    if (oly_executor_get()->forget_loop)
        (void)oly_each_block(plan->main, forget_block, NULL);
}

/* Are carries in the buffers with which a graph begins, and enough iterations left? */
static bool is_time(const oly_loop_replay *l, const oly_step *s, int64_t i)
{
    if (i < l->first || (i - l->first) % l->period != 0)
        return false;
    return s->loop.predicate >= 0 || s->loop.count - i >= l->unrolled;
}

oly_status oly_loop_replay_run(oly_run *r, const oly_step *s, int64_t i, int64_t *done, bool *decided, bool *more)
{
    oly_loop_replay *l = replay_of(s);
    *done = 0;
    *decided = false;
    if (!l || !is_time(l, s, i) || oly_run_is_timed(r))
        return OLY_OK;
    return oly_executor_get()->iterate(r, l, i, done, decided, more);
}
