/* SPDX-License-Identifier: BSD-3-Clause */
/* Executable graphs that are kept for a part of a plan, by the buffers with which they were captured. Two for each, as loops have two sets of
 * buffers that take turns. Private to runtime/run/cuda (graphs.c, loop_graphs.c). */
#ifndef OLY_RUN_CUDA_KEPT_GRAPHS_H
#define OLY_RUN_CUDA_KEPT_GRAPHS_H
#include "device/cuda/gpus.h"
#include "run/interpret.h"

enum { OLY_KEPT_GRAPHS = 2, OLY_MOST_FAILURES = 3 };

typedef struct oly_kept_graph {
    CUgraphExec exec;   /* NULL: none */
    CUgraph graph;      /* that it was made of, whose conditions it uses; NULL: it can do without */
    uint64_t epoch;     /* oly_cuda_epoch() when it was captured */
    uint64_t used;      /* number of its last launch */
    int64_t iterations; /* of a loop, that it was launched for */
    void **base;        /* [cells] of the run whose launches it has */
} oly_kept_graph;

typedef struct oly_kept {
    struct oly_kept *next, **at; /* all of this process */
    void **owner;                /* where the plan keeps it */
    size_t cells;
    uint64_t runs;
    int failures;     /* OLY_MOST_FAILURES: no more are made */
    int64_t wait;     /* loop_graphs.c's: iterations before a graph is made */
    void *state;      /* the same: in the memory of the plan's first device; NULL: none */
    int state_device; /* of the process */
    void **seen
        [OLY_KEPT_GRAPHS]; /* graphs.c's, of single steps: buffers of runs that were not replayed, or NULL; how often */
    int times[OLY_KEPT_GRAPHS], latest;
    bool is_single; /* counts as one (oly_kept_single) */
    oly_kept_graph graph[OLY_KEPT_GRAPHS];
} oly_kept;

/* *owner, which is made where it is NULL. NULL: out of memory. */
oly_kept *oly_kept_for(const oly_run *r, void **owner);
void oly_kept_forget(void **owner);
/* May a graph be kept for a step that is alone? There is a limit for all of the process, as there are many such steps. */
bool oly_kept_single(oly_kept *k);

/* The graph with the run's buffers; NULL: there is none. The one to be made anew: that launched least recently. */
oly_kept_graph *oly_kept_find(const oly_run *r, oly_kept *k);
oly_kept_graph *oly_kept_oldest(oly_kept *k);
/* Makes the graph executable, which is given back. updates: by an update of what was there, if it can be; a graph with conditions cannot.
 * False: failed, and it is none. */
bool oly_kept_instantiate(oly_kept_graph *g, CUgraph captured, bool updates);
/* It has the launches of the run as it is now. */
void oly_kept_is(oly_kept_graph *g, const oly_kept *k, const oly_run *r, uint64_t epoch);

/* The process's number of the plan's first device, in whose stream graphs are captured and launched. */
static inline int oly_graph_origin(const oly_run *r)
{
    return r->plan->devices[0];
}
/* Has the plan none, or CPUs beside GPUs? */
bool oly_graph_has_cpus(const oly_plan *plan);
/* What the first device is given next comes after what all were given; what the others are given next after what the first was given. */
bool oly_graph_join(const oly_run *r);
bool oly_graph_fork(const oly_run *r);
/* n times, one after the other, after what all devices were given, which go on after it. */
oly_status oly_graph_launch(const oly_run *r, const oly_kept_graph *g, int64_t n);
#endif
