/* SPDX-License-Identifier: BSD-3-Clause */
/* What the functions of olympus/inside.h share: operands as nodes, and calls recorded into the open trace or run at once. Private to
 * runtime/array/inside. */
#ifndef OLY_ARRAY_INSIDE_H
#define OLY_ARRAY_INSIDE_H
#include "array/alone.h"
#include "graph/call.h"
#include <olympus/inside.h>

/* What is recorded. operands: the values as the program gave them; the nodes of its arrays and numbers are `in`. */
typedef struct oly_inside_request oly_inside_request;
typedef oly_status oly_inside_recording(const oly_inside_request *r, oly_trace *t, oly_node **in, oly_node **out);
struct oly_inside_request {
    oly_inside_recording *record;
    const char *format;
    int n;
    const oly_operand *operands;
    const void *more; /* the recording's own */
    int n_out;
    void (*sign)(const oly_inside_request *r, oly_key *key); /* adds what `more` says; NULL: the plan is not kept */
};

/* Records into the open trace; where none is open, as a function that runs at once. out[n_out]: handles of the results. */
oly_status oly_inside_record(const oly_inside_request *r, oly_array *out);
void oly_inside_forget(void); /* at finalize: the plans of calls that ran at once */

/* Inside oly_shard_map: the same values, typed as differing from device to device, so that every device makes the call. */
oly_status oly_inside_vary(oly_trace *t, int n, oly_node **nodes);
bool oly_inside_map(const oly_trace *t); /* is this inside of oly_shard_map? */
/* A bool that is true: effects happen. */
oly_status oly_inside_always(oly_trace *t, oly_node **when);
/* x with a first dimension of size 1, for what is called once. */
oly_status oly_inside_once(oly_graph *g, oly_node **x);
/* Describes operand k of a call: all of x, or its dimensions by one letter each. */
void oly_inside_operand(oly_user_call *c, const oly_node *x, char letter);
#endif
