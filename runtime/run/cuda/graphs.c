/* SPDX-License-Identifier: BSD-3-Clause */
/* Segments of plans as CUDA graphs. See graphs.h.
 *
 * The first runs of a segment launch its kernels one by one: modules are loaded, constants and scratch memory are made. The next one
 * captures the streams of all devices of the plan instead, which gives a graph:
 *
 *      device 0   begin capture, record |---- kernels ----| wait, end capture
 *      device 1                    wait |---- kernels ----| record
 *
 * Later runs with the same buffers launch it: one call. With other buffers the launches are captured again, which costs the host about
 * what launching them would, and the executable graph is updated and not built anew. Two are kept, as loops have two sets of buffers that
 * take turns. A graph of one step saves the host a third of a launch, and recording it costs several: it is made when the step has run with
 * the same buffers before, several times. Whatever fails while capturing, the steps are launched one by one, and after some failures always. */
#include "run/cuda/graphs.h"
#include "device/cuda/gpus.h"
#include "device/cuda/modules.h"
#include "run/device_counts.h"
#include "run/executor.h"
#include <pthread.h>
#include <string.h>

/* PLAIN: runs before the first graph, during which elementwise groups ask for kernels of their own (device/cuda/generated.h). */
enum { KEPT = 2, MOST_FAILURES = 3, PLAIN = 3 };
/* Of segments of one step on one device: runs with the same buffers before they are recorded, and how many are recorded in all. */
enum { AGAIN = 4, MOST_SINGLE = 512 };

typedef struct graph {
    CUgraphExec exec; /* NULL: none */
    uint64_t epoch;   /* oly_cuda_epoch() when it was captured */
    uint64_t used;    /* number of its last launch */
    void **base;      /* [cells] of the run whose launches it has */
} graph;

typedef struct kept {
    struct kept *next, **at; /* all of this process */
    oly_segment *segment;
    size_t cells;
    uint64_t runs;
    int failures;
    graph graph[KEPT];
    bool is_single;    /* one step, on one device */
    void **seen[KEPT]; /* of those: buffers of runs that were not replayed */
    int times[KEPT], latest;
} kept;

static struct {
    pthread_mutex_t lock;
    kept *first;
    int singles; /* segments of one step that have a graph */
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* -- keeping ------------------------------------------------------------------------------------------------------------------ */

static void drop(kept *k)
{
    for (int i = 0; i < KEPT; i++) {
        if (k->graph[i].exec)
            oly_driver.cuGraphExecDestroy(k->graph[i].exec);
        oly_release(k->graph[i].base);
        oly_release(k->seen[i]);
    }
    all.singles -= k->is_single && (k->graph[0].exec || k->graph[1].exec);
    if ((*k->at = k->next))
        k->next->at = k->at;
    k->segment->kept = NULL;
    oly_release(k);
}

void oly_cuda_forget(oly_segment *s)
{
    pthread_mutex_lock(&all.lock);
    if (s->kept)
        drop(s->kept);
    pthread_mutex_unlock(&all.lock);
}

static void stop(void)
{
    pthread_mutex_lock(&all.lock);
    while (all.first)
        drop(all.first);
    pthread_mutex_unlock(&all.lock);
}

/* NULL: out of memory, or the platform is stopping. */
static kept *kept_for(const oly_run *r, oly_segment *s)
{
    if (s->kept)
        return s->kept;
    kept *k = oly_calloc(1, sizeof *k);
    if (!k)
        return NULL;
    k->segment = s;
    k->cells = (size_t)r->plan->n_slots * (size_t)r->plan->n_devices;
    k->is_single = s->n * r->plan->n_devices == 1;
    for (int i = 0; i < KEPT; i++) {
        size_t bytes = sizeof(void *) * (k->cells + 1);
        k->graph[i].base = oly_malloc(bytes);
        k->seen[i] = k->is_single ? oly_malloc(bytes) : NULL;
        if (!k->graph[i].base || (k->is_single && !k->seen[i]))
            k->failures = MOST_FAILURES;
    }
    oly_gpus_at_stop(stop);
    pthread_mutex_lock(&all.lock);
    if ((k->next = all.first))
        k->next->at = &k->next;
    k->at = &all.first;
    all.first = k;
    s->kept = k;
    pthread_mutex_unlock(&all.lock);
    return k;
}

/* -- order -------------------------------------------------------------------------------------------------------------------- */

static int origin_of(const oly_run *r)
{
    return r->plan->devices[0];
}

/* What the first device is given next comes after what all were given. */
static bool join_streams(const oly_run *r)
{
    for (int d = 1; d < r->plan->n_devices; d++) {
        oly_event event;
        if (!oly_cuda_record(r->plan->devices[d], &event) || !oly_cuda_wait(origin_of(r), event))
            return false;
    }
    return true;
}

/* What the others are given next comes after what the first was given. */
static bool fork_streams(const oly_run *r)
{
    oly_event event;
    if (r->plan->n_devices > 1 && !oly_cuda_record(origin_of(r), &event))
        return false;
    for (int d = 1; d < r->plan->n_devices; d++)
        if (!oly_cuda_wait(r->plan->devices[d], event))
            return false;
    return true;
}

/* -- capturing ---------------------------------------------------------------------------------------------------------------- */

/* NULL: it could not be captured. The first GPU's context is current. */
static CUgraph capture(oly_run *r, const oly_segment *s)
{
    CUstream stream = oly_cuda_device_at(origin_of(r))->stream;
    CUgraph captured = NULL;
    if (oly_driver.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED) != CUDA_SUCCESS)
        return NULL;
    bool fine = fork_streams(r) && oly_run_steps(r, s->block, s->first, s->n) == OLY_OK;
    fine = join_streams(r) && fine; /* in any case: all streams leave the capture */
    if (oly_driver.cuStreamEndCapture(stream, &captured) != CUDA_SUCCESS || !fine) {
        if (captured)
            oly_driver.cuGraphDestroy(captured);
        captured = NULL;
    }
    return captured;
}

static bool instantiate(graph *g, CUgraph captured)
{
    CUgraphExecUpdateResultInfo info;
    if (g->exec && oly_driver.cuGraphExecUpdate(g->exec, captured, &info) == CUDA_SUCCESS) {
        oly_count(&oly_device_counted.graph_updates, 1);
        return true;
    }
    if (g->exec)
        oly_driver.cuGraphExecDestroy(g->exec);
    if (oly_driver.cuGraphInstantiateWithFlags(&g->exec, captured, 0) != CUDA_SUCCESS)
        g->exec = NULL;
    oly_count(&oly_device_counted.graphs, g->exec != NULL);
    return g->exec != NULL;
}

static void count_single(const kept *k, bool had)
{
    bool has = k->graph[0].exec || k->graph[1].exec;
    if (!k->is_single || has == had)
        return;
    pthread_mutex_lock(&all.lock);
    all.singles += has ? 1 : -1;
    pthread_mutex_unlock(&all.lock);
}

/* Into the graph that was launched least recently. NULL: failed. */
static graph *make(oly_run *r, kept *k)
{
    graph *g = &k->graph[0];
    uint64_t epoch = oly_cuda_epoch();
    for (int i = 1; i < KEPT; i++)
        if (k->graph[i].used < g->used)
            g = &k->graph[i];
    if (!oly_cuda_capture_begins()) /* a stream is waited for: the next run tries again */
        return NULL;
    CUgraph captured = capture(r, k->segment);
    oly_cuda_capture_ends();
    bool had = k->graph[0].exec || k->graph[1].exec;
    bool fine = captured && instantiate(g, captured);
    count_single(k, had);
    if (captured)
        oly_driver.cuGraphDestroy(captured);
    if (!fine) {
        k->failures++;
        oly_drop_message();
        return NULL;
    }
    g->epoch = epoch; /* what has changed meanwhile is captured next time */
    memcpy(g->base, r->base, sizeof(void *) * k->cells);
    return g;
}

/* -- launching ---------------------------------------------------------------------------------------------------------------- */

static graph *find(const oly_run *r, kept *k)
{
    for (int i = 0; i < KEPT; i++) {
        graph *g = &k->graph[i];
        if (g->exec && g->epoch == oly_cuda_epoch() && memcmp(g->base, r->base, sizeof(void *) * k->cells) == 0)
            return g;
    }
    return NULL;
}

/* Have there been so many runs with these buffers that recording them pays? */
static bool recurs(const oly_run *r, kept *k)
{
    size_t bytes = sizeof(void *) * k->cells;
    for (int i = 0; i < KEPT; i++)
        if (k->times[i] > 0 && memcmp(k->seen[i], r->base, bytes) == 0) {
            k->latest = i;
            return ++k->times[i] > AGAIN;
        }
    k->latest = !k->latest;
    memcpy(k->seen[k->latest], r->base, bytes);
    k->times[k->latest] = 1;
    return false;
}

/* The first graph of a segment of one step. */
static bool has_room(const kept *k)
{
    if (k->graph[0].exec || k->graph[1].exec)
        return true;
    pthread_mutex_lock(&all.lock);
    bool room = all.singles < MOST_SINGLE;
    pthread_mutex_unlock(&all.lock);
    return room;
}

static bool is_worth_recording(const oly_run *r, kept *k)
{
    return !k->is_single || (recurs(r, k) && has_room(k));
}

static oly_status launch(const oly_run *r, const graph *g)
{
    const oly_cuda_device *d = oly_cuda_device_at(origin_of(r));
    OLY_TRY(oly_cuda_check(join_streams(r) ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN, "the order of a graph", d->gpu->label));
    OLY_TRY(oly_cuda_check(oly_driver.cuGraphLaunch(g->exec, d->stream), "cuGraphLaunch", d->gpu->label));
    oly_count(&oly_device_counted.graph_launches, 1);
    return oly_cuda_check(fork_streams(r) ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN, "the order of a graph", d->gpu->label);
}

/* Plans may have CPUs beside GPUs. */
static bool has_cpus(const oly_plan *plan)
{
    for (int d = 0; d < plan->n_devices; d++)
        if (plan->devices[d] >= oly_cuda_device_count())
            return true;
    return plan->n_devices == 0;
}

oly_status oly_cuda_replay(oly_run *r, oly_segment *s, bool *done)
{
    *done = false;
    if (has_cpus(r->plan))
        return OLY_OK;
    kept *k = kept_for(r, s);
    if (!k || k->runs++ < PLAIN || k->failures >= MOST_FAILURES)
        return OLY_OK;
    graph *g = find(r, k);
    if (!g && !is_worth_recording(r, k))
        return OLY_OK;
    OLY_TRY(oly_gpu_enter(oly_cuda_device_at(origin_of(r))->gpu));
    g = g ? g : make(r, k);
    oly_status st = OLY_OK;
    if (g) {
        g->used = k->runs;
        *done = true;
        st = launch(r, g);
    }
    oly_gpu_leave();
    return st;
}
