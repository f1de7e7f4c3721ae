/* SPDX-License-Identifier: BSD-3-Clause */
/* oly_custom_vjp: functions with derivatives of their own. A call records the function in place, and beside it a node with the graphs of
 * the forward and the backward function, through which its results pass (runtime/transform/vjp_custom.c). */
#include "array/inside/custom.h"
#include "array/arguments.h"
#include "array/function.h"
#include "graph/build.h"
#include "transform/gradient.h"
#include <string.h>

/* -- the two graphs ------------------------------------------------------------------------------------------------ */

static oly_status call(oly_function function, const char *what, const oly_array *in, oly_array *out, void *user)
{
    unsigned before = oly_raised_count();
    function(in, out, user);
    return oly_check_traced(before, what);
}

static oly_status add_inputs(oly_trace *t, int n, const oly_type *types, oly_array *handles)
{
    for (int k = 0; k < n; k++) {
        oly_node *node;
        OLY_TRY(oly_graph_input(t->graph, &types[k], &node));
        if (!(handles[k] = oly_array_traced(t->graph, node)))
            return OLY_MEMORY;
    }
    t->first_capture = n;
    return OLY_OK;
}

static oly_status missing(const char *what, int k)
{
    return oly_fail(OLY_INVALID, "the %s did not store its output %d; it must set all entries of out[]", what, k);
}

/* types: of the arguments. */
static oly_status record_forward(const oly_custom *c, const oly_type *types, oly_trace *t)
{
    oly_array *in, *out;
    OLY_ARENA_LIST(&t->graph->arena, in, c->n_in);
    OLY_ARENA_LIST(&t->graph->arena, out, c->n_out + c->n_residuals);
    OLY_TRY(add_inputs(t, c->n_in, types, in));
    OLY_TRY(call(c->forward, "the forward function", in, out, c->user));
    for (int k = 0; k < c->n_out + c->n_residuals; k++) {
        oly_node *node;
        if (!out[k])
            return missing("forward function", k);
        OLY_TRY(oly_trace_node(t, out[k], &node));
        OLY_TRY(oly_graph_output(t->graph, node));
    }
    return OLY_OK;
}

static oly_status check_cotangent(const oly_type *x, const oly_type *cotangent, int k)
{
    if (oly_type_equal(x, cotangent))
        return OLY_OK;
    return oly_fail(x->dtype != cotangent->dtype ? OLY_DTYPE : OLY_SHAPE,
                    "the cotangent of argument %d from the backward function is %s, but the argument is %s; they must "
                    "have the same type",
                    k, oly_type_short(cotangent), oly_type_short(x));
}

/* Of arguments without a derivative (integers) the cotangent is not read. */
static oly_status take_cotangent(const oly_custom *c, oly_trace *t, const oly_type *x, oly_array given, int k)
{
    oly_node *node = NULL, like = {.type = *x};
    (void)c;
    if (given && oly_differentiable(x->dtype)) {
        OLY_TRY(oly_trace_node(t, given, &node));
        OLY_TRY(check_cotangent(x, &node->type, k));
    } else {
        OLY_TRY(oly_zeros_like(t->graph, &like, &node));
    }
    return oly_graph_output(t->graph, node);
}

static oly_status record_backward(const oly_custom *c, const oly_type *types, const oly_graph *forward, oly_trace *t)
{
    oly_array *in, *out;
    oly_type *of;
    OLY_ARENA_LIST(&t->graph->arena, in, c->n_residuals + c->n_out);
    OLY_ARENA_LIST(&t->graph->arena, out, c->n_in);
    OLY_ARENA_LIST(&t->graph->arena, of, c->n_residuals + c->n_out);
    for (int k = 0; k < c->n_residuals; k++)
        of[k] = forward->outputs[c->n_out + k]->type;
    for (int k = 0; k < c->n_out; k++)
        of[c->n_residuals + k] = forward->outputs[k]->type;
    OLY_TRY(add_inputs(t, c->n_residuals + c->n_out, of, in));
    OLY_TRY(call(c->backward, "the backward function", in, out, c->user));
    for (int k = 0; k < c->n_in; k++)
        OLY_TRY(take_cotangent(c, t, &types[k], out[k], k));
    return OLY_OK;
}

/* Opens a trace, records, closes it. */
static oly_status record_graph(const oly_custom *c, const oly_type *types, const oly_graph *forward, const char *name,
                               oly_trace *t)
{
    oly_site site = oly_current_site();
    OLY_TRY(oly_trace_open(t, name));
    oly_status st = forward ? record_backward(c, types, forward, t) : record_forward(c, types, t);
    oly_trace_close(t);
    oly_restore_site(site);
    return st;
}

/* -- the node ------------------------------------------------------------------------------------------------------ */

static oly_status take_captures(oly_trace *outer, const oly_trace *t, oly_node **operands, int *n)
{
    for (int k = 0; k < t->n_captures; k++)
        OLY_TRY(oly_trace_node(outer, t->captures[k].array, &operands[(*n)++]));
    return OLY_OK;
}

static oly_status add_node(const oly_custom *c, oly_trace *outer, oly_trace *forward, oly_trace *backward,
                           const oly_array *in, oly_array *out)
{
    oly_node **operands, *made;
    oly_graph *graphs[2] = {forward->graph, backward->graph};
    oly_params p;
    int n = 0;
    OLY_ARENA_LIST(&outer->graph->arena, operands, c->n_in + c->n_out + forward->n_captures + backward->n_captures);
    for (int k = 0; k < c->n_in; k++)
        OLY_TRY(oly_trace_node(outer, in[k], &operands[n++]));
    OLY_TRY(take_captures(outer, forward, operands, &n));
    OLY_TRY(take_captures(outer, backward, operands, &n));
    for (int k = 0; k < c->n_out; k++)
        OLY_TRY(oly_trace_node(outer, out[k], &operands[n++]));
    memset(&p, 0, sizeof p);
    p.n_branches = 2;
    p.branches = graphs;
    p.n_carry = c->n_out;
    OLY_TRY(oly_graph_add(outer->graph, OLY_OP_custom, n, operands, &p, &made));
    forward->graph = backward->graph = NULL; /* the node owns them now */
    for (int k = 0; k < c->n_out; k++) {
        oly_params which;
        oly_node *result;
        memset(&which, 0, sizeof which);
        which.dimension = k;
        OLY_TRY(oly_graph_add(outer->graph, OLY_OP_result, 1, &made, &which, &result));
        if (!(out[k] = oly_array_traced(outer->graph, result)))
            return OLY_MEMORY;
    }
    return OLY_OK;
}

oly_status oly_custom_attach(const oly_custom *c, const oly_array *in, oly_array *out)
{
    oly_trace forward = {0}, backward = {0}, *outer = oly_trace_current();
    oly_type *types;
    OLY_ARENA_LIST(&outer->graph->arena, types, c->n_in);
    oly_status st = OLY_OK;
    for (int k = 0; k < c->n_in && st == OLY_OK; k++) {
        oly_node *node;
        if ((st = oly_trace_node(outer, in[k], &node)) == OLY_OK)
            types[k] = node->type;
    }
    if (st == OLY_OK)
        st = record_graph(c, types, NULL, "forward", &forward);
    if (st == OLY_OK)
        st = record_graph(c, types, forward.graph, "backward", &backward);
    if (st == OLY_OK) {
        oly_graph_silence(forward.graph); /* the function's own effects happen */
        st = add_node(c, outer, &forward, &backward, in, out);
    }
    oly_graph_free(forward.graph);
    oly_graph_free(backward.graph);
    oly_trace_release(&forward);
    oly_trace_release(&backward);
    return st;
}

/* -- the function -------------------------------------------------------------------------------------------------- */

/* The C function of every such function: always while a function is recorded. */
static void run(const oly_array *in, oly_array *out, void *user)
{
    const oly_custom *c = user;
    oly_status st = call(c->function, "the function", in, out, c->user);
    for (int k = 0; k < c->n_out && st == OLY_OK; k++)
        if (!out[k])
            st = missing("function", k);
    oly_raise(st == OLY_OK ? oly_custom_attach(c, in, out) : st);
}

static oly_status make(const oly_custom *given, const char *c_name, const char *name, oly_fn *made)
{
    if (!given->forward || !given->backward)
        return oly_fail(OLY_INVALID, "the forward or the backward function is NULL; give both");
    if (given->n_residuals < 0)
        return oly_fail(OLY_INVALID, "%d residuals; give 0 or more", given->n_residuals);
    oly_custom *c = oly_malloc(sizeof *c);
    if (!c)
        return oly_out_of_memory(sizeof *c, "a function");
    *c = *given;
    oly_jit_options as = {.name = name, .user = c};
    oly_status st = given->function ? oly_function_new(run, c_name, c->n_in, c->n_out, as, made)
                                    : oly_function_new(NULL, c_name, c->n_in, c->n_out, as, made);
    if (st == OLY_OK)
        (*made)->derived = c;
    else
        oly_release(c);
    return st;
}

oly_fn oly_custom_vjp_with(oly_function function, const char *c_name, oly_function forward, oly_function backward,
                           int n_in, int n_out, int n_residuals, oly_custom_options options)
{
    OLY_ENTER(NULL);
    const oly_custom c = {function, forward, backward, n_in, n_out, n_residuals, options.user};
    oly_fn made = NULL;
    return oly_raise(make(&c, c_name, options.name, &made)) == OLY_OK ? made : NULL;
}
