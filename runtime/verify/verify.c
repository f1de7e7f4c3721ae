/* SPDX-License-Identifier: BSD-3-Clause */
/* One verification, from the copy of the graph to the comparison. See verify.h. */
#include "graph/call.h"
#include "core/optimisation.h"
#include "verify/program.h"
#include "device/platform.h"
#include <string.h>

enum { SURELY = 64 }; /* a difference of reordered values must persist with disturbances this many times as large */

/* -- making --------------------------------------------------------------------------------------------------------------- */

/* Does it have more than one operation to plan together? */
static bool is_worth_it(const oly_graph *g)
{
    int n = 0;
    for (int k = 0; k < g->n_nodes; k++) {
        oly_graph *const *graphs;
        n += oly_ops[g->nodes[k]->op].lowering != OLY_LOWER_INPUT && !oly_is_constant(g->nodes[k]);
        n += oly_node_graphs(g->nodes[k], &graphs);
    }
    return n > 1;
}

static void *copy(const void *from, size_t bytes)
{
    void *made = oly_calloc(1, bytes + 1);
    if (made && from && bytes)
        memcpy(made, from, bytes);
    return made;
}

/* Do results depend on those of a function with effects, which may not be called twice? */
static bool needs_effects(const oly_graph *g)
{
    bool any = false;
    for (int k = 0; k < g->n_nodes && !any; k++) {
        oly_graph *const *graphs;
        any = g->nodes[k]->params.muted && g->nodes[k]->params.call->effect;
        for (int j = oly_node_graphs(g->nodes[k], &graphs) - 1; j >= 0 && !any; j--)
            any = needs_effects(graphs[j]);
    }
    return any;
}

static oly_status fill(oly_verification *v, const oly_graph *g, const oly_plan_value *inputs,
                       const oly_sharding *wanted)
{
    v->n_inputs = g->n_inputs;
    v->n_outputs = g->n_outputs;
    v->inputs = copy(inputs, sizeof *inputs * (size_t)g->n_inputs);
    v->wanted = copy(wanted, sizeof *wanted * (size_t)g->n_outputs);
    v->in = oly_calloc((size_t)g->n_inputs + 1, sizeof *v->in);
    if (!v->inputs || !v->wanted || !v->in)
        return oly_out_of_memory(sizeof *inputs * (size_t)g->n_inputs, "a verification");
    OLY_TRY(oly_graph_clone(g, &v->graph));
    oly_graph_bypass(v->graph);
    oly_graph_silence(v->graph); /* what the plan has printed, checked and called back does not happen again */
    oly_graph_prune(v->graph);
    return oly_evaluator_new(v->graph, &v->evaluator);
}

oly_status oly_verification_new(const oly_graph *g, const oly_plan_value *inputs, const oly_sharding *wanted,
                                oly_verification **made)
{
    *made = NULL;
    if (!oly_platform_get()->computes || !is_worth_it(g))
        return OLY_OK;
    oly_verification *v = oly_calloc(1, sizeof *v);
    if (!v)
        return oly_out_of_memory(sizeof *v, "a verification");
    oly_status st = fill(v, g, inputs, wanted);
    if (st == OLY_OK && !needs_effects(v->graph))
        *made = v;
    else
        oly_verification_free(v);
    return st;
}

void oly_verification_free(oly_verification *v)
{
    if (!v)
        return;
    for (int k = 0; v->in && k < v->n_inputs; k++)
        oly_held_drop(v->in[k]);
    for (int nodes = 0; nodes < 2; nodes++) {
        if (v->wider[nodes])
            oly_expected_forget(v->wider[nodes], nodes ? v->graph->n_nodes : v->n_outputs);
        oly_release(v->wider[nodes]);
    }
    oly_evaluator_free(v->evaluator);
    oly_graph_free(v->graph);
    oly_release(v->inputs);
    oly_release(v->wanted);
    oly_release(v->in);
    oly_release(v);
}

/* -- what is expected ----------------------------------------------------------------------------------------------------- */

void oly_expected_forget(oly_expected *expected, int n)
{
    for (int k = 0; k < n; k++) {
        oly_held_drop(expected[k].exact);
        for (int j = 0; j < OLY_DISTURBED; j++)
            oly_held_drop(expected[k].disturbed[j]);
        expected[k] = (oly_expected){0};
    }
}

/* which: -1: exact; else the disturbed evaluation. */
static oly_status evaluate(oly_verification *v, bool nodes, int which, double scale, oly_expected *expected)
{
    int n = nodes ? v->graph->n_nodes : v->n_outputs;
    oly_held **out = oly_calloc((size_t)v->n_outputs + (size_t)n + 1, sizeof *out);
    if (!out)
        return oly_out_of_memory(sizeof *out * (size_t)n, "an evaluation");
    oly_held **all = out + v->n_outputs;
    oly_status st = oly_evaluate(
        v->evaluator,
        &(oly_evaluation){
            .in = v->in, .disturbed = (uint64_t)(which + 1), .scale = scale, .out = out, .values = nodes ? all : NULL});
    for (int k = 0; k < n; k++) {
        oly_held **to = which < 0 ? &expected[k].exact : &expected[k].disturbed[which], **from = nodes ? all : out;
        if (from[k] && (which < 0 || expected[k].exact->reordered))
            *to = oly_held_share(from[k]);
    }
    for (int k = 0; k < v->n_outputs + n; k++)
        oly_held_drop(out[k]);
    oly_release(out);
    return st;
}

static bool any_reordered(const oly_expected *expected, int n)
{
    for (int k = 0; k < n; k++)
        if (expected[k].exact && expected[k].exact->reordered)
            return true;
    return false;
}

oly_status oly_expect(oly_verification *v, bool nodes, double scale, oly_expected *expected)
{
    int n = nodes ? v->graph->n_nodes : v->n_outputs;
    OLY_TRY(evaluate(v, nodes, -1, 0, expected));
    for (int j = 0; j < OLY_DISTURBED && any_reordered(expected, n); j++)
        OLY_TRY(evaluate(v, nodes, j, scale, expected));
    return OLY_OK;
}

static oly_status expect_wider(oly_verification *v, bool nodes, int n)
{
    if (v->wider[nodes])
        return OLY_OK;
    v->wider[nodes] = oly_calloc((size_t)n + 1, sizeof *v->wider[nodes]);
    if (!v->wider[nodes])
        return oly_out_of_memory(sizeof *v->wider[nodes] * (size_t)n, "a comparison");
    return oly_expect(v, nodes, SURELY, v->wider[nodes]);
}

oly_status oly_differ(oly_verification *v, bool nodes, int n, oly_held *const *got, const oly_expected *expected,
                      oly_difference *first)
{
    OLY_TRY(oly_compare(v->mesh, n, got, expected, first));
    if (!first->any || !expected[first->which].exact->reordered)
        return OLY_OK;
    OLY_TRY(expect_wider(v, nodes, n));
    return oly_compare(v->mesh, n, got, v->wider[nodes], first);
}

/* -- before and after the run ------------------------------------------------------------------------------ */

oly_status oly_verify_before(oly_verification *v, oly_buffer *const *const *inputs)
{
    oly_queue_drain();
    for (int k = 0; k < v->n_inputs; k++)
        OLY_TRY(oly_held_take(&v->inputs[k], inputs[k], true, &v->in[k]));
    return OLY_OK;
}

/* Does the plan have a loop whose sums are fused multiply-adds? */
static bool has_taps(const oly_block *b)
{
    bool any = false;
    for (int k = 0; b && k < b->n_steps && !any; k++) {
        const oly_step *s = &b->steps[k];
        any = s->kind == OLY_STEP_STENCIL || (s->kind == OLY_STEP_LOOP && has_taps(s->loop.body));
        for (int j = 0; s->kind == OLY_STEP_BRANCH && j < s->branch.n && !any; j++)
            any = has_taps(s->branch.blocks[j]);
    }
    return any && oly_enabled(OLY_OPTIMISATION_STENCIL_TAPS);
}

static bool is_donated(const oly_verification *v, const int *donated, int input)
{
    for (int k = 0; donated && k < v->n_outputs; k++)
        if (donated[k] == input)
            return true;
    return false;
}

static oly_status compare_bytes(const oly_buffer *a, const oly_buffer *b, size_t bytes, bool *same)
{
    void *first, *second;
    OLY_TRY(oly_buffer_map(a, OLY_ACCESS_READ, bytes, &first));
    oly_status st = oly_buffer_map(b, OLY_ACCESS_READ, bytes, &second);
    if (st == OLY_OK) {
        *same = memcmp(first, second, bytes) == 0;
        st = oly_buffer_unmap(b, OLY_ACCESS_READ, bytes, second);
    }
    oly_buffer_unmap(a, OLY_ACCESS_READ, bytes, first);
    return st;
}

/* Checks that inputs that were not donated have not changed. */
static oly_status check_inputs(const oly_verification *v, oly_buffer *const *const *inputs, const int *donated)
{
    for (int k = 0; k < v->n_inputs; k++)
        for (int s = 0; s < v->in[k]->n_shards && !is_donated(v, donated, k); s++) {
            const oly_buffer *was = v->in[k]->shard[s];
            bool same;
            OLY_TRY(compare_bytes(inputs[k][s], was, was->bytes, &same));
            if (!same)
                return oly_fail(OLY_VERIFY, "%s: its plan has overwritten its operand %d, %s, which was not donated",
                                v->graph->name, k, oly_type_short(&v->inputs[k].type));
        }
    return OLY_OK;
}

static oly_status compare_outputs(oly_verification *v, oly_held *const *got)
{
    oly_difference first;
    oly_expected *expected = oly_calloc((size_t)v->n_outputs + 1, sizeof *expected);
    if (!expected)
        return oly_out_of_memory(sizeof *expected * (size_t)v->n_outputs, "a comparison");
    oly_status st = oly_expect(v, false, 1, expected);
    if (st == OLY_OK)
        st = oly_differ(v, false, v->n_outputs, got, expected, &first);
    if (st == OLY_OK && first.any)
        st = oly_blame(v, expected, &first);
    oly_expected_forget(expected, v->n_outputs);
    oly_release(expected);
    return st;
}

oly_status oly_verify_after(oly_verification *v, const oly_plan *plan, oly_buffer *const *const *inputs,
                            const int *donated, oly_buffer *const *const *outputs)
{
    if (plan->n_devices == 0)
        return OLY_OK;
    oly_queue_drain();
    OLY_TRY(oly_run_failure());
    OLY_TRY(check_inputs(v, inputs, donated));
    oly_held **got = oly_calloc((size_t)v->n_outputs + 1, sizeof *got);
    oly_status st = got ? OLY_OK : oly_out_of_memory(sizeof *got * (size_t)v->n_outputs, "a comparison");
    for (int k = 0; k < v->n_outputs && st == OLY_OK; k++)
        st = oly_held_take(&plan->outputs[k], outputs[k], false, &got[k]);
    v->mesh = plan->mesh;
    oly_evaluator_expect(v->evaluator, plan->mesh, has_taps(plan->main));
    if (st == OLY_OK)
        st = compare_outputs(v, got);
    for (int k = 0; got && k < v->n_outputs; k++)
        oly_held_drop(got[k]);
    oly_release(got);
    return st;
}
