/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  Reshapes that split a dimension inside a mesh axis: the plan treats the axis as several, so that
 * nothing moves between the two shapes. Transfers, values (those of one device), and the shardings of results. */
#include "check_communication.h"
#include "check_session.h"
#include <stdlib.h>
#include <string.h>

/* Halves of the rows, processed as such, and back. */
static void halves(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array x = oly_tile(oly_reshape(in[0], 2, 16, 64), 1, 1, 2);
    out[0] = oly_reshape(oly_sum(oly_reshape(oly_sin(x), 2, 16, 2, 64), .axes = "2"), 32, 64);
}

/* Four heads over eight devices: the sums over a head's elements are completed by pairs of devices. */
static void heads(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array x = oly_reshape(in[0], 16, 4, 16);
    out[0] = oly_reshape(oly_softmax(x, -1), 16, 64);
}

/* Merged: both dimensions become one. */
static void merged(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_mesh mesh = oly_make_mesh("x=8");
    oly_array x = oly_reshape(in[0], 4, 8, 64);
    out[0] = oly_with_sharding_constraint(oly_reshape(oly_mul(x, oly_cos(x)), 32, 64), oly_named(mesh, "x, None"));
}

static void in_a_loop_body(oly_array k, oly_array *carry, void *user)
{
    (void)k;
    (void)user;
    oly_array x = carry[0];
    halves(&x, carry, NULL);
}

static void in_a_loop(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = in[0];
    oly_fori(0, 3, in_a_loop_body, 1, out, NULL);
}

static void reshapes_cut_axes(void **state)
{
    (void)state;
    assert_int_equal(check_steps_with(CHECK_MOVES, halves, "x=8", "x", 32, 64), 0);
    assert_int_equal(check_steps_with(CHECK_MOVES, halves, "x=4, y=2", "(x, y)", 32, 64), 0);
    assert_int_equal(check_steps_with(CHECK_MOVES, halves, "x=2, y=4", "(y, x)", 32, 64), 0);
    assert_int_equal(check_steps_with(CHECK_MOVES, in_a_loop, "x=8", "x", 32, 64), 0);
    assert_int_equal(check_steps_with(CHECK_MOVES, merged, "x=8", "x", 32, 64), 0);
    assert_int_equal(check_steps_with("all-gather", heads, "x=8", "None, x", 16, 64), 0);
    assert_true(check_steps_with("all-reduce", heads, "x=8", "None, x", 16, 64) >= 1);
}

/* Where axes do not fit nothing gets worse: 3 does not divide 8, and no third axis is introduced. */
static void thirds(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array x = oly_reshape(in[0], 3, 16, 8);
    out[0] = oly_reshape(oly_add(x, oly_exp(x)), 48, 8);
}

static void others_are_as_before(void **state)
{
    (void)state;
    check_steps_with(CHECK_MOVES, thirds, "x=8", "x", 48, 8);
    check_steps_with(CHECK_MOVES, thirds, "x=2, y=4", "(y, x)", 48, 8);
}

static void parts(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sin(oly_reshape(in[0], 2, 16, 64));
}

/* Results are sharded over the program's axes. */
static void results_name_the_axes_of_the_program(void **state)
{
    (void)state;
    oly_array plain = check_matrix(32, 64);
    oly_array x = oly_device_put(plain, oly_named(oly_make_mesh("x=8"), "x"));
    oly_fn f = oly_jit(halves, 1, 1), g = oly_jit(parts, 1, 1);
    oly_array back = NULL, cut = NULL;
    char text[128];
    oly_call(f, OLY_IN(x), OLY_OUT(back));
    oly_sharding_str(oly_sharding_of(back), text, sizeof text);
    assert_non_null(strstr(text, "Mesh('x': 8), spec=P('x',)"));
    oly_call(g, OLY_IN(x), OLY_OUT(cut));
    oly_sharding_str(oly_sharding_of(cut), text, sizeof text);
    assert_non_null(strstr(text, "Mesh('x': 8)"));
    assert_null(strstr(text, "/"));
    check_same_values(parts, 1, &plain, &x, 32 * 64, 1e-6);
}

static void pairs(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sin(oly_reshape(in[0], 16, 2, 64));
}

/* An axis that is used up before the dimension is split stays one. */
static void axes_that_fit_stay_whole(void **state)
{
    (void)state;
    oly_array x = oly_device_put(check_matrix(32, 64), oly_named(oly_make_mesh("x=8"), "x"));
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    assert_int_equal(oly_explain(file, oly_jit(pairs, 1, 1), x), OLY_OK);
    fclose(file);
    assert_non_null(strstr(text, "on Mesh('x': 8), 8 devices"));
    free(text);
    file = open_memstream(&text, &size);
    assert_int_equal(oly_explain(file, oly_jit(parts, 1, 1), x), OLY_OK);
    fclose(file);
    assert_non_null(strstr(text, "on Mesh('x/0': 2, 'x/1': 4), 8 devices"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reshapes_cut_axes),
        cmocka_unit_test(others_are_as_before),
        cmocka_unit_test(results_name_the_axes_of_the_program),
        cmocka_unit_test(axes_that_fit_stay_whole),
    };
    return cmocka_run_group_tests(tests, check_open, check_close);
}
