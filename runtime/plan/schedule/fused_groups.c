/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups whose results only one later step reads: see fused_groups.h. */
#include "plan/schedule/fused_groups.h"
#include "plan/model/effects.h"

enum { FAR = 8 }; /* steps from a group to its reader, besides the group's parts */

static int written_by(const oly_step *s, int device)
{
    return s->kind == OLY_STEP_REDUCE ? s->reduce.device[device].out_base : s->gemm.device[device].out_base;
}

bool oly_group_may_wait(const oly_plan *plan, const oly_step *group, const oly_step *reader)
{
    for (int d = 0; d < plan->n_devices; d++)
        for (int k = 0; group->tile.device[d].has_work && k < group->tile.program.n_loads; k++) {
            int base = group->tile.device[d].loads[k].base, slot = base >= 0 ? oly_cell_slot(plan, base) : -1;
            if (slot >= 0 && (slot == oly_cell_slot(plan, written_by(reader, d)) ||
                              (plan->slots[slot].kind == OLY_SLOT_INPUT && group->tile.program.n_stores > 1)))
                return false;
        }
    return true;
}

static void keep_until(oly_plan *plan, int n, const oly_place *places, int number)
{
    for (int k = 0; k < n; k++) {
        oly_slot *s = places[k].base >= 0 ? &plan->slots[oly_cell_slot(plan, places[k].base)] : NULL;
        if (s && s->last < number)
            s->last = number;
    }
}

/* It reads and writes later. What nothing on this process reads is written then, too: no other slot may have that memory. */
void oly_group_take(oly_plan *plan, oly_step *group, int number)
{
    const oly_tile_program *p = &group->tile.program;
    group->taken_by = number > group->taken_by ? number : group->taken_by;
    for (int d = 0; d < plan->n_devices; d++)
        if (group->tile.device[d].has_work) {
            keep_until(plan, p->n_loads, group->tile.device[d].loads, number);
            keep_until(plan, p->n_stores, group->tile.device[d].stores, number);
        }
}

/* -- steps between the two: they run before the group then --------------------------------------------------------- */

typedef struct conflict {
    const oly_plan *plan;
    const oly_step *group;
    bool found;
} conflict;

static bool uses(const conflict *c, int n, const oly_place *places, int slot)
{
    for (int k = 0; k < n; k++)
        if (places[k].base >= 0 && oly_cell_slot(c->plan, places[k].base) == slot)
            return true;
    return false;
}

static void look(void *context, int slot, bool writes)
{
    conflict *c = context;
    const oly_tile_program *p = &c->group->tile.program;
    for (int d = 0; d < c->plan->n_devices && !c->found; d++) {
        const oly_tile_work *w = &c->group->tile.device[d];
        c->found =
            w->has_work && (uses(c, p->n_stores, w->stores, slot) || (writes && uses(c, p->n_loads, w->loads, slot)));
    }
}

/* May the group be computed after this step? */
static bool may_follow(const oly_plan *plan, const oly_step *group, const oly_step *s)
{
    conflict c = {.plan = plan, .group = group};
    bool computes = s->kind == OLY_STEP_TILE || s->kind == OLY_STEP_REDUCE || s->kind == OLY_STEP_LOCAL;
    if (!computes || s->exchange || s->second || s->awaited)
        return false;
    oly_step_effects(plan, s, look, &c);
    return !c.found;
}

oly_step *oly_group_before(const oly_plan *plan, const oly_block *b, int k, const oly_slot *slot)
{
    for (int j = k - 1; j >= 0 && j >= k - FAR; j--) {
        oly_step *group = &b->steps[j];
        if (group->number != slot->first)
            continue;
        if (group->kind != OLY_STEP_TILE || group->exchange)
            return NULL;
        for (int i = j + 1; i < k; i++)
            if (!may_follow(plan, group, &b->steps[i]))
                return NULL;
        return group;
    }
    return NULL;
}

/* -- divided groups ----------------------------------------------------------------------------------------------------- */

int oly_group_parts_before(const oly_plan *plan, const oly_block *b, int k, int slot,
                           oly_step *parts[OLY_MOST_OPERAND_STEPS])
{
    int n = 0, first = plan->slots[slot].first, others = 0;
    for (int j = k - 1; j >= 0 && b->steps[j].number >= first; j--) {
        oly_step *s = &b->steps[j];
        if (!oly_effect_on(plan, s, slot).writes) {
            if (++others >= FAR)
                return 0;
            continue;
        }
        if (s->kind != OLY_STEP_TILE || s->exchange || n == OLY_MOST_OPERAND_STEPS)
            return 0;
        for (int i = j + 1; i < k; i++)
            if (!oly_effect_on(plan, &b->steps[i], slot).writes && !may_follow(plan, s, &b->steps[i]))
                return 0;
        parts[n++] = s;
    }
    for (int i = 0; i < n / 2; i++) {
        oly_step *s = parts[i];
        parts[i] = parts[n - 1 - i];
        parts[n - 1 - i] = s;
    }
    return n;
}

void oly_for_steps(oly_plan *plan, const oly_block *b, oly_step_visit *visit)
{
    for (int k = 0; b && k < b->n_steps; k++) {
        const oly_step *s = &b->steps[k];
        if (s->kind == OLY_STEP_LOOP)
            oly_for_steps(plan, s->loop.body, visit);
        for (int j = 0; s->kind == OLY_STEP_BRANCH && j < s->branch.n; j++)
            oly_for_steps(plan, s->branch.blocks[j], visit);
        visit(plan, b, k);
    }
}
