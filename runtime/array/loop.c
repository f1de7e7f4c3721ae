/* SPDX-License-Identifier: BSD-3-Clause */
/* oly_fori and oly_while: the body is recorded once as a graph of its own, whose inputs are the counter, the carries
 * and the captures. The condition of a while loop is one more carry, which the body recomputes at its end. Carries that the body
 * leaves as they are become captures: iterations read them in place, and gradients keep them once. */
#include "array/alone.h"
#include "array/arguments.h"
#include "core/optimisation.h"
#include "graph/varying.h"
#include <olympus/transform.h>
#include <string.h>

/* What to loop over: either `counted`, or the other two functions. */
typedef struct request {
    int64_t lower, upper;
    oly_loop_body counted;
    oly_while_condition condition;
    oly_while_body repeated;
    int n_carry; /* the program's */
    void *user;
} request;

static int carries_of(const request *r)
{
    return r->n_carry + (r->condition != NULL);
}

static oly_status check_carry(const oly_type *before, const oly_node *after, int k)
{
    if (oly_type_equal(before, &after->type))
        return OLY_OK;
    bool shapes = before->rank != after->type.rank ||
                  memcmp(before->shape, after->type.shape, sizeof(int64_t) * (size_t)before->rank) != 0;
    const char *remedy = !shapes                                                ? "use oly_astype in the body"
                         : oly_type_size(before) == oly_type_size(&after->type) ? "use oly_reshape in the body"
                                                                                : "begin with one of that shape";
    return oly_fail(shapes ? OLY_SHAPE : OLY_DTYPE,
                    "carry %d enters the loop body as %s and leaves it as %s; a carry must keep its type: %s", k,
                    oly_type_short(before), oly_type_short(&after->type), remedy);
}

/* Inside shard_map: a carry must vary along the same axes in every iteration. */
static oly_status check_varying(oly_graph *g, const oly_type *before, int k, oly_node **after)
{
    if ((*after)->type.varying & ~before->varying)
        return oly_fail(
            OLY_SHARDING,
            "carry %d enters the loop body as %s and leaves it as %s: it varies along more axes than before; "
            "begin with oly_pvary of the value",
            k, oly_type_short(before), oly_type_short(&(*after)->type));
    return before->varying ? oly_build_vary(g, *after, before->mesh, before->varying, after) : OLY_OK;
}

/* Records the condition for these carries into the open trace. */
static oly_status record_condition(const request *r, oly_trace *t, const oly_array *carry, oly_node **node)
{
    unsigned before = oly_raised_count();
    oly_array condition = r->condition(carry, r->user);
    OLY_TRY(oly_check_traced(before, "the condition of a loop"));
    if (!condition)
        return oly_fail(OLY_INVALID, "the condition of a loop returned NULL; it must return one bool");
    OLY_TRY(oly_trace_node(t, condition, node));
    if ((*node)->type.dtype != OLY_BOOL || (*node)->type.rank)
        return oly_fail((*node)->type.rank ? OLY_SHAPE : OLY_DTYPE,
                        "the condition of a loop is %s; it must be bool[]: compare, and reduce with oly_any or oly_all",
                        oly_type_short(&(*node)->type));
    return OLY_OK;
}

static oly_status record_body(const request *r, oly_trace *t, oly_node *const *init)
{
    oly_array *carry, counter;
    oly_node *node;
    OLY_ARENA_LIST(&t->graph->arena, carry, carries_of(r));
    oly_type i32 = {.dtype = OLY_INT32};
    OLY_TRY(oly_graph_input(t->graph, &i32, &node));
    if (!(counter = oly_array_traced(t->graph, node)))
        return OLY_MEMORY;
    for (int k = 0; k < carries_of(r); k++) {
        OLY_TRY(oly_graph_input(t->graph, &init[k]->type, &node));
        if (!(carry[k] = oly_array_traced(t->graph, node)))
            return OLY_MEMORY;
    }
    t->first_capture = 1 + carries_of(r);
    unsigned before = oly_raised_count();
    if (r->condition)
        r->repeated(carry, r->user);
    else
        r->counted(counter, carry, r->user);
    OLY_TRY(oly_check_traced(before, "the loop body"));
    for (int k = 0; k < r->n_carry; k++) {
        if (!carry[k])
            return oly_fail(OLY_INVALID, "the loop body left carry %d without a value", k);
        OLY_TRY(oly_trace_node(t, carry[k], &node));
        OLY_TRY(check_carry(&init[k]->type, node, k));
        OLY_TRY(check_varying(t->graph, &init[k]->type, k, &node));
        OLY_TRY(oly_graph_output(t->graph, node));
    }
    if (!r->condition)
        return OLY_OK;
    OLY_TRY(record_condition(r, t, carry, &node));
    return oly_graph_output(t->graph, node);
}

/* Lists the carries that stay carries, and returns how many they are, and then those that become captures. If the body changes none,
 * the first stays: a loop has a carry. */
static int order_carries(const request *r, const oly_graph *body, int *order)
{
    int all = carries_of(r), n = 0, n_last = 0;
    for (int k = 0; k < all; k++) {
        bool changes = k == r->n_carry || body->outputs[k] != body->inputs[1 + k];
        if (changes || !oly_enabled(OLY_OPTIMISATION_PASSED_CARRIES))
            order[n++] = k;
    }
    if (n == 0)
        order[n++] = 0;
    for (int k = 0, at = 0; k < all; k++)
        if (at < n && order[at] == k)
            at++;
        else
            order[n + n_last++] = k;
    return n;
}

/* The first n carries in this order are the body's, the others its first captures, as their nodes are the first, too. */
static oly_status reorder(const request *r, oly_graph *body, int n, const int *order)
{
    oly_node **inputs, **outputs;
    OLY_ARENA_LIST(&body->arena, inputs, carries_of(r));
    OLY_ARENA_LIST(&body->arena, outputs, carries_of(r));
    for (int k = 0; k < carries_of(r); k++) {
        inputs[k] = body->inputs[1 + order[k]];
        outputs[k] = body->outputs[order[k]];
    }
    memcpy(body->inputs + 1, inputs, sizeof *inputs * (size_t)carries_of(r));
    memcpy(body->outputs, outputs, sizeof *outputs * (size_t)n);
    body->n_outputs = n;
    return OLY_OK;
}

/* Adds the loop node and its results to the outer trace. */
static oly_status add_loop(const request *r, oly_trace *outer, oly_trace *t, oly_node **init, oly_array *out)
{
    oly_node **operands, *loop;
    oly_params params;
    int all = carries_of(r), *order;
    OLY_ARENA_LIST(&outer->graph->arena, order, all);
    OLY_ARENA_LIST(&outer->graph->arena, operands, all + t->n_captures);
    int n_carry = order_carries(r, t->graph, order);
    OLY_TRY(reorder(r, t->graph, n_carry, order));
    memset(&params, 0, sizeof params);
    for (int k = 0; k < all; k++)
        operands[k] = init[order[k]];
    for (int k = 0; k < t->n_captures; k++)
        OLY_TRY(oly_trace_node(outer, t->captures[k].array, &operands[all + k]));
    params.body = t->graph;
    params.n_carry = n_carry;
    params.lower = r->lower;
    params.upper = r->upper;
    params.predicate = r->condition ? n_carry : 0;
    OLY_TRY(oly_graph_add(outer->graph, OLY_OP_loop, all + t->n_captures, operands, &params, &loop));
    t->graph = NULL; /* the node owns it now */
    for (int k = 0; k < all; k++) {
        oly_node *result = operands[k];
        oly_params which;
        memset(&which, 0, sizeof which);
        which.dimension = k;
        if (order[k] == r->n_carry)
            continue; /* the condition */
        if (k < n_carry)
            OLY_TRY(oly_graph_add(outer->graph, OLY_OP_result, 1, &loop, &which, &result));
        if (!(out[order[k]] = oly_array_traced(outer->graph, result)))
            return OLY_MEMORY;
    }
    return OLY_OK;
}

static oly_status record(const void *request_, oly_trace *outer, const oly_array *in, oly_array *out)
{
    const request *r = request_;
    oly_node **init;
    oly_trace t;
    oly_site site = oly_current_site();
    OLY_ARENA_LIST(&outer->graph->arena, init, carries_of(r));
    for (int k = 0; k < r->n_carry; k++)
        OLY_TRY(oly_trace_node(outer, in[k], &init[k]));
    if (r->condition)
        OLY_TRY(record_condition(r, outer, in, &init[r->n_carry]));
    OLY_TRY(oly_trace_open(&t, "loop body"));
    oly_status st = record_body(r, &t, init);
    oly_trace_close(&t);
    oly_restore_site(site);
    if (st == OLY_OK)
        st = add_loop(r, outer, &t, init, out);
    oly_graph_free(t.graph);
    oly_trace_release(&t);
    return st;
}

static oly_status run(const request *r, oly_array *carry)
{
    oly_array *out = oly_calloc((size_t)r->n_carry, sizeof *out);
    oly_status st = out ? oly_record_or_run(record, r, "loop", r->n_carry, carry, r->n_carry, out)
                        : oly_out_of_memory(sizeof *out * (size_t)r->n_carry, "a loop");
    if (st == OLY_OK)
        memcpy(carry, out, sizeof *out * (size_t)r->n_carry);
    oly_release(out);
    return st;
}

static oly_status check_count(const request *r)
{
    if (r->n_carry >= 1 && (r->counted || (r->condition && r->repeated)))
        return OLY_OK;
    return oly_fail(OLY_INVALID,
                    "a loop needs a body (a while loop: and a condition) and one or more carries; %d were given",
                    r->n_carry);
}

static bool any_missing(const request *r, const oly_array *carry)
{
    for (int k = 0; k < r->n_carry; k++)
        if (!carry[k])
            return true;
    return false;
}

oly_status(oly_fori)(int64_t lower, int64_t upper, oly_loop_body body, int n_carry, oly_array *carry, void *user)
{
    OLY_ENTER(OLY_STATE);
    OLY_TRY(oly_clear_list_after(oly_need_arrays(n_carry, carry), n_carry, carry));
    request r = {.lower = lower, .upper = upper, .counted = body, .n_carry = n_carry, .user = user};
    oly_status st = check_count(&r);
    if (st == OLY_OK && any_missing(&r, carry))
        return oly_clear_list_after(oly_null_handle(), n_carry, carry);
    if (st == OLY_OK && (lower < INT32_MIN || upper > INT32_MAX))
        st = oly_fail(OLY_OVERFLOW, "the bounds %lld and %lld do not fit the int32 counter", (long long)lower,
                      (long long)upper);
    if (st == OLY_OK && upper > lower)
        st = run(&r, carry);
    return oly_clear_list_after(oly_raise(st), n_carry, carry);
}

oly_status(oly_while)(oly_while_condition condition, oly_while_body body, int n_carry, oly_array *carry, void *user)
{
    OLY_ENTER(OLY_STATE);
    OLY_TRY(oly_clear_list_after(oly_need_arrays(n_carry, carry), n_carry, carry));
    request r = {.condition = condition, .repeated = body, .n_carry = n_carry, .user = user};
    oly_status st = check_count(&r);
    if (st == OLY_OK && any_missing(&r, carry))
        return oly_clear_list_after(oly_null_handle(), n_carry, carry);
    return oly_clear_list_after(oly_raise(st == OLY_OK ? run(&r, carry) : st), n_carry, carry);
}
