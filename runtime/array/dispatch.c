/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations into the open trace, or through the plan cache, by the same composition. See dispatch.h. */
#include "array/dispatch.h"
#include "array/arguments.h"
#include "array/manual.h"
#include "array/compiled.h"
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
    memset(&params, 0, sizeof params);
    params.weak = x->kind != 'b';
    params.dtype = x->kind == 'b'   ? OLY_BOOL
                   : x->kind == 'i' ? oly_default_int()
                   : x->kind == 'f' ? oly_default_float()
                                    : oly_default_complex();
    params.imaginary = x->kind == 'c' ? x->imaginary : 0;
    if (x->kind == 'f' || x->kind == 'c')
        params.value.f = x->floating;
    else
        params.value.i = x->integer;
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

static oly_status signature(oly_key *k, oly_compose *compose, int n_in, const oly_operand *in, const oly_recipe *recipe)
{
    oly_key_add(k, &compose, sizeof(compose));
    oly_key_add(k, recipe, sizeof *recipe);
    for (int i = 0; i < n_in; i++) {
        oly_key_add(k, &in[i].kind, 1);
        if (in[i].kind == 'a') {
            OLY_TRY(oly_array_readable(in[i].array));
            oly_key_add_array(k, in[i].array);
        } else {
            oly_key_add(k, &in[i].integer, sizeof in[i].integer);
            oly_key_add(k, &in[i].floating, sizeof in[i].floating);
            oly_key_add(k, &in[i].imaginary, sizeof in[i].imaginary);
        }
    }
    return OLY_OK;
}

static oly_status compile_call(oly_compose *compose, int n_in, const oly_operand *in, const oly_recipe *recipe,
                               int n_arrays, const oly_array *arrays, oly_compiled **compiled)
{
    oly_trace t;
    oly_node *nodes[64], *out;
    OLY_TRY(oly_trace_open(&t, oly_current_site().call));
    oly_graph *g = t.graph;
    oly_status st = OLY_OK;
    for (int k = 0; k < n_in && st == OLY_OK; k++)
        st = in[k].kind == 'a' ? oly_sums_input(g, in[k].array, &nodes[k]) : oly_number_node(g, &in[k], &nodes[k]);
    if (st == OLY_OK)
        st = compose(g, n_in, nodes, recipe, &out);
    if (st == OLY_OK)
        st = oly_trace_output(&t, out);
    oly_trace_close(&t);
    if (st != OLY_OK)
        oly_graph_free(g);
    else
        st = oly_compile(&t, n_arrays, arrays, NULL, compiled);
    oly_trace_release(&t);
    return st;
}

static oly_status run_eagerly(oly_key *key, oly_compose *compose, int n_in, const oly_operand *in,
                              const oly_recipe *recipe, oly_array *result)
{
    oly_array arrays[64];
    int n = 0;
    if (n_in > 64)
        return oly_fail(OLY_INVALID, "an operation takes at most 64 operands, not %d", n_in);
    for (int k = 0; k < n_in; k++)
        if (in[k].kind == 'a')
            arrays[n++] = in[k].array;
    OLY_TRY(signature(key, compose, n_in, in, recipe));
    oly_compiled *c = oly_cache_find(&cache, key);
    if (c)
        return oly_compiled_run(c, n, arrays, NULL, 1, result);
    OLY_TRY(compile_call(compose, n_in, in, recipe, n, arrays, &c));
    OLY_TRY(oly_cache_add(&cache, key, c));
    return oly_compiled_run(c, n, arrays, NULL, 1, result);
}

static oly_status eager(oly_compose *compose, int n_in, const oly_operand *in, const oly_recipe *recipe,
                        oly_array *result)
{
    oly_key key;
    oly_turn turn;
    OLY_TRY(oly_turn_begin(&turn));
    oly_key_begin(&key);
    oly_status st = run_eagerly(&key, compose, n_in, in, recipe, result);
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
