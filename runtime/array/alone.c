/* SPDX-License-Identifier: BSD-3-Clause */
/* See alone.h. */
#include "array/alone.h"
#include "array/compiled.h"

static oly_status record_alone(oly_recording *record, const void *request, oly_trace *t, int n_in, const oly_array *in,
                               int n_out)
{
    oly_array *inner, *out;
    OLY_ARENA_LIST(&t->graph->arena, inner, n_in);
    OLY_ARENA_LIST(&t->graph->arena, out, n_out);
    for (int k = 0; k < n_in; k++) {
        oly_node *node;
        OLY_TRY(oly_array_readable(in[k]));
        OLY_TRY(oly_sums_input(t->graph, in[k], &node));
        if (!(inner[k] = oly_array_traced(t->graph, node)))
            return OLY_MEMORY;
    }
    t->first_capture = n_in;
    OLY_TRY(record(request, t, inner, out));
    for (int k = 0; k < n_out; k++) {
        oly_node *node;
        OLY_TRY(oly_trace_node(t, out[k], &node));
        OLY_TRY(oly_trace_output(t, node));
    }
    return OLY_OK;
}

static oly_status compile_alone(oly_recording *record, const void *request, const char *name, int n_in,
                                const oly_array *in, int n_out, oly_compiled **c)
{
    oly_trace t;
    OLY_TRY(oly_trace_open(&t, name));
    oly_status st = record_alone(record, request, &t, n_in, in, n_out);
    oly_trace_close(&t);
    if (st != OLY_OK)
        oly_graph_free(t.graph);
    else
        st = oly_compile(&t, n_in, in, NULL, c);
    oly_trace_release(&t);
    return st;
}

static oly_status run_alone(oly_recording *record, const void *request, const char *name, int n_in, const oly_array *in,
                            int n_out, oly_array *out)
{
    oly_compiled *c;
    OLY_TRY(compile_alone(record, request, name, n_in, in, n_out, &c));
    oly_status st = oly_compiled_run(c, n_in, in, NULL, n_out, out);
    oly_compiled_free(c);
    return st;
}

static oly_status run_known(oly_compiled_cache *cache, oly_key *key, oly_recording *record, const void *request,
                            const char *name, int n_in, const oly_array *in, int n_out, oly_array *out)
{
    for (int k = 0; k < n_in; k++) {
        OLY_TRY(oly_array_readable(in[k]));
        oly_key_add_array(key, in[k]);
    }
    oly_compiled *c = oly_cache_find(cache, key);
    if (!c) {
        OLY_TRY(compile_alone(record, request, name, n_in, in, n_out, &c));
        OLY_TRY(oly_cache_add(cache, key, c));
    }
    return oly_compiled_run(c, n_in, in, NULL, n_out, out);
}

oly_status oly_run_known(oly_compiled_cache *cache, oly_key *key, oly_recording *record, const void *request,
                         const char *name, int n_in, const oly_array *in, int n_out, oly_array *out)
{
    oly_turn turn;
    OLY_TRY(oly_turn_begin(&turn));
    oly_status st = run_known(cache, key, record, request, name, n_in, in, n_out, out);
    oly_turn_end(&turn);
    return st;
}

oly_status oly_record_or_run(oly_recording *record, const void *request, const char *name, int n_in,
                             const oly_array *in, int n_out, oly_array *out)
{
    oly_trace *t = oly_trace_current();
    oly_turn turn;
    if (t)
        return record(request, t, in, out);
    OLY_TRY(oly_turn_begin(&turn));
    oly_status st = run_alone(record, request, name, n_in, in, n_out, out);
    oly_turn_end(&turn);
    return st;
}
