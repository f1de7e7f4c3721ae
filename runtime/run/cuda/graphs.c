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
#include "device/cuda/modules.h"
#include "run/cuda/kept_graphs.h"
#include "run/executor.h"
#include <string.h>

/* Runs before the first graph, during which elementwise groups ask for kernels of their own (device/cuda/generated.h). */
enum { PLAIN = 3 };
/* Of segments of one step on one device: runs with the same buffers before they are recorded. */
enum { AGAIN = 4 };

void oly_cuda_forget(oly_segment *s)
{
    oly_kept_forget(&s->kept);
}

/* NULL: it could not be captured. The first GPU's context is current. */
static CUgraph capture(oly_run *r, const oly_segment *s)
{
    CUstream stream = oly_cuda_device_at(oly_graph_origin(r))->stream;
    CUgraph captured = NULL;
    if (oly_driver.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED) != CUDA_SUCCESS)
        return NULL;
    bool fine = oly_graph_fork(r) && oly_run_steps(r, s->block, s->first, s->n) == OLY_OK;
    fine = oly_graph_join(r) && fine; /* in any case: all streams leave the capture */
    if (oly_driver.cuStreamEndCapture(stream, &captured) != CUDA_SUCCESS || !fine) {
        if (captured)
            oly_driver.cuGraphDestroy(captured);
        captured = NULL;
    }
    return captured;
}

/* Into the graph that was launched least recently. NULL: failed. */
static oly_kept_graph *make(oly_run *r, const oly_segment *s, oly_kept *k)
{
    oly_kept_graph *g = oly_kept_oldest(k);
    uint64_t epoch = oly_cuda_epoch();
    if (!oly_cuda_capture_begins()) /* a stream is waited for: the next run tries again */
        return NULL;
    CUgraph captured = capture(r, s);
    oly_cuda_capture_ends();
    if (!captured || !oly_kept_instantiate(g, captured, true)) {
        k->failures++;
        oly_drop_message();
        return NULL;
    }
    oly_kept_is(g, k, r, epoch);
    return g;
}

/* Have there been so many runs with these buffers that recording them pays? */
static bool recurs(const oly_run *r, oly_kept *k)
{
    size_t bytes = sizeof(void *) * k->cells;
    for (int i = 0; i < OLY_KEPT_GRAPHS; i++)
        if (k->times[i] > 0 && memcmp(k->seen[i], r->base, bytes) == 0) {
            k->latest = i;
            return ++k->times[i] > AGAIN;
        }
    k->latest = !k->latest;
    memcpy(k->seen[k->latest], r->base, bytes);
    k->times[k->latest] = 1;
    return false;
}

static bool is_worth_recording(const oly_run *r, const oly_segment *s, oly_kept *k)
{
    if (s->n * r->plan->n_devices > 1)
        return true;
    for (int i = 0; i < OLY_KEPT_GRAPHS; i++)
        if (!k->seen[i] && !(k->seen[i] = oly_malloc(sizeof(void *) * (k->cells + 1))))
            return false;
    return recurs(r, k) && oly_kept_single(k);
}

oly_status oly_cuda_replay(oly_run *r, oly_segment *s, bool *done)
{
    *done = false;
    if (oly_cuda_capturing || oly_graph_has_cpus(r->plan)) /* as a part of what is captured */
        return OLY_OK;
    oly_kept *k = oly_kept_for(r, &s->kept);
    if (!k || k->runs++ < PLAIN || k->failures >= OLY_MOST_FAILURES)
        return OLY_OK;
    oly_kept_graph *g = oly_kept_find(r, k);
    if (!g && !is_worth_recording(r, s, k))
        return OLY_OK;
    OLY_TRY(oly_gpu_enter(oly_cuda_device_at(oly_graph_origin(r))->gpu));
    g = g ? g : make(r, s, k);
    oly_status st = OLY_OK;
    if (g) {
        g->used = k->runs;
        *done = true;
        st = oly_graph_launch(r, g, 1);
    }
    oly_gpu_leave();
    return st;
}
