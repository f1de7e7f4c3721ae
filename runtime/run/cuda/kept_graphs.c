/* SPDX-License-Identifier: BSD-3-Clause */
/* Graphs that are kept, and the order around them. See kept_graphs.h. */
#include "run/cuda/kept_graphs.h"
#include "device/cuda/modules.h"
#include "run/device_counts.h"
#include "run/executor.h"
#include <pthread.h>
#include <string.h>

enum { MOST_SINGLE = 512 };

static struct {
    pthread_mutex_t lock;
    oly_kept *first;
    int singles;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* -- keeping ------------------------------------------------------------------------------------------------------------------ */

static void end_graph(oly_kept_graph *g)
{
    if (g->exec)
        oly_driver.cuGraphExecDestroy(g->exec);
    if (g->graph)
        oly_driver.cuGraphDestroy(g->graph);
    g->exec = NULL;
    g->graph = NULL;
}

static void drop(oly_kept *k)
{
    for (int i = 0; i < OLY_KEPT_GRAPHS; i++) {
        end_graph(&k->graph[i]);
        oly_release(k->graph[i].base);
        oly_release(k->seen[i]);
    }
    all.singles -= k->is_single;
    if (k->state)
        oly_cuda_release(k->state_device, k->state, sizeof(int64_t));
    if ((*k->at = k->next))
        k->next->at = k->at;
    *k->owner = NULL;
    oly_release(k);
}

void oly_kept_forget(void **owner)
{
    pthread_mutex_lock(&all.lock);
    if (*owner)
        drop(*owner);
    pthread_mutex_unlock(&all.lock);
}

bool oly_kept_single(oly_kept *k)
{
    pthread_mutex_lock(&all.lock);
    if (!k->is_single && all.singles < MOST_SINGLE) {
        k->is_single = true;
        all.singles++;
    }
    pthread_mutex_unlock(&all.lock);
    return k->is_single;
}

static void stop(void)
{
    pthread_mutex_lock(&all.lock);
    while (all.first)
        drop(all.first);
    pthread_mutex_unlock(&all.lock);
}

oly_kept *oly_kept_for(const oly_run *r, void **owner)
{
    oly_kept *k = *owner;
    if (k || !(k = oly_calloc(1, sizeof *k)))
        return k;
    k->owner = owner;
    k->cells = (size_t)r->plan->n_slots * (size_t)r->plan->n_devices;
    for (int i = 0; i < OLY_KEPT_GRAPHS; i++)
        if (!(k->graph[i].base = oly_malloc(sizeof(void *) * (k->cells + 1))))
            k->failures = OLY_MOST_FAILURES;
    oly_gpus_at_stop(stop);
    pthread_mutex_lock(&all.lock);
    if ((k->next = all.first))
        k->next->at = &k->next;
    k->at = &all.first;
    all.first = k;
    *owner = k;
    pthread_mutex_unlock(&all.lock);
    return k;
}

/* -- finding and making ------------------------------------------------------------------------------------------------------ */

oly_kept_graph *oly_kept_find(const oly_run *r, oly_kept *k)
{
    for (int i = 0; i < OLY_KEPT_GRAPHS; i++) {
        oly_kept_graph *g = &k->graph[i];
        if (g->exec && g->epoch == oly_cuda_epoch() && memcmp(g->base, r->base, sizeof(void *) * k->cells) == 0)
            return g;
    }
    return NULL;
}

oly_kept_graph *oly_kept_oldest(oly_kept *k)
{
    oly_kept_graph *g = &k->graph[0];
    for (int i = 1; i < OLY_KEPT_GRAPHS; i++)
        if (k->graph[i].used < g->used)
            g = &k->graph[i];
    return g;
}

static bool update(const oly_kept_graph *g, CUgraph captured)
{
    CUgraphExecUpdateResultInfo info;
    if (!g->exec || oly_driver.cuGraphExecUpdate(g->exec, captured, &info) != CUDA_SUCCESS)
        return false;
    oly_count(&oly_device_counted.graph_updates, 1);
    return true;
}

bool oly_kept_instantiate(oly_kept_graph *g, CUgraph captured, bool updates)
{
    bool fine = updates && update(g, captured);
    if (!fine) {
        end_graph(g);
        fine = oly_driver.cuGraphInstantiateWithFlags(&g->exec, captured, 0) == CUDA_SUCCESS;
        g->exec = fine ? g->exec : NULL;
        oly_count(&oly_device_counted.graphs, fine);
    }
    if (fine && !updates)
        g->graph = captured;
    else
        oly_driver.cuGraphDestroy(captured);
    return fine;
}

void oly_kept_is(oly_kept_graph *g, const oly_kept *k, const oly_run *r, uint64_t epoch)
{
    g->epoch = epoch; /* what has changed meanwhile is captured next time */
    g->iterations = 0;
    memcpy(g->base, r->base, sizeof(void *) * k->cells);
}

/* -- order -------------------------------------------------------------------------------------------------------------------- */

bool oly_graph_has_cpus(const oly_plan *plan)
{
    for (int d = 0; d < plan->n_devices; d++)
        if (plan->devices[d] >= oly_cuda_device_count())
            return true;
    return plan->n_devices == 0;
}

bool oly_graph_join(const oly_run *r)
{
    for (int d = 1; d < r->plan->n_devices; d++) {
        oly_event event;
        if (!oly_cuda_record(r->plan->devices[d], &event) || !oly_cuda_wait(oly_graph_origin(r), event))
            return false;
    }
    return true;
}

bool oly_graph_fork(const oly_run *r)
{
    oly_event event;
    if (r->plan->n_devices > 1 && !oly_cuda_record(oly_graph_origin(r), &event))
        return false;
    for (int d = 1; d < r->plan->n_devices; d++)
        if (!oly_cuda_wait(r->plan->devices[d], event))
            return false;
    return true;
}

oly_status oly_graph_launch(const oly_run *r, const oly_kept_graph *g, int64_t n)
{
    const oly_cuda_device *d = oly_cuda_device_at(oly_graph_origin(r));
    OLY_TRY(
        oly_cuda_check(oly_graph_join(r) ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN, "the order of a graph", d->gpu->label));
    for (int64_t k = 0; k < n; k++)
        OLY_TRY(oly_cuda_check(oly_driver.cuGraphLaunch(g->exec, d->stream), "cuGraphLaunch", d->gpu->label));
    oly_count(&oly_device_counted.graph_launches, n);
    return oly_cuda_check(oly_graph_fork(r) ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN, "the order of a graph", d->gpu->label);
}
