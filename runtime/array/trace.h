/* Open traces: graphs being recorded. Each thread has a stack of them. Private to runtime/array. */
#ifndef OLY_ARRAY_TRACE_H
#define OLY_ARRAY_TRACE_H
#include "array/array.h"

typedef struct oly_trace {
    struct oly_trace *outer;
    oly_graph *graph;
    const struct oly_manual *manual; /* the body of a shard_map: what holds inside (manual.h); else NULL */
    int first_capture;               /* inputs before are the function's own */
    int n_captures;
    oly_array captured[64]; /* outer handles; values are held, traced ones borrowed */
} oly_trace;

oly_trace *oly_trace_current(void);
/* Opens a trace and a scope for its handles. */
void oly_trace_open(oly_trace *t, oly_graph *g);
void oly_trace_close(oly_trace *t);
/* Drops what it captured. */
void oly_trace_release(oly_trace *t);
/* The node that stands for an array in the innermost trace; outer values become inputs. */
oly_status oly_trace_node(oly_trace *t, oly_array x, oly_node **node);
#endif
