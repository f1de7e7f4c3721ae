/* SPDX-License-Identifier: BSD-3-Clause */
/* Graphs: nodes made one by one or by capturing streams; bodies of conditional nodes. A launch copies what is to be done and is one piece of
 * work of its stream, whose nodes run in a random order among those that dependencies allow. See driver.h. */
#include "driver.h"
#include <stdlib.h>
#include <string.h>

typedef struct CUgraphNode_st node;

typedef struct condition { /* its address is the handle */
    unsigned value, usual;
    bool assigned, taken; /* by a node */
    struct condition *next;
} condition;

struct CUgraphNode_st {
    CUgraph graph;
    int number; /* in its graph */
    CUgraphNodeType type;
    emulated_work *work; /* owned; kernels, copies, sets, functions of the host */
    CUgraph body[2];     /* owned; of child graphs and conditional nodes */
    int bodies;
    CUgraphConditionalNodeType loop;
    condition *condition;
    node **after;
    int n_after;
};

struct CUgraph_st {
    node **node;
    int n;
    condition *conditions; /* owned */
    CUgraph around;        /* whose node has this one as a body; NULL: none */
};

struct CUgraphExec_st {
    CUgraph graph; /* owned: a copy */
    CUcontext context;
};

struct graph_capture {
    CUgraph graph;
    CUstream origin;
    bool given; /* the graph was the caller's */
    bool broken;
};

struct capture_point { /* what comes next follows these */
    struct graph_capture *capture;
    int n;
    node *after[64];
};

static void *room_for(void *at, size_t bytes)
{
    void *more = realloc(at, bytes);
    if (!more)
        emulated_violation("no memory");
    return more;
}

/* -- making ------------------------------------------------------------------------------------------------------------------------------- */

CUresult cuGraphCreate(CUgraph *graph, unsigned flags)
{
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    *graph = memset(room_for(NULL, sizeof **graph), 0, sizeof **graph);
    return CUDA_SUCCESS;
}

static void end_graph(CUgraph graph)
{
    for (int k = 0; k < graph->n; k++) {
        node *n = graph->node[k];
        if (n->work)
            emulated_work_drop(n->work);
        for (int b = 0; b < n->bodies; b++)
            end_graph(n->body[b]);
        free(n->after);
        free(n);
    }
    for (condition *c = graph->conditions, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    free(graph->node);
    free(graph);
}

/* Handles may be used by executable copies of the graph for as long as those live: conditions are kept. */
CUresult cuGraphDestroy(CUgraph graph)
{
    static condition *kept;
    emulated_lock();
    for (condition *c = graph->conditions, *next; c; c = next) {
        next = c->next;
        c->next = kept;
        kept = c;
    }
    graph->conditions = NULL;
    end_graph(graph);
    return emulated_leave(CUDA_SUCCESS);
}

static void add_dependency(node *n, node *before)
{
    if (before->graph != n->graph)
        emulated_violation("a node of a graph depends on one of another graph");
    n->after = room_for(n->after, (size_t)(n->n_after + 1) * sizeof *n->after);
    n->after[n->n_after++] = before;
}

static node *add_node(CUgraph graph, CUgraphNodeType type, const CUgraphNode *after, size_t n_after,
                      emulated_work *work)
{
    node *n = memset(room_for(NULL, sizeof *n), 0, sizeof *n);
    graph->node = room_for(graph->node, (size_t)(graph->n + 1) * sizeof *graph->node);
    *n = (node){.graph = graph, .number = graph->n, .type = type, .work = work};
    graph->node[graph->n++] = n;
    for (size_t k = 0; k < n_after; k++)
        add_dependency(n, after[k]);
    return n;
}

CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                const CUgraphEdgeData *edges, size_t n)
{
    (void)graph;
    (void)edges;
    emulated_lock();
    for (size_t k = 0; k < n; k++)
        add_dependency(to[k], from[k]);
    return emulated_leave(CUDA_SUCCESS);
}

static emulated_work *kernel_of(const CUDA_KERNEL_NODE_PARAMS *p)
{
    return emulated_work_kernel(p->func, (emulated_size){p->gridDimX, p->gridDimY, p->gridDimZ},
                                (emulated_size){p->blockDimX, p->blockDimY, p->blockDimZ}, p->sharedMemBytes,
                                p->kernelParams, p->extra);
}

static emulated_work *set_of(const CUDA_MEMSET_NODE_PARAMS *p)
{
    if (p->height > 1)
        emulated_violation("a memset node of several rows");
    return emulated_work_set(p->dst, p->value, (int)p->elementSize, p->width);
}

CUresult cuGraphAddKernelNode(CUgraphNode *made, CUgraph graph, const CUgraphNode *after, size_t n,
                              const CUDA_KERNEL_NODE_PARAMS *p)
{
    emulated_lock();
    *made = add_node(graph, CU_GRAPH_NODE_TYPE_KERNEL, after, n, kernel_of(p));
    return emulated_leave(CUDA_SUCCESS);
}

CUresult cuGraphAddMemcpyNode(CUgraphNode *made, CUgraph graph, const CUgraphNode *after, size_t n,
                              const CUDA_MEMCPY3D *p, CUcontext context)
{
    (void)context;
    emulated_lock();
    *made = add_node(graph, CU_GRAPH_NODE_TYPE_MEMCPY, after, n, emulated_work_copy(emulated_copy_of(p)));
    return emulated_leave(CUDA_SUCCESS);
}

CUresult cuGraphAddMemsetNode(CUgraphNode *made, CUgraph graph, const CUgraphNode *after, size_t n,
                              const CUDA_MEMSET_NODE_PARAMS *p, CUcontext context)
{
    (void)context;
    emulated_lock();
    *made = add_node(graph, CU_GRAPH_NODE_TYPE_MEMSET, after, n, set_of(p));
    return emulated_leave(CUDA_SUCCESS);
}

CUresult cuGraphAddHostNode(CUgraphNode *made, CUgraph graph, const CUgraphNode *after, size_t n,
                            const CUDA_HOST_NODE_PARAMS *p)
{
    emulated_lock();
    *made = add_node(graph, CU_GRAPH_NODE_TYPE_HOST, after, n, emulated_work_host(p->fn, p->userData));
    return emulated_leave(CUDA_SUCCESS);
}

CUresult cuGraphAddEmptyNode(CUgraphNode *made, CUgraph graph, const CUgraphNode *after, size_t n)
{
    emulated_lock();
    *made = add_node(graph, CU_GRAPH_NODE_TYPE_EMPTY, after, n, NULL);
    return emulated_leave(CUDA_SUCCESS);
}

static CUgraph copy_graph(CUgraph graph);

CUresult cuGraphAddChildGraphNode(CUgraphNode *made, CUgraph graph, const CUgraphNode *after, size_t n, CUgraph child)
{
    emulated_lock();
    *made = add_node(graph, CU_GRAPH_NODE_TYPE_GRAPH, after, n, NULL);
    (*made)->body[(*made)->bodies++] = copy_graph(child);
    return emulated_leave(CUDA_SUCCESS);
}

CUresult cuGraphConditionalHandleCreate(CUgraphConditionalHandle *handle, CUgraph graph, CUcontext context,
                                        unsigned usual, unsigned flags)
{
    (void)context;
    emulated_lock();
    if (!emulated_has_conditions())
        return emulated_leave(CUDA_ERROR_NOT_SUPPORTED);
    condition *c = room_for(NULL, sizeof *c);
    *c = (condition){.usual = usual, .assigned = flags & CU_GRAPH_COND_ASSIGN_DEFAULT, .next = graph->conditions};
    graph->conditions = c;
    *handle = (CUgraphConditionalHandle)(uintptr_t)c;
    return emulated_leave(CUDA_SUCCESS);
}

/* A handle is made for a graph, and is that of one node in it or in the bodies of its nodes. */
static condition *take_condition(CUgraph graph, CUgraphConditionalHandle handle)
{
    condition *c = NULL;
    for (; graph && !c; graph = graph->around)
        for (c = graph->conditions; c && (CUgraphConditionalHandle)(uintptr_t)c != handle;)
            c = c->next;
    if (!c || c->taken)
        emulated_violation("a conditional node has the condition of another %s", c ? "node" : "graph");
    c->taken = true;
    return c;
}

static node *add_conditional(CUgraph graph, const CUgraphNode *after, size_t n_after, CUDA_CONDITIONAL_NODE_PARAMS *p)
{
    if (p->size < 1 || p->size > 2)
        emulated_violation("a conditional node with %u bodies", p->size);
    node *n = add_node(graph, CU_GRAPH_NODE_TYPE_CONDITIONAL, after, n_after, NULL);
    n->loop = p->type;
    n->condition = take_condition(graph, p->handle);
    n->bodies = (int)p->size;
    for (int b = 0; b < n->bodies; b++) {
        cuGraphCreate(&n->body[b], 0);
        n->body[b]->around = graph;
    }
    p->phGraph_out = n->body; /* belong to the driver for as long as the node lives */
    return n;
}

CUresult cuGraphAddNode(CUgraphNode *made, CUgraph graph, const CUgraphNode *after, const CUgraphEdgeData *edges,
                        size_t n, CUgraphNodeParams *p)
{
    (void)edges;
    emulated_lock();
    CUresult r = CUDA_SUCCESS;
    if (p->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
        *made = add_conditional(graph, after, n, &p->conditional);
    else if (p->type == CU_GRAPH_NODE_TYPE_EMPTY)
        *made = add_node(graph, p->type, after, n, NULL);
    else if (p->type == CU_GRAPH_NODE_TYPE_KERNEL) {
        CUDA_KERNEL_NODE_PARAMS k = {.func = p->kernel.func,
                                     .gridDimX = p->kernel.gridDimX,
                                     .gridDimY = p->kernel.gridDimY,
                                     .gridDimZ = p->kernel.gridDimZ,
                                     .blockDimX = p->kernel.blockDimX,
                                     .blockDimY = p->kernel.blockDimY,
                                     .blockDimZ = p->kernel.blockDimZ,
                                     .sharedMemBytes = p->kernel.sharedMemBytes,
                                     .kernelParams = p->kernel.kernelParams,
                                     .extra = p->kernel.extra};
        *made = add_node(graph, p->type, after, n, kernel_of(&k));
    } else if (p->type == CU_GRAPH_NODE_TYPE_MEMCPY)
        *made = add_node(graph, p->type, after, n, emulated_work_copy(emulated_copy_of(&p->memcpy.copyParams)));
    else
        r = CUDA_ERROR_NOT_SUPPORTED;
    return emulated_leave(r);
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *n)
{
    emulated_lock();
    if (nodes)
        memcpy(nodes, graph->node, (*n < (size_t)graph->n ? *n : (size_t)graph->n) * sizeof *nodes);
    *n = (size_t)graph->n;
    return emulated_leave(CUDA_SUCCESS);
}

CUresult cuGraphNodeGetType(CUgraphNode of, CUgraphNodeType *type)
{
    *type = of->type;
    return CUDA_SUCCESS;
}

/* -- executable graphs: copies --------------------------------------------------------------------------------------------------------------- */

static emulated_work *copy_work_of(const emulated_work *work)
{
    if (!work->bytes)
        emulated_violation("%s in a graph", work->name);
    return memcpy(room_for(NULL, work->bytes), work, work->bytes);
}

static CUgraph copy_graph(CUgraph graph)
{
    CUgraph copy;
    cuGraphCreate(&copy, 0);
    for (int k = 0; k < graph->n; k++) {
        const node *n = graph->node[k];
        node *made = add_node(copy, n->type, NULL, 0, n->work ? copy_work_of(n->work) : NULL);
        made->loop = n->loop;
        made->condition = n->condition;
        made->bodies = n->bodies;
        for (int b = 0; b < n->bodies; b++)
            made->body[b] = copy_graph(n->body[b]);
    }
    for (int k = 0; k < graph->n; k++)
        for (int d = 0; d < graph->node[k]->n_after; d++)
            add_dependency(copy->node[k], copy->node[graph->node[k]->after[d]->number]);
    return copy;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *made, CUgraph graph, unsigned long long flags)
{
    EMULATED_ENTER(context);
    (void)flags;
    if (emulated_fails("graph"))
        return emulated_leave(CUDA_ERROR_OUT_OF_MEMORY);
    *made = room_for(NULL, sizeof **made);
    **made = (struct CUgraphExec_st){copy_graph(graph), context};
    return emulated_leave(CUDA_SUCCESS);
}

CUresult cuGraphInstantiateWithParams(CUgraphExec *made, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *p)
{
    p->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
    return cuGraphInstantiateWithFlags(made, graph, p->flags);
}

CUresult cuGraphExecDestroy(CUgraphExec graph)
{
    emulated_lock();
    end_graph(graph->graph);
    free(graph);
    return emulated_leave(CUDA_SUCCESS);
}

CUresult cuGraphUpload(CUgraphExec graph, CUstream stream)
{
    (void)graph;
    (void)stream;
    return CUDA_SUCCESS;
}

static bool same_shape(CUgraph a, CUgraph b)
{
    if (a->n != b->n)
        return false;
    for (int k = 0; k < a->n; k++) {
        const node *x = a->node[k], *y = b->node[k];
        if (x->type != y->type || x->n_after != y->n_after || x->bodies != y->bodies || x->condition != y->condition)
            return false;
        for (int d = 0; d < x->n_after; d++)
            if (x->after[d]->number != y->after[d]->number)
                return false;
        for (int i = 0; i < x->bodies; i++)
            if (!same_shape(x->body[i], y->body[i]))
                return false;
    }
    return true;
}

CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info)
{
    EMULATED_ENTER(context);
    (void)context;
    bool same = same_shape(exec->graph, graph);
    memset(info, 0, sizeof *info);
    info->result = same ? CU_GRAPH_EXEC_UPDATE_SUCCESS : CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    if (!same)
        return emulated_leave(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    end_graph(exec->graph);
    exec->graph = copy_graph(graph);
    return emulated_leave(CUDA_SUCCESS);
}

/* The copy in `exec` of a node of the graph that it was made of: at the same place, perhaps inside a body. */
static node *find(CUgraph exec, CUgraph graph, const node *of)
{
    if (of->graph == graph)
        return of->number < exec->n ? exec->node[of->number] : NULL;
    for (int k = 0; k < graph->n; k++)
        for (int b = 0; b < graph->node[k]->bodies; b++) {
            node *found = find(exec->node[k]->body[b], graph->node[k]->body[b], of);
            if (found)
                return found;
        }
    return NULL;
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode of, const CUDA_KERNEL_NODE_PARAMS *p)
{
    EMULATED_ENTER(context);
    (void)context;
    node *n = find(exec->graph, of->graph, of);
    if (!n || n->type != CU_GRAPH_NODE_TYPE_KERNEL)
        return emulated_leave(CUDA_ERROR_INVALID_VALUE);
    return emulated_leave(emulated_work_kernel_update(n->work, kernel_of(p)));
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode of, const CUDA_MEMCPY3D *p, CUcontext to)
{
    EMULATED_ENTER(context);
    (void)context;
    (void)to;
    node *n = find(exec->graph, of->graph, of);
    if (!n || n->type != CU_GRAPH_NODE_TYPE_MEMCPY)
        return emulated_leave(CUDA_ERROR_INVALID_VALUE);
    emulated_work_drop(n->work);
    n->work = emulated_work_copy(emulated_copy_of(p));
    return emulated_leave(CUDA_SUCCESS);
}

/* -- launches ---------------------------------------------------------------------------------------------------------------------------------- */

typedef struct graph_work {
    emulated_work work;
    CUgraph graph; /* owned */
} graph_work;

static void run_graph(CUgraph graph, CUcontext context);

static void run_node(node *n, CUcontext context)
{
    if (n->work)
        n->work->run(n->work, context);
    if (n->type == CU_GRAPH_NODE_TYPE_GRAPH)
        run_graph(n->body[0], context);
    if (n->type != CU_GRAPH_NODE_TYPE_CONDITIONAL)
        return;
    if (n->loop == CU_GRAPH_COND_TYPE_WHILE)
        for (long turns = 0; n->condition->value && context->error == CUDA_SUCCESS; turns++) {
            if (turns > 10000000)
                emulated_violation("a loop in a graph does not end");
            run_graph(n->body[0], context);
        }
    else if (n->condition->value)
        run_graph(n->body[0], context);
    else if (n->bodies > 1)
        run_graph(n->body[1], context);
}

static bool may_run(const node *n, const bool *done)
{
    for (int d = 0; d < n->n_after; d++)
        if (!done[n->after[d]->number])
            return false;
    return !done[n->number];
}

static void run_graph(CUgraph graph, CUcontext context)
{
    bool *done = calloc((size_t)graph->n + 1, sizeof *done);
    for (int left = graph->n; done && left > 0; left--) {
        unsigned n = 0;
        int chosen = -1;
        for (int k = 0; k < graph->n; k++)
            if (may_run(graph->node[k], done) && emulated_random(++n) == 0)
                chosen = k;
        if (chosen < 0)
            emulated_violation("the nodes of a graph wait for each other");
        done[chosen] = true;
        if (context->error == CUDA_SUCCESS)
            run_node(graph->node[chosen], context);
    }
    free(done);
}

static void begin_conditions(CUgraph graph)
{
    for (int k = 0; k < graph->n; k++) {
        node *n = graph->node[k];
        if (n->condition && n->condition->assigned)
            n->condition->value = n->condition->usual;
        for (int b = 0; b < n->bodies; b++)
            begin_conditions(n->body[b]);
    }
}

static bool sets_its_own(CUgraph graph, const condition *c)
{
    for (int k = 0; graph && k < graph->n; k++) {
        const node *n = graph->node[k];
        if (n->condition == c)
            return true;
        for (int b = 0; b < n->bodies; b++)
            if (sets_its_own(n->body[b], c))
                return true;
    }
    return false;
}

static CUgraph launched; /* whose nodes run now */

/* By a kernel: only of the graph that it is in. */
void emulated_graph_condition(uint64_t handle, unsigned value)
{
    condition *c = (condition *)(uintptr_t)handle;
    if (!sets_its_own(launched, c))
        emulated_violation("a condition is set outside of its graph");
    c->value = value;
}

static bool run_launch(emulated_work *work, CUcontext context)
{
    launched = ((graph_work *)work)->graph;
    begin_conditions(launched);
    run_graph(launched, context);
    launched = NULL;
    return true;
}

static void drop_launch(emulated_work *work)
{
    end_graph(((graph_work *)work)->graph);
    free(work);
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    EMULATED_ENTER(context);
    (void)context;
    if (emulated_fails("launch_call"))
        return emulated_leave(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    graph_work *work = room_for(NULL, sizeof *work);
    *work = (graph_work){{.name = "a graph", .run = run_launch, .drop = drop_launch}, copy_graph(exec->graph)};
    return emulated_leave(emulated_submit(stream, &work->work));
}

/* -- capturing ----------------------------------------------------------------------------------------------------------------------------------- */

bool emulated_capturing(CUstream stream)
{
    return stream && *emulated_stream_capture(stream) != NULL;
}

static struct capture_point *point_of(CUstream stream)
{
    struct capture_point **p = emulated_stream_point(stream);
    if (!*p)
        *p = memset(room_for(NULL, sizeof **p), 0, sizeof **p);
    return *p;
}

CUresult emulated_capture_work(CUstream stream, emulated_work *work)
{
    struct capture_point *p = point_of(stream);
    if (!work->bytes)
        emulated_violation("%s cannot be captured", work->name);
    node *n = add_node((*emulated_stream_capture(stream))->graph,
                       emulated_work_is_kernel(work) ? CU_GRAPH_NODE_TYPE_KERNEL : CU_GRAPH_NODE_TYPE_MEMCPY, p->after,
                       (size_t)p->n, work);
    p->n = 1;
    p->after[0] = n;
    return CUDA_SUCCESS;
}

CUresult emulated_capture_record(CUstream stream, CUevent event)
{
    if (!event->captured)
        event->captured = room_for(NULL, sizeof *event->captured);
    *event->captured = *point_of(stream);
    event->captured->capture = *emulated_stream_capture(stream);
    return CUDA_SUCCESS;
}

/* A stream that waits for an event of a capture becomes part of it. */
bool emulated_capture_waits(CUstream stream, CUevent event)
{
    struct graph_capture **mine = emulated_stream_capture(stream);
    if (!event->captured || !event->captured->capture) {
        if (*mine)
            emulated_violation("a captured stream waits for an event outside of the capture");
        return false;
    }
    if (*mine && *mine != event->captured->capture)
        emulated_violation("a stream waits for an event of another capture");
    *mine = event->captured->capture;
    struct capture_point *p = point_of(stream);
    for (int k = 0; k < event->captured->n; k++) {
        bool there = false;
        for (int i = 0; i < p->n; i++)
            there |= p->after[i] == event->captured->after[k];
        if (!there && p->n < 64)
            p->after[p->n++] = event->captured->after[k];
    }
    return true;
}

static CUresult begin(CUstream stream, CUgraph graph, bool given)
{
    CUstream s = emulated_stream(stream);
    if (!s || emulated_capturing(s))
        return CUDA_ERROR_ILLEGAL_STATE;
    struct graph_capture *c = room_for(NULL, sizeof *c);
    *c = (struct graph_capture){.graph = graph, .origin = s, .given = given};
    *emulated_stream_capture(s) = c;
    point_of(s)->n = 0;
    return CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode)
{
    EMULATED_ENTER(context);
    (void)context;
    (void)mode;
    CUgraph graph;
    cuGraphCreate(&graph, 0);
    return emulated_leave(begin(stream, graph, false));
}

CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode *after,
                                     const CUgraphEdgeData *edges, size_t n, CUstreamCaptureMode mode)
{
    EMULATED_ENTER(context);
    (void)context;
    (void)edges;
    (void)mode;
    CUresult r = begin(stream, graph, true);
    for (size_t k = 0; r == CUDA_SUCCESS && k < n && k < 64; k++)
        point_of(emulated_stream(stream))->after[point_of(emulated_stream(stream))->n++] = after[k];
    return emulated_leave(r);
}

static void reach(const node *n, bool *reached)
{
    if (reached[n->number])
        return;
    reached[n->number] = true;
    for (int d = 0; d < n->n_after; d++)
        reach(n->after[d], reached);
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    EMULATED_ENTER(context);
    (void)context;
    CUstream s = emulated_stream(stream);
    struct graph_capture *c = *emulated_stream_capture(s);
    if (!c || c->origin != s)
        return emulated_leave(CUDA_ERROR_ILLEGAL_STATE);
    bool *reached = calloc((size_t)c->graph->n + 1, sizeof *reached), joined = true;
    for (int k = 0; reached && k < point_of(s)->n; k++)
        reach(point_of(s)->after[k], reached);
    for (int k = 0; reached && k < c->graph->n; k++)
        joined &= reached[k] || c->given;
    free(reached);
    emulated_streams_forget_capture(c);
    *graph = joined ? c->graph : NULL;
    free(c);
    return emulated_leave(joined ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
    emulated_lock();
    *status =
        emulated_capturing(emulated_stream(stream)) ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    return emulated_leave(CUDA_SUCCESS);
}

CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                                const CUgraphNode **after, const CUgraphEdgeData **edges, size_t *n)
{
    emulated_lock();
    CUstream s = emulated_stream(stream);
    bool captures = emulated_capturing(s);
    *status = captures ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    if (captures && id)
        *id = (cuuint64_t)(uintptr_t)*emulated_stream_capture(s);
    if (captures && graph)
        *graph = (*emulated_stream_capture(s))->graph;
    if (captures && after && n) {
        *after = point_of(s)->after;
        *n = (size_t)point_of(s)->n;
    }
    if (captures && edges)
        *edges = NULL;
    return emulated_leave(CUDA_SUCCESS);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    *mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    return CUDA_SUCCESS;
}
