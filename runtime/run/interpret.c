/* SPDX-License-Identifier: BSD-3-Clause */
/* The interpreter's loop over steps: their order, loops and branches, and the exchanges between processes. The executor
 * (executor.h) computes the steps. */
#include "run/interpret.h"
#include "run/call_run.h"
#include "run/device_order.h"
#include "run/execute.h"
#include "run/executor.h"
#include "run/held_once.h"
#include "run/loop_buffers.h"
#include "run/loop_by_device.h"
#include "run/loop_code.h"
#include "run/loop_once.h"
#include "run/loop_replay.h"
#include "run/messages.h"
#include "run/replay.h"
#include "run/speculation.h"
#include "run/stencil_run.h"
#include "run/timed_steps.h"
#include "core/hash.h"
#include "device/pending.h"
#include "plan/reduce/reduction_tree.h"
#include <string.h>

/* -- transfers ----------------------------------------------------------------------------------------------------- */

static const oly_ticket *ticket_of(oly_run *r)
{
    return r->plan->distributed ? oly_next_ticket(r) : &r->ticket;
}

static oly_status start(oly_run *r, oly_exchange *x, const oly_ticket *ticket, bool leave)
{
    return leave ? oly_messages_leave_pending(r, x, ticket) : oly_messages_start(r, x, ticket);
}

static oly_status run_move(oly_run *r, const oly_step *step)
{
    const oly_ticket *ticket = step->alone ? &r->ticket : ticket_of(r);
    if (step->exchange)
        OLY_TRY(start(r, step->exchange, ticket, step->starts));
    OLY_TRY(oly_run_copies(r, oly_prepared_for(r->plan, r->base, step), step->move.copies, step->move.n_copies,
                           step->work));
    return step->exchange && !step->starts ? oly_messages_finish(r, step->exchange, ticket) : OLY_OK;
}

/* Blocks for one process after the other; computed blocks are sent while the next ones are computed. */
static oly_status run_product(oly_run *r, const oly_step *step)
{
    OLY_TRY(oly_run_copies(r, step->prepared, step->gemm.copies, step->gemm.n_copies, step->work));
    if (!step->exchange)
        return oly_compute(r, step);
    OLY_TRY(oly_messages_begin_pending(r, step->exchange, oly_next_ticket(r)));
    for (int k = 0; k < step->gemm.n_phases; k++) {
        OLY_TRY(oly_compute_phase(r, step, k));
        OLY_TRY(oly_messages_send(r, step->exchange, step->gemm.phases[k].peer));
    }
    return OLY_OK;
}

/* -- reductions over devices ----------------------------------------------------------------------------------------------- */

static oly_status run_exchange(oly_run *r, oly_exchange *x, const oly_ticket *ticket)
{
    if (!x)
        return OLY_OK;
    OLY_TRY(oly_messages_start(r, x, ticket));
    return oly_messages_finish(r, x, ticket);
}

/* The exchange of the first level may have been the step's own. */
static oly_status run_levels(oly_run *r, const oly_step *step)
{
    for (int k = 0; k < step->reduction.n_levels_run; k++) {
        oly_reduction_level *level;
        OLY_TRY(oly_reduction_level_of(r->plan, step->reduction.levels, k, &level));
        OLY_TRY(run_exchange(r, level->exchange, ticket_of(r)));
        OLY_TRY(oly_executor_prepare_level(r->plan, level));
        OLY_TRY(oly_run_copies(r, level->prepared, level->copies, level->n_copies, level->copied));
        OLY_TRY(oly_compute_sums(r, step, level->n_groups, level->groups, level->work));
        if (step->reduction.sliced)
            OLY_TRY(run_exchange(r, level->second, ticket_of(r)));
    }
    return OLY_OK;
}

static oly_status run_reduction(oly_run *r, const oly_step *step)
{
    const oly_ticket *ticket = step->begun ? &r->ticket : ticket_of(r);
    OLY_TRY(run_exchange(r, step->exchange, ticket));
    OLY_TRY(oly_compute_sums(r, step, step->reduction.n_groups, step->reduction.groups, step->work));
    if (step->reduction.levels)
        return run_levels(r, step);
    if (step->reduction.sliced)
        ticket = ticket_of(r); /* also where there is nothing to distribute: the count is the same on every process */
    if (!step->second)
        return OLY_OK;
    OLY_TRY(start(r, step->second, ticket, step->starts));
    return step->starts ? OLY_OK : oly_messages_finish(r, step->second, ticket);
}

/* -- loops ------------------------------------------------------------------------------------------------------------------ */

static void **cell(oly_run *r, int device, int slot)
{
    return &r->base[oly_cell(r->plan, device, slot)];
}

/* The value of a slot on the first local device that has it; all devices hold the same. *here: is there one? */
static oly_status read_common(oly_run *r, int slot, size_t bytes, void *value, bool *here)
{
    for (int d = 0; d < r->plan->n_devices; d++)
        if (r->plan->slots[slot].device_bytes[d] > 0) {
            *here = true;
            return oly_slot_read(r, d, slot, bytes, value);
        }
    *here = false;
    return OLY_OK;
}

/* Does iteration i follow? */
static oly_status goes_on(oly_run *r, const oly_step *s, int64_t i, bool *more)
{
    bool predicate = false, here = true;
    oly_status st = OLY_OK;
    if (s->loop.predicate < 0)
        predicate = i < s->loop.count;
    else
        st = read_common(r, s->loop.in_slot[s->loop.predicate], sizeof predicate, &predicate, &here);
    *more = st == OLY_OK && here && predicate;
    return st;
}

static oly_status set_counter(oly_run *r, const oly_step *s, int64_t i)
{
    int32_t counter = (int32_t)(s->loop.lower + i);
    for (int d = 0; d < r->plan->n_devices && s->loop.counter_slot >= 0; d++)
        if (*cell(r, d, s->loop.counter_slot)) /* none on a process without a device of the mesh */
            OLY_TRY(oly_slot_write(r, d, s->loop.counter_slot, sizeof counter, &counter));
    return OLY_OK;
}

/* The devices whose buffers turn: all, or the first alone (oly_prepared.first_only), after which the others catch up. */
static int turning_devices(const oly_run *r, const oly_step *s)
{
    return s->prepared && s->prepared->first_only ? 1 : r->plan->n_devices;
}

/* The next iteration reads what this one wrote, and overwrites what no carry holds any more. */
void oly_turn_buffers(oly_run *r, const oly_step *s)
{
    for (int d = 0; d < turning_devices(r, s); d++)
        oly_loop_turn(r->plan, r->base, s, d);
    oly_base_changes(r);
}

/* Of devices that did not turn in n iterations: from the second on two buffers take turns. */
static void catch_up(oly_run *r, const oly_step *s, int64_t n)
{
    int64_t turns = n < 2 ? n : 1 + (n - 1) % 2;
    for (int d = turning_devices(r, s); d < r->plan->n_devices; d++)
        for (int64_t k = 0; k < turns; k++)
            oly_loop_turn(r->plan, r->base, s, d);
    oly_base_changes(r);
}

static void restore_buffers(oly_run *r, const oly_step *s, int64_t n, int devices)
{
    for (int d = 0; d < devices; d++)
        oly_loop_restore(r->plan, r->base, s, d, n);
    oly_base_changes(r);
}

static oly_status copy_results(oly_run *r, const oly_step *s)
{
    for (int d = 0; d < r->plan->n_devices; d++)
        for (int k = 0; k < s->loop.n_carry; k++) {
            size_t bytes = r->plan->slots[s->loop.result_slot[k]].device_bytes[d];
            if (bytes)
                OLY_TRY(oly_slot_copy(r, d, s->loop.result_slot[k], s->loop.in_slot[k], bytes));
        }
    return OLY_OK;
}

static void bind_rows(oly_run *r, const oly_step *s, int64_t i)
{
    if (s->loop.n_rows == 0)
        return;
    for (int d = 0; d < r->plan->n_devices; d++)
        oly_loop_bind_rows(r->plan, r->base, s, d, i);
    oly_base_changes(r);
}

/* Iteration i, if there is one: *more. It may be launched before that is known. */
static oly_status run_iteration(oly_run *r, const oly_step *s, int64_t i, oly_iterations *shown, bool *more)
{
    bool early;
    OLY_TRY(oly_speculation_begins(r, s, i, &early));
    if (!early)
        OLY_TRY(goes_on(r, s, i, more));
    if (!early && !*more)
        return OLY_OK;
    oly_iteration_begins(shown, i);
    oly_status st = set_counter(r, s, i);
    bind_rows(r, s, i);
    if (st == OLY_OK)
        st = oly_run_block(r, s->loop.body);
    oly_iteration_ends(shown, i);
    return early ? oly_speculation_ends(r, s, st, more) : st;
}

/* Some iterations from *i on, if there are any: *more. Several where they are recorded. */
static oly_status run_iterations(oly_run *r, const oly_step *s, int64_t *i, oly_iterations *shown, bool *more)
{
    int64_t n = 0;
    bool decided = false;
    OLY_TRY(oly_loop_replay_run(r, s, *i, &n, &decided, more));
    *i += n;
    if (n > 0 || decided) {
        for (int64_t k = n % s->prepared->replay->period; k > 0; k--)
            oly_turn_buffers(r, s);
        return OLY_OK;
    }
    if (turning_devices(r, s) == 1 && !oly_platform_is_late() && !r->label && !oly_run_is_timed(r) &&
        !oly_is_under_way(r)) {
        n = oly_loop_code_run(r->plan, r->base, s, 0, *i);
        if (n > 0) {
            oly_base_changes(r);
            *i += n;
            *more = s->loop.predicate >= 0 || *i < s->loop.count; /* a condition is looked at again */
            return OLY_OK;
        }
    }
    OLY_TRY(run_iteration(r, s, *i, shown, more));
    if (*more) {
        oly_turn_buffers(r, s);
        ++*i;
    }
    return OLY_OK;
}

/* once: NULL: each device runs it. */
static oly_status run_loop(oly_run *r, const oly_step *s, const oly_loop_once *once)
{
    int n = r->plan->n_devices;
    oly_status st = OLY_OK;
    int64_t i = 0;
    bool more = true, ends = false;
    if (oly_runs_by_device(r, s) && oly_loop_by_device(r, s))
        return OLY_OK;
    for (int d = 0; d < n; d++)
        oly_loop_begin(r->plan, r->base, s, d);
    oly_base_changes(r);
    oly_iterations shown = oly_iterations_begin(r, s);
    while (!ends && more && st == OLY_OK) {
        st = run_iterations(r, s, &i, &shown, &more);
        if (s->loop.predicate >= 0 && more && oly_run_failure() != OLY_OK)
            ends = true; /* the job is ending: a condition need not become true any more */
        if (r->failed)   /* after the same check on all processes */
            break;
    }
    oly_iterations_end(&shown, i);
    if (ends)
        return OLY_OK;
    if (once)
        catch_up(r, s, i);
    if (once && st == OLY_OK)
        oly_spread_carries(r, once);
    if (s->loop.result_slot && st == OLY_OK)
        st = copy_results(r, s);
    restore_buffers(r, s, i, once ? n : turning_devices(r, s));
    return st;
}

static oly_status run_branch(oly_run *r, const oly_step *s)
{
    int32_t index;
    bool here;
    OLY_TRY(read_common(r, s->branch.index_slot, sizeof index, &index, &here));
    if (!here)
        return OLY_OK;
    int last = s->branch.n - 1, k = index < 0 ? 0 : index > last ? last : index;
    return oly_run_block(r, s->branch.blocks[k]);
}

void oly_settle_loops(oly_run *r)
{
    const oly_plan *plan = r->plan;
    for (int j = 0; j < plan->main->n_steps; j++) {
        const oly_step *s = &plan->main->steps[j];
        for (int k = 0; s->kind == OLY_STEP_LOOP && !s->loop.result_slot && k < s->loop.n_carry; k++)
            for (int d = 0; d < plan->n_devices; d++) {
                const oly_passed_carry *x = s->loop.passed ? &s->loop.passed[k] : NULL;
                int64_t written = s->loop.count - 1 - (x ? x->age : 0); /* the iteration that computed it */
                int last = oly_loop_slot_written(s, x ? x->root : k, written);
                last = last < 0 ? s->loop.init_slot[k] : last;
                r->owner[oly_cell(plan, d, s->loop.in_slot[k])] = r->owner[oly_cell(plan, d, last)];
            }
    }
}

/* -- steps -------------------------------------------------------------------------------------------------------------------- */

static oly_status use_memory(oly_run *r, const oly_step *s)
{
    switch (s->kind) {
    case OLY_STEP_TILE:
    case OLY_STEP_REDUCE:
    case OLY_STEP_LOCAL: return oly_compute(r, s);
    case OLY_STEP_CALL: return oly_is_host_call(s) ? oly_run_host_call(r, s) : oly_compute(r, s);
    case OLY_STEP_GEMM: return run_product(r, s);
    case OLY_STEP_MOVE: return run_move(r, s);
    case OLY_STEP_REDUCTION: return run_reduction(r, s);
    case OLY_STEP_STENCIL: return s->stencil.tiling ? oly_run_time_tiling(r, s) : oly_run_stencil(r, s);
    case OLY_STEP_WAIT:
        return s->from < 0 ? oly_messages_join(r, s->awaited) : oly_messages_await(r, s->awaited, s->from);
    default: return OLY_OK;
    }
}

/* Control flow reads values as the host does, through the platform. */
static oly_status run_step(oly_run *r, const oly_step *s)
{
    if (s->kind == OLY_STEP_LOOP) {
        const oly_loop_once *once = s->prepared ? s->prepared->loop_once : NULL;
        return run_loop(r, once ? &once->step : s, once);
    }
    if (s->kind == OLY_STEP_BRANCH)
        return run_branch(r, s);
    oly_executor_enter(r);
    oly_status st = use_memory(r, s);
    oly_executor_leave(r);
    return st;
}

static oly_status run_timed(oly_run *r, const oly_step *s)
{
    oly_timed_step t = oly_timed_step_begins(r, s);
    oly_status st = run_step(r, s);
    oly_timed_step_ends(r, s, &t);
    return st;
}

oly_status oly_run_steps(oly_run *r, const oly_block *b, int first, int n)
{
    for (int k = first; k < first + n; k++)
        OLY_TRY(run_step(r, &b->steps[k]));
    return OLY_OK;
}

/* Step k, or all of the segment that begins with it: *n steps. */
static oly_status run_next(oly_run *r, const oly_block *b, int k, int *n)
{
    oly_segment *segment = oly_segment_at(&b->steps[k]);
    bool done = false;
    if (segment)
        OLY_TRY(oly_replay_run(r, segment, &done));
    *n = done ? segment->n : 1;
    if (done)
        return OLY_OK;
    return oly_run_is_timed(r) ? run_timed(r, &b->steps[k]) : run_step(r, &b->steps[k]);
}

oly_status oly_run_block(oly_run *r, const oly_block *b)
{
    for (int k = 0, n; k < b->n_steps; k += n) {
        OLY_TRY(run_next(r, b, k, &n));
        if (oly_is_under_way(r)) {
            oly_advance_exchanges(r);
            OLY_TRY(r->advance);
        }
    }
    return OLY_OK;
}

void oly_run_fail_in(oly_status status, oly_site site)
{
    oly_site here = oly_current_site();
    oly_restore_site(site);
    if (status == OLY_MEMORY)
        oly_run_give_up(status);
    oly_run_fail(status);
    oly_raise(status);
    oly_restore_site(here);
}

void oly_interpret(oly_job *job)
{
    oly_run *r = (oly_run *)job;
    if (oly_run_failure() != OLY_OK)
        return;
    r->thread = pthread_self();
    r->advance = OLY_OK;
    r->failed = false;
    atomic_store_explicit(&r->worked, OLY_OK, memory_order_relaxed);
    oly_status st = OLY_OK;
    int64_t begun = r->submitted ? oly_ticks() : 0;
    if (r->together.set)
        st = oly_together_count(&r->together, r->plan, oly_run_copy_of, r, &r->ticket);
    if (st == OLY_OK)
        st = oly_run_block(r, r->plan->main);
    oly_status late = oly_platform_is_late() ? oly_end_late(r, st == OLY_OK) : OLY_OK; /* in any case */
    oly_base_changes(r);
    if (r->submitted)
        oly_timed_run_ends(r, begun);
    if (st == OLY_MEMORY &&
        late == OLY_DEVICE_FAILED) { /* a device that has failed gives no memory: that is the cause */
        oly_drop_message();
        st = oly_drain(r);
    }
    if (st == OLY_OK)
        st = late;
    if (st != OLY_OK)
        oly_run_fail_in(oly_pending_blame(r->plan->n_devices, r->plan->devices, st), r->site);
}
