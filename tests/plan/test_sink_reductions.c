/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  Sums over devices that a loop accumulates: each device accumulates its own part, and one reduction
 * comes after the loop. Where that is not possible, the values are right all the same. And sums of sums, which are
 * reduced over devices once. */
#include "check_session.h"
#include <olympus.h>

enum { STEPS = 6, ROWS = 16, COLUMNS = 3, REDUCTION = 2 /* exchanges, at most */ };

/* What the test varies: how the body computes the next carry. */
typedef enum way {
    ADDS,
    SUBTRACTS,
    DECAYS,
    ADDS_WHOLE,
    READS_TWICE,
    BEGINS_AT_ONE,
    ENDS_SPLIT,
    NO_STEPS,
    COUNTS,
    FORMS
} way;

typedef struct setting {
    way form;
    oly_array x;
} setting;

static oly_mesh mesh;

/* The sum over x of each row's number, times the step's. */
static oly_array sum_of_step(const setting *s, oly_array i)
{
    oly_array factor = s->form == COUNTS ? oly_add(i, 1) : oly_astype(oly_add(i, 1), OLY_FLOAT32);
    return oly_sum(oly_mul(s->x, factor), .axes = "0");
}

static void body(oly_array i, oly_array *carry, void *user)
{
    const setting *s = user;
    oly_array c = carry[0], sum = sum_of_step(s, i);
    switch (s->form) {
    case SUBTRACTS: carry[0] = oly_sub(sum, c); break;
    case DECAYS: carry[0] = oly_add(oly_mul(0.5, c), oly_mul(3, sum)); break;
    case ADDS_WHOLE: carry[0] = oly_add(oly_add(c, oly_astype(i, OLY_FLOAT32)), sum); break;
    case READS_TWICE: carry[0] = oly_add(oly_max2(c, 5), sum); break;
    default: carry[0] = oly_add(c, sum);
    }
}

static double expected(way form, int column)
{
    double c = form == BEGINS_AT_ONE, rows = 0;
    for (int r = 0; r < ROWS; r++)
        rows += r + column;
    for (int i = 0; i < (form == NO_STEPS ? 0 : STEPS); i++) {
        double sum = rows * (i + 1);
        switch (form) {
        case SUBTRACTS: c = sum - c; break;
        case DECAYS: c = 0.5 * c + 3 * sum; break;
        case ADDS_WHOLE: c += i + sum; break;
        case READS_TWICE: c = (c > 5 ? c : 5) + sum; break;
        default: c += sum;
        }
    }
    return c;
}

static void adds_up(const oly_array *in, oly_array *out, void *user)
{
    setting s = {*(const way *)user, in[0]};
    oly_dtype dtype = s.form == COUNTS ? OLY_INT32 : OLY_FLOAT32;
    oly_array carry = oly_full(s.form == BEGINS_AT_ONE ? 1 : 0, dtype, COLUMNS);
    if (s.form == ENDS_SPLIT)
        carry = oly_with_sharding_constraint(carry, oly_named(mesh, "x"));
    oly_fori(0, s.form == NO_STEPS ? 0 : STEPS, body, 1, &carry, &s);
    out[0] = carry;
    out[1] = oly_mul(carry, 2);
}

static oly_array rows(oly_dtype dtype)
{
    oly_array x = oly_add(oly_iota(dtype, 0, ROWS, COLUMNS), oly_iota(dtype, 1, ROWS, COLUMNS));
    return oly_device_put(x, oly_named(mesh, "x"));
}

static void check_form(way form)
{
    oly_array x = rows(form == COUNTS ? OLY_INT32 : OLY_FLOAT32), sums = NULL, twice = NULL;
    oly_fn f = oly_jit(adds_up, 1, 2, .user = &form);
    oly_call(f, OLY_IN(x), OLY_OUT(sums, twice));
    double wanted[2][COLUMNS];
    for (int k = 0; k < COLUMNS; k++)
        wanted[1][k] = 2 * (wanted[0][k] = expected(form, k));
    check_near(sums, COLUMNS, wanted[0]);
    check_near(twice, COLUMNS, wanted[1]);
    bool once = form == ADDS || form == SUBTRACTS || form == DECAYS || form == ADDS_WHOLE || form == COUNTS;
    oly_plan_costs costs;
    oly_costs(&costs, f, x);
    if (once)
        assert_true(costs.collectives <= REDUCTION);
}

static void one_reduction_after_the_loop(void **state)
{
    (void)state;
    mesh = oly_make_mesh("x=8");
    for (way form = 0; form < FORMS; form++)
        check_form(form);
}

/* The same over one of two axes: the split over the other one stays. */
static void two_axes(void **state)
{
    (void)state;
    mesh = oly_make_mesh("x=4, y=2");
    for (way form = 0; form < FORMS; form++)
        check_form(form);
}

/* -- while loops and nested loops ---------------------------------------------------------------------------------- */
static oly_array goes_on(const oly_array *carry, void *user)
{
    (void)user;
    return oly_lt(carry[1], STEPS);
}

static void add_one(oly_array *carry, void *user)
{
    carry[0] = oly_add(carry[0], sum_of_step(user, carry[1]));
    carry[1] = oly_add(carry[1], 1);
}

static void inner(oly_array i, oly_array *carry, void *user)
{
    (void)i;
    oly_array c[] = {oly_zeros(OLY_FLOAT32, COLUMNS), oly_scalar(0, OLY_INT32)};
    oly_while(goes_on, add_one, 2, c, user);
    carry[0] = oly_add(carry[0], c[0]);
}

static void nested(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    setting s = {ADDS, in[0]};
    out[0] = oly_zeros(OLY_FLOAT32, COLUMNS);
    oly_fori(0, 2, inner, 1, out, &s);
}

static void loops_in_loops(void **state)
{
    (void)state;
    mesh = oly_make_mesh("x=8");
    oly_array x = rows(OLY_FLOAT32);
    oly_fn f = oly_jit(nested, 1, 1);
    double wanted[COLUMNS];
    for (int k = 0; k < COLUMNS; k++)
        wanted[k] = 2 * expected(ADDS, k);
    check_near(oly_apply(f, x), COLUMNS, wanted);
    oly_plan_costs costs;
    oly_costs(&costs, f, x);
    assert_true(costs.collectives <= REDUCTION);
}

/* -- gradients of weights used in every step ---------------------------------------------------------------------------- */
static void step(oly_array *h, const oly_array *x, oly_array *y, void *user)
{
    (void)y;
    h[0] = oly_add(oly_matmul(h[0], *(oly_array *)user), x[0]);
}

static void loss(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array w = in[0], h = oly_zeros(OLY_FLOAT32, ROWS, COLUMNS);
    oly_scan(STEPS, false, step, 1, &h, 1, &in[1], 0, NULL, &w);
    out[0] = oly_sum(h);
}

static void weights_of_a_scan(void **state)
{
    (void)state;
    mesh = oly_make_mesh("x=8");
    oly_array w = oly_device_put(oly_eye(COLUMNS, COLUMNS, 0, OLY_FLOAT32), oly_named(mesh, ""));
    oly_array x = oly_device_put(oly_ones(OLY_FLOAT32, STEPS, ROWS, COLUMNS), oly_named(mesh, "None, x"));
    oly_fn f = oly_value_and_grad(oly_jit(loss, 2, 1));
    oly_array value = NULL, slope = NULL;
    oly_call(f, OLY_IN(w, x), OLY_OUT(value, slope));
    CHECK_NEAR(value, ROWS * COLUMNS * STEPS);
    double each = ROWS * (double)(STEPS * (STEPS - 1) / 2); /* step k reads h = k and adds its result unchanged */
    CHECK_NEAR(slope, each, each, each, each, each, each, each, each, each);
    oly_plan_costs costs;
    oly_costs(&costs, f, w, x);
    assert_true(costs.collectives <= 2 * REDUCTION); /* of the value, and of the derivative */
}

/* -- sums of sums --------------------------------------------------------------------------------------------------------- */
static void sums_of_sums(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sum(oly_sum(in[0], .axes = "0"), .axes = "0"); /* 3 elements give 1 */
    out[1] = oly_mul(oly_sum(in[0]), 2);                        /* read directly */
    out[2] = oly_max(oly_max(in[0], .axes = "0"), .axes = "0");
}

static void only_the_last_sum_goes_over_devices(void **state)
{
    (void)state;
    mesh = oly_make_mesh("x=8");
    oly_array x = rows(OLY_FLOAT32), a = NULL, b = NULL, c = NULL;
    oly_fn f = oly_jit(sums_of_sums, 1, 3);
    oly_call(f, OLY_IN(x), OLY_OUT(a, b, c));
    CHECK_NEAR(a, 408);
    CHECK_NEAR(b, 816);
    CHECK_NEAR(c, 17);
    oly_plan_costs costs;
    oly_costs(&costs, f, x);
    assert_true(costs.collectives <= 2 * REDUCTION);
    assert_true(costs.wire_bytes * oly_process_count() < 5 * 2 * 7 * 4); /* three elements, not seven */
}

/* Nothing is left to do once the two sums have become one. */
static void over_both(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_psum(oly_psum(in[0], "x"), "y");
}

static void sums_over_one_axis_after_the_other(void **state)
{
    (void)state;
    mesh = oly_make_mesh("x=4, y=2");
    oly_array x = oly_device_put(rows(OLY_FLOAT32), oly_named(mesh, "(x,y)")), sums = NULL;
    oly_shard_map(over_both, NULL, mesh, OLY_IN(x), OLY_SPECS("(x,y)"), OLY_OUT(sums), OLY_SPECS(""));
    CHECK_NEAR(sums, 56, 64, 72, 64, 72, 80);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_reduction_after_the_loop, check_start, check_finish),
        cmocka_unit_test_setup_teardown(two_axes, check_start, check_finish),
        cmocka_unit_test_setup_teardown(loops_in_loops, check_start, check_finish),
        cmocka_unit_test_setup_teardown(weights_of_a_scan, check_start, check_finish),
        cmocka_unit_test_setup_teardown(only_the_last_sum_goes_over_devices, check_start, check_finish),
        cmocka_unit_test_setup_teardown(sums_over_one_axis_after_the_other, check_start, check_finish),
    };
    return CHECK_MAIN(tests);
}
