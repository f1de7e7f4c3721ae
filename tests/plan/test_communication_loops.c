/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  Communication in loops and branches: loop-invariant communication is hoisted, what several bodies need
 * is sent once, small reductions of an iteration share an exchange. Steps of plans, and the values of one device. */
#include "check_communication.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "core/option.h"

static int setup(void **state)
{
    (void)state;
    oly_init(NULL, NULL);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    oly_option.overlap = 1;
    return oly_finalize();
}

enum { N = 64 };

/* -- programs: in[0] is "x, None", and so is in[1] ------------------------------------------------------------------------- */

static oly_array table_of(oly_array x)
{
    return oly_tanh(oly_add(x, oly_mean(x)));
}

static void scan_body(oly_array *carry, const oly_array *x, oly_array *y, void *user)
{
    const oly_array *in = user;
    carry[0] = oly_mul(oly_matmul(carry[0], table_of(in[1])), 0.125);
    y[0] = oly_add(oly_slice(carry[0], ":, 0"), oly_mul(0.01, x[0]));
}

/* The mean, and the gathered table: both before the loop. */
static void scanned(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array carry = in[0], xs = oly_arange(5, OLY_FLOAT32), ys;
    oly_scan(5, false, scan_body, 1, &carry, 1, &xs, 1, &ys, (void *)(uintptr_t)in);
    out[0] = oly_add(carry, oly_reshape(oly_slice(ys, "4"), N, 1));
}

static oly_array below_limit(const oly_array *carry, void *user)
{
    const oly_array *in = user;
    return oly_lt(carry[1], oly_add(4, oly_mul(0, oly_sum(in[1]))));
}

static void while_body(oly_array *carry, void *user)
{
    const oly_array *in = user;
    carry[0] = oly_mul(oly_matmul(carry[0], table_of(in[1])), 0.125);
    carry[1] = oly_add(carry[1], 1);
}

/* Also what the condition computes from captured values. */
static void while_condition(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array carry[] = {in[0], oly_zeros(OLY_FLOAT32)};
    oly_while(below_limit, while_body, 2, carry, (void *)(uintptr_t)in);
    out[0] = carry[0];
}

static void product_body(oly_array i, oly_array *carry, void *user)
{
    (void)i;
    const oly_array *in = user;
    carry[0] = oly_mul(oly_matmul(carry[0], in[1]), 0.0625);
}

static void tanh_body(oly_array i, oly_array *carry, void *user)
{
    product_body(i, carry, user);
    carry[0] = oly_tanh(carry[0]);
}

/* Two loops, and steps outside them, read the same replicated value: it is gathered once. */
static void two_bodies(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array carry = in[0];
    oly_fori(0, 3, product_body, 1, &carry, (void *)(uintptr_t)in);
    oly_fori(0, 3, tanh_body, 1, &carry, (void *)(uintptr_t)in);
    out[0] = oly_matmul(carry, in[1]);
}

static void product_branch(const oly_array *in, oly_array *out, void *user)
{
    out[0] = in[0];
    product_body(in[0], out, user);
}

static void tanh_branch(const oly_array *in, oly_array *out, void *user)
{
    out[0] = in[0];
    tanh_body(in[0], out, user);
}

static void switching_body(oly_array i, oly_array *carry, void *user)
{
    oly_array now = carry[0];
    oly_cond(oly_lt(i, 2), product_branch, tanh_branch, 1, &now, 1, carry, user);
}

/* Both branches read it. */
static void two_branches(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = in[0];
    oly_fori(0, 4, switching_body, 1, out, (void *)(uintptr_t)in);
}

/* The values are nearly those of one device, and the same with and without overlap. */
static void expect_values(oly_function function, const oly_array *plain, const oly_array *in, int64_t n, double near)
{
    float *values[3];
    for (int way = 0; way < 3; way++) {
        oly_option.overlap = way != 1;
        values[way] = check_values(oly_jit_with(function, "f", 2, 1, (oly_jit_options){.user = NULL}), 2,
                                   way == 2 ? plain : in, n);
    }
    assert_memory_equal(values[0], values[1], sizeof(float) * (size_t)n);
    for (int64_t k = 0; k < n; k++)
        if (!(fabs((double)values[0][k] - (double)values[2][k]) <= near * (1 + fabs((double)values[2][k]))))
            fail_msg("element %lld is %.9g, not %.9g", (long long)k, (double)values[0][k], (double)values[2][k]);
    for (int way = 0; way < 3; way++)
        free(values[way]);
    oly_option.overlap = 1;
}

static void loops_and_branches_gather_once(void **state)
{
    static const struct {
        oly_function function;
        int gathers, most;
    } rows[] = {{scanned, 1, 3}, {while_condition, 1, 4}, {two_bodies, 1, 1}, {two_branches, 1, 1}};
    (void)state;
    oly_mesh mesh = oly_make_mesh("x=8");
    oly_array plain[] = {check_matrix(N, N), oly_cos(check_matrix(N, N))};
    oly_array in[] = {oly_device_put(plain[0], oly_named(mesh, "x, None")),
                      oly_device_put(plain[1], oly_named(mesh, "x, None"))};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        oly_plan_costs costs;
        oly_fn f = oly_jit_with(rows[k].function, "f", 2, 1, (oly_jit_options){.user = NULL});
        char *text = check_steps(f, 2, in);
        assert_int_equal(oly_costs_n(&costs, f, 2, in), OLY_OK);
        const char *loop = strstr(text, " times:"), *held = strstr(text, " holds:");
        loop = !loop || (held && held < loop) ? held : loop;
        assert_non_null(loop);
        if (check_count(text, "all-gather") != rows[k].gathers || costs.collectives > rows[k].most ||
            check_count(loop, " members]") > 0)
            fail_msg("row %zu: %d collectives in\n%s", k, (int)costs.collectives, text);
        free(text);
        expect_values(rows[k].function, plain, in, N * N, 1e-4);
    }
}

/* -- reductions of an iteration share an exchange ------------------------------------------------------------------ */

/* The sums of conjugate gradients: several small ones without dependences. */
static void sums_body(oly_array i, oly_array *carry, void *user)
{
    (void)i;
    (void)user;
    oly_array r = oly_sum(oly_mul(carry[0], carry[0])), s = oly_sum(oly_mul(carry[0], carry[1])), t = oly_sum(carry[1]);
    oly_array scale = oly_div(s, oly_add(1, r));
    carry[0] = oly_sub(carry[0], oly_mul(scale, carry[1]));
    carry[1] = oly_add(oly_mul(0.5, carry[1]), oly_mul(1e-3, t));
}

static void summed(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array c[] = {in[0], in[1]};
    oly_fori(0, 5, sums_body, 2, c, NULL);
    out[0] = oly_add(c[0], c[1]);
}

/* Sums that are only added become one: of an iteration, and of a branch in it. */
static void added_body(oly_array i, oly_array *carry, void *user)
{
    (void)i;
    (void)user;
    oly_array columns = oly_sub(oly_sum(carry[0], .axes = "0"), oly_sum(carry[1], .axes = "0"));
    carry[0] = oly_mul(0.5, oly_add(carry[0], oly_tanh(oly_add(columns, oly_arange(N, OLY_FLOAT32)))));
    carry[1] = oly_mul(0.75, carry[1]);
}

static void added(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array c[] = {in[0], in[1]};
    oly_fori(0, 5, added_body, 2, c, NULL);
    out[0] = oly_add(c[0], c[1]);
}

static void one_body(oly_array i, oly_array *carry, void *user)
{
    (void)i;
    (void)user;
    carry[0] = oly_mul(0.5, oly_add(carry[0], oly_sum(carry[0], .axes = "0")));
}

static void one(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = in[0];
    oly_fori(0, 5, one_body, 1, out, NULL);
}

static void reductions_of_an_iteration_go_together(void **state)
{
    (void)state;
    oly_mesh mesh = oly_make_mesh("x=8");
    oly_array plain[] = {check_matrix(N, N), oly_cos(check_matrix(N, N))};
    oly_array in[] = {oly_device_put(plain[0], oly_named(mesh, "x, None")),
                      oly_device_put(plain[1], oly_named(mesh, "x, None"))};
    oly_plan_costs costs, as;
    assert_int_equal(oly_costs_n(&as, oly_jit_with(one, "f", 2, 1, (oly_jit_options){.user = NULL}), 2, in), OLY_OK);
    assert_int_equal(oly_costs_n(&costs, oly_jit_with(summed, "f", 2, 1, (oly_jit_options){.user = NULL}), 2, in),
                     OLY_OK);
    assert_int_equal(costs.collectives, as.collectives);
    assert_int_equal(costs.wire_bytes, as.wire_bytes / N * 3);
    assert_int_equal(oly_costs_n(&costs, oly_jit_with(added, "f", 2, 1, (oly_jit_options){.user = NULL}), 2, in),
                     OLY_OK);
    assert_int_equal(costs.collectives, as.collectives);
    assert_int_equal(costs.wire_bytes, as.wire_bytes);
    expect_values(summed, plain, in, N * N, 1e-4);
    expect_values(added, plain, in, N * N, 1e-4);
}

/* -- tridiagonal systems along the dimension that is split ------------------------------------------------------------ */

static void eliminate(oly_array *c, const oly_array *x, oly_array *y, void *user)
{
    (void)user;
    oly_array below = oly_add(2.25, oly_mul(0.5, c[0]));
    c[1] = y[1] = oly_div(oly_add(x[0], oly_mul(0.5, c[1])), below);
    c[0] = y[0] = oly_div(-0.5, below);
}

static void substitute(oly_array *c, const oly_array *x, oly_array *y, void *user)
{
    (void)user;
    y[0] = c[0] = oly_sub(x[1], oly_mul(x[0], c[0]));
}

static void solve_columns(oly_array i, oly_array *x, void *user)
{
    (void)i;
    (void)user;
    int64_t n = oly_dim(x[0], 1), rows = oly_dim(x[0], 0);
    oly_array zero = oly_zeros(OLY_FLOAT32, n), c[] = {zero, zero}, y[2], z;
    oly_scan(rows, false, eliminate, 2, c, 1, x, 2, y, NULL);
    oly_scan(rows, true, substitute, 1, &zero, 2, y, 1, &z, NULL);
    x[0] = z;
}

static void solved(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_add(in[0], in[1]);
    oly_fori(0, 3, solve_columns, 1, out, NULL);
}

/* Once to the columns and once back in each of the three iterations, whose carry has its rows on the devices. */
static void sweeps_exchange_the_whole(void **state)
{
    (void)state;
    oly_sharding rows = oly_named(oly_make_mesh("x=8"), "x, None");
    oly_array plain[] = {check_matrix(N, N), oly_cos(check_matrix(N, N))};
    oly_array in[] = {oly_device_put(plain[0], rows), oly_device_put(plain[1], rows)};
    oly_plan_costs costs;
    oly_fn f = oly_jit_with(solved, "f", 2, 1, (oly_jit_options){.user = NULL});
    assert_int_equal(oly_costs_n(&costs, f, 2, in), OLY_OK);
    assert_int_equal(costs.collectives, 6);
    expect_values(solved, plain, in, N * N, 1e-6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(loops_and_branches_gather_once, setup, teardown),
        cmocka_unit_test_setup_teardown(reductions_of_an_iteration_go_together, setup, teardown),
        cmocka_unit_test_setup_teardown(sweeps_exchange_the_whole, setup, teardown),
    };
    return CHECK_MAIN(tests);
}
