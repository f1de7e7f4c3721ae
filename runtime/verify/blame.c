/* SPDX-License-Identifier: BSD-3-Clause */
/* The cause of a difference: the first operation whose value differs, and the optimisation without which nothing does.
 * Both are found by planning the program again: with the values of operations as further results, and with one
 * optimisation disabled after the other. All processes do the same. */
#include "core/optimisation.h"
#include "verify/program.h"
#include <inttypes.h>
#include <math.h>

enum {
    MOST_TOGETHER = 4096, /* operations whose values can be results of one plan */
    MOST_ALONE = 64       /* that are tried one by one if together they are right */
};

/* -- the program with other results ---------------------------------------------------------------------------------------- */

/* Nodes that become results after the program's own. */
typedef struct extra {
    int n;
    const int *node;
} extra;

static oly_status add_outputs(oly_graph *g, const extra *more)
{
    for (int k = 0; k < more->n; k++)
        OLY_TRY(oly_graph_output(g, g->nodes[more->node[k]]));
    return OLY_OK;
}

static oly_status plan_with(oly_verification *v, const extra *more, const oly_sharding *wanted, oly_program **program)
{
    oly_graph *g;
    oly_plan *plan;
    OLY_TRY(oly_graph_clone(v->graph, &g));
    oly_status st = add_outputs(g, more);
    if (st != OLY_OK) {
        oly_graph_free(g);
        return st;
    }
    OLY_TRY(oly_plan_make(&(oly_plan_request){g, v->inputs, wanted}, &plan));
    return oly_program_new(plan, program);
}

/* out: the program's results, then those of the nodes. */
static oly_status run_with(oly_verification *v, const extra *more, oly_held **out)
{
    int n = v->n_outputs + more->n;
    oly_program *p;
    oly_sharding *wanted = oly_calloc((size_t)n + 1, sizeof *wanted);
    oly_status st = wanted ? OLY_OK : oly_out_of_memory(sizeof *wanted * (size_t)n, "a plan");
    for (int k = 0; k < n && st == OLY_OK; k++)
        if (k < v->n_outputs)
            wanted[k] = v->wanted[k];
        else
            st = oly_reduced_sharding(&v->graph->nodes[more->node[k - v->n_outputs]]->type, &wanted[k]);
    if (st == OLY_OK)
        st = plan_with(v, more, wanted, &p);
    oly_release(wanted);
    if (st != OLY_OK)
        return st;
    st = oly_held_run(p, v->in, out);
    oly_program_free(p);
    return st;
}

/* -- which operation -------------------------------------------------------------------------------------------------------- */

static bool has_value(const oly_node *n)
{
    return oly_ops[n->op].lowering != OLY_LOWER_INPUT && !oly_is_constant(n) && oly_graph_results(n) < 0;
}

/* The first of these operations that differs when they are results; -1: none. values, expected: of all nodes. */
static oly_status first_of(oly_verification *v, const extra *some, const oly_expected *expected, int *found,
                           oly_difference *difference)
{
    int n = v->n_outputs + some->n, n_nodes = v->graph->n_nodes;
    oly_held **out = oly_calloc((size_t)(n + n_nodes) + 1, sizeof *out);
    if (!out)
        return oly_out_of_memory(sizeof *out * (size_t)n, "a comparison");
    oly_held **values = out + n;
    oly_status st = run_with(v, some, out);
    for (int k = 0; k < some->n && st == OLY_OK; k++)
        values[some->node[k]] = out[v->n_outputs + k];
    if (st == OLY_OK)
        st = oly_differ(v, true, n_nodes, values, expected, difference);
    *found = st == OLY_OK && difference->any ? difference->which : -1;
    for (int k = 0; k < n; k++)
        oly_held_drop(out[k]);
    oly_release(out);
    return st;
}

static oly_status search(oly_verification *v, int n, const int *nodes, const oly_expected *expected, int *found,
                         oly_difference *difference)
{
    OLY_TRY(first_of(v, &(extra){n, nodes}, expected, found, difference));
    for (int k = 0; k < n && k < MOST_ALONE && *found < 0; k++) /* planned with fewer results, it may differ */
        OLY_TRY(first_of(v, &(extra){1, &nodes[k]}, expected, found, difference));
    return OLY_OK;
}

/* found: -1: none. */
static oly_status find_node(oly_verification *v, int *found, oly_difference *difference)
{
    int n = 0, n_nodes = v->graph->n_nodes;
    *found = -1;
    if (n_nodes > MOST_TOGETHER)
        return OLY_OK;
    int *nodes = oly_calloc((size_t)n_nodes + 1, sizeof *nodes);
    oly_expected *expected = oly_calloc((size_t)n_nodes + 1, sizeof *expected);
    for (int k = 0; nodes && k < n_nodes; k++)
        if (has_value(v->graph->nodes[k]))
            nodes[n++] = k;
    oly_status st = nodes && expected ? OLY_OK : oly_out_of_memory(sizeof *expected * (size_t)n_nodes, "a comparison");
    if (st == OLY_OK)
        st = oly_expect(v, true, 1, expected);
    if (st == OLY_OK)
        st = search(v, n, nodes, expected, found, difference);
    if (expected)
        oly_expected_forget(expected, n_nodes);
    oly_release(expected);
    oly_release(nodes);
    return st;
}

/* -- which optimisation ---------------------------------------------------------------------------------------------------- */

static oly_status is_right_without(oly_verification *v, oly_optimisations off, const oly_expected *expected,
                                   bool *right)
{
    oly_difference difference = {.any = true};
    oly_held **out = oly_calloc((size_t)v->n_outputs + 1, sizeof *out);
    if (!out)
        return oly_out_of_memory(sizeof *out * (size_t)v->n_outputs, "a comparison");
    oly_optimisations before = oly_disable(off);
    oly_status st = run_with(v, &(extra){0}, out);
    oly_disable(before);
    if (st == OLY_OK)
        st = oly_differ(v, false, v->n_outputs, out, expected, &difference);
    *right = st == OLY_OK && !difference.any;
    for (int k = 0; k < v->n_outputs; k++)
        oly_held_drop(out[k]);
    oly_release(out);
    return st;
}

static oly_status find_remedy(oly_verification *v, const oly_expected *expected, oly_text *t)
{
    bool right;
    int n = 0;
    for (int x = 0; x < OLY_N_OPTIMISATIONS; x++) {
        OLY_TRY(is_right_without(v, (oly_optimisations)1 << x, expected, &right));
        if (right)
            oly_text_add(t, "%s%s", n++ ? " or OLYMPUS_DISABLE=" : "; it agrees with OLYMPUS_DISABLE=",
                         oly_optimisation_name((oly_optimisation)x));
    }
    if (n > 0)
        return OLY_OK;
    OLY_TRY(is_right_without(v, OLY_ALL_OPTIMISATIONS, expected, &right));
    oly_text_add(t, right ? "; it agrees with OLYMPUS_DISABLE=all, with no optimisation off alone"
                          : "; it differs with OLYMPUS_DISABLE=all, too");
    return OLY_OK;
}

/* -- the message ------------------------------------------------------------------------------------------- */

static void add_number(oly_text *t, oly_dtype dtype, const double *x)
{
    if (dtype == OLY_BOOL)
        oly_text_add(t, "%s", x[0] != 0 ? "true" : "false");
    else
        oly_text_add(t, "%.*g", oly_dtype_size(oly_dtype_real(dtype)) > 4 ? 17 : 9, x[0]);
    if (oly_dtype_kind(dtype) == OLY_KIND_COMPLEX)
        oly_text_add(t, "%+.17gi", x[1]);
}

static void add_difference(oly_text *t, const oly_type *type, const oly_difference *d)
{
    int64_t at[OLY_MAX_RANK], i = d->element;
    for (int k = type->rank - 1; k >= 0; k--) {
        at[k] = i % type->shape[k];
        i /= type->shape[k];
    }
    oly_text_add(t, "element [");
    for (int k = 0; k < type->rank; k++)
        oly_text_add(t, "%s%" PRId64, k ? ", " : "", at[k]);
    oly_text_add(t, "] on device %d is ", d->device);
    add_number(t, type->dtype, d->got);
    oly_text_add(t, " and should be ");
    add_number(t, type->dtype, d->expected);
    if (d->allowed > 0)
        oly_text_add(t, " (roundings may change it by %.3g)", d->allowed);
}

static oly_status describe(oly_verification *v, const oly_expected *expected, const oly_difference *found, oly_text *t)
{
    oly_difference inside;
    int node;
    add_difference(t, &v->graph->outputs[found->which]->type, found);
    OLY_TRY(find_node(v, &node, &inside));
    if (node < 0)
        oly_text_add(t, "; every operation agrees when its value is a result");
    else {
        const oly_node *n = v->graph->nodes[node];
        bool loop = oly_ops[n->op].lowering == OLY_LOWER_RESULT;
        oly_text_add(t, "; the first operation that differs is %s (%s:%d), %s, whose ",
                     loop ? oly_ops[n->in[0]->op].name : oly_ops[n->op].name, n->site.file, n->site.line,
                     oly_type_short(&n->type));
        if (loop)
            oly_text_add(t, "carry or result %d: ", n->params.dimension);
        add_difference(t, &n->type, &inside);
    }
    return find_remedy(v, expected, t);
}

oly_status oly_blame(oly_verification *v, const oly_expected *expected, const oly_difference *found)
{
    oly_text t = {0};
    oly_site here = oly_current_site();
    oly_status st = describe(v, expected, found, &t);
    oly_restore_site(here);
    if (st == OLY_OK)
        st = oly_fail(OLY_VERIFY, "result %d of %s differs from its operations evaluated one by one: %s", found->which,
                      v->graph->name, oly_text_chars(&t));
    oly_text_free(&t);
    return st;
}
