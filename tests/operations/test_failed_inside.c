/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  Functions of the program in which a call fails (OLY_ERRORS_RETURN) and which continue: whatever called
 * them fails, too, and its results are NULL. A loop that could not be recorded once left its carry unchanged, and the
 * enclosing function returned that. Functions that clear the error have handled it. */
#include "check.h"
#include "check_session.h"
#include <olympus.h>

typedef enum means { FAILS, CLEARS, TURNS_TO_INTEGERS } means;
static means what;

static oly_array body_of(oly_array x)
{
    if (what == TURNS_TO_INTEGERS)
        return oly_astype(x, OLY_INT32);
    if (!oly_add(oly_zeros(OLY_FLOAT32, 2), oly_zeros(OLY_FLOAT32, 3)) && what == CLEARS)
        oly_clear_error();
    return oly_mul(x, 2);
}

/* -- the body, for each caller ------------------------------------------------------------------------------------- */
static void one(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = body_of(in[0]);
}
static void counted(oly_array i, oly_array *carry, void *user)
{
    (void)i;
    (void)user;
    carry[0] = body_of(carry[0]);
}
static oly_array below_ten(const oly_array *carry, void *user)
{
    (void)user;
    return oly_lt(oly_max(carry[0]), 10);
}
static oly_array fails_below_ten(const oly_array *carry, void *user)
{
    (void)body_of(carry[0]);
    return below_ten(carry, user);
}
static void repeated(oly_array *carry, void *user)
{
    (void)user;
    carry[0] = body_of(carry[0]);
}
static void doubled(oly_array *carry, void *user)
{
    (void)user;
    carry[0] = oly_mul(carry[0], 2);
}
static void scanned(oly_array *carry, const oly_array *x, oly_array *y, void *user)
{
    (void)x;
    (void)user;
    y[0] = oly_sum(carry[0]);
    carry[0] = body_of(carry[0]);
}
static void same(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = in[0];
}

/* -- the callers: the result is left in *x ------------------------------------------------------------------------- */
static void in_loop(oly_array *x)
{
    oly_fori(0, 2, counted, 1, x, NULL);
}
static void in_while(oly_array *x)
{
    oly_while(below_ten, repeated, 1, x, NULL);
}
static void in_condition(oly_array *x)
{
    oly_while(fails_below_ten, doubled, 1, x, NULL);
}
static void in_scan(oly_array *x)
{
    oly_array y = *x;
    oly_scan(2, false, scanned, 1, x, 0, NULL, 1, &y, NULL);
    assert_int_equal(*x == NULL, y == NULL);
}
static void in_branch(oly_array *x)
{
    oly_array before = *x;
    oly_cond(true, one, same, 1, &before, 1, x, NULL);
}
static void in_other_branch(oly_array *x)
{
    oly_array before = *x;
    oly_cond(true, same, one, 1, &before, 1, x, NULL);
}
static void in_map(oly_array *x)
{
    oly_array before = *x;
    oly_shard_map(one, NULL, oly_make_mesh("x=2, y=4"), OLY_IN(before), OLY_SPECS("(x)"), OLY_OUT(*x),
                  OLY_SPECS("(x)"));
}
static void in_batch(oly_array *x)
{
    oly_array before = *x;
    oly_vmap(one, NULL, OLY_IN(before), OLY_AXES_OF(0), OLY_OUT(*x), OLY_AXES_OF(0));
}
static void in_function(oly_array *x)
{
    oly_array before = *x;
    oly_call(oly_jit(one, 1, 1), OLY_IN(before), OLY_OUT(*x));
}
static void loss(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sum(body_of(in[0]));
}
static void in_gradient(oly_array *x)
{
    oly_array before = *x;
    oly_call(oly_grad(oly_jit(loss, 1, 1)), OLY_IN(before), OLY_OUT(*x));
}
static void in_region(oly_array *x)
{
    oly_sharding split = oly_named(oly_make_mesh("x=2:explicit, y=4:explicit"), "(x)");
    oly_array before = *x;
    oly_explicit_axes(one, NULL, OLY_IN(before), OLY_SHARDINGS(split), OLY_OUT(*x));
}

typedef void caller(oly_array *x);
static caller *const callers[] = {in_loop, in_while, in_condition, in_scan,     in_branch, in_other_branch,
                                  in_map,  in_batch, in_function,  in_gradient, in_region};
enum { CALLERS = sizeof callers / sizeof *callers };

/* Returns an array regardless of the failure of the call that should have changed it. */
static void around(const oly_array *in, oly_array *out, void *user)
{
    oly_array x = in[0];
    (*(caller *const *)user)(&x);
    out[0] = x ? x : in[0];
}

static oly_array sharded(void)
{
    oly_array x = oly_arange(8, OLY_FLOAT32);
    return oly_device_put(x, oly_named(oly_make_mesh("x=2, y=4"), "(x)"));
}

static void refuse(means how, oly_status status, const char *text, int from, int to)
{
    what = how;
    for (int k = from; k < to; k++) {
        oly_array x = sharded(), y = NULL;
        callers[k](&x);
        if (x)
            fail_msg("caller %d left its array", k);
        assert_int_equal(oly_last_status(), status);
        assert_non_null(strstr(oly_last_error(), text));
        oly_clear_error();
        x = sharded();
        y = x;
        oly_fn f = oly_jit(around, 1, 1, .user = (void *)&callers[k]);
        assert_int_not_equal(oly_call(f, OLY_IN(x), OLY_OUT(y)), OLY_OK);
        assert_null(y);
        assert_int_equal(oly_last_status(), status);
        assert_non_null(strstr(oly_last_error(), text));
        oly_clear_error();
        assert_float_equal(oly_item(oly_sum(x)), 28, 0);
    }
}

static void a_failed_call_fails_what_is_around_it(void **state)
{
    (void)state;
    refuse(FAILS, OLY_SHAPE, "oly_add (tests/operations/test_failed_inside.c", 0, CALLERS);
}

static void a_carry_that_changes_fails_what_is_around_it(void **state)
{
    (void)state;
    refuse(TURNS_TO_INTEGERS, OLY_DTYPE, "carry 0", 0, 2);
}

/* An earlier error that was not cleared is no error of these calls. */
static void an_older_error_is_not_theirs(void **state)
{
    (void)state;
    what = CLEARS;
    for (int k = 0; k < CALLERS; k++) {
        oly_array x = sharded(), y = NULL;
        assert_null(oly_add(x, oly_zeros(OLY_FLOAT32, 3, 5)));
        oly_fn f = oly_jit(same, 1, 1);
        assert_int_equal(oly_call(f, OLY_IN(x), OLY_OUT(y)), OLY_OK);
        assert_float_equal(oly_item(oly_sum(y)), 28, 0);
        oly_clear_error();
    }
}

static void cleared_errors_are_no_errors(void **state)
{
    (void)state;
    what = CLEARS;
    static const double sums[CALLERS] = {112, 56, 56, 112, 56, 28, 56, 56, 56, 16, 56};
    for (int k = 0; k < CALLERS; k++) {
        oly_array x = sharded(), y = NULL;
        oly_fn f = oly_jit(around, 1, 1, .user = (void *)&callers[k]);
        assert_int_equal(oly_call(f, OLY_IN(x), OLY_OUT(y)), OLY_OK);
        assert_float_equal(oly_item(oly_sum(y)), sums[k], 0);
        callers[k](&x);
        assert_float_equal(oly_item(oly_sum(x)), sums[k], 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_failed_call_fails_what_is_around_it, check_start, check_finish),
        cmocka_unit_test_setup_teardown(a_carry_that_changes_fails_what_is_around_it, check_start, check_finish),
        cmocka_unit_test_setup_teardown(an_older_error_is_not_theirs, check_start, check_finish),
        cmocka_unit_test_setup_teardown(cleared_errors_are_no_errors, check_start, check_finish),
    };
    return CHECK_MAIN(tests);
}
