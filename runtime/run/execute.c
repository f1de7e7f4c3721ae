/* SPDX-License-Identifier: BSD-3-Clause */
/* Binding and submitting runs. See execute.h. Replay allocates nothing: run objects are reused, buffers come from the
 * pool. */
#include "run/execute.h"
#include "run/interpret.h"
#include "run/introduction.h"
#include "run/executor.h"
#include "run/held_once.h"
#include "run/timed_steps.h"
#include "run/loop_replay.h"
#include "run/replay.h"
#include "run/speculation.h"
#include "device/platform.h"
#include "device/workers.h"
#include "communicator.h"
#include "core/events.h"
#include "core/hash.h"
#include "core/optimisation.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

struct oly_program {
    oly_plan *plan;
    int *const *input_shard;   /* [input][device]: shard number, -1 */
    int *const *output_device; /* [output][shard]: device */
    const int *n_output_shards;
    struct slots {
        const int *slot; /* the plan's slots by kind */
        int end[OLY_SLOT_BOUND + 1];
    } slots;
    bool may_stay_pending;                               /* the work of its runs (device/pending.h) */
    bool is_short;                                       /* for the thread that submits it: some launches */
    bool has_loops;                                      /* whose buffers alternate */
    int shown;                                           /* oly_shown_runs */
    _Atomic int64_t until_shown, last_shown, next_shown; /* runs until the next that is shown; numbers of runs */
    struct
        takes { /* [n_outputs] the donated input of the last check, and whether the output may take its memory; under the pool's lock */
        int input;
        bool allowed;
    } * takes;
    oly_run *idle; /* owned; like `running` under the pool's lock, which a run takes anyway */
    int running;
    size_t tile_bytes;
    oly_process_set *set; /* the processes that make the calls; NULL: this process alone */
};

static _Atomic int failure = OLY_OK;
static struct {
    pthread_mutex_t lock;
    char text[1600]; /* the first call that failed, and why */
} first = {.lock = PTHREAD_MUTEX_INITIALIZER};

oly_status oly_run_failure(void)
{
    return (oly_status)atomic_load_explicit(&failure, memory_order_relaxed);
}

oly_status oly_run_refused(void)
{
    char text[sizeof first.text];
    oly_status st = oly_run_failure();
    if (st == OLY_OK)
        return OLY_OK;
    pthread_mutex_lock(&first.lock);
    memcpy(text, first.text, sizeof text);
    pthread_mutex_unlock(&first.lock);
    return oly_fail(st, "nothing more is computed until oly_finalize, because %s", text);
}

void oly_run_fail(oly_status status)
{
    pthread_mutex_lock(&first.lock);
    if (oly_run_failure() == OLY_OK) {
        char place[200];
        oly_site site = oly_current_site();
        const char *why = oly_pending_message();
        oly_site_text(&site, place, sizeof place);
        snprintf(first.text, sizeof first.text, "%s has failed%s%s", *place ? place : "a call", *why ? ": " : "", why);
    }
    atomic_store(&failure, status);
    pthread_mutex_unlock(&first.lock);
}

oly_status oly_run_give_up(oly_status status)
{
    oly_world_tell(status);
    oly_run_fail(status);
    return status;
}

void oly_run_reset(void)
{
    oly_together_forget();
    oly_introductions_end();
    atomic_store(&failure, OLY_OK);
}

/* -- programs ------------------------------------------------------------------------------------------------------- */

/* The plan's devices by their local number, -1 for others; *n: how many numbers. */
static int *plan_devices_by_number(oly_plan *plan, int *n)
{
    *n = 0;
    for (int d = 0; d < plan->n_devices; d++)
        *n = plan->devices[d] >= *n ? plan->devices[d] + 1 : *n;
    int *of = OLY_ARENA_NEW(&plan->arena, int, *n + 1);
    for (int k = 0; of && k < *n; k++)
        of[k] = -1;
    for (int d = 0; of && d < plan->n_devices; d++)
        of[plan->devices[d]] = d;
    return of;
}

/* Which of the plan's devices, numbered in `of`, has shard s of this mesh; -1: none. */
static int device_of_shard(oly_mesh mesh, const int *positions, int s, int n, const int *of)
{
    int local = oly_mesh_local_index(oly_mesh_device_id(mesh, positions[s]));
    return local >= 0 && local < n ? of[local] : -1;
}

static oly_status list_slots(oly_program *p)
{
    oly_plan *plan = p->plan;
    int *list = OLY_ARENA_NEW(&plan->arena, int, plan->n_slots + 1), n = 0;
    if (!list)
        return OLY_MEMORY;
    for (int kind = 0; kind <= OLY_SLOT_BOUND; kind++) {
        for (int s = 0; s < plan->n_slots; s++)
            if ((int)plan->slots[s].kind == kind)
                list[n++] = s;
        p->slots.end[kind] = n;
    }
    p->slots.slot = list;
    for (int k = 0; k < plan->main->n_steps; k++)
        p->has_loops = p->has_loops || plan->main->steps[k].kind == OLY_STEP_LOOP;
    return OLY_OK;
}

static oly_status bind(oly_program *p)
{
    oly_plan *plan = p->plan;
    int **input_shard = OLY_ARENA_NEW(&plan->arena, int *, plan->n_inputs + 1);
    int **output_device = OLY_ARENA_NEW(&plan->arena, int *, plan->n_outputs + 1);
    int *n_shards = OLY_ARENA_NEW(&plan->arena, int, plan->n_outputs + 1);
    p->takes = OLY_ARENA_NEW(&plan->arena, struct takes, plan->n_outputs + 1);
    if (!input_shard || !output_device || !n_shards || !p->takes || list_slots(p) != OLY_OK)
        return oly_out_of_memory(0, "a program");
    int n_numbers, *of = plan_devices_by_number(plan, &n_numbers);
    if (!of)
        return oly_out_of_memory(0, "a program");
    for (int k = 0; k < plan->n_inputs; k++) {
        const int *positions;
        oly_mesh mesh = plan->inputs[k].sharding->mesh;
        input_shard[k] = OLY_ARENA_NEW(&plan->arena, int, plan->n_devices + 1);
        if (!input_shard[k])
            return oly_out_of_memory(0, "a program");
        for (int d = 0; d < plan->n_devices; d++)
            input_shard[k][d] = -1;
        for (int s = 0, n = oly_mesh_local_positions(mesh, &positions); s < n; s++) {
            int d = device_of_shard(mesh, positions, s, n_numbers, of);
            if (d >= 0)
                input_shard[k][d] = s;
        }
    }
    for (int k = 0; k < plan->n_outputs; k++) {
        const int *positions;
        oly_mesh mesh = plan->outputs[k].sharding->mesh;
        p->takes[k].input = -1;
        n_shards[k] = oly_mesh_local_positions(mesh, &positions);
        output_device[k] = OLY_ARENA_NEW(&plan->arena, int, n_shards[k] + 1);
        if (!output_device[k])
            return oly_out_of_memory(0, "a program");
        for (int s = 0; s < n_shards[k]; s++)
            output_device[k][s] = device_of_shard(mesh, positions, s, n_numbers, of);
    }
    p->may_stay_pending =
        oly_platform_get()->run_ahead && !plan->distributed && oly_enabled(OLY_OPTIMISATION_PENDING_RUNS);
    p->tile_bytes = oly_executor_workspace(plan);
    p->input_shard = input_shard;
    p->output_device = output_device;
    p->n_output_shards = n_shards;
    return OLY_OK;
}

/* Nothing but launches, and few: they take the caller less than it takes to wake another thread. */
static bool is_short(const oly_program *p)
{
    enum { MOST_SHARES = 64 };
    const oly_block *b = p->plan->main;
    if (!p->may_stay_pending || !oly_enabled(OLY_OPTIMISATION_INLINE_RUNS) ||
        b->n_steps * p->plan->n_devices > MOST_SHARES)
        return false;
    for (int k = 0; k < b->n_steps; k++)
        if (!oly_replays(p->plan, &b->steps[k]))
            return false;
    return true;
}

oly_status oly_program_new(oly_plan *plan, oly_program **program)
{
    oly_program *p = oly_calloc(1, sizeof *p);
    if (!p) {
        oly_plan_free(plan);
        return oly_out_of_memory(sizeof *p, "a program");
    }
    p->plan = plan;
    oly_status st = bind(p);
    if (st == OLY_OK)
        st = oly_executor_prepare(plan);
    if (st == OLY_OK && oly_executor_get()->prepare)
        st = oly_executor_get()->prepare(plan);
    if (st == OLY_OK)
        st = oly_replay_prepare(plan);
    if (st == OLY_OK)
        st = oly_speculation_prepare(plan);
    if (st == OLY_OK)
        st = oly_loop_replay_prepare(plan);
    if (st == OLY_OK)
        st = oly_together_set(plan, &p->set);
    if (st == OLY_OK && oly_times_steps())
        st = oly_label_steps(plan);
    p->shown = oly_shown_runs(plan);
    p->is_short = st == OLY_OK && is_short(p);
    if (st != OLY_OK) {
        oly_program_free(p);
        return st;
    }
    *program = p;
    return OLY_OK;
}

static bool runs(oly_program *p)
{
    oly_pool_lock();
    bool yes = p->running > 0;
    oly_pool_unlock();
    return yes;
}

void oly_program_free(oly_program *p)
{
    if (!p)
        return;
    if (runs(p))
        oly_queue_drain();
    while (runs(p)) /* executed, but not yet handed back: takes a moment */
        sched_yield();
    while (p->idle) {
        oly_run *r = p->idle;
        p->idle = r->next;
        pthread_mutex_destroy(&r->turn);
        oly_release(r);
    }
    oly_replay_forget(p->plan);
    oly_loop_replay_forget(p->plan);
    oly_plan_free(p->plan);
    oly_release(p);
}

const oly_plan *oly_program_plan(const oly_program *p)
{
    return p->plan;
}
int oly_program_output_shards(const oly_program *p, int k)
{
    return p->n_output_shards[k];
}

/* -- runs ------------------------------------------------------------------------------------------------------------ */

static oly_run *new_run(oly_program *p)
{
    const oly_plan *plan = p->plan;
    size_t cells = (size_t)plan->n_slots * (size_t)plan->n_devices, tiles = (size_t)oly_workers_slots();
    size_t most_used = cells + (size_t)plan->n_devices + 1; /* slots, scratch, a tile */
    oly_run *r =
        oly_calloc(1, sizeof *r + sizeof(void *) * cells + sizeof(oly_buffer *) * (cells + most_used + tiles) +
                          sizeof(uint64_t) * (size_t)plan->n_inputs + (size_t)(plan->held ? plan->held->n : 0));
    if (r) {
        r->plan = plan;
        r->program = p;
        r->base = (void **)(r + 1);
        r->owner = (oly_buffer **)(r->base + cells);
        r->used = r->owner + cells;
        r->tiles = r->used + most_used;
        r->together.copies = (uint64_t *)(r->tiles + tiles);
        r->apart = (bool *)(r->together.copies + plan->n_inputs);
        r->together.set = p->set;
        r->tile_bytes = p->tile_bytes;
        r->may_stay_pending = p->may_stay_pending;
        pthread_mutex_init(&r->turn, NULL);
    }
    return r;
}

static oly_run *take_run_locked(oly_program *p)
{
    oly_run *r = p->idle ? p->idle : new_run(p);
    if (!r)
        return NULL;
    p->idle = r->next;
    p->running++;
    return r;
}

/* Later jobs on its devices may take its buffers. */
static void run_is_queued(oly_job *job)
{
    oly_run *r = (oly_run *)job;
    oly_pool_lock();
    for (int k = 0; k < r->n_used; k++)
        oly_buffer_settle_locked(r->used[k]);
    oly_pool_unlock();
}

static void give_run_locked(oly_run *r)
{
    oly_program *p = r->program;
    for (int k = 0; k < r->n_used; k++)
        oly_buffer_done_locked(r->used[k]);
    r->n_used = 0;
    r->tile = NULL;
    r->next = p->idle;
    p->idle = r;
    p->running--;
}

/* Releases the buffers of the run and hands it back. */
static void release_run(oly_job *job)
{
    oly_pool_lock();
    give_run_locked((oly_run *)job);
    oly_pool_unlock();
}

static bool may_take_locked(const oly_program *p, int output, int input)
{
    struct takes *t = &p->takes[output];
    if (t->input != input)
        *t = (struct takes){input, oly_plan_may_take(p->plan, input, output)};
    return t->allowed;
}

/* The donated buffer that a result on this device may take over: only the caller's handle and earlier calls hold it. */
static oly_buffer *donated_buffer(const oly_program *p, const oly_run *r, int slot, int d,
                                  oly_buffer *const *const *inputs, const int *donated)
{
    const oly_plan *plan = p->plan;
    for (int k = 0; donated && k < plan->n_outputs; k++) {
        if (plan->output_slot[k] != slot || donated[k] < 0)
            continue;
        int shard = p->input_shard[donated[k]][d];
        oly_buffer *b = shard < 0 ? NULL : inputs[donated[k]][shard];
        if (b && oly_buffer_is_sole_locked(b, plan->devices[d], r->number) && may_take_locked(p, k, donated[k]))
            return b;
    }
    return NULL;
}

/* The buffer of an input that all devices of the plan hold together; NULL: they do not. */
static oly_buffer *buffer_of_all(const oly_program *p, int input, oly_buffer *const *const *inputs)
{
    const int *shard = p->input_shard[input];
    oly_buffer *b = shard[0] < 0 ? NULL : inputs[input][shard[0]];
    for (int d = 1; d < p->plan->n_devices; d++)
        if (shard[d] < 0 || inputs[input][shard[d]] != b)
            return NULL;
    return b;
}

/* Which of the values that may be held once are not in this run: those for one of which each device donates memory of its own. */
static void find_apart(oly_run *r, oly_buffer *const *const *inputs, const int *donated)
{
    const oly_plan *plan = r->plan;
    for (int k = 0; k < plan->held->n; k++)
        r->apart[k] = false;
    for (int k = 0; donated && k < plan->n_outputs; k++) {
        int number = plan->held->of_slot[plan->output_slot[k]];
        if (number >= 0 && donated[k] >= 0 && !buffer_of_all(r->program, donated[k], inputs))
            r->apart[number] = true;
    }
}

static bool is_held_once(const oly_run *r, int slot)
{
    int number = r->plan->held->of_slot[slot];
    return number >= 0 && !r->apart[number];
}

/* The donated buffer that a result held once may take over: all devices of the plan hold it together, and nobody else does. Calls that use
 * it are queued on some of these devices, all before this one. */
static oly_buffer *donated_by_all(const oly_program *p, const oly_run *r, int slot, oly_buffer *const *const *inputs,
                                  const int *donated)
{
    const oly_plan *plan = p->plan;
    for (int k = 0; donated && k < plan->n_outputs; k++) {
        oly_buffer *b = plan->output_slot[k] == slot && donated[k] >= 0 ? buffer_of_all(p, donated[k], inputs) : NULL;
        if (b && oly_buffer_is_theirs_locked(b, plan->n_devices, r->number) && may_take_locked(p, k, donated[k]))
            return b;
    }
    return NULL;
}

/* A new buffer for this run on the plan's device d; NULL after a failure, whose size is kept for oly_buffer_fail. */
static oly_buffer *take_locked(oly_run *r, int d, size_t bytes, size_t *failed)
{
    oly_buffer *b = oly_buffer_take_locked(bytes, r->plan->devices[d], r->number);
    if (b)
        r->used[r->n_used++] = b;
    else
        *failed = bytes;
    return b;
}

static oly_buffer *use_locked(oly_run *r, int d, oly_buffer *b)
{
    if (b) {
        oly_buffer_use_locked(b, r->plan->devices[d], r->number);
        r->used[r->n_used++] = b;
    }
    return b;
}

/* Scratch memory, which contains the slots without a buffer of their own. Returns what could not be allocated, or
 * NULL. */
static const char *bind_scratch_locked(oly_program *p, oly_run *r, size_t *failed)
{
    const oly_plan *plan = p->plan;
    for (int d = 0; d < plan->n_devices && plan->scratch_bytes && oly_platform_get()->computes; d++) {
        const oly_buffer *scratch = take_locked(r, d, plan->device_scratch[d], failed);
        if (!scratch)
            return "intermediate values";
        for (int k = p->slots.end[OLY_SLOT_SCRATCH - 1]; k < p->slots.end[OLY_SLOT_SCRATCH]; k++) {
            int s = p->slots.slot[k];
            r->base[oly_cell(plan, d, s)] = (char *)scratch->data + plan->slots[s].offset;
        }
    }
    for (int k = p->slots.end[OLY_SLOT_SCRATCH - 1]; plan->held && k < p->slots.end[OLY_SLOT_SCRATCH]; k++)
        for (int d = 1, s = p->slots.slot[k]; d < plan->n_devices && is_held_once(r, s); d++)
            r->base[oly_cell(plan, d, s)] = r->base[oly_cell(plan, 0, s)];
    if (r->tile_bytes && !oly_platform_is_apart() && !(r->tile = take_locked(r, 0, r->tile_bytes, failed)))
        return "a stencil's tiles";
    return NULL;
}

static void bind_inputs_locked(oly_program *p, oly_run *r, oly_buffer *const *const *inputs)
{
    const oly_plan *plan = p->plan;
    for (int k = 0; k < p->slots.end[OLY_SLOT_INPUT]; k++) {
        int s = p->slots.slot[k];
        const oly_slot *slot = &plan->slots[s];
        for (int d = 0; d < plan->n_devices; d++) {
            int cell = oly_cell(plan, d, s), shard = p->input_shard[slot->index][d];
            oly_buffer *b = r->owner[cell] = use_locked(r, d, shard < 0 ? NULL : inputs[slot->index][shard]);
            r->base[cell] = b ? b->data : NULL;
        }
    }
}

/* A result that all devices hold together. */
static __attribute__((noinline)) bool bind_held_locked(const oly_program *p, oly_run *r, int slot,
                                                       oly_buffer *const *const *inputs, const int *donated,
                                                       size_t *failed)
{
    const oly_plan *plan = p->plan;
    oly_buffer *b = use_locked(r, 0, donated_by_all(p, r, slot, inputs, donated));
    if (!b && !(b = take_locked(r, 0, plan->slots[slot].device_bytes[0], failed)))
        return false;
    b->devices = (uint16_t)plan->n_devices;
    for (int d = 0; d < plan->n_devices; d++) {
        int cell = oly_cell(plan, d, slot);
        r->owner[cell] = d == 0 ? b : use_locked(r, d, b);
        r->base[cell] = b->data;
    }
    return true;
}

/* Results, and the alternating buffers of loops. */
static const char *bind_results_locked(oly_program *p, oly_run *r, oly_buffer *const *const *inputs, const int *donated,
                                       size_t *failed)
{
    const oly_plan *plan = p->plan;
    for (int k = p->slots.end[OLY_SLOT_POOL - 1]; k < p->slots.end[OLY_SLOT_POOL]; k++) {
        int s = p->slots.slot[k];
        const oly_slot *slot = &plan->slots[s];
        if (plan->held && is_held_once(r, s)) {
            if (!bind_held_locked(p, r, s, inputs, donated, failed))
                return "a result";
            continue;
        }
        for (int d = 0; d < plan->n_devices; d++) {
            int cell = oly_cell(plan, d, s);
            oly_buffer *b = use_locked(r, d, donated_buffer(p, r, s, d, inputs, donated));
            if (!b && !(b = take_locked(r, d, slot->device_bytes[d], failed)))
                return "a result";
            r->owner[cell] = b;
            r->base[cell] = b->data;
        }
    }
    return NULL;
}

/* Fills the tables. Inputs come first: whether one is donated depends on its other users. Returns what could not be
 * allocated, or NULL. */
static const char *bind_slots_locked(oly_program *p, oly_run *r, oly_buffer *const *const *inputs, const int *donated,
                                     size_t *failed)
{
    static uint64_t runs; /* under the pool's lock */
    r->number = ++runs;
    if (p->plan->held)
        find_apart(r, inputs, donated);
    bind_inputs_locked(p, r, inputs);
    const char *missing = bind_scratch_locked(p, r, failed);
    return missing ? missing : bind_results_locked(p, r, inputs, donated, failed);
}

/* A result may end in any of the alternating buffers of a loop; which one is known before the run. */
static void take_outputs_locked(oly_program *p, oly_run *r, oly_buffer **const *outputs)
{
    const oly_plan *plan = p->plan;
    for (int k = 0; k < plan->n_outputs; k++)
        for (int s = 0; s < p->n_output_shards[k]; s++) {
            int cell = oly_cell(plan, p->output_device[k][s], plan->output_slot[k]);
            outputs[k][s] = r->owner[cell];
            oly_buffer_hold_locked(outputs[k][s]);
        }
}

/* A run with its memory; NULL after an error. */
static oly_run *begin_run(oly_program *p, oly_buffer *const *const *inputs, const int *donated,
                          oly_buffer **const *outputs)
{
    size_t failed = 0;
    const char *missing = NULL;
    oly_pool_lock();
    oly_run *r = take_run_locked(p);
    if (r && !(missing = bind_slots_locked(p, r, inputs, donated, &failed))) {
        if (p->has_loops)
            oly_settle_loops(r);
        take_outputs_locked(p, r, outputs);
    } else if (r) {
        give_run_locked(r);
    }
    oly_pool_unlock();
    if (!r)
        oly_out_of_memory(sizeof *r, "a run");
    else if (missing)
        oly_buffer_fail(failed, missing);
    return missing ? NULL : r;
}

/* The contents of input k on one of the devices. */
oly_buffer *oly_run_copy_of(void *run, int k)
{
    const oly_run *r = run;
    for (int d = 0; d < r->plan->n_devices; d++)
        if (r->program->input_shard[k][d] >= 0)
            return r->owner[oly_cell(r->plan, d, r->plan->input_slot[k])];
    return NULL;
}

/* Shows the next run, and decides which to show after it. Returns how many were not shown since the last. All ranks answer alike, so that
 * messages have both ends; threads that call at once may count one less. */
static __attribute__((noinline)) int show_next(oly_program *p)
{
    if (!p->shown)
        return 0;
    int64_t i = atomic_load(&p->next_shown), last = atomic_load(&p->last_shown),
            next = oly_timeline_next_run(i, p->shown);
    atomic_store(&p->last_shown, i);
    atomic_store(&p->next_shown, next);
    atomic_store(&p->until_shown, next - i);
    return i > 0 ? (int)(i - last - 1) : 0;
}

/* Returns what begin_and_submit takes. Few instructions: most runs that are not shown are short. */
static inline int shows_next(oly_program *p)
{
    if (oly_timeline_quiet > 0)
        return -1;
    int64_t until = atomic_load_explicit(&p->until_shown, memory_order_relaxed);
    if (until <= 1)
        return show_next(p);
    atomic_store_explicit(&p->until_shown, until - 1, memory_order_relaxed);
    oly_timeline_leave_out_run();
    return -1;
}

/* not_shown: runs since the last that was shown; -1: this one is not shown. */
static oly_status begin_and_submit(oly_program *p, oly_buffer *const *const *inputs, const oly_identity *known,
                                   const int *donated, oly_buffer **const *outputs, oly_site site, int not_shown,
                                   oly_identity *made)
{
    const oly_plan *plan = p->plan;
    oly_run *r = begin_run(p, inputs, donated, outputs);
    if (!r)
        return oly_run_failure() != OLY_OK ? oly_run_refused() : OLY_MEMORY;
    oly_event_call(site);
    if (!oly_platform_get()->computes) { /* results have their types, and no memory to write to */
        release_run(&r->job);
        return OLY_OK;
    }
    r->site = site;
    r->not_shown = not_shown;
    r->submitted = oly_times_steps() && not_shown >= 0 ? oly_ticks() : 0;
    r->ticket.call[0] = 0;
    if (p->set) {
        oly_together_issue(&r->together, plan, known, donated, site);
        r->ticket.sequence = r->together.number << OLY_TICKET_STEP_BITS;
        *made = (oly_identity){.set = p->set, .number = r->together.number << 16};
    }
    r->job = (oly_job){.execute = oly_interpret,
                       .release = release_run,
                       .entered = run_is_queued,
                       .n_devices = plan->n_devices,
                       .devices = plan->devices,
                       .communicates = plan->distributed,
                       .small = plan->small || (p->is_short && r->submitted == 0),
                       .quiet = not_shown < 0};
    oly_status st = oly_queue_submit(&r->job);
    if (st != OLY_OK)
        release_run(&r->job);
    return st;
}

oly_status oly_program_run(oly_program *p, oly_buffer *const *const *inputs, const oly_identity *known,
                           const int *donated, oly_buffer **const *outputs, oly_site site, int *device,
                           uint64_t *moment, oly_identity *made)
{
    const oly_plan *plan = p->plan;
    *device = -1;
    *moment = 0;
    *made = (oly_identity){0};
    if (plan->n_devices == 0)
        return OLY_OK;
    OLY_TRY(oly_run_refused());
    int not_shown = oly_times_steps() ? shows_next(p) : 0, outer = oly_timeline_quiet;
    oly_timeline_quiet = outer | (not_shown < 0);
    oly_status st = begin_and_submit(p, inputs, known, donated, outputs, site, not_shown, made);
    oly_timeline_quiet = outer;
    if (st != OLY_OK || !oly_platform_get()->computes)
        return st;
    *device = plan->devices[0];
    *moment = oly_queue_now(*device);
    return oly_run_refused();
}
