/* SPDX-License-Identifier: BSD-3-Clause */
/* See loop_by_device.h. Every device has a table of base pointers of its own meanwhile, in which its carries change their buffers. */
#include "run/loop_by_device.h"
#include "core/optimisation.h"
#include "device/workers.h"
#include "plan/model/effects.h"
#include "run/executor.h"
#include "run/loop_buffers.h"
#include "run/loop_code.h"
#include "run/messages.h"
#include "run/prepare_cpu.h"
#include "run/prepared_steps.h"
#include "run/timed_steps.h"
#include <string.h>

/* -- which ------------------------------------------------------------------------------------------------------------------- */

/* Element-operations of a device's share of an iteration, about 100 us: steps that take longer are shared as well one by one. */
enum { MOST_WORK = 400000 };

typedef struct cells {
    const oly_plan *plan;
    int device;
    bool own; /* all are this device's */
} cells;

static void look_at(cells *c, int cell)
{
    c->own = c->own && (cell < 0 || oly_cell_device(c->plan, cell) == c->device);
}

static bool uses_own(const oly_plan *plan, const oly_step *s, int d)
{
    cells c = {plan, d, true};
    switch (s->kind) {
    case OLY_STEP_TILE:
        for (int k = 0; s->tile.device[d].has_work && k < s->tile.program.n_loads; k++)
            look_at(&c, s->tile.device[d].loads[k].base);
        for (int k = 0; s->tile.device[d].has_work && k < s->tile.program.n_stores; k++)
            look_at(&c, s->tile.device[d].stores[k].base);
        break;
    case OLY_STEP_REDUCE:
        look_at(&c, s->reduce.device[d].has_work ? s->reduce.device[d].in.base : -1);
        look_at(&c, s->reduce.device[d].has_work ? s->reduce.device[d].out_base : -1);
        break;
    case OLY_STEP_LOCAL:
        for (int k = 0; s->local.device[d].has_work && k < s->local.device[d].task.n_in; k++)
            look_at(&c, s->local.device[d].in[k].base);
        look_at(&c, s->local.device[d].has_work ? s->local.device[d].out_base : -1);
        break;
    case OLY_STEP_GEMM:
        look_at(&c, s->gemm.device[d].has_work ? s->gemm.device[d].a.base : -1);
        look_at(&c, s->gemm.device[d].has_work ? s->gemm.device[d].b.base : -1);
        look_at(&c, s->gemm.device[d].has_work ? s->gemm.device[d].out_base : -1);
        break;
    default: c.own = false;
    }
    return c.own;
}

/* Copies within devices, on every process: others take a message number. */
static bool copies_own(const oly_plan *plan, const oly_step *s)
{
    for (int k = 0; k < s->move.n_copies; k++) {
        const oly_copy_work *c = &s->move.copies[k];
        if (c->from.base < 0 || oly_cell_device(plan, c->from.base) != oly_cell_device(plan, c->to.base))
            return false;
    }
    return s->alone && !s->exchange && !s->second && !s->starts;
}

/* Can a device's share be computed by itself, with nothing but its chunks? */
static bool is_separate(const oly_plan *plan, const oly_step *s)
{
    const oly_prepared *p = s->prepared;
    if (!p || s->exchange || s->second || s->awaited || p->blocks || p->repeats || p->once || p->first_only ||
        p->reads_narrow || p->copied_later)
        return false;
    if (s->kind == OLY_STEP_MOVE)
        return copies_own(plan, s);
    if (s->kind == OLY_STEP_GEMM && (s->gemm.n_phases > 0 || s->gemm.n_copies > 0 || p->only))
        return false;
    for (int d = 0; d < plan->n_devices; d++)
        if (!uses_own(plan, s, d))
            return false;
    return true;
}

static bool is_counted(const oly_step *s)
{
    return s->loop.predicate < 0 && !s->loop.result_slot && s->loop.count > 0;
}

/* Adds the work of an iteration. False: it needs other devices. */
static bool are_separate(const oly_plan *plan, const oly_block *b, double *work)
{
    for (int k = 0; k < b->n_steps; k++) {
        const oly_step *s = &b->steps[k];
        double inside = 0;
        bool fits = s->kind == OLY_STEP_LOOP ? is_counted(s) && !(s->prepared && s->prepared->loop_once) &&
                                                   are_separate(plan, s->loop.body, &inside)
                                             : is_separate(plan, s);
        if (!fits)
            return false;
        *work += s->kind == OLY_STEP_LOOP ? inside * (double)s->loop.count : oly_operations_of(s);
    }
    return true;
}

static oly_status look(const oly_block *b, void *context)
{
    oly_plan *plan = context;
    for (int k = 0; k < b->n_steps; k++) {
        oly_step *s = &b->steps[k];
        double work = 0;
        if (s->kind != OLY_STEP_LOOP || !is_counted(s) || (s->prepared && s->prepared->loop_once) ||
            !are_separate(plan, s->loop.body, &work) || work > (double)MOST_WORK * plan->n_devices)
            continue;
        oly_prepared *p = oly_prepared_own(plan, s);
        if (!p)
            return oly_out_of_memory(0, "a program");
        p->by_device = true;
    }
    return OLY_OK;
}

oly_status oly_find_loops_by_device(oly_plan *plan)
{
    if (plan->n_devices < 2 || oly_platform_is_late() || !oly_enabled(OLY_OPTIMISATION_LOOPS_BY_DEVICE))
        return OLY_OK;
    return oly_each_block(plan->main, look, plan);
}

bool oly_runs_by_device(const oly_run *r, const oly_step *loop)
{
    return loop->prepared && loop->prepared->by_device && oly_workers_count() > 1 && !oly_run_is_timed(r) && !r->label;
}

/* -- running ------------------------------------------------------------------------------------------------------------------ */

typedef struct running {
    oly_run *run;
    const oly_step *loop;
    void **base; /* of each device, one after the other */
} running;

static void run_block(const running *x, void **base, const oly_block *b, int d);

static void run_loop(const running *x, void **base, const oly_step *s, int d)
{
    const oly_plan *plan = x->run->plan;
    bool advances = oly_is_under_way(x->run) && pthread_equal(pthread_self(), x->run->thread);
    oly_loop_begin(plan, base, s, d);
    for (int64_t i = 0, n; i < s->loop.count; i += n) {
        n = advances ? 0 : oly_loop_code_run(plan, base, s, d, i);
        if (n > 0)
            continue;
        n = 1;
        int32_t *counter = s->loop.counter_slot < 0 ? NULL : base[oly_cell(plan, d, s->loop.counter_slot)];
        if (counter)
            *counter = (int32_t)(s->loop.lower + i);
        oly_loop_bind_rows(plan, base, s, d, i);
        run_block(x, base, s->loop.body, d);
        oly_loop_turn(plan, base, s, d);
        if (advances)
            oly_advance_exchanges(x->run);
    }
    oly_loop_restore(plan, base, s, d, s->loop.count);
}

static void run_block(const running *x, void **base, const oly_block *b, int d)
{
    for (int k = 0; k < b->n_steps; k++) {
        const oly_step *s = &b->steps[k];
        if (s->kind == OLY_STEP_LOOP)
            run_loop(x, base, s, d);
        else
            oly_compute_share(x->run, base, s, d);
    }
}

static size_t n_cells(const oly_plan *plan)
{
    return (size_t)plan->n_slots * (size_t)plan->n_devices;
}

static void run_device(void *context, int d)
{
    const running *x = context;
    run_loop(x, x->base + n_cells(x->run->plan) * (size_t)d, x->loop, d);
}

bool oly_loop_by_device(oly_run *r, const oly_step *loop)
{
    const oly_plan *plan = r->plan;
    size_t n = n_cells(plan);
    running x = {.run = r, .loop = loop, .base = oly_malloc(sizeof *x.base * n * (size_t)plan->n_devices)};
    if (!x.base)
        return false;
    for (int d = 0; d < plan->n_devices; d++)
        memcpy(x.base + n * (size_t)d, r->base, sizeof *x.base * n);
    oly_executor_enter(r);
    oly_parallel(plan->n_devices, run_device, &x);
    oly_executor_leave(r);
    for (int d = 0; d < plan->n_devices; d++)
        for (int k = 0; k < loop->loop.n_carry; k++) {
            int cell = oly_cell(plan, d, loop->loop.in_slot[k]);
            r->base[cell] = x.base[n * (size_t)d + (size_t)cell];
        }
    oly_release(x.base);
    return true;
}
