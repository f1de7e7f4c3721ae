/* Reductions in levels that are listed when they first run: a plan has one step and one exchange for them, and
 * planning time does not depend on the number of levels. A staged exchange (communicator.h) receives what a level
 * folds and then runs the fold, before the next stage sends the results. So small reductions over many processes
 * advance whenever the lane waits for something, as all exchanges in progress do. Called by lazy_reduction.c,
 * reduce_scatter_tree.c and runtime/run. */
#include "plan/reduce/reduction_tree.h"
#include <string.h>

/* An exchange in stages: for each level the partial results, then the folded slices, if any. */
typedef struct staged {
    oly_exchange_outline outline;
    oly_plan *plan;
    oly_reduction_levels *levels;
    oly_combiner combiner;
    oly_dtype dtype;
    int stages; /* per level */
} staged;

oly_status oly_reduction_level_of(const oly_plan *plan, oly_reduction_levels *levels, int number,
                                  oly_reduction_level **level)
{
    oly_arena *arena = (oly_arena *)(uintptr_t)&plan->arena; /* safe: only the lane lists */
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

void oly_reduction_group_run(const oly_reduction_work *g, oly_combiner combiner, oly_dtype dtype, void *const *base,
                             int64_t begin, int64_t end)
{
    const void *sources[OLY_REDUCTION_GROUP];
    size_t element = oly_dtype_size(dtype);
    for (int k = 0; k < g->n_sources; k++)
        sources[k] = (char *)base[g->source_base[k]] + g->source_offset[k];
    void *out = base[g->out_base[0]];
    oly_combine(combiner, dtype, g->in_pairs, g->n_counts, g->counts, sources, out, begin, end);
    for (int k = 1; k < g->n_outs && begin < end; k++)
        memcpy((char *)base[g->out_base[k]] + (size_t)begin * element, (char *)out + (size_t)begin * element,
               (size_t)(end - begin) * element);
}

static oly_status list_stage(const void *context, int stage, oly_exchange **exchange)
{
    const staged *s = context;
    oly_reduction_level *level;
    OLY_TRY(oly_reduction_level_of(s->plan, s->levels, stage / s->stages, &level));
    oly_exchange **from = stage % s->stages ? &level->second : &level->exchange;
    *exchange = *from; /* the staged exchange owns it from now on */
    *from = NULL;
    return OLY_OK;
}

static void fold_stage(const void *context, int stage, void *const *base)
{
    const staged *s = context;
    const oly_reduction_level *level = &s->levels->level[stage / s->stages];
    if (stage % s->stages)
        return;
    for (int k = 0; k < level->n_copies; k++) {
        const oly_copy_work *c = &level->copies[k];
        for (int chunk = 0; chunk < c->chunks; chunk++)
            oly_copy_run(&c->task, (char *)base[c->to.base] + c->to.offset, (char *)base[c->from.base] + c->from.offset,
                         chunk, c->chunks);
    }
    for (int g = 0; g < level->n_groups; g++)
        oly_reduction_group_run(&level->groups[g], s->combiner, s->dtype, base, level->groups[g].begin,
                                level->groups[g].end);
}

oly_status oly_reduction_levels_exchange(oly_plan *plan, oly_step *step, oly_levels_way way, int n_buffers,
                                         const int *buffers)
{
    staged *s = OLY_ARENA_NEW(&plan->arena, staged, 1);
    if (!s)
        return oly_out_of_memory(sizeof *s, "a plan");
    *s = (staged){.plan = plan,
                  .levels = step->fold.levels,
                  .combiner = step->fold.combiner,
                  .dtype = step->fold.dtype,
                  .stages = step->fold.sliced ? 2 : 1};
    int n_stages = way == OLY_LEVELS_ALL ? s->levels->n * s->stages : 1;
    s->outline = (oly_exchange_outline){.bytes_sent = step->wire,
                                        .bytes_received = step->wire,
                                        .peers = step->messages,
                                        .n_buffers = n_buffers,
                                        .buffers = buffers,
                                        .n_stages = n_stages,
                                        .list = list_stage,
                                        .between = n_stages > 1 ? fold_stage : NULL,
                                        .context = s};
    if (n_stages > 1)
        step->fold.n_levels_run = 0;
    return oly_exchange_make_later(&s->outline, &step->exchange);
}
