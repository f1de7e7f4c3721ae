/* SPDX-License-Identifier: BSD-3-Clause */
/* oly_grad and its relatives: functions derived from functions. The inner function is recorded into a graph of its own,
 * so that its arguments are separate values whatever else uses the arrays; derivatives are added to that graph, which
 * then becomes part of the one being recorded. */
#include "array/dispatch.h"
#include "array/arguments.h"
#include "graph/build.h"
#include "array/function.h"
#include "core/scan.h"
#include "transform/gradient.h"
#include <olympus/gradient.h>
#include <limits.h>
#include <string.h>

typedef enum kind { GRADIENT, VALUE_AND_GRADIENT, PULLBACK, PUSHFORWARD, ONCE_MORE } kind;

/* How a function is derived. */
typedef struct derivation {
    kind kind;
    int n;
    int argnum[]; /* distinct: at most as many as the function has arguments */
} derivation;

/* The recorded inner function: its arguments and results, and the further inputs (cotangents, tangents). */
typedef struct recording {
    const derivation *how;
    oly_graph *g;
    int n_in, n_out, n_given;
    oly_node **in, **out, **given;
    oly_node **by; /* the arguments differentiated with respect to */
} recording;

/* -- checks ------------------------------------------------------------------------------------------------ */
static oly_status check_by(const oly_type *x, int number)
{
    if (oly_differentiable(x->dtype))
        return OLY_OK;
    return oly_fail(OLY_DTYPE,
                    "gradients require real- or complex-valued inputs (floating or complex), but value %d, to "
                    "differentiate by, is %s; convert it with oly_astype before",
                    number, oly_type_short(x));
}

static oly_status check_loss(const oly_type *y)
{
    if (y->rank != 0)
        return oly_fail(
            OLY_SHAPE,
            "Gradient only defined for scalar-output functions, and this one gives %s; reduce it to rank 0, "
            "or use oly_vjp",
            oly_type_short(y));
    if (oly_dtype_kind(y->dtype) != OLY_KIND_FLOAT)
        return oly_fail(OLY_DTYPE,
                        "gradients require real-valued outputs (floating), but the function gives %s; use oly_vjp for "
                        "complex results",
                        oly_type_short(y));
    return OLY_OK;
}

static oly_status check_given(const oly_type *value, const oly_type *given, const char *what, const char *of,
                              int number)
{
    if (oly_type_equal(value, given) || !oly_differentiable(value->dtype))
        return OLY_OK;
    return oly_fail(value->dtype != given->dtype ? OLY_DTYPE : OLY_SHAPE,
                    "the %s for %s %d is %s, but the %s is %s; they must have the same type", what, of, number,
                    oly_type_short(given), of, oly_type_short(value));
}

/* -- the derivatives ------------------------------------------------------------------------------------------------- */
static oly_status zeros_where_none(oly_graph *g, int n, oly_node *const *like, oly_node **value)
{
    for (int k = 0; k < n; k++)
        if (!value[k])
            OLY_TRY(oly_zeros_like(g, like[k], &value[k]));
    return OLY_OK;
}

/* The gradient does not inherit the weakness of the number 1 it starts from. */
static oly_status end_weakness(oly_graph *g, const oly_node *by, oly_node **gradient)
{
    oly_params p;
    if (!*gradient || !(*gradient)->type.weak || by->type.weak)
        return OLY_OK;
    memset(&p, 0, sizeof p);
    p.dtype = by->type.dtype;
    return oly_graph_add(g, OLY_OP_convert, 1, gradient, &p, gradient);
}

static oly_status gradient_of(oly_graph *g, oly_node *y, int n, oly_node *const *by, oly_node **gradient)
{
    oly_node *one;
    for (int k = 0; k < n; k++)
        OLY_TRY(check_by(&by[k]->type, k));
    OLY_TRY(check_loss(&y->type));
    OLY_TRY(oly_build_number(g, y->type.dtype, 1, &one));
    OLY_TRY(oly_build_convert(g, one, y->type.dtype, y->type.weak, &one));
    OLY_TRY(oly_gradient(g, 1, &y, &one, n, by, gradient));
    for (int k = 0; k < n; k++)
        OLY_TRY(end_weakness(g, by[k], &gradient[k]));
    return zeros_where_none(g, n, by, gradient);
}

static oly_status pull_back(const recording *c, oly_node **results)
{
    oly_node **cotangent;
    OLY_ARENA_LIST(&c->g->arena, cotangent, c->n_out);
    for (int k = 0; k < c->how->n; k++)
        OLY_TRY(check_by(&c->by[k]->type, c->how->argnum[k]));
    for (int k = 0; k < c->n_out; k++) {
        OLY_TRY(check_given(&c->out[k]->type, &c->given[k]->type, "cotangent", "result", k));
        cotangent[k] = oly_differentiable(c->out[k]->type.dtype) ? c->given[k] : NULL;
        results[k] = c->out[k];
    }
    OLY_TRY(oly_gradient(c->g, c->n_out, c->out, cotangent, c->how->n, c->by, results + c->n_out));
    return zeros_where_none(c->g, c->how->n, c->by, results + c->n_out);
}

static oly_status push_forward(const recording *c, oly_node **results)
{
    for (int k = 0; k < c->how->n; k++) {
        OLY_TRY(check_by(&c->by[k]->type, c->how->argnum[k]));
        OLY_TRY(check_given(&c->by[k]->type, &c->given[k]->type, "tangent", "argument", c->how->argnum[k]));
    }
    memcpy(results, c->out, sizeof *results * (size_t)c->n_out);
    OLY_TRY(oly_pushforward(c->g, c->n_out, c->out, c->how->n, c->by, c->given, results + c->n_out));
    return zeros_where_none(c->g, c->n_out, c->out, results + c->n_out);
}

static oly_status with_gradient(const recording *c, oly_node **results)
{
    int n = 0;
    if (c->how->kind == VALUE_AND_GRADIENT)
        results[n++] = c->out[0];
    OLY_TRY(gradient_of(c->g, c->out[0], c->how->n, c->by, results + n));
    n += c->how->n;
    for (int k = 1; k < c->n_out; k++)
        results[n++] = c->out[k];
    return OLY_OK;
}

/* -- recording ------------------------------------------------------------------------------------------------------- */
static oly_status record_inner(oly_fn f, const oly_array *in, oly_trace *t, recording *c)
{
    oly_arena *arena = &t->graph->arena;
    oly_array *inner, *out;
    OLY_ARENA_LIST(arena, inner, c->n_in);
    OLY_ARENA_LIST(arena, out, c->n_out);
    OLY_ARENA_LIST(arena, c->in, c->n_in);
    OLY_ARENA_LIST(arena, c->out, c->n_out);
    OLY_ARENA_LIST(arena, c->given, f->n_in);
    OLY_ARENA_LIST(arena, c->by, c->how->n);
    for (int k = 0; k < f->n_in; k++) {
        oly_node *node;
        OLY_TRY(oly_graph_input(t->graph, &in[k]->type, &node));
        if (k >= c->n_in)
            c->given[c->n_given++] = node;
        else if ((c->in[k] = node, !(inner[k] = oly_array_traced(t->graph, node))))
            return OLY_MEMORY;
    }
    t->first_capture = f->n_in;
    OLY_TRY(oly_function_record(f->inner, inner, out));
    for (int k = 0; k < c->n_out; k++)
        OLY_TRY(oly_trace_node(t, out[k], &c->out[k]));
    for (int k = 0; k < c->how->n; k++)
        c->by[k] = c->in[c->how->argnum[k]];
    return OLY_OK;
}

static oly_status record_derivative(oly_fn f, const oly_array *in, oly_trace *t)
{
    oly_node **results;
    recording c = {.how = f->derived, .g = t->graph, .n_in = f->inner->n_in, .n_out = f->inner->n_out};
    OLY_ARENA_LIST(&t->graph->arena, results, f->n_out);
    OLY_TRY(record_inner(f, in, t, &c));
    switch (c.how->kind) {
    case PULLBACK: OLY_TRY(pull_back(&c, results)); break;
    case PUSHFORWARD: OLY_TRY(push_forward(&c, results)); break;
    case ONCE_MORE: memcpy(results, c.out, sizeof *results * (size_t)c.n_out); break;
    default: OLY_TRY(with_gradient(&c, results)); break;
    }
    for (int k = 0; k < f->n_out; k++)
        OLY_TRY(oly_graph_output(t->graph, results[k]));
    return OLY_OK;
}

/* A loop of one iteration that captures the arguments: its gradient computes the iteration again. */
static oly_status insert_once_more(oly_graph *g, oly_graph *from, int n, oly_node *const *in, oly_node **out)
{
    oly_node **inside, **operands, *loop;
    oly_type i32 = {.dtype = OLY_INT32};
    oly_params p;
    int n_carry = from->n_outputs;
    OLY_ARENA_LIST(&g->arena, inside, n);
    OLY_ARENA_LIST(&g->arena, operands, n_carry + n);
    oly_graph *body = oly_graph_new(from->name);
    oly_status st = body ? oly_graph_input(body, &i32, &inside[0]) : OLY_MEMORY;
    for (int k = 0; k < n_carry && st == OLY_OK; k++) {
        st = oly_zeros_like(g, from->outputs[k], &operands[k]);
        if (st == OLY_OK)
            st = oly_graph_input(body, &from->outputs[k]->type, &inside[0]);
    }
    for (int k = 0; k < n && st == OLY_OK; k++) {
        operands[n_carry + k] = in[k];
        st = oly_graph_input(body, &in[k]->type, &inside[k]);
    }
    if (st == OLY_OK)
        st = oly_graph_inline(body, from, inside, out);
    for (int k = 0; k < n_carry && st == OLY_OK; k++)
        st = oly_graph_output(body, out[k]);
    memset(&p, 0, sizeof p);
    p.body = body;
    p.n_carry = n_carry;
    p.upper = 1;
    if (st == OLY_OK)
        st = oly_graph_add(g, OLY_OP_loop, n_carry + n, operands, &p, &loop);
    if (st != OLY_OK)
        oly_graph_free(body);
    for (int k = 0; k < n_carry && st == OLY_OK; k++) {
        oly_params which;
        memset(&which, 0, sizeof which);
        which.dimension = k;
        st = oly_graph_add(g, OLY_OP_result, 1, &loop, &which, &out[k]);
    }
    return st;
}

/* Inserts the recorded graph into the outer trace. */
static oly_status insert(oly_fn f, const oly_array *in, oly_trace *outer, oly_trace *t, oly_array *out)
{
    oly_node **nodes, **results;
    OLY_ARENA_LIST(&outer->graph->arena, nodes, f->n_in + t->n_captures);
    OLY_ARENA_LIST(&outer->graph->arena, results, f->n_out);
    for (int k = 0; k < f->n_in; k++)
        OLY_TRY(oly_trace_node(outer, in[k], &nodes[k]));
    for (int k = 0; k < t->n_captures; k++)
        OLY_TRY(oly_trace_node(outer, t->captures[k].array, &nodes[f->n_in + k]));
    const derivation *how = f->derived;
    OLY_TRY(how->kind == ONCE_MORE ? insert_once_more(outer->graph, t->graph, f->n_in + t->n_captures, nodes, results)
                                   : oly_graph_inline(outer->graph, t->graph, nodes, results));
    for (int k = 0; k < f->n_out; k++)
        if (!(out[k] = oly_array_traced(outer->graph, results[k])))
            return OLY_MEMORY;
    return OLY_OK;
}

static oly_status derive(oly_fn f, const oly_array *in, oly_array *out)
{
    oly_trace t, *outer = oly_trace_current();
    oly_site site = oly_current_site();
    OLY_TRY(oly_trace_open(&t, f->name));
    oly_status st = record_derivative(f, in, &t);
    oly_trace_close(&t);
    oly_restore_site(site);
    if (st == OLY_OK)
        st = insert(f, in, outer, &t, out);
    oly_graph_free(t.graph);
    oly_trace_release(&t);
    return st;
}

/* The C function of every derived function. */
static void run(const oly_array *in, oly_array *out, void *user)
{
    oly_raise(derive(user, in, out));
}

/* -- creating derived functions ---------------------------------------------------------------------------- */
/* Reads at most `most` numbers. */
static oly_status read_notation(const char *text, int most, derivation *how)
{
    oly_scanner s = oly_scan_begin(text);
    for (bool more = true; more; more = oly_scan_take(&s, ',')) {
        int64_t number;
        if (!oly_scan_integer(&s, &number) || number < INT_MIN || number > INT_MAX)
            return oly_scan_expected(&s, "the number of an argument (negative: from the end)");
        if (how->n < most)
            how->argnum[how->n++] = (int)number;
    }
    return oly_scan_end(&s) ? OLY_OK : oly_scan_expected(&s, "\",\" or the end");
}

static oly_status read_arguments(oly_fn f, const oly_gradient_options *options, derivation *how)
{
    bool all = how->kind == PULLBACK || how->kind == PUSHFORWARD;
    int most = f->n_in + 1; /* one more than can be valid: the excess is reported as missing or repeated */
    if (how->kind == ONCE_MORE)
        return OLY_OK;
    if (options->argnums)
        OLY_TRY(read_notation(options->argnums, most, how));
    else if (options->argnum_list)
        for (int k = 0; k < options->n_argnum_list && k < most; k++)
            how->argnum[how->n++] = options->argnum_list[k];
    else
        for (int k = 0; k < (all ? f->n_in : 1) && k < f->n_in; k++)
            how->argnum[how->n++] = k;
    for (int k = 0; k < how->n; k++) {
        int number = how->argnum[k] < 0 ? how->argnum[k] + f->n_in : how->argnum[k];
        if (number < 0 || number >= f->n_in)
            return oly_fail(OLY_INVALID, "%s has no argument %d to differentiate by; it takes %d", f->name,
                            how->argnum[k], f->n_in);
        for (int j = 0; j < k; j++)
            if (how->argnum[j] == number)
                return oly_fail(OLY_INVALID, "argument %d of %s is named twice; name each once", number, f->name);
        how->argnum[k] = number;
    }
    return how->n > 0
               ? OLY_OK
               : oly_fail(OLY_INVALID, "no argument of %s is named to differentiate by; name one or more", f->name);
}

static void count(oly_fn f, const derivation *how, int *n_in, int *n_out)
{
    *n_in = f->n_in;
    *n_out = f->n_out + how->n;
    if (how->kind == GRADIENT)
        *n_out -= 1;
    else if (how->kind == PULLBACK)
        *n_in += f->n_out;
    else if (how->kind == PUSHFORWARD) {
        *n_in += how->n;
        *n_out = 2 * f->n_out;
    }
}

static oly_status new_derived(oly_fn f, kind which, const oly_gradient_options *options, oly_fn *made)
{
    derivation *how = oly_calloc(1, sizeof *how + sizeof(int) * ((size_t)f->n_in + 1));
    oly_jit_options as = {.name = options->name ? options->name : f->name};
    int n_in, n_out;
    if (!how)
        return oly_out_of_memory(sizeof *how, "a derived function");
    how->kind = which;
    oly_status st = read_arguments(f, options, how);
    count(f, how, &n_in, &n_out);
    if (st == OLY_OK)
        st = oly_function_new(run, NULL, n_in, n_out, as, made);
    if (st != OLY_OK) {
        oly_release(how);
        return st;
    }
    oly_function_hold(f);
    (*made)->inner = f;
    (*made)->derived = how;
    (*made)->options.user = *made;
    return OLY_OK;
}

static oly_fn derived(oly_fn f, kind which, const oly_gradient_options *options)
{
    oly_fn made = NULL;
    if (!f) {
        oly_null_handle();
        return NULL;
    }
    return oly_raise(new_derived(f, which, options, &made)) == OLY_OK ? made : NULL;
}

oly_fn oly_grad_with(oly_fn f, oly_gradient_options options)
{
    OLY_ENTER(NULL);
    if (oly_need(f, OLY_HANDLE_FUNCTION) != OLY_OK)
        return NULL;
    return derived(f, GRADIENT, &options);
}

oly_fn oly_value_and_grad_with(oly_fn f, oly_gradient_options options)
{
    OLY_ENTER(NULL);
    if (oly_need(f, OLY_HANDLE_FUNCTION) != OLY_OK)
        return NULL;
    return derived(f, VALUE_AND_GRADIENT, &options);
}

oly_fn oly_vjp_with(oly_fn f, oly_gradient_options options)
{
    OLY_ENTER(NULL);
    if (oly_need(f, OLY_HANDLE_FUNCTION) != OLY_OK)
        return NULL;
    return derived(f, PULLBACK, &options);
}

oly_fn oly_jvp_with(oly_fn f, oly_gradient_options options)
{
    OLY_ENTER(NULL);
    if (oly_need(f, OLY_HANDLE_FUNCTION) != OLY_OK)
        return NULL;
    return derived(f, PUSHFORWARD, &options);
}

oly_fn(oly_checkpoint)(oly_fn f)
{
    OLY_ENTER(NULL);
    if (oly_need(f, OLY_HANDLE_FUNCTION) != OLY_OK)
        return NULL;
    return derived(f, ONCE_MORE, &(oly_gradient_options){0});
}

/* -- inside a function ----------------------------------------------------------------------------------------------- */
static oly_status gradients_here(oly_array y, int n, const oly_array *by, oly_array *const *gradient)
{
    oly_trace *t = oly_trace_current();
    oly_node *from, **nodes, **found;
    if (!t)
        return oly_fail(OLY_TRACE,
                        "values keep no record of how they were computed; call this inside a function given to "
                        "oly_jit, or derive a function with oly_grad");
    if (n < 1)
        return oly_fail(OLY_INVALID, "%d values to differentiate by; give one or more", n);
    OLY_ARENA_LIST(&t->graph->arena, nodes, n);
    OLY_ARENA_LIST(&t->graph->arena, found, n);
    OLY_TRY(oly_trace_node(t, y, &from));
    for (int k = 0; k < n; k++)
        OLY_TRY(oly_trace_node(t, by[k], &nodes[k]));
    OLY_TRY(gradient_of(t->graph, from, n, nodes, found));
    for (int k = 0; k < n; k++)
        if (!(*gradient[k] = oly_array_traced(t->graph, found[k])))
            return OLY_MEMORY;
    return OLY_OK;
}

oly_status(oly_gradients_n)(oly_array y, int n_by, const oly_array *by, int n, oly_array *const *gradient)
{
    OLY_ENTER(OLY_STATE);
    oly_status st = OLY_OK;
    OLY_TRY(oly_need_places(n, gradient));
    for (int k = 0; k < n; k++)
        *gradient[k] = NULL;
    OLY_TRY(oly_need_array(y));
    OLY_TRY(oly_need_arrays(n_by, by));
    if (n != n_by)
        st = oly_fail(OLY_INVALID, "%d values to differentiate by, but room for %d gradients", n_by, n);
    if (st == OLY_OK)
        st = gradients_here(y, n, by, gradient);
    return oly_raise(st);
}

static oly_status compose_stop_gradient(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe,
                                        oly_node **out)
{
    oly_params identity;
    (void)n_in, (void)recipe;
    memset(&identity, 0, sizeof identity);
    return oly_graph_add(g, OLY_OP_stop_gradient, 1, in, &identity, out);
}

oly_array(oly_stop_gradient)(oly_operand x)
{
    OLY_ENTER(NULL);
    if (oly_need_operand(&x) != OLY_OK)
        return NULL;
    oly_recipe recipe;
    memset(&recipe, 0, sizeof recipe);
    recipe.op = OLY_OP_stop_gradient;
    return oly_dispatch(compose_stop_gradient, 1, &x, &recipe);
}
