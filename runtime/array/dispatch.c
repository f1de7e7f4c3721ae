/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations into the open trace, or through the plan cache, by the same composition. See dispatch.h. */
#include "array/dispatch.h"
#include "array/arguments.h"
#include "array/manual.h"
#include "array/compiled.h"
#include "core/optimisation.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static oly_compiled_cache cache; /* of eager calls; the program's main thread issues them */

void oly_dispatch_reset(void)
{
    oly_cache_free(&cache);
}

oly_status oly_number_node(oly_graph *g, const oly_operand *x, oly_node **node)
{
    oly_params params;
    oly_number_params(x, &params);
    return oly_graph_add(g, OLY_OP_constant, 0, NULL, &params, node);
}

static oly_status operand_node(oly_trace *t, const oly_operand *x, oly_node **node)
{
    return x->kind == 'a' ? oly_trace_node(t, x->array, node) : oly_number_node(t->graph, x, node);
}

static oly_status into_trace(oly_trace *t, oly_compose *compose, int n_in, const oly_operand *in,
                             const oly_recipe *recipe, oly_array *result)
{
    oly_node *nodes[64], *out;
    if (n_in > 64)
        return oly_fail(OLY_INVALID, "an operation takes at most 64 operands, not %d", n_in);
    for (int k = 0; k < n_in; k++)
        OLY_TRY(operand_node(t, &in[k], &nodes[k]));
    oly_recipe inside;
    const oly_manual *manual = recipe->params.sharding ? oly_manual_around(t) : NULL;
    if (manual) { /* a sharding over the mesh means the mesh inside the map */
        inside = *recipe;
        recipe = &inside;
        OLY_TRY(oly_manual_sharding(manual, &inside.params.sharding));
    }
    OLY_TRY(compose(t->graph, n_in, nodes, recipe, &out));
    *result = oly_array_traced(t->graph, out);
    return *result ? OLY_OK : OLY_MEMORY;
}

/* Without the values of numbers. */
static oly_status signature(oly_key *k, oly_compose *compose, int n_in, const oly_operand *in, const oly_recipe *recipe)
{
    oly_key_add(k, &compose, sizeof(compose));
    oly_key_add(k, recipe, sizeof *recipe);
    for (int i = 0; i < n_in; i++) {
        oly_key_add(k, &in[i].kind, 1);
        if (in[i].kind == 'a') {
            OLY_TRY(oly_array_readable(in[i].array));
            oly_key_add_array(k, in[i].array);
        }
    }
    return OLY_OK;
}

static void add_fixed(oly_key *k, uint64_t fixed, int n_in, const oly_operand *in)
{
    for (int i = 0; i < n_in; i++)
        if (fixed >> i & 1) {
            oly_key_add(k, &in[i].integer, sizeof in[i].integer);
            oly_key_add(k, &in[i].floating, sizeof in[i].floating);
            oly_key_add(k, &in[i].imaginary, sizeof in[i].imaginary);
        }
}

/* A call: its operands, and those of them that are arrays, which the arrays of numbers follow. */
typedef struct eager_call {
    oly_compose *compose;
    const oly_recipe *recipe;
    int n_in, n_arrays;
    const oly_operand *in;
    oly_array arrays[2 * OLY_MOST_NUMBERS];
} eager_call;

static oly_status compose_call(const eager_call *call, oly_trace *t)
{
    oly_node *nodes[OLY_MOST_NUMBERS], *out;
    oly_graph *g = t->graph;
    bool inputs = oly_enabled(OLY_OPTIMISATION_RUN_TIME_NUMBERS);
    for (int k = 0; k < call->n_in; k++) {
        const oly_operand *x = &call->in[k];
        if (x->kind == 'a') {
            OLY_TRY(oly_sums_input(g, x->array, &nodes[k]));
            continue;
        }
        OLY_TRY(oly_number_node(g, x, &nodes[k]));
        OLY_TRY(oly_number_begin(g, nodes[k], k));
        if (!inputs)
            oly_number_fix(g, nodes[k]);
    }
    OLY_TRY(call->compose(g, call->n_in, nodes, call->recipe, &out));
    return oly_trace_output(t, out);
}

static oly_status plan_call(eager_call *call, oly_trace *t, oly_compiled **compiled)
{
    uint64_t fixed;
    oly_number_operands numbers;
    OLY_TRY(oly_number_operands_list(t->graph, call->in, &numbers, &fixed));
    size_t bytes = sizeof *numbers.each * (size_t)numbers.n;
    oly_number_operand *kept = numbers.n ? oly_malloc(bytes) : NULL;
    oly_status st = kept || !numbers.n ? OLY_OK : oly_out_of_memory(bytes, "the numbers of a call");
    for (int k = 0; k < numbers.n; k++)
        call->arrays[call->n_arrays + k] = numbers.each[k].array;
    if (st == OLY_OK)
        st = oly_compile(t, call->n_arrays + numbers.n, call->arrays, NULL, compiled);
    if (st != OLY_OK) {
        oly_number_operands_release(numbers.n, numbers.each);
        oly_release(kept);
        return st;
    }
    if (kept)
        memcpy(kept, numbers.each, bytes);
    (*compiled)->fixed = fixed;
    (*compiled)->n_numbers = numbers.n;
    (*compiled)->numbers = kept;
    return OLY_OK;
}

static oly_status compile_call(eager_call *call, oly_compiled **compiled)
{
    oly_trace t;
    OLY_TRY(oly_trace_open(&t, oly_current_site().call));
    oly_status st = compose_call(call, &t);
    oly_trace_close(&t);
    if (st == OLY_OK)
        st = plan_call(call, &t, compiled);
    oly_graph_free(t.graph); /* unless it was taken over */
    oly_trace_release(&t);
    return st;
}

/* An entry that says which numbers the signature has, too. */
static oly_status remember_fixed(oly_key *key, const eager_call *call, uint64_t fixed)
{
    oly_compiled *c = oly_calloc(1, sizeof *c);
    if (!c)
        return oly_out_of_memory(sizeof *c, "the plan cache");
    c->fixed = fixed;
    OLY_TRY(oly_cache_add(&cache, key, c));
    add_fixed(key, fixed, call->n_in, call->in);
    return OLY_OK;
}

static oly_status find_or_compile(oly_key *key, eager_call *call, oly_compiled **compiled)
{
    oly_compiled *c = oly_cache_find(&cache, key);
    bool known = c != NULL;
    if (c && c->fixed) {
        add_fixed(key, c->fixed, call->n_in, call->in);
        c = oly_cache_find(&cache, key);
    }
    *compiled = c;
    if (c)
        return OLY_OK;
    OLY_TRY(compile_call(call, compiled));
    oly_status st = known || !(*compiled)->fixed ? OLY_OK : remember_fixed(key, call, (*compiled)->fixed);
    if (st != OLY_OK)
        oly_compiled_free(*compiled);
    return st == OLY_OK ? oly_cache_add(&cache, key, *compiled) : st;
}

static oly_status run_eagerly(oly_key *key, eager_call *call, oly_array *result)
{
    oly_compiled *c;
    if (call->n_in > OLY_MOST_NUMBERS)
        return oly_fail(OLY_INVALID, "an operation takes at most %d operands, not %d", OLY_MOST_NUMBERS, call->n_in);
    for (int k = 0; k < call->n_in; k++)
        if (call->in[k].kind == 'a')
            call->arrays[call->n_arrays++] = call->in[k].array;
    OLY_TRY(signature(key, call->compose, call->n_in, call->in, call->recipe));
    OLY_TRY(find_or_compile(key, call, &c));
    OLY_TRY(oly_number_operands_renew(c->n_numbers, c->numbers, call->in, call->arrays + call->n_arrays));
    return oly_compiled_run(c, call->n_arrays + c->n_numbers, call->arrays, NULL, 1, result);
}

static oly_status eager(oly_compose *compose, int n_in, const oly_operand *in, const oly_recipe *recipe,
                        oly_array *result)
{
    oly_key key;
    oly_turn turn;
    eager_call call;
    call.compose = compose;
    call.recipe = recipe;
    call.n_in = n_in;
    call.n_arrays = 0;
    call.in = in;
    OLY_TRY(oly_turn_begin(&turn));
    oly_key_begin(&key);
    oly_status st = run_eagerly(&key, &call, result);
    oly_key_end(&key);
    oly_turn_end(&turn);
    for (int k = 0; k < n_in && st != OLY_OK; k++)
        if (in[k].kind == 'a')
            oly_call_failed(st, 1, &in[k].array);
    return st;
}

/* Is there a 64-bit operand, or are 64-bit types the default? */
static bool is_wide(int n_in, const oly_operand *in)
{
    bool wide = oly_default_int() != OLY_INT32;
    for (int k = 0; k < n_in; k++) {
        oly_dtype dtype = in[k].kind == 'a' ? in[k].array->type.dtype : OLY_BOOL;
        wide = wide || dtype == OLY_INT64 || dtype == OLY_UINT64 || dtype == OLY_FLOAT64 || dtype == OLY_COMPLEX128;
    }
    return wide;
}

/* A C integer operand must fit the default integer type, as in JAX, or 64 bits beside a 64-bit operand. (Unsigned ones
 * beyond int64_t have arrived as negative numbers.) */
static oly_status check_numbers(int n_in, const oly_operand *in)
{
    for (int k = 0; k < n_in; k++) {
        const oly_operand *x = &in[k];
        bool small = x->integer >= INT32_MIN && x->integer <= INT32_MAX, turned = x->integer < 0 && x->floating > 0;
        if (x->kind != 'i' || (!turned && (small || is_wide(n_in, in))))
            continue;
        char number[32];
        snprintf(number, sizeof number, turned ? "%" PRIu64 : "%" PRId64, x->integer);
        return oly_fail(OLY_OVERFLOW,
                        "the number %s does not fit %s, the type of C integers among operands; give it as a floating "
                        "number, or as an array (oly_full wraps what does not fit)",
                        number, turned ? "int64" : oly_dtype_name(oly_default_int()));
    }
    return OLY_OK;
}

oly_array oly_dispatch(oly_compose *compose, int n_in, const oly_operand *in, const oly_recipe *recipe)
{
    oly_array result = NULL;
    for (int k = 0; k < n_in; k++)
        if (oly_need_operand(&in[k]) != OLY_OK)
            return NULL;
    if (oly_need_or_null(recipe->params.sharding, OLY_HANDLE_SHARDING) != OLY_OK)
        return NULL;
    oly_trace *t = oly_trace_current();
    if (!recipe->numbers_wrap && oly_raise(check_numbers(n_in, in)) != OLY_OK)
        return NULL;
    oly_status st = t ? into_trace(t, compose, n_in, in, recipe, &result) : eager(compose, n_in, in, recipe, &result);
    if (st != OLY_OK) {
        oly_raise(st);
        return NULL;
    }
    return result;
}
