/* SPDX-License-Identifier: BSD-3-Clause */
/* See loop_once.h. */
#include "run/loop_once.h"
#include "core/optimisation.h"
#include "core/option.h"
#include "device/workers.h"
#include "plan/model/effects.h"
#include "run/executor.h"
#include "run/prepare_cpu.h"
#include "run/prepared_steps.h"
#include "run/repeated_work.h"
#include <string.h>

/* -- which ------------------------------------------------------------------------------------------------------------------ */

/* Does each device get the same from the same places of its own? The copies to a device are next to each other. */
static bool copies_alike(const oly_plan *plan, int n_copies, const oly_copy_work *copies)
{
    int n = n_copies / plan->n_devices;
    for (int k = 0; k < n_copies; k++) {
        const oly_copy_work *a = &copies[n ? k % n : 0], *b = &copies[k];
        if (n * plan->n_devices != n_copies || oly_cell_device(plan, b->from.base) != k / n ||
            oly_cell_device(plan, b->to.base) != k / n ||
            oly_cell_slot(plan, a->from.base) != oly_cell_slot(plan, b->from.base) || !oly_is_same_copy(plan, a, b))
            return false;
    }
    return true;
}

/* A copy from a device's own memory says nothing about what is there: a step that computes the same from it, or makes it, does. */
typedef struct finder {
    oly_plan *plan;
    bool *alike;            /* [n_slots] all devices have the same there */
    bool *read;             /* [n_slots] and a step that computes the same on all reads it */
    bool computes, unknown; /* a step differs by device; a copy of something else was seen */
    bool more;              /* something has become alike */
} finder;

static void note_alike(void *context, int slot, bool writes)
{
    finder *f = context;
    f->more = f->more || !f->alike[slot];
    f->alike[slot] = true;
    f->read[slot] = f->read[slot] || !writes;
}

static void look_at_copies(finder *f, int n, const oly_copy_work *copies)
{
    if (!copies_alike(f->plan, n, copies)) {
        f->computes = false;
        return;
    }
    for (int k = 0; k < n; k++)
        if (f->alike[oly_cell_slot(f->plan, copies[k].from.base)])
            note_alike(f, oly_cell_slot(f->plan, copies[k].to.base), true);
        else
            f->unknown = true;
}

static oly_status look(const oly_block *b, void *context)
{
    finder *f = context;
    for (int k = 0; k < b->n_steps; k++) {
        const oly_step *s = &b->steps[k];
        if (s->exchange || s->second || s->awaited)
            f->computes = false;
        else if (s->kind == OLY_STEP_MOVE)
            look_at_copies(f, s->move.n_copies, s->move.copies);
        else if (s->kind == OLY_STEP_LOOP || s->kind == OLY_STEP_BRANCH)
            continue;
        else if (!oly_has_same_work(f->plan, s) ||
                 (s->kind == OLY_STEP_GEMM &&
                  (s->gemm.n_phases > 0 || !copies_alike(f->plan, s->gemm.n_copies, s->gemm.copies))))
            f->computes = false;
        else
            oly_step_effects(f->plan, s, note_alike, f);
    }
    return OLY_OK;
}

/* Do the iterations of a counted loop write all rows of a carry, as those of a scan its results? */
static bool writes_all_rows(const oly_plan *plan, const oly_step *loop, int slot)
{
    for (int k = 0; k < loop->loop.n_rows && loop->loop.predicate < 0; k++) {
        const oly_loop_row *r = &loop->loop.rows[k];
        int64_t end = r->first + r->step * (loop->loop.count - 1), low = r->step < 0 ? end : r->first;
        int64_t high = r->step < 0 ? r->first : end, apart = r->step < 0 ? -r->step : r->step;
        bool written = false;
        for (int j = 0; r->of == slot && j < loop->loop.body->n_steps; j++)
            written = written || (loop->loop.body->steps[j].kind == OLY_STEP_TILE &&
                                  oly_effect_on(plan, &loop->loop.body->steps[j], r->slot).writes);
        if (written && low == 0 && high == r->last && apart <= r->rows)
            return true;
    }
    return false;
}

static oly_status is_alike(finder *f, const oly_step *loop, bool *alike)
{
    memset(f->alike, 0, sizeof *f->alike * (size_t)f->plan->n_slots);
    memset(f->read, 0, sizeof *f->read * (size_t)f->plan->n_slots);
    f->computes = f->more = true;
    while (f->computes && f->more) {
        f->more = f->unknown = false;
        OLY_TRY(oly_each_block(loop->loop.body, look, f));
    }
    *alike = f->computes && !f->unknown;
    for (int k = 0; k < loop->loop.n_carry; k++) /* what is only written, in part, says nothing about the rest */
        if (loop->loop.in_slot[k] == loop->loop.out_slot[k] && f->alike[loop->loop.in_slot[k]] &&
            !f->read[loop->loop.in_slot[k]] && !writes_all_rows(f->plan, loop, loop->loop.in_slot[k]))
            *alike = false;
    return OLY_OK;
}

/* Copies of the carries take about as long as an iteration. */
static bool pays(const oly_step *s)
{
    return oly_option.compute_once == 0 || s->loop.predicate >= 0 || s->loop.count > 1;
}

/* -- the first device's share ------------------------------------------------------------------------------------------------- */

static oly_status no_memory(void)
{
    return oly_out_of_memory(0, "a program");
}

static oly_status first_block(oly_plan *plan, const oly_block *all, oly_block **first);

/* Buffers that are passed on come again after more than two turns, so those of all devices turn. */
static oly_status first_loop(oly_plan *plan, const oly_step *all, oly_step *first)
{
    oly_prepared *p = oly_prepared_own(plan, first);
    if (!p)
        return no_memory();
    p->first_only = !all->loop.passed;
    return first_block(plan, all->loop.body, &first->loop.body);
}

static oly_status first_step(oly_plan *plan, const oly_step *all, oly_step *first)
{
    *first = *all;
    first->work = all->work / plan->n_devices;
    if (all->kind == OLY_STEP_LOOP)
        return first_loop(plan, all, first);
    if (all->kind == OLY_STEP_BRANCH) {
        oly_block **blocks = OLY_ARENA_NEW(&plan->arena, oly_block *, all->branch.n + 1);
        if (!blocks)
            return no_memory();
        for (int k = 0; k < all->branch.n; k++)
            OLY_TRY(first_block(plan, all->branch.blocks[k], &blocks[k]));
        first->branch.blocks = blocks;
        return OLY_OK;
    }
    oly_prepared *p = oly_prepared_own(plan, first);
    if (!p)
        return no_memory();
    return oly_prepare_first(plan, all, p);
}

static oly_status first_block(oly_plan *plan, const oly_block *all, oly_block **first)
{
    *first = NULL;
    if (!all)
        return OLY_OK;
    oly_block *b = OLY_ARENA_NEW(&plan->arena, oly_block, 1);
    oly_step *steps = OLY_ARENA_NEW(&plan->arena, oly_step, all->n_steps + 1);
    if (!b || !steps)
        return no_memory();
    *b = *all;
    b->steps = steps;
    for (int k = 0; k < all->n_steps; k++)
        OLY_TRY(first_step(plan, &all->steps[k], &steps[k]));
    *first = b;
    return OLY_OK;
}

typedef struct writes {
    const oly_step *loop;
    bool *changes;
} writes;

static void note_write(void *context, int slot, bool does_write)
{
    writes *w = context;
    for (int k = 0; does_write && k < w->loop->loop.n_carry; k++)
        if (w->loop->loop.in_slot[k] == slot)
            w->changes[k] = true;
}

static oly_status run_once(oly_plan *plan, oly_step *loop)
{
    oly_loop_once *once = OLY_ARENA_NEW(&plan->arena, oly_loop_once, 1);
    bool *changes = OLY_ARENA_NEW(&plan->arena, bool, loop->loop.n_carry + 1);
    if (!once || !changes)
        return no_memory();
    OLY_TRY(first_step(plan, loop, &once->step));
    writes w = {loop, changes};
    for (int k = 0; k < loop->loop.body->n_steps; k++)
        oly_step_effects(plan, &loop->loop.body->steps[k], note_write, &w);
    once->changes = changes;
    oly_prepared *p = oly_prepared_own(plan, loop);
    if (!p)
        return no_memory();
    p->loop_once = once;
    return OLY_OK;
}

static oly_status find(finder *f, const oly_block *b)
{
    for (int k = 0; b && k < b->n_steps; k++) {
        oly_step *s = &b->steps[k];
        bool alike = false;
        if (s->kind == OLY_STEP_LOOP && pays(s))
            OLY_TRY(is_alike(f, s, &alike));
        if (alike)
            OLY_TRY(run_once(f->plan, s));
        else if (s->kind == OLY_STEP_LOOP)
            OLY_TRY(find(f, s->loop.body));
        for (int j = 0; s->kind == OLY_STEP_BRANCH && j < s->branch.n; j++)
            OLY_TRY(find(f, s->branch.blocks[j]));
    }
    return OLY_OK;
}

oly_status oly_find_loops_once(oly_plan *plan)
{
    if (plan->n_devices < 2 || !oly_enabled(OLY_OPTIMISATION_COMPUTE_ONCE) || oly_platform_is_late() ||
        oly_platform_is_apart())
        return OLY_OK;
    finder f = {.plan = plan, .alike = oly_calloc(2 * (size_t)plan->n_slots + 1, sizeof *f.alike)};
    if (!f.alike)
        return no_memory();
    f.read = f.alike + plan->n_slots;
    oly_status st = find(&f, plan->main);
    oly_release(f.alike);
    return st;
}

/* -- at the end ---------------------------------------------------------------------------------------------------------------- */

typedef struct spreading {
    oly_run *run;
    const oly_loop_once *once;
} spreading;

/* Memory that no iteration has written, which other values may have, too: all devices have the same there. */
static bool is_unchanged(const oly_run *r, const oly_loop_once *once, int device, int carry)
{
    const oly_step *s = &once->step;
    const void *now = r->base[oly_cell(r->plan, device, s->loop.in_slot[carry])];
    if (s->loop.out_slot[carry] == s->loop.in_slot[carry])
        return !once->changes[carry];
    for (int k = 0; k < s->loop.n_carry; k++)
        if (now == r->base[oly_cell(r->plan, device, s->loop.init_slot[k])])
            return true;
    return false;
}

static void spread_to(void *context, int before)
{
    const spreading *x = context;
    const oly_plan *plan = x->run->plan;
    const oly_step *s = &x->once->step;
    int device = before + 1;
    for (int k = 0; k < s->loop.n_carry; k++) {
        void *from = x->run->base[oly_cell(plan, 0, s->loop.in_slot[k])];
        void *to = x->run->base[oly_cell(plan, device, s->loop.in_slot[k])];
        if (to != from && !is_unchanged(x->run, x->once, device, k))
            memcpy(to, from, plan->slots[s->loop.in_slot[k]].device_bytes[device]);
    }
}

void oly_spread_carries(oly_run *r, const oly_loop_once *once)
{
    enum { WORTH_SHARING = 1 << 18 }; /* bytes */
    const oly_step *s = &once->step;
    spreading x = {r, once};
    size_t bytes = 0;
    for (int k = 0; k < s->loop.n_carry; k++)
        bytes += r->plan->slots[s->loop.in_slot[k]].bytes;
    if (bytes * (size_t)r->plan->n_devices >= WORTH_SHARING) {
        oly_parallel(r->plan->n_devices - 1, spread_to, &x);
        return;
    }
    for (int d = 1; d < r->plan->n_devices; d++)
        spread_to(&x, d - 1);
}
