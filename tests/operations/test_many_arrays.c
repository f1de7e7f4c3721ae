/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  Functions of hundreds of arrays, like models with many parameters: calls, gradients, loops, branches,
 * maps; and calls with several outputs, whose variables may hold anything before. */
#include "check.h"
#include "check_session.h"
#include <olympus.h>

enum { PARAMETERS = 100, STEPS = 3, SIZE = 16, MOST = 600 };

static oly_mesh mesh;

static oly_array split(double value)
{
    return oly_device_put(oly_full(value, OLY_FLOAT32, SIZE), oly_named(mesh, "x"));
}

static void check_all(oly_array x, double expected)
{
    float values[SIZE];
    oly_process_allgather(x, values, sizeof values);
    for (int i = 0; i < SIZE; i++)
        assert_float_equal(values[i], expected, 1e-4);
}

/* -- training ------------------------------------------------------------------------------------------------------- */

/* Half the squared distances of parameter k from k, and of the last argument from 1. */
static void distance(const oly_array *p, oly_array *out, void *user)
{
    (void)user;
    oly_array sum = oly_sum(oly_square(oly_sub(p[PARAMETERS], 1)));
    for (int k = 0; k < PARAMETERS; k++)
        sum = oly_add(sum, oly_sum(oly_square(oly_sub(p[k], k))));
    out[0] = oly_mul(0.5, sum);
}

/* Parameters, then their momenta; the data is captured. */
static void descend(oly_array i, oly_array *carry, void *user)
{
    (void)i;
    const oly_array *data = user;
    oly_array p[PARAMETERS + 1], slope[PARAMETERS + 1] = {NULL}, *to[PARAMETERS + 1];
    int by[PARAMETERS];
    memcpy(p, carry, PARAMETERS * sizeof *p);
    p[PARAMETERS] = *data;
    for (int k = 0; k <= PARAMETERS; k++)
        to[k] = &slope[k];
    for (int k = 0; k < PARAMETERS; k++)
        by[k] = k;
    oly_fn f = oly_value_and_grad(oly_jit(distance, PARAMETERS + 1, 1), .argnum_list = by, .n_argnum_list = PARAMETERS);
    oly_call(f, PARAMETERS + 1, p, PARAMETERS + 1, to);
    for (int k = 0; k < PARAMETERS; k++) {
        carry[PARAMETERS + k] = oly_add(oly_mul(0.5, carry[PARAMETERS + k]), slope[1 + k]);
        carry[k] = oly_sub(carry[k], oly_mul(0.25, carry[PARAMETERS + k]));
    }
}

static void train(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array data = in[2 * PARAMETERS];
    memcpy(out, in, 2 * PARAMETERS * sizeof *out);
    oly_fori(0, STEPS, descend, 2 * PARAMETERS, out, &data);
    out[2 * PARAMETERS] = data;
}

static void hundreds_of_parameters_are_trained_in_place(void **state)
{
    (void)state;
    mesh = oly_make_mesh("x=8");
    oly_array all[2 * PARAMETERS + 1], *to[2 * PARAMETERS + 1];
    for (int k = 0; k <= 2 * PARAMETERS; k++) {
        all[k] = split(k < PARAMETERS ? 1 : 0);
        to[k] = &all[k];
    }
    oly_fn f = oly_jit(train, 2 * PARAMETERS + 1, 2 * PARAMETERS + 1);
    oly_call(f, 2 * PARAMETERS + 1, all, 2 * PARAMETERS + 1, to);
    oly_call(f, 2 * PARAMETERS + 1, all, 2 * PARAMETERS + 1, to);
    for (int k = 0; k < PARAMETERS; k += 33) {
        double p = 1, m = 0;
        for (int i = 0; i < 2 * STEPS; i++) {
            m = 0.5 * m + (p - k);
            p -= 0.25 * m;
        }
        check_all(all[k], p);
        check_all(all[PARAMETERS + k], m);
    }
}

/* -- the other ways of calling functions ------------------------------------------------------------------------------- */
static void add_number_of_argument(const oly_array *in, oly_array *out, void *user)
{
    for (int k = 0; k < *(const int *)user; k++)
        out[k] = oly_add(in[k], k);
}

static void as_they_are(const oly_array *in, oly_array *out, void *user)
{
    memcpy(out, in, (size_t) * (const int *)user * sizeof *out);
}

static void row(oly_array *carry, const oly_array *x, oly_array *y, void *user)
{
    (void)carry;
    add_number_of_argument(x, y, user);
}

static void branches_maps_and_scans(void **state)
{
    (void)state;
    mesh = oly_make_mesh("x=8");
    int n = PARAMETERS, none[PARAMETERS];
    oly_array in[PARAMETERS], out[PARAMETERS] = {NULL}, *to[PARAMETERS], nothing = oly_scalar(0, OLY_INT32);
    const char *specs[PARAMETERS];
    for (int k = 0; k < n; k++) {
        in[k] = split(1);
        to[k] = &out[k];
        specs[k] = "x";
        none[k] = 0;
    }
    oly_cond(oly_lt(oly_sum(in[0]), 0), as_they_are, add_number_of_argument, n, in, n, out, &n);
    check_all(out[n - 1], n);
    oly_shard_map(add_number_of_argument, &n, mesh, n, in, specs, n, to, specs);
    check_all(out[n - 1], n);
    oly_vmap(add_number_of_argument, &n, n, in, none, n, to, none);
    check_all(out[n - 1], n);
    oly_scan(SIZE, false, row, 1, &nothing, n, in, n, out, &n);
    check_all(out[n - 1], n);
}

static void more_than_anybody_counts(void **state)
{
    (void)state;
    mesh = oly_make_mesh("x=8");
    int n = MOST;
    oly_array in[MOST], out[MOST] = {NULL}, *to[MOST];
    for (int k = 0; k < n; k++) {
        in[k] = split(k % 3);
        to[k] = &out[k];
    }
    oly_fn f = oly_jit(add_number_of_argument, n, n, .user = &n);
    oly_call(f, n, in, n, to);
    oly_call(f, n, in, n, to);
    check_all(out[MOST - 1], MOST - 1 + (MOST - 1) % 3);
}

/* -- outputs ------------------------------------------------------------------------------------------------------------- */
static void sixteen(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    for (int k = 0; k < 16; k++)
        out[k] = oly_add(in[0], k);
}

static void sixteen_outputs_have_names(void **state)
{
    (void)state;
    mesh = oly_make_mesh("x=8");
    oly_array x = split(1), a[16] = {NULL};
    oly_call(
        oly_jit(sixteen, 1, 16), OLY_IN(x),
        OLY_OUT(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13], a[14], a[15]));
    for (int k = 0; k < 16; k++)
        check_all(a[k], 1 + k);
}

static void three(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    for (int k = 0; k < 3; k++)
        out[k] = oly_add(in[0], k);
}

static void one_input_in_two_outputs_is_donated_once(void **state)
{
    (void)state;
    mesh = oly_make_mesh("x=8");
    oly_array x = split(1), a = x, b = x, c = x;
    int n = 1;
    oly_call(oly_jit(three, 1, 3), OLY_IN(x), OLY_OUT(a, b, c));
    check_all(a, 1);
    check_all(b, 2);
    check_all(c, 3);
    CHECK_REFUSED(oly_apply(oly_jit(as_they_are, 1, 1, .user = &n), x), OLY_DELETED,
                  "donated to the call in tests/operations/test_many_arrays.c");
}

/* 10^5 arrays at once, in the queue and in memory; most are freed out of order. */
static void a_hundred_thousand_arrays(void **state)
{
    (void)state;
    enum { MANY = 100000, KEPT = 1000 };
    oly_array *all = malloc(sizeof *all * MANY), base = split(0);
    assert_non_null(all);
    for (int k = 0; k < MANY; k++)
        assert_non_null(all[k] = oly_add(base, k));
    for (int k = 0; k < MANY; k++)
        if (k % KEPT)
            oly_free(all[(k * 7919L) % MANY / KEPT * KEPT + k % KEPT]);
    for (int k = 0; k < MANY; k += KEPT) {
        if (k % (10 * KEPT) == 0)
            check_all(all[k], k);
        oly_free(all[k]);
    }
    oly_free(base);
    free(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_hundred_thousand_arrays, check_start, check_finish),
        cmocka_unit_test_setup_teardown(hundreds_of_parameters_are_trained_in_place, check_start, check_finish),
        cmocka_unit_test_setup_teardown(branches_maps_and_scans, check_start, check_finish),
        cmocka_unit_test_setup_teardown(more_than_anybody_counts, check_start, check_finish),
        cmocka_unit_test_setup_teardown(sixteen_outputs_have_names, check_start, check_finish),
        cmocka_unit_test_setup_teardown(one_input_in_two_outputs_is_donated_once, check_start, check_finish),
    };
    return CHECK_MAIN(tests);
}
