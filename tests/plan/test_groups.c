/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1,2 devices=8  Groups of elementwise operations of any size: what does not fit into one is divided into few, and values have the
 * bits of operations one by one. GROUPS_SEED=seed:count: other random programs. */
#include "check.h"
#include "check_draws.h"
#include "check_session.h"
#include "compare_pass.h"
#include <olympus.h>

enum { LENGTH = 1024, PROGRAMS = 40, MOST_VALUES = 400, TERMS = 40 };

/* Weighted sums over many shifts of an array, weights made of each: more operations and operands than one group has room for. */
static void many_terms(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array sum = NULL, weights = NULL;
    for (int k = 0; k < TERMS; k++) {
        oly_array x = oly_slice_in_dim(in[0], k, k + LENGTH - TERMS, 1, 0), d = oly_sub(x, 0.25 + 0.01 * k);
        oly_array w = oly_exp(oly_sub(-0.1 * k, oly_mul(2, oly_mul(d, d))));
        sum = sum ? oly_add(sum, oly_mul(w, x)) : oly_mul(w, x);
        weights = weights ? oly_add(weights, w) : w;
    }
    out[0] = oly_div(sum, weights);
}

static void many_terms_are_few_groups(void **state)
{
    (void)state;
    static pass_outcome with, without;
    oly_array in = compare_pass_numbers("", -1, LENGTH);
    compare_pass(OLY_OPTIMISATION_FUSION, many_terms, NULL, &in, 1, 1, &with, &without);
    assert_true(with.costs.steps <= 6);
    assert_true(without.costs.steps > 4 * TERMS);
}

/* Two results that have a value in common, one of which waits for a sum: they are one group, after the sum. */
static void results_in_common(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array both = oly_mul(oly_sub(in[0], 0.25), 3);
    out[0] = oly_sub(0.5, both);
    out[1] = oly_add(both, oly_sum(oly_abs(in[0])));
}

static void advance(oly_array i, oly_array *c, void *user)
{
    (void)user;
    oly_array next = oly_add(c[0], c[1]);
    c[0] = oly_sub(0.5, next);
    c[1] = oly_add(oly_mul(0.25, next), oly_mul(0.125, oly_astype(i, OLY_FLOAT32)));
}

static void advance_four(const oly_array *in, oly_array *out, void *user)
{
    out[0] = out[1] = in[0];
    oly_fori(0, 4, advance, 2, out, user);
}

static void results_join_the_group_that_reads_them(void **state)
{
    (void)state;
    static pass_outcome with, without;
    static const char *const specs[] = {"", "x", "(x,y)"};
    for (int k = 0; k < (int)(sizeof specs / sizeof *specs); k++) {
        oly_array in = compare_pass_numbers(specs[k], -1, LENGTH);
        compare_pass(OLY_OPTIMISATION_FUSION, results_in_common, NULL, &in, 1, 2, &with, &without);
        if (k == 0) /* the magnitudes, their sum, both results; elsewhere also what brings sums together */
            assert_int_equal(with.costs.steps, 3);
        compare_pass(OLY_OPTIMISATION_FUSION, advance_four, NULL, &in, 1, 2, &with, &without);
        assert_int_equal(with.costs.steps, 3); /* the counter as a float, both results, the loop */
    }
}

/* One more value of some that there are; shapes are `length` or that without its last element. */
static oly_array one_more(oly_array *values, int n, int64_t length)
{
    int recent = n < 12 ? n : 12;
    oly_array x = values[below(4) ? n - 1 - below(recent) : below(n)],
              y = values[below(3) ? n - 1 - below(recent) : below(n)];
    if (oly_dim(x, 0) != oly_dim(y, 0)) {
        int64_t shorter = oly_dim(x, 0) < oly_dim(y, 0) ? oly_dim(x, 0) : oly_dim(y, 0), by = below(2);
        x = oly_dim(x, 0) > shorter ? oly_slice_in_dim(x, by, by + shorter, 1, 0) : x;
        y = oly_dim(y, 0) > shorter ? oly_slice_in_dim(y, by, by + shorter, 1, 0) : y;
    }
    switch (below(12)) {
    case 0: return oly_tanh(oly_add(x, y));
    case 1: return oly_where(oly_gt(x, y), x, oly_mul(0.5, y));
    case 2: return oly_roll(x, 1, 0);
    case 3: return oly_sub(x, oly_max(y)); /* depends on all of y */
    case 4: return oly_dim(x, 0) == length ? oly_slice_in_dim(x, 1, length, 1, 0) : oly_neg(x);
    case 5: return oly_exp(oly_neg(oly_mul(x, x)));
    case 6:
    case 7: return oly_mul(0.5, oly_sub(x, y));
    default: return oly_add(oly_mul(0.5, x), oly_mul(0.25, y));
    }
}

static void random_program(const oly_array *in, oly_array *out, void *user)
{
    static oly_array values[MOST_VALUES + 8];
    check_draws(*(const int *)user);
    int n = 0, wanted = 20 + below(MOST_VALUES - 20), inputs = 1 + below(8);
    for (; n < inputs; n++)
        values[n] = oly_mul(1 - 0.125 * n, in[0]);
    for (; n < wanted; n++)
        values[n] = one_more(values, n, LENGTH);
    oly_array sum = values[n - 1];
    for (int k = 0; k < n; k += 1 + below(20)) { /* what would be read by nothing */
        int64_t shorter = oly_dim(sum, 0) < oly_dim(values[k], 0) ? oly_dim(sum, 0) : oly_dim(values[k], 0);
        sum = oly_fmin(oly_slice_in_dim(sum, 0, shorter, 1, 0), oly_slice_in_dim(values[k], 0, shorter, 1, 0));
    }
    out[0] = sum;
    out[1] = values[below(n)];
}

static void random_programs_have_the_values_of_single_operations(void **state)
{
    (void)state;
    static const char *const specs[] = {"x", "y", "(x,y)", ""};
    int count = PROGRAMS, first = check_draws_wanted("GROUPS_SEED", 1, &count);
    for (int program = first; program < first + count; program++)
        OLY_SCOPE
        {
            static pass_outcome with, without;
            oly_array in = compare_pass_numbers(specs[program % 4], -1, LENGTH);
            compare_pass(OLY_OPTIMISATION_FUSION, random_program, &program, &in, 1, 2, &with, &without);
            assert_true(with.costs.steps < without.costs.steps);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(many_terms_are_few_groups, check_start, check_finish),
        cmocka_unit_test_setup_teardown(results_join_the_group_that_reads_them, check_start, check_finish),
        cmocka_unit_test_setup_teardown(random_programs_have_the_values_of_single_operations, check_start,
                                        check_finish),
    };
    return CHECK_MAIN(tests);
}
