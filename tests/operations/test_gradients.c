/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1,2 devices=8 timeout=300  Every operation's gradient against central differences, in float64, on one
 * device and on sharded operands; tangents and second derivatives by differences of gradients. The table of operations
 * is checked: one without a rule must be in a list here, one with a rule must have a sample. */
#include "check_session.h"
#include "gradient_samples.h"
#include "array/trace.h"
#include "core/option.h"
#include "transform/rule.h"
#include <math.h>

enum { MOST_IN = GRADIENT_MOST_IN, MOST_ELEMENTS = 256 };
typedef gradient_sample sample;

/* Rows without a derivative, and why. */
static const char *const not_differentiable[] = {
    "nextafter", "reduce_window_prod", "call", /* as in JAX */
    "result",                                  /* its loop or branch has the rule */
};

/* -- the function and its numbers ------------------------------------------------------------------------------------ */

/* The sum of all results with different weights, so that all elements have different cotangents. */
static void loss(const oly_array *in, oly_array *out, void *user)
{
    const sample *s = user;
    oly_array y = s->f(in);
    oly_array weights = oly_add(oly_cos(oly_mul(oly_arange(oly_size(y), OLY_FLOAT64), 1.7)), 0.3);
    out[0] = oly_sum(oly_mul(oly_reshape(y, -1), weights));
}

/* The sample itself. */
static void value_of(const oly_array *in, oly_array *out, void *user)
{
    const sample *s = user;
    out[0] = s->f(in);
}

static int64_t elements(const sample *s, int k)
{
    int64_t n = 1;
    for (int d = 0; d < s->in[k].rank; d++)
        n *= s->in[k].shape[d];
    return n;
}

static void fill(const sample *s, int k, double *values)
{
    int64_t n = elements(s, k);
    for (int64_t i = 0; i < n; i++) {
        double t = fmod((double)(i + 1) * 0.6180339887498949 + 0.317 * (k + 1), 1);
        values[i] = s->low + t * (s->high - s->low);
    }
}

/* How operand k is split; 0: not. */
static oly_array put(const sample *s, int k, const double *values, int way)
{
    static const char *const split[2][MOST_IN] = {{"x, y", "y", "x", "y"}, {"y", "None, x", "None", "x"}};
    oly_array x = oly_from_host(values, OLY_FLOAT64, s->in[k].rank, s->in[k].shape);
    if (way == 0 || s->in[k].rank == 0)
        return x;
    return oly_device_put(x, oly_named(gradient_mesh(), s->in[k].rank == 1 ? (k % 2 ? "y" : "x") : split[way - 1][k]));
}

static void get(oly_array x, double *values)
{
    assert_non_null(x);
    assert_int_equal(oly_process_allgather(x, values, sizeof(double) * (size_t)oly_size(x)), OLY_OK);
}

/* -- checks ---------------------------------------------------------------------------------------------------------- */
typedef struct trial {
    const sample *s;
    int way;
    oly_fn loss, gradient, tangent, bent; /* bent: the tangent of the gradient */
    double x[MOST_IN][MOST_ELEMENTS], v[MOST_IN][MOST_ELEMENTS];
} trial;

static double value_at(trial *t, double step, int k, int64_t i)
{
    double value = 0;
    OLY_SCOPE
    {
        oly_array in[MOST_IN];
        t->x[k][i] += step;
        for (int j = 0; j < t->s->n_in; j++)
            in[j] = put(t->s, j, t->x[j], t->way);
        t->x[k][i] -= step;
        get(oly_apply_n(t->loss, t->s->n_in, in), &value);
    }
    return value;
}

static void gradient_at(trial *t, double step, double (*g)[MOST_ELEMENTS])
{
    OLY_SCOPE
    {
        oly_array in[MOST_IN], out[MOST_IN] = {NULL}, *wanted[MOST_IN];
        double moved[MOST_ELEMENTS];
        for (int j = 0; j < t->s->n_in; j++) {
            for (int64_t i = 0; i < elements(t->s, j); i++)
                moved[i] = t->x[j][i] + step * t->v[j][i];
            in[j] = put(t->s, j, moved, t->way);
            wanted[j] = &out[j];
        }
        oly_call(t->gradient, t->s->n_in, in, t->s->n_in, wanted);
        for (int j = 0; j < t->s->n_in; j++)
            get(out[j], g[j]);
    }
}

static void compare(const trial *t, const char *what, int k, int64_t i, double got, double want)
{
    if (fabs(got - want) > 1e-6 * (1 + fabs(want)))
        fail_msg("%s, operands %d: %s of element %d of operand %d is %.12g, by differences %.12g", t->s->row, t->way,
                 what, (int)i, k, got, want);
}

static void check_gradient(trial *t, double (*g)[MOST_ELEMENTS])
{
    const double h = 1e-5;
    for (int k = 0; k < t->s->n_in; k++)
        for (int64_t i = 0; i < elements(t->s, k); i++)
            compare(t, "the gradient", k, i, g[k][i], (value_at(t, h, k, i) - value_at(t, -h, k, i)) / (2 * h));
}

/* The tangent of the loss along v, and that of the gradient. */
static void check_tangents(trial *t, double (*g)[MOST_ELEMENTS])
{
    const double h = 1e-5;
    double up[MOST_IN][MOST_ELEMENTS], down[MOST_IN][MOST_ELEMENTS], along = 0, got;
    gradient_at(t, h, up);
    gradient_at(t, -h, down);
    OLY_SCOPE
    {
        int n = t->s->n_in;
        oly_array in[2 * MOST_IN], out[2 * MOST_IN] = {NULL}, *wanted[2 * MOST_IN];
        for (int k = 0; k < n; k++) {
            in[k] = put(t->s, k, t->x[k], t->way);
            in[n + k] = put(t->s, k, t->v[k], t->way);
            for (int64_t i = 0; i < elements(t->s, k); i++)
                along += g[k][i] * t->v[k][i];
        }
        for (int k = 0; k < 2 * n; k++)
            wanted[k] = &out[k];
        oly_call(t->tangent, 2 * n, in, 2, wanted);
        get(out[1], &got);
        compare(t, "the tangent", 0, 0, got, along);
        oly_call(t->bent, 2 * n, in, 2 * n, wanted);
        for (int k = 0; k < n; k++) {
            double bent[MOST_ELEMENTS];
            get(out[n + k], bent);
            for (int64_t i = 0; i < elements(t->s, k); i++)
                compare(t, "the second derivative", k, i, bent[i], (up[k][i] - down[k][i]) / (2 * h));
        }
    }
}

static void check_sample(const sample *s, int way)
{
    static trial t;
    static double g[MOST_IN][MOST_ELEMENTS];
    int all[MOST_IN];
    OLY_SCOPE
    {
        t = (trial){.s = s, .way = way};
        for (int k = 0; k < s->n_in; k++) {
            all[k] = k;
            fill(s, k, t.x[k]);
            for (int64_t i = 0; i < elements(s, k); i++)
                t.v[k][i] = sin(3.0 * (double)(i + 1) + k);
        }
        t.loss = oly_jit(loss, s->n_in, 1, .user = (void *)s, .name = s->row);
        t.gradient = oly_grad(t.loss, .argnum_list = all, .n_argnum_list = s->n_in);
        t.tangent = oly_jvp(t.loss);
        t.bent = oly_jvp(t.gradient);
        gradient_at(&t, 0, g);
        check_gradient(&t, g);
        check_tangents(&t, g);
    }
}

static void gradients_agree_with_differences(void **state)
{
    (void)state;
    for (const sample *s = gradient_samples; s->row; s++)
        for (int way = 0; way < 3; way++)
            check_sample(s, way);
}

/* Without memory for carries only every fourth iteration's are saved, and the last two separately. */
static void loops_save_less_when_told(void **state)
{
    (void)state;
    int64_t before = oly_option.gradient_memory;
    oly_option.gradient_memory = 0;
    for (const sample *s = gradient_samples; s->row; s++)
        if (strcmp(s->row, "loop") == 0)
            for (int way = 0; way < 3; way++)
                check_sample(s, way);
    oly_option.gradient_memory = before;
}

/* -- the table ------------------------------------------------------------------------------------------------------- */
static bool uses_row(const sample *s)
{
    oly_trace t;
    oly_array in[MOST_IN];
    bool found = false;
    assert_int_equal(oly_trace_open(&t, "sample"), OLY_OK);
    oly_graph *g = t.graph;
    for (int k = 0; k < s->n_in; k++) {
        oly_node *node;
        oly_type type = {.dtype = OLY_FLOAT64, .rank = s->in[k].rank};
        memcpy(type.shape, s->in[k].shape, sizeof type.shape);
        assert_int_equal(oly_graph_input(g, &type, &node), OLY_OK);
        in[k] = oly_array_traced(g, node);
    }
    assert_non_null(s->f(in));
    for (int k = 0; k < g->n_nodes; k++)
        found = found || strcmp(oly_ops[g->nodes[k]->op].name, s->row) == 0;
    oly_trace_close(&t);
    oly_trace_release(&t);
    oly_graph_free(g);
    return found;
}

static bool has_sample(const char *row)
{
    for (const sample *s = gradient_samples; s->row; s++)
        if (strcmp(s->row, row) == 0)
            return true;
    static const char *const elsewhere[] = {"reshard",   "auto_axes", "pvary",      "psum",
                                            "pmax",      "pmin",      "all_gather", "psum_scatter",
                                            "own_slice", "custom",    "all_to_all", "ppermute", /* below */
                                            "squeeze"}; /* made by the planner, from reshape */
    for (size_t k = 0; k < sizeof elsewhere / sizeof elsewhere[0]; k++)
        if (strcmp(elsewhere[k], row) == 0)
            return true;
    return false;
}

static bool is_listed(const char *row)
{
    for (size_t k = 0; k < sizeof not_differentiable / sizeof not_differentiable[0]; k++)
        if (strcmp(not_differentiable[k], row) == 0)
            return true;
    return false;
}

static void every_row_has_a_rule_and_a_sample(void **state)
{
    (void)state;
    int missing = 0;
    for (const sample *s = gradient_samples; s->row; s++)
        if (!uses_row(s))
            fail_msg("the sample of %s does not use it", s->row);
    for (int op = 0; op < OLY_N_OPS; op++) {
        const char *row = oly_ops[op].name;
        oly_vjp_rule *rule = oly_rule_of((oly_op)op);
        if (!rule && !is_listed(row))
            missing++, print_error("%s has no gradient rule and is not listed here\n", row);
        if (strcmp(row, "rough_log") == 0)
            continue; /* the rule of log; used by random numbers only */
        if (rule && rule != oly_vjp_zero && !has_sample(row))
            missing++, print_error("%s has a gradient rule and no sample here\n", row);
    }
    assert_int_equal(missing, 0);
}

/* The derivative may be taken inside the map or around it. */
static void gradients_inside_a_map_are_those_around_it(void **state)
{
    (void)state;
    const sample s = gradient_sample_of_maps;
    double values[2][8], inside[2][8], around[2][8];
    oly_array in[2], gx = NULL, gw = NULL;
    for (int k = 0; k < 2; k++) {
        fill(&s, k, values[k]);
        in[k] = put(&s, k, values[k], 0);
    }
    oly_call(oly_jit(gradient_inside_map, 2, 2), 2, in, OLY_OUT(gx, gw));
    get(gx, inside[0]);
    get(gw, inside[1]);
    oly_call(oly_grad(oly_jit(value_of, 2, 1, .user = (void *)&s), .argnums = "0, 1"), 2, in, OLY_OUT(gx, gw));
    get(gx, around[0]);
    get(gw, around[1]);
    for (int k = 0; k < 2; k++)
        for (int64_t i = 0; i < elements(&s, k); i++)
            if (fabs(inside[k][i] - around[k][i]) > 1e-12 * (1 + fabs(around[k][i])))
                fail_msg("element %d of gradient %d is %.15g inside, %.15g around", (int)i, k, inside[k][i],
                         around[k][i]);
}

static void reshards_go_back(void **state)
{
    (void)state;
    check_sample(&gradient_sample_of_reshard, 0);
}

/* -- running --------------------------------------------------------------------------------------------------------- */
int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_row_has_a_rule_and_a_sample, check_start_wide, check_finish),
        cmocka_unit_test_setup_teardown(gradients_agree_with_differences, check_start_wide, check_finish),
        cmocka_unit_test_setup_teardown(loops_save_less_when_told, check_start_wide, check_finish),
        cmocka_unit_test_setup_teardown(gradients_inside_a_map_are_those_around_it, check_start_wide, check_finish),
        cmocka_unit_test_setup_teardown(reshards_go_back, check_start_wide, check_finish),
    };
    return CHECK_MAIN(tests);
}
