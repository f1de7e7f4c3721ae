/* SPDX-License-Identifier: BSD-3-Clause */
/* Open traces and their captures. See trace.h. */
#include "array/trace.h"
#include "array/manual.h"

static _Thread_local oly_trace *current;

oly_trace *oly_trace_current(void)
{
    return current;
}

oly_status oly_trace_open(oly_trace *t, const char *name)
{
    *t = (oly_trace){.outer = current, .graph = oly_graph_new(name)};
    oly_status status = t->graph ? oly_scope_begin() : oly_out_of_memory(sizeof *t->graph, "a graph");
    if (status == OLY_OK) {
        current = t;
    } else {
        oly_graph_free(t->graph);
        t->graph = NULL;
    }
    return status;
}

void oly_trace_close(oly_trace *t)
{
    oly_scope_close();
    current = t->outer;
}

void oly_trace_release(oly_trace *t)
{
    for (int k = 0; k < t->n_captures; k++)
        oly_array_release(t->captures[k].array);
    oly_release(t->captures);
    t->captures = NULL;
    t->n_captures = t->capture_room = 0;
}

/* Do both handles stand for the same value? Values are compared by identity (handles come and go, and a process may
 * have no shards), traced ones by node. */
static bool same_value(oly_array held, oly_array x)
{
    return held->graph == x->graph && (x->graph ? held->node == x->node : held->identity.value == x->identity.value);
}

static bool is_open(const oly_trace *t, const oly_graph *g)
{
    for (; t; t = t->outer)
        if (t->graph == g)
            return true;
    return false;
}

/* For one more capture. */
static oly_status make_room(oly_trace *t)
{
    if (t->n_captures < t->capture_room)
        return OLY_OK;
    int room = t->capture_room ? 2 * t->capture_room : 16;
    oly_capture *captures = oly_calloc((size_t)room, sizeof *captures);
    if (!captures)
        return oly_out_of_memory(sizeof *captures * (size_t)room, "what a function uses from outside");
    for (int k = 0; k < t->n_captures; k++)
        captures[k] = t->captures[k];
    oly_release(t->captures);
    t->captures = captures;
    t->capture_room = room;
    return OLY_OK;
}

oly_status oly_trace_node(oly_trace *t, oly_array x, oly_node **node)
{
    if (!oly_lives(x, OLY_HANDLE_ARRAY) && !oly_is_dead(x, OLY_HANDLE_ARRAY))
        return oly_wrong_handle(x, OLY_HANDLE_ARRAY);
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
        if (same_value(t->captures[k].array, x)) {
            *node = t->captures[k].node;
            return OLY_OK;
        }
    OLY_TRY(make_room(t));
    oly_array kept = oly_array_hold(x); /* the handle may belong to an inner scope */
    if (!kept)
        return OLY_MEMORY;
    oly_type type = x->type;
    if (oly_manual_around(t))
        oly_manual_type(oly_manual_around(t), &type);
    oly_status st = t->outer ? oly_graph_input(t->graph, &type, node) : oly_sums_input(t->graph, x, node);
    if (st != OLY_OK) {
        oly_array_release(kept);
        return st;
    }
    t->captures[t->n_captures++] = (oly_capture){kept, *node};
    return OLY_OK;
}

oly_status oly_trace_output(oly_trace *t, oly_node *node)
{
    int n = t->graph->n_outputs;
    oly_sharding *more;
    if ((n & (n - 1)) == 0) { /* the list doubles */
        OLY_ARENA_LIST(&t->graph->arena, more, n ? 2 * n : 1);
        for (int k = 0; k < n; k++)
            more[k] = t->shown[k];
        t->shown = more;
    }
    return oly_sums_output(t->graph, node, &t->shown[n]);
}

oly_status oly_check_traced(unsigned before, const char *what)
{
    oly_status st = oly_raised_since(before);
    return st == OLY_OK ? OLY_OK
                        : oly_fail(st,
                                   "a call in %s failed; see the first error, or clear it where the program handles it "
                                   "(oly_clear_error)",
                                   what);
}
