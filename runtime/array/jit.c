/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions: tracing, caching, calling. */
#include "array/function.h"
#include "array/arguments.h"
#include "core/events.h"
#include "graph/build.h"
#include "array/dispatch.h"
#include <string.h>

static void destroy(oly_owned *object)
{
    object->tag = OLY_DEAD_TAG(OLY_HANDLE_FUNCTION);
    oly_function_drop((oly_fn)object);
}

void oly_function_hold(oly_fn f)
{
    f->references++;
}

void oly_function_drop(oly_fn f)
{
    if (!f || --f->references > 0)
        return;
    oly_cache_free(&f->cache);
    oly_release(f->in_shardings);
    oly_release(f->out_shardings);
    oly_function_drop(f->inner);
    oly_release(f->derived);
    oly_bury(f);
}

static oly_status copy_shardings(const oly_sharding *from, int n, oly_sharding **to)
{
    if (!from)
        return OLY_OK;
    *to = oly_malloc(sizeof **to * (size_t)(n + 1));
    if (!*to)
        return oly_out_of_memory(sizeof **to * (size_t)n, "a function");
    memcpy(*to, from, sizeof **to * (size_t)n);
    for (int k = 0; k < n; k++)
        if (from[k])
            OLY_TRY(oly_sharding_check_closed(from[k]));
    return OLY_OK;
}

oly_status oly_function_new(oly_function function, const char *c_name, int n_in, int n_out, oly_jit_options options,
                            oly_fn *fn)
{
    if (!function)
        return oly_fail(OLY_INVALID, "the function is NULL; give one that reads in[] and stores its results in out[]");
    if (n_in < 0 || n_out < 1)
        return oly_fail(OLY_INVALID,
                        "a function takes 0 arrays or more and gives one or more; %d and %d were asked for", n_in,
                        n_out);
    oly_fn f = oly_calloc(1, sizeof *f);
    if (!f)
        return oly_out_of_memory(sizeof *f, "a function");
    f->owned.tag = OLY_TAG(OLY_HANDLE_FUNCTION);
    f->references = 1;
    f->function = function;
    f->options = options;
    f->n_in = n_in;
    f->n_out = n_out;
    strncpy(f->name, options.name ? options.name : c_name ? c_name : "function", sizeof f->name - 1);
    oly_status st = copy_shardings(options.in_shardings, n_in, &f->in_shardings);
    if (st == OLY_OK)
        st = copy_shardings(options.out_shardings, n_out, &f->out_shardings);
    if (st == OLY_OK)
        st = oly_scope_adopt(&f->owned, destroy);
    if (st != OLY_OK) {
        destroy(&f->owned);
        return st;
    }
    *fn = f;
    return OLY_OK;
}

oly_fn oly_jit_with(oly_function function, const char *c_name, int n_in, int n_out, oly_jit_options options)
{
    OLY_ENTER(NULL);
    if (oly_need_shardings(n_in, options.in_shardings) != OLY_OK ||
        oly_need_shardings(n_out, options.out_shardings) != OLY_OK)
        return NULL;
    oly_fn f = NULL;
    oly_raise(oly_function_new(function, c_name, n_in, n_out, options, &f));
    return f;
}

/* -- tracing ---------------------------------------------------------------------------------------------------------------- */

static oly_status check_outputs(oly_fn f, const oly_array *out)
{
    for (int k = 0; k < f->n_out; k++)
        if (!out[k])
            return oly_fail(OLY_INVALID,
                            "the function %s did not store its output %d; it must set all %d entries of out[]", f->name,
                            k, f->n_out);
    return OLY_OK;
}

oly_status oly_function_record(oly_fn f, const oly_array *in, oly_array *out)
{
    if (f->recording)
        return oly_fail(
            OLY_TRACE,
            "the function %s calls itself while it is recorded, which would never end; use oly_fori, oly_while or "
            "oly_scan to repeat work",
            f->name);
    unsigned before = oly_raised_count();
    f->recording = true;
    f->function(in, out, f->options.user);
    f->recording = false;
    OLY_TRY(oly_check_traced(before, f->name));
    return check_outputs(f, out);
}

/* Places an uncommitted input as in_shardings says. */
static oly_status place_input(oly_fn f, int k, const oly_array *in, oly_graph *g, oly_node **node)
{
    oly_sharding s = f->in_shardings ? f->in_shardings[k] : NULL;
    if (!s || in[k]->committed)
        return OLY_OK;
    oly_params params;
    memset(&params, 0, sizeof params);
    params.sharding = s;
    return oly_graph_add(g, OLY_OP_place, 1, (oly_node *[]){*node}, &params, node);
}

static oly_status record(oly_fn f, const oly_array *in, oly_trace *t)
{
    oly_array *inner, *out;
    oly_node **nodes;
    OLY_ARENA_LIST(&t->graph->arena, inner, f->n_in);
    OLY_ARENA_LIST(&t->graph->arena, out, f->n_out);
    OLY_ARENA_LIST(&t->graph->arena, nodes, f->n_in);
    for (int k = 0; k < f->n_in; k++)
        OLY_TRY(oly_sums_input(t->graph, in[k], &nodes[k]));
    t->first_capture = f->n_in;
    for (int k = 0; k < f->n_in; k++) {
        OLY_TRY(place_input(f, k, in, t->graph, &nodes[k]));
        if (!(inner[k] = oly_array_traced(t->graph, nodes[k])))
            return OLY_MEMORY;
    }
    OLY_TRY(oly_function_record(f, inner, out));
    for (int k = 0; k < f->n_out; k++) {
        oly_node *node;
        OLY_TRY(oly_trace_node(t, out[k], &node));
        if (node->type.unreduced && f->out_shardings && f->out_shardings[k])
            OLY_TRY(oly_build_reshard(t->graph, node, f->out_shardings[k], &node));
        OLY_TRY(oly_trace_output(t, node));
    }
    return OLY_OK;
}

static oly_status compile(oly_fn f, const oly_array *in, oly_compiled **compiled)
{
    oly_trace t;
    oly_site site = oly_current_site();
    OLY_TRY(oly_trace_open(&t, f->name));
    oly_event_text(OLY_EVENT_TRACING, OLY_EVENT_BEGIN, f->name, 0, 0);
    oly_status st = record(f, in, &t);
    oly_event_text(OLY_EVENT_TRACING, OLY_EVENT_FINISH, f->name, 0, 0);
    oly_trace_close(&t);
    oly_restore_site(site);
    if (st != OLY_OK)
        oly_graph_free(t.graph);
    else
        st = oly_compile(&t, f->n_in, in, f->out_shardings, compiled);
    oly_trace_release(&t);
    return st;
}

/* -- calling ----------------------------------------------------------------------------------------------------------------- */

static oly_status check_inputs(oly_fn f, int n_in, const oly_array *in)
{
    if (n_in != f->n_in)
        return oly_fail(OLY_INVALID, "%s takes %d arrays, but %d were given", f->name, f->n_in, n_in);
    for (int k = 0; k < n_in; k++) {
        OLY_TRY(oly_array_readable(in[k]));
        oly_sharding want = f->in_shardings ? f->in_shardings[k] : NULL;
        if (!want || !in[k]->committed ||
            oly_sharding_equivalent(want, in[k]->sharding, in[k]->type.rank, in[k]->type.shape))
            continue;
        char have[256], wanted[256];
        oly_sharding_str(in[k]->sharding, have, sizeof have);
        oly_sharding_str(want, wanted, sizeof wanted);
        return oly_fail(
            OLY_SHARDING,
            "the sharding %s given in in_shardings does not match the sharding on the respective argument %d of "
            "%s, %s, which is committed to %s; move it with oly_device_put",
            wanted, k, f->name, oly_type_short(&in[k]->type), have);
    }
    return OLY_OK;
}

static oly_status find_or_compile(oly_fn f, const oly_array *in, const oly_key *key, oly_compiled **compiled)
{
    *compiled = oly_cache_find(&f->cache, key);
    if (*compiled)
        return OLY_OK;
    OLY_TRY(compile(f, in, compiled));
    return oly_cache_add(&f->cache, key, *compiled);
}

static oly_status find(oly_fn f, const oly_array *in, oly_compiled **compiled)
{
    oly_key key;
    oly_key_begin(&key);
    for (int k = 0; k < f->n_in; k++)
        oly_key_add_array(&key, in[k]);
    oly_status st = find_or_compile(f, in, &key, compiled);
    oly_key_end(&key);
    return st;
}

oly_status oly_function_plan(oly_fn f, int n_in, const oly_array *in, const oly_plan **plan)
{
    oly_compiled *c;
    OLY_TRY(check_inputs(f, n_in, in));
    OLY_TRY(find(f, in, &c));
    *plan = oly_program_plan(c->program);
    return OLY_OK;
}

/* A call inside another function records the inner one in place. */
static oly_status call_traced(oly_fn f, int n_in, const oly_array *in, oly_array *out)
{
    if (n_in != f->n_in)
        return oly_fail(OLY_INVALID, "%s takes %d arrays, but %d were given", f->name, f->n_in, n_in);
    OLY_TRY(oly_function_record(f, in, out));
    for (int k = 0; k < f->n_out; k++) /* new handles: an input handed back may be donated below */
        if (!(out[k] = oly_array_share(out[k])))
            return OLY_MEMORY;
    return OLY_OK;
}

static oly_status call(oly_fn f, int n_in, const oly_array *in, const int *donated, oly_array *out)
{
    oly_compiled *c;
    oly_turn turn;
    if (oly_trace_current())
        return call_traced(f, n_in, in, out);
    OLY_TRY(check_inputs(f, n_in, in));
    OLY_TRY(oly_turn_begin(&turn));
    oly_status st = find(f, in, &c);
    if (st == OLY_OK)
        st = oly_compiled_run(c, n_in, in, donated, f->n_out, out);
    oly_turn_end(&turn);
    return oly_call_failed(st, n_in, in);
}

static bool missing(oly_fn f, int n_in, const oly_array *in)
{
    for (int k = 0; k < n_in; k++)
        if (!in[k])
            return true;
    return !f;
}

/* The input that output k replaces because its variable holds it and no earlier output replaces it; -1: none. */
static int donated_to(oly_array held, int n_in, const oly_array *in, int k, const int *donated)
{
    int j = 0;
    while (j < n_in && in[j] != held)
        j++;
    for (int before = 0; j < n_in && before < k; before++)
        if (donated[before] == j)
            j = n_in;
    return j < n_in ? j : -1;
}

/* results, donated: room for n_out. */
static oly_status call_and_assign(oly_fn f, int n_in, const oly_array *in, int n_out, oly_array *const *out,
                                  oly_array *results, int *donated)
{
    for (int k = 0; k < n_out; k++)
        donated[k] = donated_to(*out[k], n_in, in, k, donated);
    OLY_TRY(call(f, n_in, in, donated, results));
    for (int k = 0; k < n_out; k++) {
        if (donated[k] >= 0) {
            (*out[k])->donated = oly_current_site();
            oly_array_take_place(*out[k], results[k]);
        }
        *out[k] = results[k];
    }
    return OLY_OK;
}

static oly_status call_many(oly_fn f, int n_in, const oly_array *in, int n_out, oly_array *const *out)
{
    oly_array *results = oly_calloc((size_t)n_out, sizeof *results);
    int *donated = oly_calloc((size_t)n_out, sizeof *donated);
    oly_status st = results && donated ? call_and_assign(f, n_in, in, n_out, out, results, donated)
                                       : oly_out_of_memory(sizeof *results * (size_t)n_out, "the results of a call");
    oly_release(results);
    oly_release(donated);
    return st;
}

static oly_status call_n(oly_fn f, int n_in, const oly_array *in, int n_out, oly_array *const *out)
{
    enum { FEW = 16 };
    oly_array results[FEW];
    int donated[FEW];
    oly_status st;
    if (missing(f, n_in, in)) {
        for (int k = 0; k < n_out; k++)
            *out[k] = NULL;
        return oly_null_handle();
    }
    if (n_out != f->n_out)
        st = oly_fail(OLY_INVALID, "%s gives %d arrays, but %d were asked for", f->name, f->n_out, n_out);
    else if (n_out <= FEW)
        st = call_and_assign(f, n_in, in, n_out, out, memset(results, 0, sizeof results), donated);
    else
        st = call_many(f, n_in, in, n_out, out);
    for (int k = 0; k < n_out && st != OLY_OK; k++)
        *out[k] = NULL;
    return oly_raise(st);
}

oly_status oly_call_n(oly_fn f, int n_in, const oly_array *in, int n_out, oly_array *const *out)
{
    OLY_ENTER(OLY_STATE);
    OLY_TRY(oly_need_places(n_out, out));
    OLY_TRY(oly_clear_after(oly_need(f, OLY_HANDLE_FUNCTION), n_out, out));
    OLY_TRY(oly_clear_after(oly_need_arrays(n_in, in), n_out, out));
    return call_n(f, n_in, in, n_out, out);
}

oly_status(oly_call_arrays)(oly_fn f, int n_in, const oly_array *in, int n_out, oly_array *out)
{
    OLY_ENTER(OLY_STATE);
    int n = n_out > 0 ? n_out : 0;
    if (n > 0 && !out)
        return oly_raise(oly_fail(OLY_INVALID, "the list of %d results is NULL", n));
    oly_array **each = oly_calloc((size_t)n + 1, sizeof *each);
    if (!each) {
        for (int k = 0; k < n; k++)
            out[k] = NULL;
        return oly_raise(oly_out_of_memory(sizeof *each * (size_t)n, "the results of a call"));
    }
    for (int k = 0; k < n; k++)
        each[k] = &out[k];
    oly_status st = oly_clear_after(oly_need(f, OLY_HANDLE_FUNCTION), n, each);
    if (st == OLY_OK)
        st = oly_clear_after(oly_need_arrays(n_in, in), n, each);
    if (st == OLY_OK)
        st = call_n(f, n_in, in, n_out, each);
    oly_release(each);
    return st;
}

oly_array oly_apply_n(oly_fn f, int n_in, const oly_array *in)
{
    OLY_ENTER(NULL);
    if (oly_need(f, OLY_HANDLE_FUNCTION) != OLY_OK || oly_need_arrays(n_in, in) != OLY_OK)
        return NULL;
    oly_array result = NULL;
    if (missing(f, n_in, in)) {
        oly_null_handle();
        return NULL;
    }
    oly_status st = f->n_out == 1 ? call(f, n_in, in, NULL, &result)
                                  : oly_fail(OLY_INVALID, "%s gives %d arrays; use oly_call", f->name, f->n_out);
    oly_raise(st);
    return st == OLY_OK ? result : NULL;
}
