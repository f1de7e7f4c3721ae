/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1,2 devices=8  C numbers are run-time operands of eager calls: other numbers use the same plan and have the bits of a plan made for
 * them; the caches of plans are bounded and counted. */
#include "check.h"
#include "check_session.h"
#include "core/optimisation.h"
#include "core/option.h"
#include <math.h>
#include <olympus.h>

enum { N = 16, KINDS = 26 };

static oly_plan_cache state_of_plans(void)
{
    oly_plan_cache state;
    assert_int_equal(oly_plan_cache_state(&state), OLY_OK);
    return state;
}

/* One call with two numbers, of every way in which numbers are used: promoted, converted several times, their value looked at. */
static oly_array call_of(int kind, oly_array x, oly_operand a, oly_operand b)
{
    oly_operand ox = oly_operand_array(x);
    oly_sharding split = oly_named(oly_make_mesh("x=8"), "x");
    switch (kind) {
    case 0: return oly_add(ox, a);
    case 1: return oly_sub(a, ox);
    case 2: return oly_mul(ox, a);
    case 3: return oly_div(ox, a);
    case 4: return oly_pow(ox, a);
    case 5: return oly_pow(a, ox);
    case 6: return oly_where(oly_gt(ox, a), ox, b);
    case 7: return oly_where(a, ox, b);
    case 8: return oly_max2(ox, a);
    case 9: return oly_eq(ox, a);
    case 10: return oly_add(a, b);
    case 11: return oly_full(a, OLY_FLOAT32, 3, 5);
    case 12: return oly_full(a, OLY_INT8, 7);
    case 13: return oly_scalar(a, OLY_BFLOAT16);
    case 14: return oly_update(x, "2:5", a);
    case 15: return oly_update(x, "::3", b);
    case 16: return oly_full_sharded(a, OLY_FLOAT32, split, 1, (int64_t[]){20});
    case 17: return oly_dynamic_slice(x, 1, &a, 1, (int64_t[]){4});
    case 18: return oly_random_uniform_between(oly_random_key(7), OLY_FLOAT32, a, b, N);
    case 19: return oly_random_bernoulli(oly_random_key(7), a, N);
    case 20: return oly_atan2(ox, a);
    case 21: return oly_logical_and(ox, a);
    case 22: return oly_pad(x, a, ((int64_t[]){1}), ((int64_t[]){2}), NULL);
    case 23: return oly_clip(ox, a, b);
    case 24: return oly_astype(a, OLY_FLOAT16);
    default: return oly_sum(a);
    }
}

static oly_operand number(int form, int k)
{
    static const double values[] = {0, 1, 2, 3, -1, 0.1, 1e-30, 3e38, -2.5, 7};
    double x = values[k % 10];
    switch (form) {
    case 0: return oly_operand_float(x);
    case 1: return oly_operand_int((int64_t)(fabs(x) < 100 ? x : 5));
    case 2: return oly_operand_bool(k % 2);
    default: return oly_operand_parts(x, k % 3);
    }
}

static int64_t bits_of(oly_array x, char *bits, size_t room)
{
    char type[256];
    int n = oly_typeof(x, type, sizeof type);
    size_t bytes = (size_t)oly_size(x) * oly_dtype_size(oly_dtype_of(x));
    assert_true((size_t)n + bytes < room);
    memcpy(bits, type, (size_t)n);
    assert_int_equal(oly_process_allgather(x, bits + n, bytes), OLY_OK);
    return n + (int64_t)bytes;
}

/* Returns -1 for a call that is refused, which both must be. */
static int64_t result_of(bool baked, int kind, oly_array x, oly_operand a, oly_operand b, char *bits, size_t room)
{
    const oly_optimisations one = (oly_optimisations)1 << OLY_OPTIMISATION_RUN_TIME_NUMBERS;
    oly_optimisations before = oly_disable(baked ? one : 0);
    oly_array result = call_of(kind, x, a, b);
    oly_disable(before);
    int64_t n = result ? bits_of(result, bits, room) : -1;
    oly_clear_error();
    return n;
}

static void compare_kinds(oly_dtype dtype, oly_sharding sharding)
{
    static char bits[2][8192];
    oly_array x = oly_sub(oly_arange(N, dtype), 3);
    if (sharding)
        x = oly_device_put(x, sharding);
    for (int kind = 0; kind < KINDS; kind++)
        for (int form = 0; form < 4; form++)
            for (int k = 0; k < 5; k++)
                OLY_SCOPE
                {
                    /* the second form takes turns: numbers of several types in one call */
                    oly_operand a = number(form, 2 * k + kind), b = number((form + kind) % 2, k + 1);
                    int64_t n = result_of(false, kind, x, a, b, bits[0], sizeof bits[0]);
                    int64_t m = result_of(true, kind, x, a, b, bits[1], sizeof bits[1]);
                    if (n != m || (n > 0 && memcmp(bits[0], bits[1], (size_t)n) != 0))
                        fail_msg("kind %d, form %d, numbers %d: other bits than planned for them", kind, form, k);
                }
}

static void results_have_the_bits_of_plans_for_their_numbers(void **state)
{
    (void)state;
    oly_sharding split = oly_named(oly_make_mesh("x=8"), "x");
    compare_kinds(OLY_FLOAT32, NULL);
    compare_kinds(OLY_FLOAT32, split);
    compare_kinds(OLY_INT32, split);
    compare_kinds(OLY_BFLOAT16, split);
}

static void other_numbers_need_no_other_plan(void **state)
{
    (void)state;
    oly_array x = oly_device_put(oly_arange(N, OLY_FLOAT32), oly_named(oly_make_mesh("x=8"), "x"));
    float value[N];
    oly_free(oly_add(x, 0.5));
    oly_free(oly_mul(2, x));
    oly_plan_cache before = state_of_plans();
    for (int k = 1; k <= 1000; k++)
        OLY_SCOPE
        {
            oly_array y = oly_add(x, (double)k), z = oly_mul(k, x);
            oly_array rate = oly_scalar((double)k, OLY_FLOAT32);
            if (k % 100 != 0)
                continue;
            assert_int_equal(oly_process_allgather(oly_add(y, z), value, sizeof value), OLY_OK);
            for (int i = 0; i < N; i++)
                assert_float_equal(value[i], i + k + k * i, 0);
            assert_float_equal(oly_item(rate), k, 0);
        }
    oly_plan_cache after = state_of_plans();
    assert_true(after.made - before.made <= 2); /* of the sum, and of gathering it */
    assert_true(after.hits - before.hits >= 2000);
}

/* Queued calls keep the numbers they were made with. */
static void numbers_of_queued_calls_stay(void **state)
{
    (void)state;
    enum { CALLS = 40, MANY = 1 << 16 };
    oly_array x = oly_device_put(oly_zeros(OLY_FLOAT32, MANY), oly_named(oly_make_mesh("x=8"), "x")), y[CALLS];
    for (int k = 0; k < CALLS; k++)
        y[k] = oly_add(x, (double)k);
    for (int k = 0; k < CALLS; k++)
        CHECK_NEAR(oly_max(y[k]), k);
}

/* Numbers whose value decides what is computed are planned each, and the least recently used of the plans go. */
static void plans_are_bounded(void **state)
{
    (void)state;
    oly_array x = oly_arange(N, OLY_FLOAT32);
    oly_plan_cache before = state_of_plans();
    for (int k = 0; k < 100; k++) {
        oly_free(oly_pow(x, k % 50));
        oly_free(oly_add(x, 1));
    }
    oly_plan_cache after = state_of_plans();
    assert_int_equal(after.most, oly_option.plan_cache);
    assert_true(after.plans <= after.most && after.plans - before.plans >= 10);
    assert_true(after.dropped > 0 && after.made - before.made >= 100);
    assert_true(after.hits - before.hits >= 99); /* the sum is used all the time */
    CHECK_NEAR(oly_slice(oly_pow(x, 3), ":4"), 0, 1, 8, 27);
}

static int start_with_few(void **state)
{
    setenv("OLYMPUS_PLAN_CACHE", "40", 1);
    return check_start(state);
}
static int end_with_few(void **state)
{
    unsetenv("OLYMPUS_PLAN_CACHE");
    return check_finish(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(results_have_the_bits_of_plans_for_their_numbers, check_start, check_finish),
        cmocka_unit_test_setup_teardown(other_numbers_need_no_other_plan, check_start, check_finish),
        cmocka_unit_test_setup_teardown(numbers_of_queued_calls_stay, check_start, check_finish),
        cmocka_unit_test_setup_teardown(plans_are_bounded, start_with_few, end_with_few),
    };
    return CHECK_MAIN(tests);
}
