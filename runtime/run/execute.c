/* Binding and submitting runs. See execute.h. Replays allocate nothing: run objects are reused, buffers come from the pool. */
#include "run/execute.h"
#include "run/interpret.h"
#include "run/tile_memory.h"
#include "device/workers.h"
#include "core/hash.h"
#include "core/simulate.h"
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

struct oly_program {
    oly_plan *plan;
    int *const *input_shard;   /* [input][device]: shard number, -1 */
    int *const *output_device; /* [output][shard]: device */
    const int *n_output_shards;
    pthread_mutex_t lock;
    oly_run *idle; /* owned */
    int running;   /* under lock */
    size_t tile_bytes;
    pthread_cond_t done;
};

static _Atomic int failure = OLY_OK;

oly_status oly_run_failure(void)
{
    return (oly_status)atomic_load_explicit(&failure, memory_order_relaxed);
}
void oly_run_fail(oly_status status)
{
    atomic_store(&failure, status);
}

/* -- numbering calls ------------------------------------------------------------------------------------------------
 * Messages carry the number of the call among those of the same set of devices, so that ranks that are not members need not
 * count. */
typedef struct counter {
    struct counter *next;
    uint64_t key, calls;
} counter;
static counter *counters;

static uint64_t next_call(uint64_t key)
{
    counter *c = counters;
    while (c && c->key != key)
        c = c->next;
    if (!c) {
        c = oly_calloc(1, sizeof *c);
        if (!c)
            return 0; /* still detects other differences */
        *c = (counter){counters, key, 0};
        counters = c;
    }
    return ++c->calls;
}

void oly_run_reset(void)
{
    while (counters) {
        counter *c = counters;
        counters = c->next;
        oly_release(c);
    }
    atomic_store(&failure, OLY_OK);
}

/* -- programs ------------------------------------------------------------------------------------------------------- */

static int shard_of_device(oly_mesh mesh, int local)
{
    const int *positions;
    int n = oly_mesh_local_positions(mesh, &positions);
    int first = oly_mesh_first_local();
    for (int s = 0; s < n; s++)
        if (oly_mesh_device_id(mesh, positions[s]) - first == local)
            return s;
    return -1;
}

static int device_of_shard(const oly_plan *plan, oly_mesh mesh, int shard)
{
    for (int d = 0; d < plan->n_devices; d++)
        if (shard_of_device(mesh, plan->devices[d]) == shard)
            return d;
    return -1;
}

static oly_status bind(oly_program *p)
{
    oly_plan *plan = p->plan;
    int **input_shard = OLY_ARENA_NEW(&plan->arena, int *, plan->n_inputs + 1);
    int **output_device = OLY_ARENA_NEW(&plan->arena, int *, plan->n_outputs + 1);
    int *n_shards = OLY_ARENA_NEW(&plan->arena, int, plan->n_outputs + 1);
    if (!input_shard || !output_device || !n_shards)
        return oly_out_of_memory(0, "a program");
    for (int k = 0; k < plan->n_inputs; k++) {
        input_shard[k] = OLY_ARENA_NEW(&plan->arena, int, plan->n_devices + 1);
        if (!input_shard[k])
            return oly_out_of_memory(0, "a program");
        for (int d = 0; d < plan->n_devices; d++)
            input_shard[k][d] = shard_of_device(plan->inputs[k].sharding->mesh, plan->devices[d]);
    }
    for (int k = 0; k < plan->n_outputs; k++) {
        const int *positions;
        n_shards[k] = oly_mesh_local_positions(plan->outputs[k].sharding->mesh, &positions);
        output_device[k] = OLY_ARENA_NEW(&plan->arena, int, n_shards[k] + 1);
        if (!output_device[k])
            return oly_out_of_memory(0, "a program");
        for (int s = 0; s < n_shards[k]; s++)
            output_device[k][s] = device_of_shard(plan, plan->outputs[k].sharding->mesh, s);
    }
    p->tile_bytes = oly_simulated() ? 0 : oly_tile_bytes(plan);
    p->input_shard = input_shard;
    p->output_device = output_device;
    p->n_output_shards = n_shards;
    return OLY_OK;
}

oly_status oly_program_new(oly_plan *plan, oly_program **program)
{
    oly_program *p = oly_calloc(1, sizeof *p);
    if (!p) {
        oly_plan_free(plan);
        return oly_out_of_memory(sizeof *p, "a program");
    }
    p->plan = plan;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->done, NULL);
    oly_status st = bind(p);
    if (st != OLY_OK) {
        oly_program_free(p);
        return st;
    }
    *program = p;
    return OLY_OK;
}

void oly_program_free(oly_program *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    bool busy = p->running > 0;
    pthread_mutex_unlock(&p->lock);
    if (busy)
        oly_queue_drain();
    pthread_mutex_lock(&p->lock);
    while (p->running > 0) /* executed, but not yet handed back */
        pthread_cond_wait(&p->done, &p->lock);
    pthread_mutex_unlock(&p->lock);
    while (p->idle) {
        oly_run *r = p->idle;
        p->idle = r->next;
        pthread_mutex_destroy(&r->turn);
        oly_release(r);
    }
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->done);
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

static oly_run *take_run(oly_program *p)
{
    const oly_plan *plan = p->plan;
    pthread_mutex_lock(&p->lock);
    oly_run *r = p->idle;
    if (r)
        p->idle = r->next;
    p->running++;
    pthread_mutex_unlock(&p->lock);
    if (r)
        return r;
    size_t cells = (size_t)plan->n_slots * (size_t)plan->n_devices, tiles = (size_t)oly_workers_slots();
    r = oly_calloc(1, sizeof *r + cells * (sizeof(void *) + sizeof(oly_buffer *)) +
                          sizeof(oly_buffer *) * ((size_t)plan->n_devices + tiles));
    if (r) {
        r->plan = plan;
        r->program = p;
        r->base = (void **)(r + 1);
        r->owner = (oly_buffer **)(r->base + cells);
        r->scratch = r->owner + cells;
        r->tiles = r->scratch + plan->n_devices;
        r->tile_bytes = p->tile_bytes;
        pthread_mutex_init(&r->turn, NULL);
    }
    return r;
}

static void give_run(oly_run *r)
{
    oly_program *p = r->program;
    pthread_mutex_lock(&p->lock);
    r->next = p->idle;
    p->idle = r;
    if (--p->running == 0)
        pthread_cond_broadcast(&p->done);
    pthread_mutex_unlock(&p->lock);
}

/* Drops what the run holds and hands it back. */
static void release_run(oly_job *job)
{
    oly_run *r = (oly_run *)job;
    const oly_plan *plan = r->plan;
    for (int d = 0; d < plan->n_devices; d++) {
        oly_buffer_drop(r->scratch[d]);
        r->scratch[d] = NULL;
    }
    oly_buffer_drop(r->tile);
    r->tile = NULL;
    for (int s = 0; s < plan->n_slots; s++)
        for (int d = 0; d < plan->n_devices; d++) {
            int cell = oly_cell(plan, d, s);
            if (r->owner[cell] && plan->slots[s].kind != OLY_SLOT_BOUND)
                oly_buffer_drop(r->owner[cell]);
            r->owner[cell] = NULL;
        }
    give_run(r);
}

/* The donated buffer that a result on this device may take over: one that only the caller's handle still holds. */
static oly_buffer *donated_buffer(const oly_program *p, int slot, int device, oly_buffer *const *const *inputs,
                                  const int *donated)
{
    const oly_plan *plan = p->plan;
    for (int k = 0; donated && k < plan->n_outputs; k++) {
        if (plan->output_slot[k] != slot || donated[k] < 0 || donated[k] != plan->reusable[k])
            continue;
        int shard = p->input_shard[donated[k]][device];
        oly_buffer *b = shard < 0 ? NULL : inputs[donated[k]][shard];
        /* the caller's handle, and this run as its input if that slot came first */
        return b && oly_buffer_references(b) <= (plan->input_slot[donated[k]] < slot ? 2 : 1) ? b : NULL;
    }
    return NULL;
}

/* Fills the tables; holds one reference to each buffer. */
static oly_status bind_slots(oly_program *p, oly_run *r, oly_buffer *const *const *inputs, const int *donated)
{
    const oly_plan *plan = p->plan;
    bool scratch = plan->scratch_bytes && !oly_simulated();
    for (int d = 0; scratch && d < plan->n_devices; d++)
        if (!(r->scratch[d] = oly_buffer_take(plan->device_scratch[d])))
            return oly_buffer_fail(plan->device_scratch[d], "intermediate values");
    if (r->tile_bytes && !(r->tile = oly_buffer_take(r->tile_bytes)))
        return oly_buffer_fail(r->tile_bytes, "a stencil's tiles");
    for (int s = 0; s < plan->n_slots; s++) {
        const oly_slot *slot = &plan->slots[s];
        for (int d = 0; d < plan->n_devices; d++) {
            int cell = oly_cell(plan, d, s);
            int shard;
            switch (slot->kind) {
            case OLY_SLOT_INPUT:
                shard = p->input_shard[slot->index][d];
                r->owner[cell] = shard < 0 ? NULL : inputs[slot->index][shard];
                if (r->owner[cell])
                    oly_buffer_hold(r->owner[cell]);
                break;
            case OLY_SLOT_POOL:
                if ((r->owner[cell] = donated_buffer(p, s, d, inputs, donated))) {
                    oly_buffer_hold(r->owner[cell]);
                    break;
                }
                if (!(r->owner[cell] = oly_buffer_take(slot->device_bytes[d])))
                    return oly_buffer_fail(slot->device_bytes[d], "a result");
                break;
            case OLY_SLOT_SCRATCH:
                r->base[cell] = scratch ? (char *)r->scratch[d]->data + slot->offset : NULL;
                continue;
            case OLY_SLOT_BOUND: continue;
            }
            r->base[cell] = r->owner[cell] ? r->owner[cell]->data : NULL;
        }
    }
    return OLY_OK;
}

/* A result may end in any of the buffers a loop turns; which one is known before the run. */
static void take_outputs(oly_program *p, oly_run *r, oly_buffer **const *outputs)
{
    const oly_plan *plan = p->plan;
    for (int k = 0; k < plan->n_outputs; k++)
        for (int s = 0; s < p->n_output_shards[k]; s++) {
            int cell = oly_cell(plan, p->output_device[k][s], plan->output_slot[k]);
            outputs[k][s] = r->owner[cell];
            oly_buffer_hold(outputs[k][s]);
        }
}

oly_status oly_program_run(oly_program *p, oly_buffer *const *const *inputs, const int *donated,
                           oly_buffer **const *outputs, oly_site site, int *device, uint64_t *moment)
{
    const oly_plan *plan = p->plan;
    *device = -1;
    *moment = 0;
    uint64_t call = plan->distributed ? next_call(plan->members_key) : 0;
    if (plan->n_devices == 0)
        return OLY_OK;
    OLY_TRY(oly_run_failure());
    oly_run *r = take_run(p);
    if (!r) {
        pthread_mutex_lock(&p->lock);
        p->running--;
        pthread_mutex_unlock(&p->lock);
        return oly_out_of_memory(sizeof *r, "a run");
    }
    oly_status st = bind_slots(p, r, inputs, donated);
    if (st != OLY_OK) {
        release_run(&r->job);
        return st;
    }
    oly_settle_loops(r);
    take_outputs(p, r, outputs);
    if (oly_simulated()) { /* the results have their types, and no memory to write to */
        release_run(&r->job);
        return OLY_OK;
    }
    r->site = site;
    r->ticket.sequence = call << 24;
    r->ticket.fingerprint = plan->fingerprint;
    r->ticket.call[0] = 0;
    r->job = (oly_job){.execute = oly_interpret,
                       .release = release_run,
                       .n_devices = plan->n_devices,
                       .devices = plan->devices,
                       .lane = plan->distributed,
                       .small = plan->small};
    st = oly_queue_submit(&r->job);
    *device = plan->devices[0];
    *moment = oly_queue_now(*device);
    return st == OLY_OK ? oly_run_failure() : st;
}
