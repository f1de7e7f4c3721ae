/* SPDX-License-Identifier: BSD-3-Clause */
/* Reductions in levels that are listed when they first run: a plan has one step and one exchange for them, and
 * planning time does not depend on the number of levels. A staged exchange (communicator.h) receives what a level
 * combines and then has the executor combine it (oly_staged_reduction in steps.h), before the next stage sends the
 * results. So small reductions over many processes advance whenever the communication queue waits for something, as all exchanges
 * in progress do. Called by lazy_reduction.c, reduce_scatter_tree.c and runtime/run. */
#include "plan/reduce/reduction_tree.h"
#include <string.h>

oly_status oly_reduction_level_of(const oly_plan *plan, oly_reduction_levels *levels, int number,
                                  oly_reduction_level **level)
{
    oly_arena *arena = (oly_arena *)(uintptr_t)&plan->arena; /* safe: only the communication queue lists levels */
    *level = NULL;
    if (!levels->level) {
        levels->level = OLY_ARENA_NEW(arena, oly_reduction_level, levels->n);
        if (!levels->level)
            return oly_out_of_memory(sizeof *levels->level * (size_t)levels->n, "a reduction");
    }
    *level = &levels->level[number];
    if (number < levels->n_listed)
        return OLY_OK;
    memset(*level, 0, sizeof **level);
    levels->n_listed++;
    return levels->list(levels->context, number, *level);
}

static oly_status list_stage(const void *context, int stage, oly_exchange **exchange)
{
    const oly_staged_reduction *s = context;
    oly_reduction_level *level;
    OLY_TRY(oly_reduction_level_of(s->plan, s->levels, stage / s->stages, &level));
    oly_exchange **from = stage % s->stages ? &level->second : &level->exchange;
    *exchange = *from; /* the staged exchange owns it from now on */
    *from = NULL;
    return OLY_OK;
}

oly_status oly_reduction_levels_exchange(oly_plan *plan, oly_step *step, oly_levels_way way, int n_buffers,
                                         const int *buffers)
{
    oly_staged_reduction *s = OLY_ARENA_NEW(&plan->arena, oly_staged_reduction, 1);
    if (!s)
        return oly_out_of_memory(sizeof *s, "a plan");
    *s = (oly_staged_reduction){.plan = plan,
                                .levels = step->reduction.levels,
                                .combiner = step->reduction.combiner,
                                .dtype = step->reduction.dtype,
                                .stages = step->reduction.sliced ? 2 : 1};
    int n_stages = way == OLY_LEVELS_ALL ? s->levels->n * s->stages : 1;
    s->outline = (oly_exchange_outline){.bytes_sent = step->wire,
                                        .bytes_received = step->wire,
                                        .peers = step->messages,
                                        .n_buffers = n_buffers,
                                        .buffers = buffers,
                                        .n_stages = n_stages,
                                        .list = list_stage,
                                        .context = s};
    if (n_stages > 1) {
        step->reduction.staged = s;
        step->reduction.n_levels_run = 0;
    }
    return oly_exchange_make_later(&s->outline, &step->exchange);
}
