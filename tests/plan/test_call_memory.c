/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  Queued calls need no more memory than the same calls one by one: the arrays that handles hold, and one
 * call's. Counted in bytes of the pool: compiled calls with and without donation, loops, eager calls and arrays from
 * the host, on all devices and on some. */
#include "check.h"
#include "check_session.h"
#include "core/error.h"
#include "core/option.h"
#include "device/memory.h"
#include "device/queue.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { N = 1 << 18, CALLS = 60 }; /* 2 MiB of doubles */

static const double array_bytes = N * 8;

/* -- a blocked queue --------------------------------------------------------------------------------------------------
 * In a process with threads that run calls, a blocking job is queued first, so all calls are queued before the first runs. */

static atomic_bool gate;
static int all_devices[64];
static oly_job still;

static void wait_at_gate(oly_job *j)
{
    (void)j;
    while (!atomic_load(&gate))
        sched_yield();
}

static void nothing(oly_job *j)
{
    (void)j;
}

static void hold_the_queue(void)
{
    if (oly_process_count() > 1) /* may compute in the calling thread */
        return;
    atomic_store(&gate, false);
    for (int d = 0; d < oly_local_device_count(); d++)
        all_devices[d] = d;
    still = (oly_job){
        .execute = wait_at_gate, .release = nothing, .n_devices = oly_local_device_count(), .devices = all_devices};
    assert_int_equal(oly_queue_submit(&still), OLY_OK);
}

static void go_on(void)
{
    atomic_store(&gate, true);
    oly_queue_drain();
}

/* The peak memory of a test, in units of arrays that are split over all devices, as seen by this process. */
static double arrays_at_most(void)
{
    double mine = array_bytes / oly_process_count();
    return (double)oly_pool_statistics_get().peak_bytes / mine;
}

static void forget_peak(void)
{
    oly_pool_stop();
}

/* Allows for small values (counters, partial sums, rounded-up blocks). */
#define ASSERT_ARRAYS(n)                                                                                               \
    do {                                                                                                               \
        double most = arrays_at_most();                                                                                \
        if (most > (n) + 0.2)                                                                                          \
            fail_msg("%g arrays at most instead of %g", most, (double)(n));                                            \
    } while (0)

static int begin(void **state)
{
    (void)state;
    setenv("OLYMPUS_NUM_THREADS", "2", 1);
    setenv("OLYMPUS_QUEUE_MEMORY", "0", 1);
    oly_init(NULL, NULL);
    oly_enable_x64(true);
    return oly_device_count() == 8 ? 0 : -1;
}

static oly_sharding over(int devices)
{
    char axes[20];
    snprintf(axes, sizeof axes, "x=%d", devices);
    return oly_named(oly_make_mesh(axes), "x");
}

static oly_array filled(double value, oly_sharding s)
{
    return oly_full_sharded(oly_operand_float(value), OLY_FLOAT64, s, OLY_EXTENTS(N));
}

static void check_all(oly_array x, double value)
{
    assert_float_equal(oly_item(oly_min(x)), value, 0);
    assert_float_equal(oly_item(oly_max(x)), value, 0);
}

/* -- compiled calls ------------------------------------------------------------------------------------------------------------ */

static void plus(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_add(in[0], in[1]);
}

/* The neighbours' elements are read first, so the result cannot overwrite the operand. */
static void shifted(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_add(oly_roll(in[0], N / 2, 0), in[1]);
}

static void donated_calls_are_in_place(void **state)
{
    (void)state;
    oly_sharding s = over(8);
    oly_fn f = oly_jit(plus, 2, 1);
    oly_array u = filled(0, s), v = filled(1, s), first = NULL;
    oly_call(f, OLY_IN(u, v), OLY_OUT(first)); /* planned here */
    oly_block_until_ready(first);
    oly_free(first);
    forget_peak();
    hold_the_queue();
    for (int k = 0; k < CALLS; k++)
        oly_call(f, OLY_IN(u, v), OLY_OUT(u));
    ASSERT_ARRAYS(2);
    go_on();
    check_all(u, CALLS);
}

/* Whichever operand it is, and however its sharding is named. */
static void any_operand_can_be_donated(void **state)
{
    (void)state;
    oly_sharding s = over(8), t = oly_named(oly_make_mesh("a=4, b=2"), "(a,b)");
    oly_fn f = oly_jit(plus, 2, 1);
    for (int other = 0; other < 2; other++) {
        oly_array u = filled(1, s), v = filled(0, other && oly_process_count() == 1 ? t : s);
        oly_call(f, OLY_IN(u, v), OLY_OUT(v));
        oly_block_until_ready(v);
        forget_peak();
        hold_the_queue();
        for (int k = 1; k < CALLS; k++)
            oly_call(f, OLY_IN(u, v), OLY_OUT(v));
        ASSERT_ARRAYS(2);
        go_on();
        check_all(v, CALLS);
        oly_free(u);
        oly_free(v);
    }
}

/* An operand that is passed twice is read by the call that overwrites it. */
static void reversed_sum(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_add(in[0], oly_flip(in[1], 0));
}

static void an_operand_given_twice_is_kept_until_it_is_read(void **state)
{
    (void)state;
    enum { FEW = 64 };
    oly_array x = oly_device_put(oly_arange(FEW, OLY_FLOAT64), over(8));
    oly_call(oly_jit(reversed_sum, 2, 1), OLY_IN(x, x), OLY_OUT(x));
    check_all(x, FEW - 1);
}

static void calls_that_move_data_need_a_second_array(void **state)
{
    (void)state;
    oly_sharding s = over(8);
    oly_fn f = oly_jit(shifted, 2, 1);
    oly_array u = filled(0, s), v = filled(1, s);
    oly_call(f, OLY_IN(u, v), OLY_OUT(u));
    oly_block_until_ready(u);
    double one = arrays_at_most();
    forget_peak();
    oly_call(f, OLY_IN(u, v), OLY_OUT(u));
    oly_block_until_ready(u);
    one = arrays_at_most();
    hold_the_queue();
    for (int k = 2; k < CALLS; k++)
        oly_call(f, OLY_IN(u, v), OLY_OUT(u));
    ASSERT_ARRAYS(one);
    go_on();
    check_all(u, CALLS);
}

static void results_that_replace_others_need_no_more_than_one_call(void **state)
{
    (void)state;
    oly_sharding s = over(8);
    oly_fn f = oly_jit(plus, 2, 1);
    oly_array u = filled(0, s), v = filled(1, s);
    oly_block_until_ready(u);
    oly_block_until_ready(v);
    forget_peak();
    hold_the_queue();
    for (int k = 0; k < CALLS; k++) {
        oly_array next = NULL;
        oly_call(f, OLY_IN(u, v), OLY_OUT(next));
        oly_assign(&u, next);
    }
    ASSERT_ARRAYS(3);
    go_on();
    check_all(u, CALLS);
}

/* Every element needs both neighbours: the loop has alternating buffers, and margins. */
static void body(oly_array i, oly_array *carry, void *user)
{
    (void)i;
    (void)user;
    oly_array left = oly_roll(carry[0], 1, 0), right = oly_roll(carry[0], -1, 0);
    carry[0] = oly_add(oly_mul(oly_add(left, right), 0.5), oly_div(oly_sum(carry[0]), 2.0 * N));
}

static void loops(const oly_array *in, oly_array *out, void *user)
{
    out[0] = in[0];
    oly_fori(0, 2, body, 1, out, user);
}

static void memory_inside_calls_is_needed_once(void **state)
{
    (void)state;
    enum { FEW = 20 };
    oly_fn f = oly_jit(loops, 1, 1);
    oly_array u = filled(1, over(8));
    oly_call(f, OLY_IN(u), OLY_OUT(u));
    oly_block_until_ready(u);
    forget_peak();
    oly_call(f, OLY_IN(u), OLY_OUT(u));
    oly_block_until_ready(u);
    double one = arrays_at_most();
    hold_the_queue();
    for (int k = 2; k < FEW; k++)
        oly_call(f, OLY_IN(u), OLY_OUT(u));
    ASSERT_ARRAYS(one);
    go_on();
    double value = 1;
    for (int k = 0; k < 2 * FEW; k++)
        value *= 1.5;
    check_all(u, value);
}

/* Allocation failures, also of the call's place in the queue: operands are unchanged, and nothing leaks. */
static void calls_that_find_no_memory_change_nothing(void **state)
{
    (void)state;
    if (oly_process_count() > 1)
        return;
    enum { MOST = 100 };
    oly_sharding s = over(8);
    oly_fn f = oly_jit(shifted, 2, 1);
    oly_array u = filled(0, s), v = filled(1, s);
    oly_call(f, OLY_IN(u, v), OLY_OUT(u));
    oly_block_until_ready(u);
    oly_set_error_mode(OLY_ERRORS_RETURN);
    hold_the_queue();
    int n = 0;
    oly_status st;
    do {
        oly_array result = NULL;
        oly_fail_allocation(n++);
        st = oly_call(f, OLY_IN(u, v), OLY_OUT(result));
        oly_fail_allocation(-1);
        assert_true(st == OLY_OK || (st == OLY_MEMORY && !result));
        oly_clear_error();
        oly_free(result);
    } while (st != OLY_OK && n < MOST);
    assert_in_range(n, 10, MOST - 1);
    go_on();
    check_all(u, 1); /* and oly_finalize, which waits for what runs, returns */
}

/* -- eager calls --------------------------------------------------------------------------------------------------- */

static void eager_results_that_are_replaced_are_used_again(void **state)
{
    (void)state;
    oly_array x = filled(0, over(8));
    oly_assign(&x, oly_add(x, 1));
    oly_block_until_ready(x);
    forget_peak();
    hold_the_queue();
    for (int k = 1; k < CALLS; k++)
        oly_assign(&x, oly_add(x, 1));
    ASSERT_ARRAYS(2);
    go_on();
    check_all(x, CALLS);
}

static void intermediate_values_of_scopes_are_used_again(void **state)
{
    (void)state;
    enum { FEW = CALLS / 3 };
    oly_array x = filled(0, over(8));
    oly_block_until_ready(x);
    for (int k = 0; k < 2 * FEW; k++) {
        if (k == FEW) {
            oly_block_until_ready(x);
            forget_peak();
            hold_the_queue();
        }
        OLY_SCOPE
        {
            oly_array twice = oly_mul(x, 2), more = oly_add(twice, 2);
            oly_assign(&x, oly_mul(more, 0.5));
        }
    }
    ASSERT_ARRAYS(4);
    go_on();
    check_all(x, 2 * FEW);
}

/* Two halves of the devices, each with arrays of its own, alternating. */
static void devices_in_turn(void **state)
{
    (void)state;
    if (oly_process_count() > 1)
        return;
    oly_option.queue_memory = 64; /* the first calls must not wait for the gate */
    oly_array x[2];
    for (int k = 0; k < 2; k++) {
        int half[4];
        for (int d = 0; d < 4; d++)
            half[d] = 4 * k + d;
        x[k] = filled(k, oly_named(oly_mesh_from_devices(1, (const char *[]){"x"}, (int[]){4}, half), "x"));
        oly_assign(&x[k], oly_add(x[k], 1));
        oly_block_until_ready(x[k]);
    }
    forget_peak();
    hold_the_queue();
    for (int k = 0; k < CALLS - 4; k++)
        oly_assign(&x[k % 2], oly_add(x[k % 2], 1));
    ASSERT_ARRAYS(4);
    go_on();
    check_all(x[0], 1 + (CALLS - 4) / 2.);
    check_all(x[1], 2 + (CALLS - 4) / 2.);
}

static void one_to_eight_devices(void **state)
{
    (void)state;
    if (oly_process_count() > 1)
        return;
    oly_fn f = oly_jit(plus, 2, 1);
    for (int devices = 1; devices <= 8; devices++) {
        oly_sharding s = over(devices);
        oly_array u = filled(0, s), v = filled(1, s);
        oly_call(f, OLY_IN(u, v), OLY_OUT(u));
        oly_block_until_ready(u);
        forget_peak();
        hold_the_queue();
        for (int k = 1; k < CALLS; k++)
            oly_call(f, OLY_IN(u, v), OLY_OUT(u));
        ASSERT_ARRAYS(2);
        go_on();
        check_all(u, CALLS);
        oly_free(u);
        oly_free(v);
    }
}

/* -- from the host ------------------------------------------------------------------------------------------------------------- */

static void arrays_from_the_host_wait_for_those_before(void **state)
{
    (void)state;
    oly_sharding s = over(8);
    double *data = malloc(sizeof *data * N);
    assert_non_null(data);
    oly_array total = filled(0, s);
    oly_block_until_ready(total);
    forget_peak();
    double sum = 0;
    for (int k = 0; k < CALLS; k++)
        OLY_SCOPE
        {
            for (int i = 0; i < N; i++)
                data[i] = k;
            oly_array x = oly_device_put(oly_from_host(data, OLY_FLOAT64, 1, (int64_t[]){N}), s);
            oly_assign(&total, oly_add(total, x));
            sum += k;
        }
    /* the whole array on every process, its parts, the sum before and after; the first two twice, as the queue may hold
     * one */
    ASSERT_ARRAYS(2 * oly_process_count() + 4);
    check_all(total, sum);
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(donated_calls_are_in_place, begin, check_close),
        cmocka_unit_test_setup_teardown(any_operand_can_be_donated, begin, check_close),
        cmocka_unit_test_setup_teardown(an_operand_given_twice_is_kept_until_it_is_read, begin, check_close),
        cmocka_unit_test_setup_teardown(calls_that_move_data_need_a_second_array, begin, check_close),
        cmocka_unit_test_setup_teardown(results_that_replace_others_need_no_more_than_one_call, begin, check_close),
        cmocka_unit_test_setup_teardown(memory_inside_calls_is_needed_once, begin, check_close),
        cmocka_unit_test_setup_teardown(calls_that_find_no_memory_change_nothing, begin, check_close),
        cmocka_unit_test_setup_teardown(eager_results_that_are_replaced_are_used_again, begin, check_close),
        cmocka_unit_test_setup_teardown(intermediate_values_of_scopes_are_used_again, begin, check_close),
        cmocka_unit_test_setup_teardown(devices_in_turn, begin, check_close),
        cmocka_unit_test_setup_teardown(one_to_eight_devices, begin, check_close),
        cmocka_unit_test_setup_teardown(arrays_from_the_host_wait_for_those_before, begin, check_close),
    };
    return CHECK_MAIN(tests);
}
