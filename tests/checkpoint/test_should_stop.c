/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1,2,4 devices=8  oly_should_stop: a signal to any rank stops all ranks in the same call, soon; handlers are there from the
 * first call on, or as the option says, and gone after oly_finalize. */
#include "check_session.h"
#include <signal.h>
#include <time.h>
#include <unistd.h>

static void rest(double seconds)
{
    struct timespec t = {.tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&t, NULL);
}

/* Steps of this length until told to stop; one rank gets the signal in the step `when`. The number of steps, the same on all ranks. */
static int steps_until_stop(double seconds, int when, int rank, int number)
{
    int32_t all[64], mine = 0;
    while (!oly_should_stop()) {
        if (seconds > 0)
            rest(seconds);
        if (++mine == when && (oly_process_index() == rank || rank < 0))
            raise(number);
        assert_true(mine < 100000);
    }
    assert_true(oly_should_stop()); /* from here on */
    assert_int_equal(oly_allgather_host(&mine, sizeof mine, all), OLY_OK);
    for (int r = 0; r < oly_process_count(); r++)
        assert_int_equal(all[r], mine);
    return mine;
}

/* With long steps, in the next call; ranks that are slower than others included. */
static void long_steps_stop_at_once(void **state)
{
    (void)state;
    for (int k = 0; k < 4; k++) {
        oly_init(NULL, NULL);
        int rank = k % oly_process_count(), when = k < 2 ? 1 + k : 18 + k; /* also in the first steps */
        double slow = oly_process_index() == 1 ? 0.009 : 0.006;
        int n = steps_until_stop(slow, when, k == 3 ? -1 : rank, k % 2 ? SIGTERM : SIGUSR1);
        assert_in_range(n, when, when + 1);
        assert_int_equal(oly_finalize(), 0);
    }
}

static void short_steps_stop_soon(void **state)
{
    (void)state;
    for (int k = 0; k < 3; k++) {
        oly_init(NULL, NULL);
        int when = 1 + 333 * k, n = steps_until_stop(0, when, (k + 1) % oly_process_count(), SIGTERM);
        assert_in_range(n, when, when + 33);
        assert_int_equal(oly_finalize(), 0);
    }
}

static void triple(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_add(oly_mul(in[0], 3), oly_sum(in[0]));
}

/* Between steps that communicate and are queued far ahead. */
static void steps_of_arrays(void **state)
{
    (void)state;
    oly_init(NULL, NULL);
    oly_fn f = oly_jit(triple, 1, 1);
    oly_array x = oly_device_put(oly_arange(4096, OLY_INT32), oly_named(oly_make_mesh("x=8"), "x"));
    int n = 0;
    while (!oly_should_stop() && n < 5000) {
        oly_call(f, OLY_IN(x), OLY_OUT(x));
        if (++n == 200 && oly_process_index() == oly_process_count() - 1)
            raise(SIGUSR1);
    }
    assert_in_range(n, 200, 233);
    oly_sync("stopped");
    assert_int_equal(oly_finalize(), 0);
}

static volatile sig_atomic_t own;
static void own_handler(int number)
{
    own = number;
}

static bool handled_by_program(int number)
{
    struct sigaction now;
    sigaction(number, NULL, &now);
    return !(now.sa_flags & SA_SIGINFO) && now.sa_handler == own_handler;
}

static void handlers_come_and_go(void **state)
{
    (void)state;
    struct sigaction action = {.sa_handler = own_handler}, system_s = {.sa_handler = SIG_DFL};
    sigaction(SIGUSR1, &action, NULL);
    oly_init(NULL, NULL);
    assert_true(handled_by_program(SIGUSR1)); /* not before the first call */
    assert_false(oly_should_stop());
    assert_false(handled_by_program(SIGUSR1));
    oly_finalize();
    assert_true(handled_by_program(SIGUSR1));

    setenv("OLYMPUS_STOP_SIGNALS", "USR2, SIGHUP", 1);
    sigaction(SIGUSR2, &action, NULL);
    oly_init(NULL, NULL);
    assert_false(handled_by_program(SIGUSR2));
    raise(SIGUSR2); /* before the first call */
    assert_true(handled_by_program(SIGUSR1));
    int calls = 0;
    while (!oly_should_stop() && calls < 100)
        calls++;
    assert_true(calls < 20);
    oly_finalize();
    assert_true(handled_by_program(SIGUSR2));

    setenv("OLYMPUS_STOP_SIGNALS", "none", 1);
    oly_init(NULL, NULL);
    assert_false(oly_should_stop());
    assert_true(handled_by_program(SIGUSR1));
    sigaction(SIGUSR2, &system_s, NULL);
    sigaction(SIGUSR1, &system_s, NULL);
    oly_finalize();
    unsetenv("OLYMPUS_STOP_SIGNALS");
}

/* A handler that the program installs later stays. */
static void a_later_handler_stays(void **state)
{
    (void)state;
    struct sigaction action = {.sa_handler = own_handler}, before;
    oly_init(NULL, NULL);
    assert_false(oly_should_stop());
    sigaction(SIGUSR1, &action, &before);
    oly_finalize();
    assert_true(handled_by_program(SIGUSR1));
    signal(SIGUSR1, SIG_DFL);
}

/* Launchers send a second signal while the program ends: it does not change the exit status. Without a stop, or in the next session, a
 * signal does what it did. */
static void stopped_programs_end_undisturbed(void **state)
{
    (void)state;
    struct sigaction now, kept;
    signal(SIGTERM, SIG_DFL);
    for (int stop = 0; stop < 2; stop++) {
        oly_init(NULL, NULL);
        if (stop)
            steps_until_stop(0, 5, 0, SIGTERM);
        else
            assert_false(oly_should_stop());
        assert_int_equal(oly_finalize(), 0);
        sigaction(SIGTERM, NULL, &now);
        assert_true((now.sa_handler == SIG_DFL) == !stop);
        if (stop)
            raise(SIGTERM);
    }
    oly_init(NULL, NULL);
    kept = now;
    sigaction(SIGTERM, NULL, &now);
    assert_true(now.sa_handler != kept.sa_handler); /* not asked yet */
    for (int k = 0; k < 50; k++)
        assert_false(oly_should_stop());
    assert_int_equal(oly_finalize(), 0);
    sigaction(SIGTERM, NULL, &now);
    assert_true(now.sa_handler == SIG_DFL);
}

static void asks_only_outside_traces_body(const oly_array *in, oly_array *out, void *user)
{
    *(bool *)user = oly_should_stop();
    out[0] = in[0];
}

static void not_while_tracing(void **state)
{
    (void)state;
    bool stopped = false;
    oly_array y = NULL;
    oly_init(NULL, NULL);
    oly_set_error_mode(OLY_ERRORS_RETURN);
    oly_fn f = oly_jit(asks_only_outside_traces_body, 1, 1, .user = &stopped);
    assert_int_equal(oly_call(f, OLY_IN(oly_arange(3, OLY_INT32)), OLY_OUT(y)), OLY_TRACE);
    assert_true(stopped); /* so that loops end */
    oly_clear_error();
    oly_finalize();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_steps_stop_at_once), cmocka_unit_test(short_steps_stop_soon),
        cmocka_unit_test(steps_of_arrays),         cmocka_unit_test(handlers_come_and_go),
        cmocka_unit_test(a_later_handler_stays),   cmocka_unit_test(stopped_programs_end_undisturbed),
        cmocka_unit_test(not_while_tracing)};
    return CHECK_MAIN(tests);
}
