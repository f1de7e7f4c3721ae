/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  Functions, loops, branches and derivatives of more arrays than a word has bits or a program has
 * registers, captures included. */
#include "check.h"
#include "check_session.h"
#include <olympus.h>
#include <string.h>

enum { MANY = 70, ROWS = 16 };

static void value_of(oly_array x, float *value)
{
    assert_int_equal(oly_process_allgather(x, value, ROWS * sizeof *value), OLY_OK);
}

/* Array k is k plus its indexes; every third one is split. */
static void make_many(oly_array *x)
{
    oly_sharding cut = oly_named(oly_make_mesh("x=8"), "x");
    for (int k = 0; k < MANY; k++) {
        x[k] = oly_add(oly_arange(ROWS, OLY_FLOAT32), k);
        if (k % 3 == 0)
            x[k] = oly_device_put(x[k], cut);
    }
}

static void check_all(oly_array const *x, float (*expected)(int k, int i))
{
    float value[ROWS];
    for (int k = 0; k < MANY; k++) {
        value_of(x[k], value);
        for (int i = 0; i < ROWS; i++)
            assert_float_equal(value[i], expected(k, i), 0);
    }
}

/* -- functions ---------------------------------------------------------------------------------------------------------- */
static void each_and_the_next(const oly_array *in, oly_array *out, void *user)
{
    oly_array const *outside = user;
    for (int k = 0; k < MANY; k++)
        out[k] = oly_add(in[k], oly_mul(outside[(k + 1) % MANY], 2));
}

static float sum_with_next(int k, int i)
{
    return (float)(k + i + 2 * ((k + 1) % MANY + i));
}

static void a_function_takes_and_gives_any_number(void **state)
{
    (void)state;
    oly_array in[MANY], out[MANY] = {NULL};
    make_many(in);
    oly_fn f = oly_jit(each_and_the_next, MANY, MANY, .user = in);
    for (int again = 0; again < 3; again++) {
        assert_int_equal(oly_call_arrays(f, MANY, in, MANY, out), OLY_OK);
        check_all(out, sum_with_next);
    }
}

static void plus_one(const oly_array *in, oly_array *out, void *user)
{
    ++*(int *)user;
    for (int k = 0; k < MANY; k++)
        out[k] = oly_add(in[k], 1);
}

static float plus_three(int k, int i)
{
    return (float)(k + i + 3);
}

/* The arrays are replaced, the function is planned once. */
static void lists_are_replaced(void **state)
{
    (void)state;
    int traced = 0;
    oly_array x[MANY], old = NULL;
    make_many(x);
    oly_fn f = oly_jit(plus_one, MANY, MANY, .user = &traced);
    for (int step = 0; step < 3; step++) {
        old = x[7];
        assert_int_equal(oly_call_arrays(f, MANY, x, MANY, x), OLY_OK);
    }
    CHECK_REFUSED(oly_add(old, 1), OLY_DELETED, "donated to the call"); /* as many handles are remembered */
    check_all(x, plus_three);
    assert_true(traced <= 2); /* results are committed */
    assert_int_equal(oly_call_arrays(f, MANY, x, MANY - 1, x), OLY_INVALID);
    assert_non_null(strstr(oly_last_error(), "gives 70 arrays, but 69 were asked for"));
    oly_clear_error();
    assert_null(x[0]);
}

/* -- loops and branches ---------------------------------------------------------------------------------------------------- */
static void all_move_on(oly_array i, oly_array *carry, void *user)
{
    oly_array const *outside = user;
    oly_array first = carry[0];
    (void)i;
    for (int k = 0; k < MANY; k++)
        carry[k] = oly_add(k + 1 < MANY ? carry[k + 1] : first, oly_sub(outside[k], outside[k]));
}

static float three_further(int k, int i)
{
    return (float)((k + 3) % MANY + i);
}

static void loop_over_many(const oly_array *in, oly_array *out, void *user)
{
    memcpy(out, in, sizeof *out * MANY);
    oly_fori(0, 3, all_move_on, MANY, out, user);
}

static void a_loop_carries_any_number(void **state)
{
    (void)state;
    oly_array in[MANY], out[MANY] = {NULL};
    make_many(in);
    memcpy(out, in, sizeof out);
    oly_fori(0, 3, all_move_on, MANY, out, in);
    check_all(out, three_further);
    oly_array again[MANY] = {NULL};
    assert_int_equal(oly_call_arrays(oly_jit(loop_over_many, MANY, MANY, .user = in), MANY, in, MANY, again), OLY_OK);
    check_all(again, three_further);
}

static oly_array small(const oly_array *carry, void *user)
{
    (void)user;
    return oly_lt(oly_max(carry[0]), 18);
}
static void all_plus_one(oly_array *carry, void *user)
{
    (void)user;
    for (int k = 0; k < MANY; k++)
        carry[k] = oly_add(carry[k], 1);
}
static void takes_apart(oly_array *carry, const oly_array *x, oly_array *y, void *user)
{
    (void)user;
    for (int k = 0; k < MANY; k++) {
        y[k] = oly_add(x[k], carry[k]);
        carry[k] = x[k];
    }
}
static float with_the_one_before(int k, int i)
{
    return (float)(i ? 2 * (k + i) - 1 : k);
}
static float the_last(int k, int i)
{
    return (float)(k + ROWS - 1 + 0 * i);
}

static void while_loops_and_scans_too(void **state)
{
    (void)state;
    oly_array x[MANY], carry[MANY], y[MANY];
    make_many(x);
    oly_while(small, all_plus_one, MANY, x, NULL);
    check_all(x, plus_three);
    for (int k = 0; k < MANY; k++) {
        x[k] = oly_add(oly_arange(ROWS, OLY_FLOAT32), k);
        carry[k] = oly_zeros(OLY_FLOAT32);
    }
    oly_scan(ROWS, false, takes_apart, MANY, carry, MANY, x, MANY, y, NULL);
    check_all(y, with_the_one_before);
    for (int k = 0; k < MANY; k++)
        carry[k] = oly_broadcast_to(carry[k], ROWS);
    check_all(carry, the_last);
}

static void turned_round(const oly_array *in, oly_array *out, void *user)
{
    oly_array const *outside = user;
    for (int k = 0; k < MANY; k++)
        out[k] = oly_add(in[MANY - 1 - k], oly_sub(outside[k], outside[k]));
}
static float from_the_end(int k, int i)
{
    return (float)(MANY - 1 - k + i);
}

static void a_branch_takes_any_number(void **state)
{
    (void)state;
    oly_function branches[40];
    oly_array in[MANY], out[MANY];
    make_many(in);
    for (int k = 0; k < 40; k++)
        branches[k] = turned_round;
    oly_switch(33, 40, branches, MANY, in, MANY, out, in);
    check_all(out, from_the_end);
}

/* All read one value: more operations than one tile program has registers for. */
static void around_one(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array first = oly_add(in[0], 1);
    for (int k = 0; k < MANY; k++)
        out[k] = oly_where(oly_lt(first, in[k]), oly_add(in[k], first), oly_mul(in[k], in[(k + 1) % MANY]));
}
static float with_the_first(int k, int i)
{
    int x = k + i, next = (k + 1) % MANY + i;
    return (float)(i + 1 < x ? x + i + 1 : x * next);
}

static void any_number_reads_one_value(void **state)
{
    (void)state;
    oly_array in[MANY], out[MANY] = {NULL};
    make_many(in);
    assert_int_equal(oly_call_arrays(oly_jit(around_one, MANY, MANY), MANY, in, MANY, out), OLY_OK);
    check_all(out, with_the_first);
}

/* -- derivatives ------------------------------------------------------------------------------------------------------------- */
static void shrink(oly_array i, oly_array *carry, void *user)
{
    oly_array const *by = user;
    (void)i;
    for (int k = 0; k < MANY; k++)
        carry[k] = oly_mul(carry[k], by[k]);
}

/* sum_k k x_k^3, the powers by a loop whose carries are powers and whose body uses all arguments. */
static void loss(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array power[MANY];
    memcpy(power, in, sizeof power);
    oly_fori(0, 2, shrink, MANY, power, (void *)in);
    out[0] = oly_sum(power[0]);
    for (int k = 1; k < MANY; k++)
        out[0] = oly_add(out[0], oly_mul(oly_sum(power[k]), k));
}
static float slope(int k, int i)
{
    return (float)(k ? k : 1) * 3 * (float)(i + 1) * (float)(i + 1);
}

static void gradients_by_any_number(void **state)
{
    (void)state;
    oly_array in[MANY], out[MANY] = {NULL};
    int every[MANY];
    for (int k = 0; k < MANY; k++) {
        in[k] = oly_add(oly_arange(ROWS, OLY_FLOAT32), 1);
        every[k] = k;
    }
    oly_fn f = oly_grad(oly_jit(loss, MANY, 1), .argnum_list = every, .n_argnum_list = MANY);
    assert_int_equal(oly_call_arrays(f, MANY, in, MANY, out), OLY_OK);
    check_all(out, slope);
}

/* Hoisting from a loop with more inputs than a word has bits. */
static void step(oly_array i, oly_array *carry, void *user)
{
    oly_array const *outside = user;
    (void)i;
    carry[0] = oly_add(carry[0], oly_sum(outside[MANY - 1]));
    for (int k = 1; k < MANY; k++)
        carry[k] = oly_add(carry[k], carry[0]);
}
static void ten_steps(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    memcpy(out, in, sizeof *out * MANY);
    out[0] = oly_sum(in[0]);
    for (int k = 1; k < MANY; k++)
        out[k] = oly_sum(in[k]);
    oly_fori(0, 10, step, MANY, out, (void *)in);
}

static void what_stays_the_same_leaves_the_loop(void **state)
{
    (void)state;
    oly_array in[MANY];
    oly_plan_costs costs;
    make_many(in);
    in[MANY - 1] = oly_device_put(in[MANY - 1], oly_named(oly_make_mesh("x=8"), "x"));
    oly_costs_n(&costs, oly_jit(ten_steps, MANY, MANY), MANY, in);
    assert_true(costs.collectives > 0);
    assert_true(costs.collectives <= MANY + 1); /* none of them in every iteration */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_function_takes_and_gives_any_number, check_start, check_finish),
        cmocka_unit_test_setup_teardown(lists_are_replaced, check_start, check_finish),
        cmocka_unit_test_setup_teardown(a_loop_carries_any_number, check_start, check_finish),
        cmocka_unit_test_setup_teardown(while_loops_and_scans_too, check_start, check_finish),
        cmocka_unit_test_setup_teardown(a_branch_takes_any_number, check_start, check_finish),
        cmocka_unit_test_setup_teardown(any_number_reads_one_value, check_start, check_finish),
        cmocka_unit_test_setup_teardown(gradients_by_any_number, check_start, check_finish),
        cmocka_unit_test_setup_teardown(what_stays_the_same_leaves_the_loop, check_start, check_finish),
    };
    return CHECK_MAIN(tests);
}
