/* SPDX-License-Identifier: BSD-3-Clause */
/* Open traces: graphs being recorded. Each thread has a stack of them. Private to runtime/array. */
#ifndef OLY_ARRAY_TRACE_H
#define OLY_ARRAY_TRACE_H
#include "array/array.h"
#include "plan/plan.h"

/* An array from outside: its handle there (values are held, traced ones borrowed) and the input that stands for it. */
typedef struct oly_capture {
    oly_array array;
    oly_node *node;
} oly_capture;

typedef struct oly_trace {
    struct oly_trace *outer;
    oly_graph *graph;
    const struct oly_manual *manual; /* the body of a shard_map: its state (manual.h); else NULL */
    /* the body of a vmap whose batch has a name, which acts as a mesh axis; else NULL */
    const struct oly_manual *batch;
    int first_capture; /* inputs before it are the function's own */
    int n_captures, capture_room;
    oly_capture *captures;
    oly_sharding *shown; /* of unreduced outputs: the sharding of their handles; else NULL. In the graph's memory */
} oly_trace;

oly_trace *oly_trace_current(void);
/* Opens a trace with a new graph, which the caller owns, and a scope for its handles. After a failure nothing is open,
 * and there is no graph. */
oly_status oly_trace_open(oly_trace *t, const char *name);
void oly_trace_close(oly_trace *t);
/* Releases its captures; the graph may be gone. */
void oly_trace_release(oly_trace *t);
/* Arrays entering and leaving the outermost trace; unreduced ones are converted (sums.c). value: how a plan sees an
 * input. */
oly_status oly_sums_value(oly_array x, oly_plan_value *value);
oly_status oly_sums_input(oly_graph *g, oly_array x, oly_node **node);
oly_status oly_sums_output(oly_graph *g, oly_node *node, oly_sharding *shown);
/* After planning: the sharding of the handle of an unreduced output that the plan, terms in front, splits like
 * `cut`. */
oly_status oly_sums_shown(oly_sharding cut, oly_sharding *shown);
/* Adds an output to the outermost trace. */
oly_status oly_trace_output(oly_trace *t, oly_node *node);
/* After a function of the program has been recorded (`what`): an error if a call in it failed and was not cleared, even
 * if it stored results, which may be stale. before: oly_raised_count. */
oly_status oly_check_traced(unsigned before, const char *what);
/* The node that stands for an array in the innermost trace; outer values become inputs. */
oly_status oly_trace_node(oly_trace *t, oly_array x, oly_node **node);
#endif
