/* SPDX-License-Identifier: BSD-3-Clause */
/* Compiled calls: planning and running them. See compiled.h. */
#include "array/compiled.h"
#include "array/inside/nans.h"
#include "array/origin.h"
#include "run/call_run.h"
#include "communicator.h"
#include "core/events.h"
#include "core/option.h"
#include "core/text.h"
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static _Atomic(pthread_t) inside; /* 0: nobody */

oly_status oly_turn_begin(oly_turn *turn)
{
    pthread_t self = pthread_self(), other = atomic_load_explicit(&inside, memory_order_relaxed);
    turn->outermost = other == 0;
    if (turn->outermost)
        atomic_store_explicit(&inside, self, memory_order_relaxed);
    else if (other != self)
        return oly_fail(OLY_STATE,
                        "another thread is in a call; one thread of a process calls at a time: let them take turns "
                        "(a mutex around their calls), or call from one thread only");
    return OLY_OK;
}

void oly_turn_end(const oly_turn *turn)
{
    if (turn->outermost)
        atomic_store_explicit(&inside, 0, memory_order_relaxed);
}

void oly_compiled_free(oly_compiled *c)
{
    if (!c)
        return;
    oly_verification_free(c->verification);
    oly_program_free(c->program);
    for (int k = 0; k < c->n_captures; k++)
        oly_array_release(c->captured[k]);
    oly_number_operands_release(c->n_numbers, c->numbers);
    oly_release(c->numbers);
    oly_release(c->cached.key);
    oly_release(c);
}

/* -- planning ------------------------------------------------------------------------------------------------------------- */

/* OLYMPUS_EXPLAIN: "1", "text", "json" or "dot", each optionally followed by ":FILE". */
static bool explain_form(const char *asked, oly_explain_form *form, const char **path)
{
    static const char *const names[] = {"1", "text", "json", "dot"};
    static const oly_explain_form forms[] = {OLY_EXPLAIN_TEXT, OLY_EXPLAIN_TEXT, OLY_EXPLAIN_JSON, OLY_EXPLAIN_DOT};
    for (int k = 0; k < 4; k++) {
        size_t n = strlen(names[k]);
        if (strncmp(asked, names[k], n) == 0 && (asked[n] == 0 || asked[n] == ':')) {
            *form = forms[k];
            *path = asked[n] ? asked + n + 1 : NULL;
            return true;
        }
    }
    return false;
}

static oly_status explain_to(const char *path, oly_explain_form form, const oly_plan *plan)
{
    oly_text t = {0};
    oly_status st = oly_plan_explain(&t, plan, form, false, NULL);
    FILE *file = st != OLY_OK ? NULL : path ? fopen(path, "a") : stderr;
    bool failed = st == OLY_OK && (!file || fputs(oly_text_chars(&t), file) == EOF);
    if (file && path && fclose(file) != 0)
        failed = true;
    oly_text_free(&t);
    return failed ? oly_fail(OLY_IO, "OLYMPUS_EXPLAIN: %s cannot be written: %s", path ? path : "standard error",
                             strerror(errno))
                  : st;
}

static oly_status explain_if_asked(const oly_plan *plan)
{
    const char *asked = oly_option.explain, *path;
    oly_explain_form form;
    if (!*asked || strcmp(asked, "0") == 0 || oly_process_index() != 0)
        return OLY_OK;
    if (!explain_form(asked, &form, &path))
        return oly_fail(OLY_INVALID,
                        "OLYMPUS_EXPLAIN is '%s'; it is 1, text, json or dot, and may name a file: json:plans.json",
                        asked);
    return explain_to(path, form, plan);
}

static oly_compiled *new_compiled(const oly_graph *g, int n_captures)
{
    size_t lists = (size_t)n_captures + (size_t)g->n_inputs + 2 * (size_t)g->n_outputs;
    oly_compiled *c = oly_calloc(1, sizeof *c + sizeof(void *) * lists + sizeof(oly_identity) * (size_t)g->n_inputs);
    if (!c)
        return NULL;
    c->captured = (oly_array *)(c + 1);
    c->shown = (oly_sharding *)(c->captured + n_captures);
    c->inputs = (oly_buffer *const **)(c->shown + g->n_outputs);
    c->outputs = (oly_buffer ***)(c->inputs + g->n_inputs);
    c->known = (oly_identity *)(c->outputs + g->n_outputs);
    return c;
}

oly_status oly_compile(oly_trace *t, int n_in, const oly_array *in, const oly_sharding *outputs,
                       oly_compiled **compiled)
{
    oly_graph *g = t->graph;
    t->graph = NULL;
    oly_compiled *c = new_compiled(g, t->n_captures);
    oly_plan_value *values = oly_calloc((size_t)g->n_inputs + 1, sizeof *values);
    oly_status st = c && values ? OLY_OK : oly_out_of_memory(sizeof *c, "a compiled function");
    for (int k = 0; k < g->n_inputs && st == OLY_OK; k++)
        st = oly_sums_value(k < n_in ? in[k] : t->captures[k - n_in].array, &values[k]);
    if (st == OLY_OK && oly_option.check_nans)
        st = oly_check_nans(g);
    if (st == OLY_OK && oly_option.verify)
        st = oly_verification_new(g, values, outputs, &c->verification);
    if (st != OLY_OK) {
        oly_graph_free(g);
        oly_compiled_free(c);
        oly_release(values);
        return st;
    }
    c->n_captures = t->n_captures;
    for (int k = 0; k < t->n_captures; k++)
        c->captured[k] = t->captures[k].array;
    t->n_captures = 0;
    memcpy(c->shown, t->shown, sizeof *c->shown * (size_t)g->n_outputs);
    oly_plan *plan;
    char name[OLY_EVENT_TEXT];
    snprintf(name, sizeof name, "%s", g->name ? g->name : "");
    oly_event_text(OLY_EVENT_PLANNING, OLY_EVENT_BEGIN, name, g->n_nodes, 0);
    st = oly_plan_make(&(oly_plan_request){g, values, outputs}, &plan);
    oly_event_text(OLY_EVENT_PLANNING, OLY_EVENT_FINISH, name, st == OLY_OK ? plan->n_steps : -1, 0);
    oly_release(values);
    if (st == OLY_OK) {
        for (int k = 0; st == OLY_OK && k < plan->n_outputs; k++)
            if (c->shown[k]) /* as the plan splits them, also over axes that types do not name */
                st = oly_sums_shown(plan->outputs[k].sharding, &c->shown[k]);
        if (st == OLY_OK)
            st = oly_program_new(plan, &c->program);
        else
            oly_plan_free(plan);
        if (st == OLY_OK) /* now that it is known which steps are launched together */
            st = explain_if_asked(plan);
    }
    c->leaves_out = st == OLY_OK && oly_plan_leaves_out(oly_program_plan(c->program));
    if (st != OLY_OK) {
        oly_compiled_free(c);
        return st;
    }
    *compiled = c;
    return OLY_OK;
}

/* The origin of the results, by which processes without a part in them know them. */
static oly_origin origin_of_call(const oly_compiled *c, int n_in, const oly_array *in)
{
    uint64_t fingerprint = oly_program_plan(c->program)->fingerprint;
    oly_origin o = {.call = fingerprint, .lineage = fingerprint};
    for (int k = 0; k < n_in; k++)
        oly_origin_add(&o, in[k]);
    for (int k = 0; k < c->n_captures; k++)
        oly_origin_add(&o, c->captured[k]);
    oly_origin_end(&o);
    oly_values_serve();
    return o;
}

/* -- running --------------------------------------------------------------------------------------------------------------- */

/* The handle of an unreduced result: without the dimension of the terms. */
static oly_array new_sum(const oly_plan_value *v, oly_sharding shown, int n_shards)
{
    oly_type type = v->type;
    memmove(type.shape, type.shape + 1, sizeof *type.shape * (size_t)--type.rank);
    return oly_array_new(&type, shown, v->committed, n_shards);
}

/* A call with effects returns when they have happened, so that they stay in the order of the program. A failed check is the error
 * of the call. */
static oly_status end_effects(int device, uint64_t moment)
{
    if (device < 0)
        return OLY_OK;
    oly_queue_wait(device, moment);
    OLY_TRY(oly_run_refused());
    return oly_effect_failure();
}

static oly_status run(oly_compiled *c, int n_in, const oly_array *in, const int *donated, int n_out, oly_array *out)
{
    const oly_plan *plan = oly_program_plan(c->program);
    int device;
    uint64_t moment;
    oly_identity made;
    oly_origin origin = {0};
    if (c->leaves_out)
        origin = origin_of_call(c, n_in, in);
    for (int k = 0; k < n_in + c->n_captures; k++) {
        oly_array x = k < n_in ? in[k] : c->captured[k - n_in];
        c->inputs[k] = x->shard;
        if (plan->distributed) /* otherwise nobody compares */
            c->known[k] = x->identity;
    }
    for (int k = 0; k < n_out; k++) {
        const oly_plan_value *v = &plan->outputs[k];
        int n_shards = oly_program_output_shards(c->program, k);
        out[k] = c->shown[k] ? new_sum(v, c->shown[k], n_shards)
                             : oly_array_new(&v->type, v->sharding, v->committed, n_shards);
        if (!out[k])
            return OLY_MEMORY;
        c->outputs[k] = out[k]->shard;
    }
    bool effects = plan->graph->has_effects;
    if (effects)
        oly_effect_forget();
    oly_verification *v = c->verification;
    c->verification = NULL;
    oly_status st = v ? oly_verify_before(v, c->inputs) : OLY_OK;
    if (st == OLY_OK)
        st = oly_program_run(c->program, c->inputs, c->known, donated, c->outputs, oly_current_site(), &device, &moment,
                             &made);
    if (effects && st == OLY_OK)
        st = end_effects(device, moment);
    if (v && st == OLY_OK)
        st = oly_verify_after(v, plan, c->inputs, donated, (oly_buffer *const *const *)c->outputs);
    oly_verification_free(v);
    OLY_TRY(st);
    for (int k = 0; k < n_out; k++) {
        out[k]->identity.set = made.set;
        out[k]->identity.number = made.set ? made.number + (uint64_t)k : 0;
        out[k]->device = device;
        out[k]->moment = moment;
    }
    for (int k = 0; k < n_out && c->leaves_out; k++)
        oly_origin_result(&origin, k, &out[k]->identity);
    return OLY_OK;
}

oly_status oly_compiled_run(oly_compiled *c, int n_in, const oly_array *in, const int *donated, int n_out,
                            oly_array *out)
{
    oly_status st = run(c, n_in, in, donated, n_out, out);
    return st == OLY_MEMORY && oly_program_plan(c->program)->distributed ? oly_run_give_up(st) : st;
}

oly_status oly_call_failed(oly_status status, int n, const oly_array *arrays)
{
    const int *positions;
    for (int k = 0; k < n && status == OLY_MEMORY; k++) {
        oly_mesh mesh = arrays[k]->sharding->mesh;
        if (!mesh->everywhere && oly_mesh_local_positions(mesh, &positions) < mesh->n_devices)
            return oly_run_give_up(status);
    }
    return status;
}
