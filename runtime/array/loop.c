/* oly_fori: the body is recorded once as a graph of its own, whose inputs are the counter, the carries, and what it uses from
 * outside. */
#include "array/compiled.h"
#include <olympus/transform.h>
#include <string.h>

typedef struct request {
    int64_t lower, upper;
    oly_loop_body body;
    int n_carry;
    void *user;
} request;

static oly_status check_carry(const oly_type *before, const oly_node *after, int k)
{
    if (oly_type_equal(before, &after->type))
        return OLY_OK;
    bool shapes = before->rank != after->type.rank ||
                  memcmp(before->shape, after->type.shape, sizeof(int64_t) * (size_t)before->rank) != 0;
    return oly_fail(
        shapes ? OLY_SHAPE : OLY_DTYPE,
        "carry %d enters the loop body as %s and leaves it as %s; a carry must keep its type: use oly_astype or "
        "oly_reshape in the body",
        k, oly_type_short(before), oly_type_short(&after->type));
}

static oly_status record_body(const request *r, oly_trace *t, oly_node *const *init)
{
    oly_array carry[32], counter;
    oly_node *node;
    oly_type i32 = {.dtype = OLY_INT32};
    OLY_TRY(oly_graph_input(t->graph, &i32, &node));
    if (!(counter = oly_array_traced(t->graph, node)))
        return OLY_MEMORY;
    for (int k = 0; k < r->n_carry; k++) {
        OLY_TRY(oly_graph_input(t->graph, &init[k]->type, &node));
        if (!(carry[k] = oly_array_traced(t->graph, node)))
            return OLY_MEMORY;
    }
    t->first_capture = 1 + r->n_carry;
    r->body(counter, carry, r->user);
    for (int k = 0; k < r->n_carry; k++) {
        if (!carry[k])
            return oly_fail(oly_kept_status() == OLY_OK ? OLY_INVALID : oly_kept_status(),
                            "the loop body left carry %d without a value", k);
        OLY_TRY(oly_trace_node(t, carry[k], &node));
        OLY_TRY(check_carry(&init[k]->type, node, k));
        OLY_TRY(oly_graph_output(t->graph, node));
    }
    return OLY_OK;
}

/* The loop node and its results, in the trace outside. */
static oly_status add_loop(const request *r, oly_trace *outer, oly_trace *t, oly_node **init, oly_array *carry)
{
    oly_node *operands[96], *loop;
    oly_params params;
    memset(&params, 0, sizeof params);
    memcpy(operands, init, sizeof *init * (size_t)r->n_carry);
    for (int k = 0; k < t->n_captures; k++)
        OLY_TRY(oly_trace_node(outer, t->captured[k], &operands[r->n_carry + k]));
    params.body = t->graph;
    params.n_carry = r->n_carry;
    params.lower = r->lower;
    params.upper = r->upper;
    OLY_TRY(oly_graph_add(outer->graph, OLY_OP_loop, r->n_carry + t->n_captures, operands, &params, &loop));
    t->graph = NULL; /* the node's now */
    for (int k = 0; k < r->n_carry; k++) {
        oly_node *result;
        oly_params which;
        memset(&which, 0, sizeof which);
        which.dimension = k;
        OLY_TRY(oly_graph_add(outer->graph, OLY_OP_result, 1, &loop, &which, &result));
        if (!(carry[k] = oly_array_traced(outer->graph, result)))
            return OLY_MEMORY;
    }
    return OLY_OK;
}

static oly_status loop_in_trace(const request *r, oly_trace *outer, oly_array *carry)
{
    oly_node *init[32];
    oly_trace t;
    oly_site site = oly_current_site();
    for (int k = 0; k < r->n_carry; k++)
        OLY_TRY(oly_trace_node(outer, carry[k], &init[k]));
    oly_graph *g = oly_graph_new("loop body");
    if (!g)
        return oly_out_of_memory(sizeof(void *), "a loop");
    oly_trace_open(&t, g);
    oly_status st = record_body(r, &t, init);
    oly_trace_close(&t);
    oly_restore_site(site);
    if (st == OLY_OK)
        st = add_loop(r, outer, &t, init, carry);
    oly_graph_free(t.graph);
    oly_trace_release(&t);
    return st;
}

/* Outside any trace: a function of its own, planned and run once. */
static oly_status loop_alone(const request *r, oly_array *carry)
{
    oly_trace t;
    oly_array inner[32], values[32];
    oly_compiled *c;
    oly_graph *g = oly_graph_new("loop");
    oly_status st = OLY_OK;
    if (!g)
        return oly_out_of_memory(sizeof(void *), "a loop");
    for (int k = 0; k < r->n_carry && st == OLY_OK; k++)
        st = oly_array_readable(carry[k]);
    oly_trace_open(&t, g);
    for (int k = 0; k < r->n_carry && st == OLY_OK; k++) {
        oly_node *node;
        st = oly_graph_input(g, &carry[k]->type, &node);
        if (st == OLY_OK && !(inner[k] = oly_array_traced(g, node)))
            st = OLY_MEMORY;
        t.first_capture++;
    }
    if (st == OLY_OK)
        st = loop_in_trace(r, &t, inner);
    for (int k = 0; k < r->n_carry && st == OLY_OK; k++)
        st = oly_graph_output(g, inner[k]->node);
    oly_trace_close(&t);
    if (st != OLY_OK)
        oly_graph_free(g);
    else if ((st = oly_compile(&t, r->n_carry, carry, NULL, &c)) == OLY_OK) {
        st = oly_compiled_run(c, r->n_carry, carry, NULL, r->n_carry, values);
        oly_compiled_free(c);
    }
    oly_trace_release(&t);
    for (int k = 0; k < r->n_carry && st == OLY_OK; k++)
        carry[k] = values[k];
    return st;
}

oly_status(oly_fori)(int64_t lower, int64_t upper, oly_loop_body body, int n_carry, oly_array *carry, void *user)
{
    oly_enter(__func__);
    request r = {lower, upper, body, n_carry, user};
    oly_status st = OLY_OK;
    if (n_carry < 1 || n_carry > 32 || !body)
        st = oly_fail(OLY_INVALID, "a loop needs a body and 1 to 32 carries; %d were given", n_carry);
    for (int k = 0; k < n_carry && st == OLY_OK; k++)
        if (!carry[k])
            return oly_null_handle();
    if (st == OLY_OK && (lower < INT32_MIN || upper > INT32_MAX))
        st = oly_fail(OLY_OVERFLOW, "the bounds %lld and %lld do not fit the int32 counter", (long long)lower,
                      (long long)upper);
    if (st == OLY_OK && upper > lower)
        st = oly_trace_current() ? loop_in_trace(&r, oly_trace_current(), carry) : loop_alone(&r, carry);
    return oly_raise(st);
}
