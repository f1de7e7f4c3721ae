/* SPDX-License-Identifier: BSD-3-Clause */
/* See held_once.h. */
#include "run/held_once.h"
#include "core/optimisation.h"
#include "core/option.h"
#include "plan/model/effects.h"
#include "run/executor.h"
#include "run/prepared_steps.h"
#include "run/repeated_work.h"
#include <string.h>

enum { LEAST_BYTES = 65536, MOST_RESULTS = 16 /* of a step */ };

/* What a step writes for all devices alike. */
typedef struct results {
    int n, slot[MOST_RESULTS];
} results;

typedef struct finder {
    oly_plan *plan;
    results *of; /* [steps of the plan's block] n 0: devices compute different things */
    bool *own;   /* [n_slots] each device has its own */
    int *group;  /* [n_slots] a slot of the same steps: a tree whose root is itself */
    int *number; /* [n_slots] of a group, at its root */
    int *last;   /* [n_slots] the number of the last step that uses it; that of a chain of rows is its last one */
    int chain;   /* the number of the last step of the chain that is looked at */
} finder;

/* -- slots ------------------------------------------------------------------------------------------------------------------ */

static void own_what_is_written(void *context, int slot, bool writes)
{
    finder *f = context;
    f->own[slot] = f->own[slot] || writes;
}

/* Loops alternate the buffers of their carries. */
static oly_status own_carries(const oly_block *b, void *context)
{
    finder *f = context;
    for (int j = 0; j < b->n_steps; j++)
        for (int k = 0; b->steps[j].kind == OLY_STEP_LOOP && k < b->steps[j].loop.n_carry; k++)
            f->own[b->steps[j].loop.init_slot[k]] = true;
    return OLY_OK;
}

static void use_until_the_end(void *context, int slot, bool writes)
{
    finder *f = context;
    (void)writes;
    f->last[slot] = f->chain > f->last[slot] ? f->chain : f->last[slot];
}

/* A chain of rows reads and writes rows of all its steps in turn. On one device what it writes may take over the rows that it has read. */
static void find_last_uses(finder *f)
{
    const oly_block *b = f->plan->main;
    for (int s = 0; s < f->plan->n_slots; s++)
        f->last[s] = f->plan->slots[s].last;
    for (int j = 0; j < b->n_steps; j++) {
        f->chain = b->steps[j].number;
        for (int k = 0; k < b->steps[j].chain; k++)
            oly_step_effects(f->plan, &b->steps[j - k], use_until_the_end, f);
    }
}

/* Does another value have some of its memory while it is needed? */
static bool is_taken_over(const finder *f, int slot)
{
    const oly_slot *a = &f->plan->slots[slot];
    for (int k = 0; k < f->plan->n_slots; k++) {
        const oly_slot *b = &f->plan->slots[k];
        if (k != slot && b->kind == OLY_SLOT_SCRATCH && b->offset < a->offset + a->bytes &&
            a->offset < b->offset + b->bytes && b->first - b->early <= f->last[slot] &&
            a->first - a->early <= f->last[k])
            return true;
    }
    return false;
}

static bool may_hold(const finder *f, int slot)
{
    const oly_slot *s = &f->plan->slots[slot];
    return !f->own[slot] && s->bytes >= (oly_option.compute_once > 0 ? LEAST_BYTES : 1) &&
           (s->kind == OLY_SLOT_POOL || (s->kind == OLY_SLOT_SCRATCH && !is_taken_over(f, slot)));
}

static int root(finder *f, int slot)
{
    while (f->group[slot] != slot)
        slot = f->group[slot] = f->group[f->group[slot]];
    return slot;
}

/* -- steps ------------------------------------------------------------------------------------------------------------------ */

static bool add(const oly_plan *plan, results *v, int base)
{
    int slot = base < 0 ? -1 : oly_cell_slot(plan, base);
    for (int k = 0; k < v->n; k++)
        if (v->slot[k] == slot)
            return true;
    if (slot < 0 || v->n == MOST_RESULTS)
        return false;
    v->slot[v->n++] = slot;
    return true;
}

/* Does every device get the same from the same places? The copies to a device are next to each other. */
static bool moves_alike(const oly_plan *plan, const oly_step *s, results *v)
{
    int n = s->move.n_copies / plan->n_devices;
    if (s->exchange || s->second || s->awaited || n * plan->n_devices != s->move.n_copies)
        return false;
    for (int k = 0; k < s->move.n_copies; k++) {
        const oly_copy_work *c = &s->move.copies[k];
        if (oly_cell_device(plan, c->to.base) != k / n || !add(plan, v, c->to.base) ||
            c->from.base != s->move.copies[k % n].from.base || !oly_is_same_copy(plan, &s->move.copies[k % n], c))
            return false;
    }
    return n > 0;
}

/* Does every device get all results? */
static bool reduces_alike(const oly_plan *plan, const oly_step *s, results *v)
{
    if (s->exchange || s->second || s->awaited || s->reduction.levels || s->reduction.staged)
        return false;
    for (int g = 0; g < s->reduction.n_groups; g++) {
        const oly_reduction_work *w = &s->reduction.groups[g];
        if (w->n_outs != plan->n_devices || !add(plan, v, w->out_base[0]))
            return false;
        for (int k = 1; k < w->n_outs; k++)
            if (oly_cell_slot(plan, w->out_base[k]) != oly_cell_slot(plan, w->out_base[0]))
                return false;
    }
    return s->reduction.n_groups > 0;
}

static bool computes_alike(const oly_plan *plan, const oly_step *s, results *v)
{
    if (!s->prepared || s->prepared->blocks || s->prepared->reads_narrow || s->prepared->total[0] == 0 ||
        !oly_computes_alike(plan, s))
        return false;
    switch (s->kind) {
    case OLY_STEP_REDUCE: return add(plan, v, s->reduce.device[0].out_base);
    case OLY_STEP_LOCAL: return add(plan, v, s->local.device[0].out_base);
    case OLY_STEP_GEMM: return s->gemm.n_phases == 0 && add(plan, v, s->gemm.device[0].out_base);
    default: break;
    }
    for (int k = 0; k < s->tile.program.n_stores; k++)
        if (!add(plan, v, s->tile.device[0].stores[k].base))
            return false;
    return true;
}

static bool gives_alike(const oly_plan *plan, const oly_step *s, results *v)
{
    v->n = 0;
    bool alike = s->kind == OLY_STEP_MOVE        ? moves_alike(plan, s, v)
                 : s->kind == OLY_STEP_REDUCTION ? reduces_alike(plan, s, v)
                                                 : computes_alike(plan, s, v);
    v->n = alike ? v->n : 0;
    return v->n > 0;
}

/* A slot is each device's own if one of its steps has such a slot, or computes different things. */
static void find_own(finder *f)
{
    const oly_block *b = f->plan->main;
    for (int j = 0; j < b->n_steps; j++)
        if (!gives_alike(f->plan, &b->steps[j], &f->of[j]))
            oly_step_effects(f->plan, &b->steps[j], own_what_is_written, f);
    for (int j = 0; j < b->n_steps; j++)
        for (int k = 0; k < f->of[j].n; k++)
            f->own[f->of[j].slot[k]] = !may_hold(f, f->of[j].slot[k]);
    for (bool more = true; more;) {
        more = false;
        for (int j = 0; j < b->n_steps; j++) {
            int n = 0;
            for (int k = 0; k < f->of[j].n; k++)
                n += f->own[f->of[j].slot[k]];
            if (n == 0 || n == f->of[j].n)
                continue;
            more = true;
            for (int k = 0; k < f->of[j].n; k++)
                f->own[f->of[j].slot[k]] = true;
        }
    }
}

/* Slots that a step writes together are held once together. */
static void find_groups(finder *f)
{
    const oly_block *b = f->plan->main;
    for (int s = 0; s < f->plan->n_slots; s++)
        f->group[s] = s;
    for (int j = 0; j < b->n_steps; j++)
        for (int k = 1; k < f->of[j].n; k++)
            f->group[root(f, f->of[j].slot[k])] = root(f, f->of[j].slot[0]);
}

/* -- what the executor needs --------------------------------------------------------------------------------------------------- */

static oly_status prepare_once(oly_plan *plan, oly_step *s, int slot)
{
    oly_prepared *own = oly_prepared_own(plan, s), *once = OLY_ARENA_NEW(&plan->arena, oly_prepared, 1);
    if (!own || !once)
        return oly_out_of_memory(0, "a program");
    *once = *own;
    OLY_TRY(oly_prepare_first(plan, s, once));
    own->once = once;
    own->once_slot = slot;
    return OLY_OK;
}

static bool is_held(const finder *f, int step)
{
    return f->of[step].n > 0 && !f->own[f->of[step].slot[0]];
}

static oly_status note(finder *f)
{
    oly_plan *plan = f->plan;
    oly_held_once *once = OLY_ARENA_NEW(&plan->arena, oly_held_once, 1);
    int *of_slot = OLY_ARENA_NEW(&plan->arena, int, plan->n_slots + 1);
    if (!once || !of_slot)
        return oly_out_of_memory(0, "a program");
    once->of_slot = of_slot;
    for (int s = 0; s < plan->n_slots; s++)
        of_slot[s] = f->number[s] = -1;
    for (int j = 0; j < plan->main->n_steps; j++) {
        oly_step *s = &plan->main->steps[j];
        const results *v = &f->of[j];
        if (!is_held(f, j))
            continue;
        int at = root(f, v->slot[0]);
        f->number[at] = f->number[at] < 0 ? once->n++ : f->number[at];
        for (int k = 0; k < v->n; k++)
            of_slot[v->slot[k]] = f->number[at];
        if (s->kind != OLY_STEP_REDUCTION)
            OLY_TRY(prepare_once(plan, s, v->slot[0]));
    }
    plan->held = once;
    return OLY_OK;
}

static oly_status find(finder *f)
{
    bool any = false;
    OLY_TRY(oly_each_block(f->plan->main, own_carries, f));
    find_last_uses(f);
    find_own(f);
    find_groups(f);
    for (int j = 0; j < f->plan->main->n_steps; j++)
        any = any || is_held(f, j);
    return any ? note(f) : OLY_OK;
}

oly_status oly_find_held_once(oly_plan *plan)
{
    if (plan->n_devices < 2 || !oly_enabled(OLY_OPTIMISATION_COMPUTE_ONCE) || oly_platform_is_late() ||
        oly_platform_is_apart())
        return OLY_OK;
    size_t slots = (size_t)plan->n_slots + 1, steps = (size_t)plan->main->n_steps + 1;
    finder f = {.plan = plan};
    f.of = oly_calloc(1, steps * sizeof *f.of +
                             slots * (sizeof *f.group + sizeof *f.number + sizeof *f.last + sizeof *f.own));
    if (!f.of)
        return oly_out_of_memory(0, "a program");
    f.group = (int *)(f.of + steps);
    f.number = f.group + slots;
    f.last = f.number + slots;
    f.own = (bool *)(f.last + slots);
    oly_status st = find(&f);
    oly_release(f.of);
    return st;
}
