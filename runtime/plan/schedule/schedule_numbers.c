/* SPDX-License-Identifier: BSD-3-Clause */
/* Renumbers steps, and recomputes the liveness of slots, after steps were reordered or replaced. Called by the passes of this room. */
#include "plan/schedule/scheduler.h"

static int started_by(const oly_block *b, int k)
{
    int j = k - 1;
    while (j > 0 && b->steps[j].exchange != b->steps[k].awaited && b->steps[j].second != b->steps[k].awaited)
        j--;
    return b->steps[j].number;
}

static void number_block(oly_planner *p, oly_block *b, int *next)
{
    b->begin = *next;
    for (int k = 0; k < b->n_steps; k++) {
        oly_step *s = &b->steps[k];
        if (s->kind == OLY_STEP_LOOP)
            number_block(p, s->loop.body, next);
        for (int j = 0; s->kind == OLY_STEP_BRANCH && j < s->branch.n; j++)
            number_block(p, s->branch.blocks[j], next);
        for (int j = 0; s->kind == OLY_STEP_STENCIL && j < 2; j++)
            if (s->stencil.margins[j])
                number_block(p, s->stencil.margins[j], next);
        s->number = (*next)++;
        if (s->kind == OLY_STEP_WAIT)
            s->detail = oly_plan_say(p, "for step %d", started_by(b, k));
    }
    b->end = *next;
}

typedef struct liver {
    oly_plan *plan;
    int number;
} liver;

static void live(void *context, int slot, bool writes)
{
    const liver *l = context;
    oly_slot *s = &l->plan->slots[slot];
    (void)writes;
    s->first = l->number < s->first ? l->number : s->first;
    s->last = l->number > s->last ? l->number : s->last;
}

/* Steps inside a loop or branch use their slots themselves; the step around them uses those slots too, and ends
 * last. */
static void live_in(oly_plan *plan, const oly_block *b)
{
    for (int k = 0; k < b->n_steps; k++) {
        const oly_step *s = &b->steps[k];
        if (s->kind == OLY_STEP_LOOP)
            live_in(plan, s->loop.body);
        for (int j = 0; s->kind == OLY_STEP_BRANCH && j < s->branch.n; j++)
            live_in(plan, s->branch.blocks[j]);
        liver l = {plan, s->number};
        oly_step outside = *s; /* slots used only inside end their life there */
        if (s->kind == OLY_STEP_LOOP)
            outside.loop.body = NULL;
        if (s->kind == OLY_STEP_BRANCH)
            outside.branch.n = 0;
        oly_step_effects(plan, &outside, live, &l);
    }
}

void oly_renumber_steps(oly_planner *p)
{
    oly_plan *plan = p->plan;
    int next = 0;
    number_block(p, plan->main, &next);
    plan->n_steps = next;
    for (int j = 0; j < plan->n_slots; j++) {
        plan->slots[j].first = next;
        plan->slots[j].last = -1;
    }
    live_in(plan, plan->main);
    for (int j = 0; j < plan->n_slots; j++)
        if (plan->slots[j].last < 0)
            plan->slots[j].first = 0;
}

static oly_status pass_over(oly_planner *p, oly_block *b, oly_block_pass *pass, bool *changed)
{
    if (!b)
        return OLY_OK;
    for (int k = 0; k < b->n_steps; k++) {
        const oly_step *s = &b->steps[k];
        if (s->kind == OLY_STEP_LOOP)
            OLY_TRY(pass_over(p, s->loop.body, pass, changed));
        for (int j = 0; s->kind == OLY_STEP_BRANCH && j < s->branch.n; j++)
            OLY_TRY(pass_over(p, s->branch.blocks[j], pass, changed));
    }
    return pass(p, b, changed);
}

oly_status oly_pass_over_blocks(oly_planner *p, oly_block_pass *pass)
{
    bool changed = false;
    OLY_TRY(pass_over(p, p->plan->main, pass, &changed));
    if (changed)
        oly_renumber_steps(p);
    return OLY_OK;
}

double oly_copied_elements(int n, const oly_copy_work *copies)
{
    double all = 0;
    for (int k = 0; k < n; k++) {
        double each = 1;
        for (int d = 0; d < copies[k].task.rank; d++)
            each *= (double)copies[k].task.extent[d];
        all += each;
    }
    return all;
}
