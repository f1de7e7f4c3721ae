/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  While loops, and branches selected at run time: alone, in compiled functions, nested, with sharded
 * values and with captures. */
#include "check.h"
#include "check_session.h"
#include <math.h>
#include <olympus.h>

static oly_array ramp(void)
{
    oly_array x = oly_arange(13, OLY_FLOAT32);
    return oly_device_put(x, oly_named(oly_make_mesh("x=2, y=4"), "(y,x)"));
}

static double total(oly_array x)
{
    return oly_item(oly_sum(x));
}

/* -- one after the other ------------------------------------------------------------------------------------------------ */
static void adds(oly_array i, oly_array *carry, void *user)
{
    (void)i;
    (void)user;
    carry[0] = oly_add(carry[0], 1);
}
static void writes_in_place(oly_array i, oly_array *carry, void *user)
{
    (void)user;
    carry[0] = oly_dynamic_update_slice(carry[0], oly_broadcast_to(oly_astype(i, OLY_FLOAT32), 1), OLY_INDEXES(i));
}
static void two_loops(const oly_array *in, oly_array *out, void *user)
{
    out[0] = in[0];
    oly_fori(0, *(const int *)user, adds, 1, out, NULL);
    oly_fori(0, 3, writes_in_place, 1, out, NULL);
}

/* The second loop overwrites the first one's result, which keeps that memory as long as its handle. */
static void a_loop_writes_over_the_result_of_another(void **state)
{
    (void)state;
    for (int n = 0; n < 4; n++) {
        oly_array x = ramp(), results[4] = {NULL};
        oly_fn f = oly_jit(two_loops, 1, 1, .user = &n);
        for (int k = 0; k < 4; k++)
            oly_call(f, OLY_IN(x), OLY_OUT(results[k]));
        for (int k = 0; k < 4; k++) {
            float got[13];
            assert_int_equal(oly_process_allgather(results[k], got, sizeof got), OLY_OK);
            for (int i = 0; i < 13; i++)
                assert_float_equal(got[i], i < 3 ? i : i + n, 0);
            oly_assign(&results[k], oly_mul(results[k], 5)); /* other values in free memory */
        }
        assert_float_equal(total(x), 78, 0);
    }
}

/* -- while ------------------------------------------------------------------------------------------------------------ */

/* Doubles until the sum reaches the limit. */
static oly_array below_limit(const oly_array *carry, void *user)
{
    return oly_lt(oly_sum(carry[0]), *(const double *)user);
}
static void doubles(oly_array *carry, void *user)
{
    (void)user;
    carry[0] = oly_mul(carry[0], 2);
    carry[1] = oly_add(carry[1], 1);
}

static void until_limit(const oly_array *in, oly_array *out, void *user)
{
    out[0] = in[0];
    out[1] = in[1];
    oly_while(below_limit, doubles, 2, out, user);
}

static void a_condition_ends_a_loop(void **state)
{
    static const double limits[] = {10, 78.5, 500, 5000};
    static const int times[] = {0, 1, 3, 7};
    (void)state;
    for (int k = 0; k < 4; k++) {
        double limit = limits[k];
        oly_array carry[2] = {ramp(), oly_scalar(0, OLY_INT32)};
        assert_int_equal(oly_while(below_limit, doubles, 2, carry, &limit), OLY_OK);
        assert_float_equal(total(carry[0]), 78 * pow(2, times[k]), 0);
        assert_int_equal((int)oly_item(carry[1]), times[k]);
        oly_array x = ramp(), n = oly_scalar(0, OLY_INT32);
        oly_fn f = oly_jit(until_limit, 2, 2, .user = &limit);
        for (int again = 0; again < 3; again++) { /* odd and even numbers of iterations alternate buffers */
            oly_array y = NULL, m = NULL;
            oly_call(f, OLY_IN(x, n), OLY_OUT(y, m));
            assert_float_equal(total(y), 78 * pow(2, times[k]), 0);
            assert_int_equal((int)oly_item(m), times[k]);
        }
    }
}

/* Newton's square root, all elements until the last has converged; the operand is captured. */
static oly_array not_good(const oly_array *carry, void *user)
{
    oly_array wanted = *(oly_array *)user;
    return oly_gt(oly_max(oly_abs(oly_sub(oly_mul(carry[0], carry[0]), wanted))), 1e-4);
}
static void newton(oly_array *carry, void *user)
{
    oly_array wanted = *(oly_array *)user;
    carry[0] = oly_mul(0.5, oly_add(carry[0], oly_div(wanted, carry[0])));
}

static void loops_use_arrays_from_outside(void **state)
{
    (void)state;
    float roots[13];
    oly_array wanted = oly_add(ramp(), 1), carry[1] = {oly_ones(OLY_FLOAT32, 13)};
    assert_int_equal(oly_while(not_good, newton, 1, carry, &wanted), OLY_OK);
    assert_int_equal(oly_process_allgather(carry[0], roots, sizeof roots), OLY_OK);
    for (int i = 0; i < 13; i++)
        assert_float_equal(roots[i], sqrt(i + 1), 1e-4);
}

/* The length of the sequence n/2, 3n+1 down to 1, summed over n in a counted loop. */
static oly_array not_one(const oly_array *carry, void *user)
{
    (void)user;
    return oly_ne(carry[0], 1);
}
static void collatz(oly_array *carry, void *user)
{
    (void)user;
    oly_array half = oly_astype(oly_mul(carry[0], 0.5), OLY_INT32), odd = oly_ne(oly_mul(half, 2), carry[0]);
    carry[0] = oly_where(odd, oly_add(oly_mul(carry[0], 3), 1), half);
    carry[1] = oly_add(carry[1], 1);
}
static void lengths(oly_array i, oly_array *carry, void *user)
{
    oly_array inner[2] = {oly_add(i, 1), oly_scalar(0, OLY_INT32)};
    oly_while(not_one, collatz, 2, inner, user);
    carry[0] = oly_add(carry[0], inner[1]);
}
static void all_lengths(const oly_array *in, oly_array *out, void *user)
{
    out[0] = in[0];
    oly_fori(0, 10, lengths, 1, out, user);
}

static void loops_inside_loops(void **state)
{
    (void)state;
    oly_fn f = oly_jit(all_lengths, 1, 1);
    oly_array n = oly_scalar(0, OLY_INT32), y = NULL; /* 0 1 7 2 5 8 16 3 19 6 */
    for (int again = 0; again < 3; again++) {
        oly_call(f, OLY_IN(n), OLY_OUT(y));
        assert_int_equal((int)oly_item(y), 67);
    }
}

/* -- scan ------------------------------------------------------------------------------------------------------------- */

/* Running sums of rows, and the largest so far. */
static void running(oly_array *carry, const oly_array *x, oly_array *y, void *user)
{
    (void)user;
    carry[0] = oly_add(carry[0], x[0]);
    y[0] = carry[0];
    y[1] = oly_max(carry[0]);
}
static void scanned(const oly_array *in, oly_array *out, void *user)
{
    out[0] = in[0];
    oly_scan(5, *(const bool *)user, running, 1, out, 1, in + 1, 2, out + 1, NULL);
}

static void a_scan_stacks_what_its_iterations_give(void **state)
{
    (void)state;
    oly_mesh mesh = oly_make_mesh("x=2, y=4");
    oly_array rows = oly_reshape(oly_arange(35, OLY_FLOAT32), 5, 7), start = oly_full(100, OLY_FLOAT32, 7);
    rows = oly_device_put(rows, oly_named(mesh, "None, y"));
    for (int reverse = 0; reverse < 2; reverse++)
        for (int compiled = 0; compiled < 2; compiled++) {
            float sums[7], all[35], most[5], want[7] = {100, 100, 100, 100, 100, 100, 100};
            bool backwards = reverse;
            oly_array out[3] = {NULL};
            if (compiled) {
                oly_fn f = oly_jit(scanned, 2, 3, .user = &backwards);
                oly_call(f, OLY_IN(start, rows), OLY_OUT(out[0], out[1], out[2]));
            } else {
                oly_array xs[2] = {start, rows};
                scanned(xs, out, &backwards);
            }
            assert_int_equal(oly_process_allgather(out[0], sums, sizeof sums), OLY_OK);
            assert_int_equal(oly_process_allgather(out[1], all, sizeof all), OLY_OK);
            assert_int_equal(oly_process_allgather(out[2], most, sizeof most), OLY_OK);
            for (int k = 0; k < 5; k++) {
                int i = reverse ? 4 - k : k;
                for (int j = 0; j < 7; j++) {
                    want[j] += (float)(7 * i + j);
                    assert_float_equal(all[7 * i + j], want[j], 0);
                }
                assert_float_equal(most[i], want[6], 0);
            }
            for (int j = 0; j < 7; j++)
                assert_float_equal(sums[j], want[j], 0);
        }
}

static void scanned_nothing(const oly_array *in, oly_array *out, void *user)
{
    out[0] = in[0];
    oly_scan(0, *(const bool *)user, running, 1, out, 1, in + 1, 2, out + 1, NULL);
}

static void sum_of_scanned(const oly_array *in, oly_array *out, void *user)
{
    oly_array y[3];
    scanned_nothing(in, y, user);
    out[0] = oly_add(oly_sum(oly_mul(y[0], y[0])), oly_add(oly_sum(y[1]), oly_sum(y[2])));
}

/* As in JAX: carries stay, results are empty, and the body is recorded for their types. */
static void a_scan_of_no_iterations_gives_empty_results(void **state)
{
    (void)state;
    oly_mesh mesh = oly_make_mesh("x=2, y=4");
    oly_array rows = oly_device_put(oly_zeros(OLY_FLOAT32, 0, 8), oly_named(mesh, "None, y"));
    oly_array start = oly_arange(8, OLY_FLOAT32);
    for (int reverse = 0; reverse < 2; reverse++)
        for (int compiled = 0; compiled < 2; compiled++) {
            bool backwards = reverse;
            float got[8];
            oly_array out[3] = {NULL}, xs[] = {start, rows}, slope = NULL;
            if (compiled)
                oly_call(oly_jit(scanned_nothing, 2, 3, .user = &backwards), OLY_IN(start, rows),
                         OLY_OUT(out[0], out[1], out[2]));
            else
                scanned_nothing(xs, out, &backwards);
            assert_int_equal(oly_process_allgather(out[0], got, sizeof got), OLY_OK);
            for (int j = 0; j < 8; j++)
                assert_float_equal(got[j], j, 0);
            char type[2][32];
            oly_typeof(out[1], type[0], sizeof type[0]);
            oly_typeof(out[2], type[1], sizeof type[1]);
            assert_string_equal(type[0], "float32[0,8]");
            assert_string_equal(type[1], "float32[0]");
            oly_call(oly_grad(oly_jit(sum_of_scanned, 2, 1, .user = &backwards)), OLY_IN(start, rows), OLY_OUT(slope));
            assert_int_equal(oly_process_allgather(slope, got, sizeof got), OLY_OK);
            for (int j = 0; j < 8; j++)
                assert_float_equal(got[j], 2 * j, 0);
        }
}

/* -- branches --------------------------------------------------------------------------------------------------------- */

static void plus_one(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_add(in[0], 1);
    out[1] = oly_sum(in[0]);
}
static void turned(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_concatenate(0, oly_slice(in[0], "6:"), oly_slice(in[0], ":6"));
    out[1] = oly_max(in[0]);
}
static void from_outside(const oly_array *in, oly_array *out, void *user)
{
    oly_array other = *(oly_array *)user;
    out[0] = oly_mul(in[0], other);
    out[1] = oly_sum(other);
}
static const oly_function three[] = {plus_one, turned, from_outside};

static void switched(const oly_array *in, oly_array *out, void *user)
{
    oly_switch(in[0], 3, three, 1, in + 1, 2, out, user);
}

static void expect_branch(int index, oly_array *out)
{
    float x[13];
    assert_non_null(out[0]);
    assert_int_equal(oly_process_allgather(out[0], x, sizeof x), OLY_OK);
    for (int i = 0; i < 13; i++)
        assert_float_equal(x[i], (index <= 0 ? i + 1 : index == 1 ? (i + 6) % 13 : 3 * i), 0);
    assert_float_equal(oly_item(out[1]), (index <= 0 ? 78 : index == 1 ? 12 : 39), 0);
}

static void one_branch_is_run(void **state)
{
    (void)state;
    oly_array other = oly_full(3, OLY_FLOAT32, 13), x = ramp();
    oly_fn f = oly_jit(switched, 2, 2, .user = &other);
    for (int index = -2; index < 5; index++)
        OLY_SCOPE
        {
            oly_array out[2] = {NULL}, n = oly_scalar(index, OLY_INT32);
            oly_call(f, OLY_IN(n, x), OLY_OUT(out[0], out[1]));
            expect_branch(index < 2 ? index : 2, out);
            oly_array alone[2];
            assert_int_equal(oly_switch(index, 3, three, 1, &x, 2, alone, &other), OLY_OK);
            expect_branch(index < 2 ? index : 2, alone);
        }
    oly_array out[2];
    assert_int_equal(oly_cond(oly_gt(oly_sum(x), 100), plus_one, turned, 1, &x, 2, out, NULL), OLY_OK);
    expect_branch(1, out);
    assert_int_equal(oly_cond(true, plus_one, turned, 1, &x, 2, out, NULL), OLY_OK);
    expect_branch(0, out);
    oly_array same[2] = {x, NULL}; /* results in the variable of the input */
    assert_int_equal(oly_cond(false, plus_one, turned, 1, same, 2, same, NULL), OLY_OK);
    expect_branch(1, same);
}

/* Branches in a loop: even iterations add one, odd ones reverse. */
static void alternate(oly_array i, oly_array *carry, void *user)
{
    oly_array out[2], half = oly_astype(oly_mul(i, 0.5), OLY_INT32);
    oly_cond(oly_eq(oly_mul(half, 2), i), plus_one, turned, 1, carry, 2, out, user);
    carry[0] = out[0];
}

static void branches_inside_loops(void **state)
{
    (void)state;
    float x[13];
    oly_array carry[1] = {ramp()};
    assert_int_equal(oly_fori(0, 5, alternate, 1, carry, NULL), OLY_OK);
    assert_int_equal(oly_process_allgather(carry[0], x, sizeof x), OLY_OK);
    for (int i = 0; i < 13; i++)
        assert_float_equal(x[i], ((i + 12) % 13 + 3), 0);
}

/* -- errors -------------------------------------------------------------------------------------------------------- */

static void expect_error(oly_status got, oly_status want, const char *a, const char *b)
{
    assert_int_equal(got, want);
    if (!strstr(oly_last_error(), a))
        print_error("\"%s\" is not in: %s\n", a, oly_last_error());
    assert_non_null(strstr(oly_last_error(), a));
    assert_non_null(strstr(oly_last_error(), b));
    oly_clear_error();
}

static void to_integers(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_astype(in[0], OLY_INT32);
    out[1] = oly_sum(in[0]);
}
static void stores_nothing(const oly_array *in, oly_array *out, void *user)
{
    (void)in, (void)out, (void)user;
}
static oly_array whole_condition(const oly_array *carry, void *user)
{
    (void)user;
    return oly_gt(carry[0], 1);
}
static oly_array number_condition(const oly_array *carry, void *user)
{
    (void)user;
    return oly_sum(carry[0]);
}
static void grows(oly_array *carry, void *user)
{
    (void)user;
    carry[0] = oly_concatenate(0, carry[0], carry[0]);
}

static void mistakes_are_named(void **state)
{
    (void)state;
    oly_array x = ramp(), out[2], carry[1] = {x};
    double limit = 100;
    oly_set_error_mode(OLY_ERRORS_RETURN);
    expect_error(oly_cond(true, plus_one, to_integers, 1, &x, 2, out, NULL), OLY_DTYPE, "float32[13]", "int32[13]");
    assert_null(out[0]);
    expect_error(oly_cond(true, plus_one, stores_nothing, 1, &x, 2, out, NULL), OLY_INVALID, "branch", "output 0");
    expect_error(oly_cond(x, plus_one, turned, 1, &x, 2, out, NULL), OLY_SHAPE, "array of rank 1", "oly_any");
    expect_error(oly_switch(0, 0, three, 1, &x, 2, out, NULL), OLY_INVALID, "0 branches", "one branch or more");
    expect_error(oly_while(whole_condition, doubles, 1, carry, NULL), OLY_SHAPE, "bool[13]", "bool[]");
    carry[0] = x;
    expect_error(oly_while(number_condition, doubles, 1, carry, NULL), OLY_DTYPE, "float32[]", "bool[]");
    carry[0] = x;
    expect_error(oly_while(below_limit, grows, 1, carry, &limit), OLY_SHAPE, "float32[13]", "float32[26]");
    assert_null(carry[0]);
    oly_array xs[1] = {x}, ys[2];
    carry[0] = x;
    expect_error(oly_scan(5, false, running, 1, carry, 1, xs, 2, ys, NULL), OLY_SHAPE, "float32[13]",
                 "length of the scan, 5");
    carry[0] = x;
    expect_error(oly_scan(5, false, NULL, 1, carry, 0, NULL, 2, ys, NULL), OLY_INVALID, "a body", "2 ys");
    carry[0] = x;
    expect_error(oly_while(below_limit, NULL, 1, carry, &limit), OLY_INVALID, "a body", "carries");
    oly_set_error_mode(OLY_ERRORS_ABORT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_loop_writes_over_the_result_of_another, check_open, check_close),
        cmocka_unit_test_setup_teardown(a_condition_ends_a_loop, check_open, check_close),
        cmocka_unit_test_setup_teardown(loops_use_arrays_from_outside, check_open, check_close),
        cmocka_unit_test_setup_teardown(loops_inside_loops, check_open, check_close),
        cmocka_unit_test_setup_teardown(a_scan_stacks_what_its_iterations_give, check_open, check_close),
        cmocka_unit_test_setup_teardown(a_scan_of_no_iterations_gives_empty_results, check_open, check_close),
        cmocka_unit_test_setup_teardown(one_branch_is_run, check_open, check_close),
        cmocka_unit_test_setup_teardown(branches_inside_loops, check_open, check_close),
        cmocka_unit_test_setup_teardown(mistakes_are_named, check_open, check_close),
    };
    return CHECK_MAIN(tests);
}
