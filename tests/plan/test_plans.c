/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1 devices=8  The plans of a set of programs are those in tests/plan/expected, word for word: the text of
 * oly_explain with fixed costs and cache sizes, without line numbers of this file. After an intended change,
 * PLANS=write build/tests/test_plans rewrites them: read the difference to the last commit. PLANS=a/folder writes the
 * plans as JSON there: the picture in docs/explain.md is made from one of them. */
#include "check.h"
#include "check_plans.h"
#include "core/option.h"
#include "plan/cost/cost.h"
#include <olympus.h>

/* -- programs --------------------------------------------------------------------------------------------------------------- */

typedef struct program {
    const char *name;
    void (*inputs)(oly_array *in); /* on 8 devices */
    int n_in, n_out;
    oly_function function;
} program;

static oly_mesh mesh;

static oly_array put(oly_array x, const char *spec)
{
    return oly_device_put(x, oly_named(mesh, spec));
}

static oly_array heat_next(oly_array u)
{
    oly_array mid = oly_slice(u, "1:-1"), left = oly_slice(u, ":-2"), right = oly_slice(u, "2:");
    return oly_update(u, "1:-1", oly_add(oly_mul(0.5, mid), oly_add(oly_mul(0.25, left), oly_mul(0.25, right))));
}

static void one_vector(oly_array *in)
{
    mesh = oly_make_mesh("x=8");
    in[0] = put(oly_zeros(OLY_FLOAT32, 102), "x");
}

static void heat_step(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = heat_next(in[0]);
}

static void heat_body(oly_array i, oly_array *carry, void *user)
{
    (void)i, (void)user;
    carry[0] = heat_next(carry[0]);
}

static void heat1d(const oly_array *in, oly_array *out, void *user)
{
    out[0] = in[0];
    oly_fori(0, 100, heat_body, 1, out, user);
}

static void one_plate(oly_array *in)
{
    mesh = oly_make_mesh("x=4, y=2");
    in[0] = put(oly_zeros(OLY_FLOAT32, 64, 48), "x, y");
}

static void plate_body(oly_array i, oly_array *carry, void *user)
{
    (void)i, (void)user;
    oly_array u = carry[0], mid = oly_slice(u, "1:-1, 1:-1");
    oly_array rows = oly_add(oly_slice(u, ":-2, 1:-1"), oly_slice(u, "2:, 1:-1"));
    oly_array columns = oly_add(oly_slice(u, "1:-1, :-2"), oly_slice(u, "1:-1, 2:"));
    carry[0] = oly_update(u, "1:-1, 1:-1", oly_sin(oly_add(oly_mul(0.5, mid), oly_mul(0.125, oly_add(rows, columns)))));
}

static void heat2d(const oly_array *in, oly_array *out, void *user)
{
    out[0] = in[0];
    oly_fori(0, 20, plate_body, 1, out, user);
}

static void two_matrices(oly_array *in)
{
    mesh = oly_make_mesh("x=4, y=2");
    in[0] = put(oly_ones(OLY_FLOAT32, 512, 256), "x, y");
    in[1] = put(oly_ones(OLY_FLOAT32, 256, 128), "y, None");
}

static void matmul(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_matmul(in[0], in[1]);
}

/* By cost other layouts are chosen here than by propagation. */
static void chain_inputs(oly_array *in)
{
    mesh = oly_make_mesh("x=4, y=2");
    in[0] = put(oly_ones(OLY_FLOAT32, 512, 256), "y, x");
    in[1] = put(oly_ones(OLY_FLOAT32, 256, 64), "x, y");
    in[2] = put(oly_ones(OLY_FLOAT32, 64, 512), "None, (x,y)");
}

static void chain(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sum(oly_sin(oly_matmul(oly_matmul(in[0], in[1]), in[2])));
}

static void layer_inputs(oly_array *in)
{
    mesh = oly_make_mesh("x=4, y=2");
    in[0] = put(oly_ones(OLY_FLOAT32, 64, 32), "x, y");
    in[1] = put(oly_ones(OLY_FLOAT32, 32, 16), "y, None");
    in[2] = put(oly_ones(OLY_FLOAT32, 16), "None");
}

static void layer(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_relu(oly_add(oly_matmul(in[0], in[1]), in[2]));
}

static void step_inputs(oly_array *in)
{
    mesh = oly_make_mesh("data=4, model=2");
    in[0] = put(oly_ones(OLY_FLOAT32, 64, 128), "None, model");
    in[1] = put(oly_ones(OLY_FLOAT32, 128, 8), "model, None");
    in[2] = put(oly_ones(OLY_FLOAT32, 256, 64), "data, None");
    in[3] = put(oly_ones(OLY_FLOAT32, 256, 8), "data, None");
}

static void loss(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array difference = oly_sub(oly_matmul(oly_tanh(oly_matmul(in[2], in[0])), in[1]), in[3]);
    out[0] = oly_mean(oly_mul(difference, difference));
}

static void training_step(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array slope[2];
    oly_call(oly_grad(oly_jit(loss, 4, 1), .argnums = "0, 1"), OLY_IN(in[0], in[1], in[2], in[3]),
             OLY_OUT(slope[0], slope[1]));
    for (int k = 0; k < 2; k++)
        out[k] = oly_sub(in[k], oly_mul(0.01, slope[k]));
}

static void one_matrix(oly_array *in)
{
    mesh = oly_make_mesh("x=4, y=2");
    in[0] = put(oly_ones(OLY_FLOAT32, 64, 64), "x, None");
}

static void reshard(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_with_sharding_constraint(in[0], oly_named(mesh, "None, x"));
}

/* The constraint costs two transfers that nobody needs. */
static void constrained(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array y = oly_with_sharding_constraint(oly_exp(in[0]), oly_named(mesh, "None, x"));
    out[0] = oly_add(y, in[0]);
}

static void transposed_sum(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_add(in[0], oly_transpose(in[0]));
}

static void sum_body(oly_array *carry, const oly_array *x, oly_array *y, void *user)
{
    (void)user;
    carry[0] = oly_add(oly_mul(0.5, carry[0]), x[0]);
    y[0] = carry[0];
}

static void scan_inputs(oly_array *in)
{
    mesh = oly_make_mesh("x=8");
    in[0] = put(oly_zeros(OLY_FLOAT32, 32), "x");
    in[1] = put(oly_ones(OLY_FLOAT32, 10, 32), "None, x");
}

static void scan(const oly_array *in, oly_array *out, void *user)
{
    out[0] = in[0];
    oly_scan(10, false, sum_body, 1, out, 1, &in[1], 1, &out[1], user);
}

static void roll(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sub(oly_roll(in[0], 1, 0), in[0]);
}

static void running(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_cumsum(in[0], 0);
}

static void conv_inputs(oly_array *in)
{
    mesh = oly_make_mesh("x=8");
    in[0] = put(oly_ones(OLY_FLOAT32, 2, 3, 64, 64), "None, None, x, None");
    in[1] = put(oly_ones(OLY_FLOAT32, 4, 3, 3, 3), "None");
}

static void conv(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_conv(in[0], in[1], .padding = "SAME");
}

static void less(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sin(in[0]);
}

static void more(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_mul(oly_sum(in[0]), in[0]);
}

static void branch(const oly_array *in, oly_array *out, void *user)
{
    oly_cond(oly_lt(oly_max(in[0]), 0), less, more, 1, in, 1, out, user);
}

static void concatenate(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_concatenate(0, oly_slice(in[0], "50:"), oly_slice(in[0], ":50"));
}

static void attention_inputs(oly_array *in)
{
    mesh = oly_make_mesh("data=2, model=4");
    for (int k = 0; k < 3; k++)
        in[k] = put(oly_ones(OLY_FLOAT32, 4, 32, 16), k == 0 ? "data, model" : "data, None");
}

static void attention(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array score = oly_softmax(oly_einsum("bqd,bkd->bqk", in[0], in[1]), -1);
    out[0] = oly_einsum("bqk,bkd->bqd", score, in[2]);
}

static void explicit_matrix(oly_array *in)
{
    mesh = oly_make_mesh("x=4:explicit, y=2:explicit");
    in[0] = put(oly_ones(OLY_FLOAT32, 64, 48), "x, y");
}

/* Each device has a term: the blocks of the dimension split over y come first. */
static void unfinished_sum(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sum(in[0], .axes = "1", .out_sharding = oly_named(mesh, "x, unreduced={y}"));
}

static const program programs[] = {
    {"attention", attention_inputs, 3, 1, attention},
    {"branch", one_vector, 1, 1, branch},
    {"chain", chain_inputs, 3, 1, chain},
    {"concatenate", one_vector, 1, 1, concatenate},
    {"constrained", one_matrix, 1, 1, constrained},
    {"conv", conv_inputs, 2, 1, conv},
    {"cumsum", one_vector, 1, 1, running},
    {"heat1d", one_vector, 1, 1, heat1d},
    {"heat2d", one_plate, 1, 1, heat2d},
    {"heat_step", one_vector, 1, 1, heat_step},
    {"layer", layer_inputs, 3, 1, layer},
    {"matmul", two_matrices, 2, 1, matmul},
    {"reshard", one_matrix, 1, 1, reshard},
    {"roll", one_vector, 1, 1, roll},
    {"scan", scan_inputs, 2, 2, scan},
    {"training_step", step_inputs, 4, 2, training_step},
    {"transposed_sum", one_matrix, 1, 1, transposed_sum},
    {"unfinished_sum", explicit_matrix, 1, 1, unfinished_sum},
};
enum { N_PROGRAMS = sizeof programs / sizeof *programs };

/* -- comparing --------------------------------------------------------------------------------------------------------------- */

static char *explained(const program *p, oly_explain_form form)
{
    oly_array in[4] = {0};
    p->inputs(in);
    oly_fn f = oly_jit_with(p->function, p->name, p->n_in, p->n_out, (oly_jit_options){.user = NULL});
    FILE *file = check_plan_begin();
    assert_int_equal(oly_explain_as_n(file, form, f, p->n_in, in), OLY_OK);
    return check_plan_end(file);
}

static int compare(const program *p)
{
    char path[256];
    const char *mode = getenv("PLANS");
    if (mode && strchr(mode, '/')) {
        char *json = explained(p, OLY_EXPLAIN_JSON);
        snprintf(path, sizeof path, "%s/%s.json", mode, p->name);
        check_write_file(path, json);
        free(json);
    }
    char *found = explained(p, OLY_EXPLAIN_TEXT);
    snprintf(path, sizeof path, "tests/plan/expected/%s.txt", p->name);
    bool same = check_same_as_file(path, found);
    free(found);
    return !same;
}

static void plans_are_the_expected_ones(void **state)
{
    (void)state;
    int differ = 0;
    oly_init(NULL, NULL);
    oly_rates fixed = oly_rates_fixed();
    oly_rates_use(&fixed);
    oly_option.halo_steps = 8;
    for (int k = 0; k < N_PROGRAMS; k++)
        OLY_SCOPE
        {
            differ += compare(&programs[k]);
        }
    oly_option.halo_steps = 0;
    assert_int_equal(differ, 0);
    assert_int_equal(oly_finalize(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(plans_are_the_expected_ones)};
    return CHECK_MAIN(tests);
}
