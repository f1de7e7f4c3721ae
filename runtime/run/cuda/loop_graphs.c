/* SPDX-License-Identifier: BSD-3-Clause */
/* Iterations of loops as CUDA graphs. See loop_graphs.h; which loops and how many iterations: run/loop_replay.h.
 *
 * Counted loops: a graph of some iterations, launched as often as it fits. Each device adds one to the loop's counter before an iteration.
 *
 *      count | iteration 1 | count | iteration 2 | ...
 *
 * Loops with a condition (CUDA 12.4): a conditional node runs its body as long as a kernel of the body says so (kernels/cuda/graph.cu).
 *
 *      begins |  while the condition holds:  iteration | turns | iteration | turns  |  the host reads the state: how many there were
 *      begins |  while the condition holds:  iteration | turns | if it does: iteration | turns  |  the same
 *
 * The second way, in which no iteration is in vain, is that of large bodies, of carries that are written in place and of those with more
 * buffers.
 *
 * Whatever fails while a graph is made, iterations are launched as they would be without, and after some failures always. A loop does not
 * stay in its graph for longer than MOST_AT_ONCE iterations, so that one that does not end sees that the program has failed. */
#include "run/cuda/loop_graphs.h"
#include "device/cuda/modules.h"
#include "cuda/graph_task.h"
#include "run/cuda/early_reads.h"
#include "run/cuda/kept_graphs.h"
#include "run/device_counts.h"
#include "run/executor.h"
#include <string.h>

/* PLAIN: iterations that are launched one by one first, during which elementwise groups ask for kernels of their own. WAIT: iterations of a loop with a condition after which
 * a graph is worth making, LEFT: of a counted one that are still to come; twice as many when one has been launched for fewer than WORTH. */
enum { PLAIN = 3, WAIT = 8, LEFT = 4, WORTH = 32, MOST_WAIT = 1024, MOST_AT_ONCE = 1024 };

_Static_assert(sizeof(oly_cuda_loop_state) == sizeof(int64_t), "as kept_graphs.c takes and gives back");

void oly_cuda_forget_loop(oly_loop_replay *l)
{
    oly_kept_forget(&l->kept);
}

/* -- capturing ---------------------------------------------------------------------------------------------------------------- */

/* In a device's stream. */
static oly_status launch_one(int device, const char *module, const char *kernel, void *task)
{
    const oly_cuda_device *d = oly_cuda_device_at(device);
    CUfunction f;
    OLY_TRY(oly_cuda_function(d->gpu, module, kernel, 0, &f));
    return oly_cuda_check(oly_driver.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, d->stream, (void *[]){task}, NULL), kernel,
                          d->gpu->label);
}

static int32_t *counter_at(const oly_run *r, const oly_step *s, int d)
{
    return s->loop.counter_slot >= 0 ? r->base[oly_cell(r->plan, d, s->loop.counter_slot)] : NULL;
}

static oly_status count(const oly_run *r, const oly_step *s)
{
    oly_status st = OLY_OK;
    for (int d = 0; d < r->plan->n_devices && st == OLY_OK; d++) {
        int device = r->plan->devices[d];
        oly_cuda_counter_task task = {counter_at(r, s, d)};
        if (!task.counter)
            continue;
        OLY_TRY(oly_gpu_enter(oly_cuda_device_at(device)->gpu));
        st = launch_one(device, "counter", "oly_loop_counts", &task);
        oly_gpu_leave();
    }
    return st;
}

/* task: of a loop with a condition; NULL: counted. */
static oly_status launch_iteration(oly_run *r, const oly_step *s, oly_cuda_loop_task *task)
{
    OLY_TRY(count(r, s));
    OLY_TRY(oly_run_steps(r, s->loop.body, 0, s->loop.body->n_steps));
    oly_turn_buffers(r, s);
    if (!task)
        return OLY_OK;
    if (!oly_graph_join(r))
        return OLY_DEVICE_FAILED;
    OLY_TRY(launch_one(oly_graph_origin(r), "graph", "oly_loop_turns", task));
    return oly_graph_fork(r) ? OLY_OK : OLY_DEVICE_FAILED;
}

/* Between the beginning and the end of a capture: n iterations. False: failed. */
static bool launch_iterations(oly_run *r, const oly_step *s, int n, oly_cuda_loop_task *tasks)
{
    bool fine = oly_graph_fork(r);
    for (int k = 0; k < n && fine; k++)
        fine = launch_iteration(r, s, tasks ? &tasks[k] : NULL) == OLY_OK;
    return oly_graph_join(r) && fine; /* in any case: all streams leave the capture */
}

/* NULL: it could not be captured. */
static CUgraph capture_counted(oly_run *r, const oly_loop_replay *l)
{
    CUstream stream = oly_cuda_device_at(oly_graph_origin(r))->stream;
    CUgraph captured = NULL;
    if (oly_driver.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED) != CUDA_SUCCESS)
        return NULL;
    bool fine = launch_iterations(r, l->step, l->unrolled, NULL);
    if (oly_driver.cuStreamEndCapture(stream, &captured) != CUDA_SUCCESS)
        return NULL;
    if (!fine && captured)
        oly_driver.cuGraphDestroy(captured);
    return fine ? captured : NULL;
}

/* -- conditions --------------------------------------------------------------------------------------------------------------- */

#if CUDA_VERSION >= 12040

/* Where the predicate is now; NULL: not on a device of this process. */
static const bool *predicate_at(const oly_run *r, const oly_step *s)
{
    int slot = s->loop.in_slot[s->loop.predicate];
    for (int d = 0; d < r->plan->n_devices; d++)
        if (r->plan->slots[slot].device_bytes[d] > 0)
            return r->base[oly_cell(r->plan, d, slot)];
    return NULL;
}

static bool add_begin(const oly_conditional_functions *f, const oly_gpu *g, CUgraph graph, oly_cuda_loop_task *task,
                      CUgraphNode *begin)
{
    CUfunction kernel;
    if (oly_cuda_function(g, "graph", "oly_loop_begins", 0, &kernel) != OLY_OK)
        return false;
    CUDA_KERNEL_NODE_PARAMS p = {.func = kernel,
                                 .gridDimX = 1,
                                 .gridDimY = 1,
                                 .gridDimZ = 1,
                                 .blockDimX = 1,
                                 .blockDimY = 1,
                                 .blockDimZ = 1,
                                 .kernelParams = (void *[]){task}};
    return f->cuGraphAddKernelNode(begin, graph, NULL, 0, &p) == CUDA_SUCCESS;
}

/* A node of this kind after n others. NULL: failed. The body belongs to the graph. */
static CUgraph add_node(const oly_conditional_functions *f, const oly_gpu *g, CUgraph graph,
                        CUgraphConditionalNodeType type, uint64_t handle, const CUgraphNode *after, size_t n)
{
    CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
    CUgraphNode made;
    p.conditional.handle = handle;
    p.conditional.type = type;
    p.conditional.size = 1;
    p.conditional.ctx = g->context;
    return f->cuGraphAddNode_v2(&made, graph, after, NULL, n, &p) == CUDA_SUCCESS ? p.conditional.phGraph_out[0] : NULL;
}

/* What follows the launches of a body comes after these. */
typedef struct ends {
    CUgraphNode node[OLY_MOST_LATE_DEVICES];
    size_t n;
} ends;

static bool find_ends(const oly_conditional_functions *f, CUstream stream, ends *e)
{
    CUstreamCaptureStatus status;
    const CUgraphNode *after;
    if (f->cuStreamGetCaptureInfo_v3(stream, &status, NULL, NULL, &after, NULL, &e->n) != CUDA_SUCCESS ||
        e->n > OLY_MOST_LATE_DEVICES)
        return false;
    memcpy(e->node, after, e->n * sizeof *after);
    return true;
}

/* The next n iterations. */
static bool capture_body(const oly_conditional_functions *f, oly_run *r, const oly_step *s, CUgraph body, int n,
                         oly_cuda_loop_task *tasks, ends *e)
{
    CUstream stream = oly_cuda_device_at(oly_graph_origin(r))->stream;
    CUgraph captured = NULL;
    if (f->cuStreamBeginCaptureToGraph(stream, body, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_RELAXED) != CUDA_SUCCESS)
        return false;
    bool fine = launch_iterations(r, s, n, tasks);
    fine = fine && find_ends(f, stream, e);
    return oly_driver.cuStreamEndCapture(stream, &captured) == CUDA_SUCCESS && fine;
}

/* Each iteration but the first inside of a condition that the one before has set. */
static bool capture_one_in_another(const oly_conditional_functions *f, oly_run *r, const oly_loop_replay *l,
                                   CUgraph body, oly_cuda_loop_task *tasks)
{
    const oly_gpu *g = oly_cuda_device_at(oly_graph_origin(r))->gpu;
    ends e;
    for (int k = 0; k < l->period; k++) {
        if (!capture_body(f, r, l->step, body, 1, &tasks[k], &e))
            return false;
        if (tasks[k].branch && !(body = add_node(f, g, body, CU_GRAPH_COND_TYPE_IF, tasks[k].branch, e.node, e.n)))
            return false;
    }
    return true;
}

static bool fill(const oly_conditional_functions *f, oly_run *r, const oly_loop_replay *l, CUgraph graph, void *state)
{
    const oly_gpu *g = oly_cuda_device_at(oly_graph_origin(r))->gpu;
    oly_cuda_loop_task tasks[OLY_MOST_PERIOD], first = {.state = state, .most = MOST_AT_ONCE};
    CUgraphNode begin;
    ends e;
    if (f->cuGraphConditionalHandleCreate(&first.handle, graph, g->context, 0, CU_GRAPH_COND_ASSIGN_DEFAULT) !=
        CUDA_SUCCESS)
        return false;
    for (int k = 0; k < l->period; k++) {
        tasks[k] = first;
        tasks[k].last = l->exact || k == l->period - 1;
        if (l->exact && k < l->period - 1 &&
            f->cuGraphConditionalHandleCreate(&tasks[k].branch, graph, g->context, 0, CU_GRAPH_COND_ASSIGN_DEFAULT) !=
                CUDA_SUCCESS)
            return false;
    }
    first.predicate = predicate_at(r, l->step);
    for (int k = 0; k < l->period; k++) {
        oly_turn_buffers(r, l->step);
        tasks[k].predicate = predicate_at(r, l->step);
    }
    if (!first.predicate || !add_begin(f, g, graph, &first, &begin))
        return false;
    CUgraph body = add_node(f, g, graph, CU_GRAPH_COND_TYPE_WHILE, first.handle, &begin, 1);
    if (!body)
        return false;
    return l->exact ? capture_one_in_another(f, r, l, body, tasks)
                    : capture_body(f, r, l->step, body, l->period, tasks, &e);
}

/* NULL: it could not be made, or the driver has no conditional nodes. */
static CUgraph capture_conditional(oly_run *r, const oly_loop_replay *l, void *state)
{
    const oly_conditional_functions *f = oly_cuda_conditionals();
    CUgraph graph;
    if (!f || f->cuGraphCreate(&graph, 0) != CUDA_SUCCESS)
        return NULL;
    if (fill(f, r, l, graph, state))
        return graph;
    oly_driver.cuGraphDestroy(graph);
    return NULL;
}

#else
static CUgraph capture_conditional(oly_run *r, const oly_loop_replay *l, void *state)
{
    (void)r, (void)l, (void)state;
    return NULL;
}
#endif

/* -- making ------------------------------------------------------------------------------------------------------------------- */

static bool is_counted(const oly_loop_replay *l)
{
    return l->step->loop.predicate < 0;
}

/* A graph with a condition is of one GPU. */
static bool on_one_gpu(const oly_plan *plan)
{
    for (int d = 1; d < plan->n_devices; d++)
        if (oly_cuda_device_at(plan->devices[d])->gpu != oly_cuda_device_at(plan->devices[0])->gpu)
            return false;
    return true;
}

static bool take_state(const oly_run *r, oly_kept *k)
{
    k->state_device = oly_graph_origin(r);
    return k->state || oly_cuda_allocate(k->state_device, sizeof(oly_cuda_loop_state), &k->state);
}

/* While nothing is captured yet. */
static bool load_kernels(const oly_plan *plan, const oly_loop_replay *l)
{
    const char *module = is_counted(l) ? "counter" : "graph";
    const char *kernel = is_counted(l) ? "oly_loop_counts" : "oly_loop_turns";
    CUfunction f;
    bool fine = true;
    for (int d = 0; d < plan->n_devices && fine; d++) {
        const oly_gpu *g = oly_cuda_device_at(plan->devices[d])->gpu;
        fine = oly_gpu_enter(g) == OLY_OK;
        if (fine) {
            fine = oly_cuda_function(g, module, kernel, 0, &f) == OLY_OK;
            oly_gpu_leave();
        }
    }
    return fine;
}

static bool prepare(const oly_run *r, const oly_loop_replay *l, oly_kept *k)
{
    return load_kernels(r->plan, l) && (is_counted(l) || take_state(r, k));
}

static CUgraph capture(oly_run *r, const oly_loop_replay *l, const oly_kept *k)
{
    return is_counted(l) ? capture_counted(r, l) : capture_conditional(r, l, k->state);
}

/* With the run's buffers, which are as they were afterwards. NULL: failed. */
static oly_kept_graph *make(oly_run *r, const oly_loop_replay *l, oly_kept *k)
{
    oly_kept_graph *g = oly_kept_oldest(k);
    uint64_t epoch = oly_cuda_epoch();
    size_t bytes = sizeof(void *) * k->cells;
    void **saved = oly_malloc(bytes + 1);
    bool fine = saved && prepare(r, l, k);
    if (g->exec && g->iterations < WORTH && k->wait < MOST_WAIT)
        k->wait *= 2;
    if (fine && !oly_cuda_capture_begins()) { /* a stream is waited for: the next run tries again */
        oly_release(saved);
        return NULL;
    }
    if (fine) {
        memcpy(saved, r->base, bytes);
        CUgraph captured = capture(r, l, k);
        oly_cuda_capture_ends();
        fine = captured && memcmp(saved, r->base, bytes) == 0;
        memcpy(r->base, saved, bytes);
        oly_base_changes(r);
        if (fine)
            fine = oly_kept_instantiate(g, captured, is_counted(l)); /* conditions cannot be updated */
        else if (captured)
            oly_driver.cuGraphDestroy(captured);
    }
    oly_release(saved);
    if (!fine) {
        k->failures++;
        oly_drop_message();
        return NULL;
    }
    oly_kept_is(g, k, r, epoch);
    return g;
}

static bool is_worth_it(const oly_loop_replay *l, oly_kept *k, int64_t i)
{
    if (k->wait == 0)
        k->wait = is_counted(l) ? LEFT : WAIT;
    return k->runs > PLAIN && (is_counted(l) ? l->step->loop.count - i : i) >= k->wait;
}

/* -- launching ---------------------------------------------------------------------------------------------------------------- */

static oly_status launch_counted(oly_run *r, const oly_loop_replay *l, oly_kept_graph *g, int64_t i, int64_t *done)
{
    const oly_step *s = l->step;
    int64_t n = (s->loop.count - i) / l->unrolled;
    int32_t before = (int32_t)(s->loop.lower + i - 1);
    for (int d = 0; d < r->plan->n_devices; d++)
        if (counter_at(r, s, d))
            OLY_TRY(oly_slot_write(r, d, s->loop.counter_slot, sizeof before, &before));
    OLY_TRY(oly_graph_launch(r, g, n));
    *done = n * l->unrolled;
    oly_count(&oly_device_counted.graph_iterations, *done);
    return OLY_OK;
}

static oly_status read_state(const oly_kept *k, oly_cuda_loop_state *state)
{
    bool begun;
    OLY_TRY(oly_cuda_read_begin(k->state_device, k->state, sizeof *state, &begun));
    if (begun)
        return oly_cuda_read_end(k->state_device, state, sizeof *state);
    OLY_TRY(oly_cuda_drain(k->state_device));
    return oly_cuda_read(state, k->state_device, k->state, sizeof *state);
}

/* What cannot be launched has not been: iterations are launched one by one, and tell why if they cannot either. */
static oly_status launch_conditional(oly_run *r, oly_kept *k, const oly_kept_graph *g, int64_t *done, bool *decided,
                                     bool *more)
{
    oly_cuda_loop_state state;
    if (oly_graph_launch(r, g, 1) != OLY_OK) {
        k->failures = OLY_MOST_FAILURES;
        oly_drop_message();
        return OLY_OK;
    }
    OLY_TRY(read_state(k, &state));
    *decided = true;
    *done = state.count;
    *more = state.more != 0;
    oly_count(&oly_device_counted.conditional_iterations, state.count);
    return OLY_OK;
}

static oly_status launch(oly_run *r, const oly_loop_replay *l, oly_kept *k, oly_kept_graph *g, int64_t i, int64_t *done,
                         bool *decided, bool *more)
{
    g->used = k->runs;
    oly_status st = is_counted(l) ? launch_counted(r, l, g, i, done) : launch_conditional(r, k, g, done, decided, more);
    g->iterations += *done;
    return st;
}

oly_status oly_cuda_iterate(oly_run *r, oly_loop_replay *l, int64_t i, int64_t *done, bool *decided, bool *more)
{
    if (oly_cuda_capturing || oly_graph_has_cpus(r->plan) || (!is_counted(l) && !on_one_gpu(r->plan)))
        return OLY_OK;
    oly_kept *k = oly_kept_for(r, &l->kept);
    if (!k || k->failures >= OLY_MOST_FAILURES)
        return OLY_OK;
    k->runs++;
    OLY_TRY(oly_gpu_enter(oly_cuda_device_at(oly_graph_origin(r))->gpu));
    oly_kept_graph *g = oly_kept_find(r, k);
    if (!g && is_worth_it(l, k, i))
        g = make(r, l, k);
    oly_status st = g ? launch(r, l, k, g, i, done, decided, more) : OLY_OK;
    oly_gpu_leave();
    return st;
}
