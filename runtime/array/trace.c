/* Open traces and what they capture. See trace.h. */
#include "array/trace.h"
#include "array/manual.h"

static _Thread_local oly_trace *current;

oly_trace *oly_trace_current(void)
{
    return current;
}

void oly_trace_open(oly_trace *t, oly_graph *g)
{
    t->outer = current;
    t->graph = g;
    t->manual = t->batch = NULL;
    t->first_capture = t->n_captures = 0;
    current = t;
    oly_scope_open();
}

void oly_trace_close(oly_trace *t)
{
    oly_scope_close();
    current = t->outer;
}

void oly_trace_release(oly_trace *t)
{
    for (int k = 0; k < t->n_captures; k++)
        if (!t->captured[k]->graph)
            oly_array_release(t->captured[k]);
    t->n_captures = 0;
}

/* The same data? Values by their buffers (handles may come and go), traced ones by their node. */
static bool same_value(oly_array held, oly_array x)
{
    if (held->graph || x->graph)
        return held->node == x->node && held->graph == x->graph;
    if (held->sharding != x->sharding || held->n_shards != x->n_shards || !oly_type_equal(&held->type, &x->type))
        return false;
    for (int s = 0; s < x->n_shards; s++)
        if (held->shard[s] != x->shard[s])
            return false;
    return x->n_shards > 0;
}

static bool is_open(const oly_trace *t, const oly_graph *g)
{
    for (; t; t = t->outer)
        if (t->graph == g)
            return true;
    return false;
}

oly_status oly_trace_node(oly_trace *t, oly_array x, oly_node **node)
{
    if (x->deleted)
        return oly_array_readable(x);
    if (x->graph == t->graph) {
        *node = x->node;
        return OLY_OK;
    }
    if (x->graph && !is_open(t, x->graph))
        return oly_fail(
            OLY_TRACE,
            "a traced %s is used after its function has ended; only what the function stores in out[] lives on",
            oly_type_short(&x->type));
    if (!x->graph)
        OLY_TRY(oly_array_readable(x));
    for (int k = 0; k < t->n_captures; k++)
        if (same_value(t->captured[k], x)) {
            *node = t->capture_node[k];
            return OLY_OK;
        }
    if (t->graph->n_inputs == OLY_MOST_ENDS)
        return oly_fail(OLY_INVALID,
                        "a function or loop body uses more than %d arrays, with those from outside; pass them stacked",
                        (int)OLY_MOST_ENDS);
    oly_array kept = x->graph ? x : oly_array_hold(x);
    if (!kept)
        return OLY_MEMORY;
    oly_type type = x->type;
    if (oly_manual_around(t))
        oly_manual_type(oly_manual_around(t), &type);
    oly_status st = t->outer ? oly_graph_input(t->graph, &type, node) : oly_sums_input(t->graph, x, node);
    if (st != OLY_OK) {
        if (!x->graph)
            oly_array_release(kept);
        return st;
    }
    t->capture_node[t->n_captures] = *node;
    t->captured[t->n_captures++] = kept;
    return OLY_OK;
}
