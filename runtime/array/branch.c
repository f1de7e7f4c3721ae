/* SPDX-License-Identifier: BSD-3-Clause */
/* oly_switch and oly_cond: every branch is recorded as a graph of its own. All take the same inputs: the given
 * operands, then the captures of all branches. */
#include "array/alone.h"
#include "array/arguments.h"
#include "graph/varying.h"
#include <olympus/transform.h>
#include <string.h>

typedef struct request {
    int n_branches;
    const oly_function *branches;
    int n_in, n_out; /* without the index */
    void *user;
} request;

/* Captures of the branches before become inputs of this one too, in the same order. */
static oly_status take_captures(oly_trace *t, const oly_trace *before, int from)
{
    for (int k = from; before && k < before->n_captures; k++) {
        oly_node *node;
        OLY_TRY(oly_trace_node(t, before->captures[k].array, &node));
    }
    return OLY_OK;
}

static oly_status record_branch(const request *r, int branch, oly_trace *t, const oly_trace *before,
                                oly_node *const *in)
{
    oly_array *inner, *out;
    OLY_ARENA_LIST(&t->graph->arena, inner, r->n_in);
    OLY_ARENA_LIST(&t->graph->arena, out, r->n_out);
    for (int k = 0; k < r->n_in; k++) {
        oly_node *node;
        OLY_TRY(oly_graph_input(t->graph, &in[k]->type, &node));
        if (!(inner[k] = oly_array_traced(t->graph, node)))
            return OLY_MEMORY;
    }
    t->first_capture = r->n_in;
    OLY_TRY(take_captures(t, before, 0));
    unsigned before_it = oly_raised_count();
    r->branches[branch](inner, out, r->user);
    OLY_TRY(oly_check_traced(before_it, "a branch"));
    for (int k = 0; k < r->n_out; k++) {
        oly_node *node;
        if (!out[k])
            return oly_fail(OLY_INVALID, "branch %d did not store its output %d; it must set all %d entries of out[]",
                            branch, k, r->n_out);
        OLY_TRY(oly_trace_node(t, out[k], &node));
        OLY_TRY(oly_graph_output(t->graph, node));
    }
    return OLY_OK;
}

static oly_status add_branch(const request *r, oly_trace *outer, oly_node *index, oly_node *const *in,
                             oly_trace *traces, oly_array *out)
{
    oly_node **operands, *node;
    oly_graph **graphs;
    oly_params params;
    const oly_trace *last = &traces[r->n_branches - 1];
    int n = 0;
    OLY_ARENA_LIST(&outer->graph->arena, graphs, r->n_branches);
    for (int b = 0; b < r->n_branches; b++) {
        OLY_TRY(take_captures(&traces[b], last, traces[b].n_captures));
        graphs[b] = traces[b].graph;
    }
    OLY_ARENA_LIST(&outer->graph->arena, operands, 1 + r->n_in + last->n_captures);
    operands[n++] = index;
    for (int k = 0; k < r->n_in; k++)
        operands[n++] = in[k];
    for (int k = 0; k < last->n_captures; k++)
        OLY_TRY(oly_trace_node(outer, last->captures[k].array, &operands[n++]));
    OLY_TRY(oly_vary_outputs(r->n_branches, graphs));
    memset(&params, 0, sizeof params);
    params.n_branches = r->n_branches;
    params.branches = graphs;
    OLY_TRY(oly_graph_add(outer->graph, OLY_OP_branch, n, operands, &params, &node));
    for (int b = 0; b < r->n_branches; b++)
        traces[b].graph = NULL; /* the node owns it now */
    for (int k = 0; k < r->n_out; k++) {
        oly_node *result;
        oly_params which;
        memset(&which, 0, sizeof which);
        which.dimension = k;
        OLY_TRY(oly_graph_add(outer->graph, OLY_OP_result, 1, &node, &which, &result));
        if (!(out[k] = oly_array_traced(outer->graph, result)))
            return OLY_MEMORY;
    }
    return OLY_OK;
}

/* in[0] is the index. */
static oly_status record(const void *request_, oly_trace *outer, const oly_array *in, oly_array *out)
{
    const request *r = request_;
    oly_node **nodes;
    OLY_ARENA_LIST(&outer->graph->arena, nodes, 1 + r->n_in);
    oly_trace *traces = oly_calloc((size_t)r->n_branches, sizeof *traces);
    oly_site site = oly_current_site();
    oly_status st = traces ? OLY_OK : oly_out_of_memory(sizeof *traces * (size_t)r->n_branches, "the branches");
    for (int k = 0; k < 1 + r->n_in && st == OLY_OK; k++)
        st = oly_trace_node(outer, in[k], &nodes[k]);
    for (int b = 0; b < r->n_branches && st == OLY_OK; b++) {
        if ((st = oly_trace_open(&traces[b], "branch")) != OLY_OK)
            break;
        st = record_branch(r, b, &traces[b], b ? &traces[b - 1] : NULL, nodes + 1);
        oly_trace_close(&traces[b]);
        oly_restore_site(site);
    }
    if (st == OLY_OK)
        st = add_branch(r, outer, nodes[0], nodes + 1, traces, out);
    for (int b = 0; traces && b < r->n_branches; b++) {
        oly_graph_free(traces[b].graph);
        oly_trace_release(&traces[b]);
    }
    oly_release(traces);
    return st;
}

static oly_status choose(const request *r, oly_array index, const oly_array *in, oly_array *out)
{
    if (r->n_branches < 1 || r->n_in < 0 || r->n_out < 1)
        return oly_fail(OLY_INVALID,
                        "%d branches of %d arrays in and %d out; one branch or more gives one array or more",
                        r->n_branches, r->n_in, r->n_out);
    for (int b = 0; b < r->n_branches; b++)
        if (!r->branches || !r->branches[b])
            return oly_fail(OLY_INVALID, "branch %d is NULL; give a function", b);
    if (oly_rank(index) != 0)
        return oly_fail(
            OLY_SHAPE,
            "the branch is chosen by one value, not by an array of rank %d: reduce it, for example with oly_any or "
            "oly_all",
            oly_rank(index));
    for (int k = 0; k < r->n_in; k++)
        if (!in || !in[k])
            return oly_null_handle();
    oly_array *values = oly_calloc((size_t)r->n_in + 1, sizeof *values);
    if (!values)
        return oly_out_of_memory(sizeof *values * (size_t)r->n_in, "a branch");
    values[0] = index;
    for (int k = 0; k < r->n_in; k++)
        values[1 + k] = in[k];
    oly_status st = oly_record_or_run(record, r, "branch", 1 + r->n_in, values, r->n_out, out);
    oly_release(values);
    return st;
}

/* The inputs, which may be in the same variables as the results. */
static oly_status keep_inputs(int n_in, const oly_array *in, oly_array **kept)
{
    size_t n = n_in > 0 ? (size_t)n_in : 0;
    *kept = oly_calloc(n + 1, sizeof **kept);
    if (!*kept)
        return oly_out_of_memory(n * sizeof **kept, "a branch");
    if (n)
        memcpy(*kept, in, n * sizeof **kept);
    return OLY_OK;
}

static oly_status start(const request *r, oly_array number, const oly_array *in, oly_array *out)
{
    return number ? oly_raise(choose(r, number, in, out)) : oly_null_handle();
}

static oly_status by_index(request r, oly_operand index, const oly_array *in, oly_array *out)
{
    OLY_TRY(oly_need_room(r.n_out, out));
    OLY_TRY(oly_need_operand(&index));
    OLY_TRY(oly_need_arrays(r.n_in, in));
    oly_dtype dtype = index.kind == 'a' ? oly_dtype_of(index.array) : index.kind == 'f' ? OLY_FLOAT32 : OLY_INT32;
    if (index.kind == 'c' || oly_dtype_kind(dtype) > OLY_KIND_INTEGER)
        return oly_raise(oly_fail(OLY_DTYPE, "the index of a branch is not an integer; use oly_astype, or oly_cond"));
    oly_site site = oly_current_site();
    oly_array number = (oly_astype)(index, OLY_INT32);
    oly_restore_site(site);
    return start(&r, number, in, out);
}

static oly_status by_predicate(request r, oly_operand predicate, const oly_array *in, oly_array *out)
{
    OLY_TRY(oly_need_room(r.n_out, out));
    OLY_TRY(oly_need_operand(&predicate));
    OLY_TRY(oly_need_arrays(r.n_in, in));
    oly_site site = oly_current_site();
    oly_array number = (oly_ne)(predicate, oly_operand_int(0));
    number = number ? (oly_astype)(oly_operand_array(number), OLY_INT32) : NULL;
    oly_restore_site(site);
    return start(&r, number, in, out);
}

oly_status(oly_switch)(oly_operand index, int n_branches, const oly_function *branches, int n_in, const oly_array *in,
                       int n_out, oly_array *out, void *user)
{
    OLY_ENTER(OLY_STATE);
    oly_array *kept;
    OLY_TRY(oly_raise(keep_inputs(in ? n_in : 0, in, &kept)));
    oly_status st = by_index((request){n_branches, branches, n_in, n_out, user}, index, in ? kept : NULL, out);
    oly_release(kept);
    return st;
}

oly_status(oly_cond)(oly_operand predicate, oly_function if_true, oly_function if_false, int n_in, const oly_array *in,
                     int n_out, oly_array *out, void *user)
{
    OLY_ENTER(OLY_STATE);
    oly_array *kept;
    OLY_TRY(oly_raise(keep_inputs(in ? n_in : 0, in, &kept)));
    request r = {2, (oly_function[]){if_false, if_true}, n_in, n_out, user};
    oly_status st = by_predicate(r, predicate, in ? kept : NULL, out);
    oly_release(kept);
    return st;
}
