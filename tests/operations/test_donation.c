/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1 devices=8.  A donated array is updated in place, and using it afterwards is an error. */
#include "check.h"
#include "check_session.h"
#include "array/array.h"
#include "core/error.h"
#include <math.h>
#include <olympus.h>
#include <string.h>

static void sine(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sin(in[0]);
}

static void reversed_sum(const oly_array *in, oly_array *out, void *user)
{
    (void)user; /* reads elements of other devices: the old value is needed while the new one is written */
    out[0] = oly_add(in[0], oly_concatenate(0, oly_slice(in[0], "50:"), oly_slice(in[0], ":50")));
}

static oly_array ramp(void)
{
    return oly_device_put(oly_arange(100, OLY_FLOAT32), oly_named(oly_make_mesh("x=8"), "x"));
}

/* The device's address: oly_shard.memory may be a copy for the host. */
static const void *address_of(oly_array x, int shard)
{
    return oly_block_until_ready(x) == OLY_OK ? x->shard[shard]->data : NULL;
}

static void the_result_is_written_over_the_donated_array(void **state)
{
    (void)state;
    oly_array x = ramp();
    oly_fn f = oly_jit(sine, 1, 1);
    const void *before = address_of(x, 3);
    oly_call(f, OLY_IN(x), OLY_OUT(x));
    assert_ptr_equal(address_of(x, 3), before);
    oly_array y = NULL;
    oly_call(f, OLY_IN(x), OLY_OUT(y));
    assert_ptr_not_equal(address_of(y, 3), before);
}

static void data_that_others_hold_is_not_overwritten(void **state)
{
    (void)state;
    oly_array x = ramp(), other = oly_device_put(x, NULL);
    oly_fn f = oly_jit(sine, 1, 1);
    oly_call(f, OLY_IN(x), OLY_OUT(x));
    assert_float_equal(oly_item(oly_sum(other)), 4950, 0);
}

/* An array assembled from parts shares their memory; donating it does not change them. */
static void parts_of_an_array_are_shared(void **state)
{
    (void)state;
    oly_array parts[8], whole;
    for (int k = 0; k < 8; k++) /* from the last device to the first */
        parts[k] = oly_device_put(oly_full(7 - k, OLY_FLOAT32, 1), oly_single_device(oly_local_device(7 - k)));
    whole = oly_from_shards(oly_named(oly_make_mesh("x=8"), "x"), OLY_FLOAT32, 1, (int64_t[]){8}, 8, parts);
    for (int k = 0; k < 8; k++)
        assert_ptr_equal(address_of(whole, k), address_of(parts[7 - k], 0));
    float values[8];
    oly_call(oly_jit(sine, 1, 1), OLY_IN(whole), OLY_OUT(whole));
    assert_int_equal(oly_get(whole, values, sizeof values), OLY_OK);
    for (int k = 0; k < 8; k++) {
        assert_float_equal(oly_item(parts[k]), 7 - k, 0);
        assert_float_equal(values[k], sinf((float)k), 1e-6);
        oly_free(parts[k]);
    }
}

static void a_plan_that_still_reads_keeps_the_old_value(void **state)
{
    (void)state;
    float values[100];
    oly_array x = ramp();
    oly_fn f = oly_jit(reversed_sum, 1, 1);
    oly_call(f, OLY_IN(x), OLY_OUT(x));
    assert_int_equal(oly_get(x, values, sizeof values), OLY_OK);
    for (int k = 0; k < 100; k++)
        assert_float_equal(values[k], k + (k + 50) % 100, 0);
}

static void a_dead_handle_is_an_error(void **state)
{
    (void)state;
    oly_array x = ramp(), old = x;
    oly_fn f = oly_jit(sine, 1, 1);
    oly_call(f, OLY_IN(x), OLY_OUT(x));
    oly_set_error_mode(OLY_ERRORS_RETURN);
    assert_null(oly_add(old, 1));
    assert_int_equal(oly_last_status(), OLY_DELETED);
    assert_non_null(strstr(oly_last_error(), "array has been deleted with shape=float32[100]"));
    oly_clear_error();
    oly_set_error_mode(OLY_ERRORS_ABORT);
}

/* Replay allocates nothing: no buffers, and no handles of results. */
static void replayed_calls_allocate_nothing(void **state)
{
    (void)state;
    oly_array x = ramp();
    oly_fn f = oly_jit(sine, 1, 1);
    for (int k = 0; k < 600; k++) { /* as many handles as are kept after their death, and more */
        oly_call(f, OLY_IN(x), OLY_OUT(x));
        oly_block_until_ready(x);
    }
    oly_fail_allocation(0); /* the next one */
    for (int k = 0; k < 100; k++) {
        oly_call(f, OLY_IN(x), OLY_OUT(x));
        oly_block_until_ready(x);
    }
    oly_fail_allocation(-1);
    assert_int_equal(oly_last_status(), OLY_OK);
}

static void narrower(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_astype(oly_add(in[0], 1), OLY_FLOAT32);
}

static void later_part(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_add(oly_slice(in[0], "4096:"), -4095);
}

/* A smaller result would fit into its operand, but threads that write it would overtake those that read. */
static void smaller_results_take_no_place(void **state)
{
    (void)state;
    enum { MANY = 1 << 19 };
    oly_enable_x64(true);
    oly_sharding one = oly_single_device(oly_local_device(0));
    oly_fn f = oly_jit(narrower, 1, 1), g = oly_jit(later_part, 1, 1);
    for (int k = 0; k < 10; k++)
        OLY_SCOPE
        {
            oly_array x = oly_device_put(oly_arange(MANY, OLY_FLOAT64), one), y = oly_mul(x, 1);
            oly_call(f, OLY_IN(x), OLY_OUT(x));
            oly_call(g, OLY_IN(y), OLY_OUT(y));
            oly_array ramp = oly_add(oly_device_put(oly_arange(MANY, OLY_FLOAT64), one), 1);
            assert_true(oly_item(oly_all(oly_eq(x, ramp))) == 1);
            assert_true(oly_item(oly_all(oly_eq(y, oly_slice(ramp, ":-4096")))) == 1);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_result_is_written_over_the_donated_array, check_open, check_close),
        cmocka_unit_test_setup_teardown(data_that_others_hold_is_not_overwritten, check_open, check_close),
        cmocka_unit_test_setup_teardown(parts_of_an_array_are_shared, check_open, check_close),
        cmocka_unit_test_setup_teardown(a_plan_that_still_reads_keeps_the_old_value, check_open, check_close),
        cmocka_unit_test_setup_teardown(a_dead_handle_is_an_error, check_open, check_close),
        cmocka_unit_test_setup_teardown(replayed_calls_allocate_nothing, check_open, check_close),
        cmocka_unit_test_setup_teardown(smaller_results_take_no_place, check_open, check_close),
    };
    return CHECK_MAIN(tests);
}
