/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1
 * The flight recorder's lines, and programs in which a rank fails, for test_recorder.sh. */
#include "check.h"
#include "core/fatal_signals.h"
#include "core/raw_text.h"
#include "core/recorder.h"
#include <olympus.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* -- the writer ----------------------------------------------------------------------------------------------------- */

static void numbers_are_written_without_printf(void **state)
{
    (void)state;
    static const int64_t values[] = {0, 7, -7, 10, INT64_MAX, INT64_MIN, 123456789012345};
    for (size_t k = 0; k < sizeof values / sizeof *values; k++) {
        char digits[24], expected[24];
        snprintf(expected, sizeof expected, "%lld", (long long)values[k]);
        assert_int_equal(oly_raw_digits(digits, values[k]), strlen(expected));
        assert_string_equal(digits, expected);
    }
    int ends[2];
    char text[200];
    oly_raw raw;
    assert_int_equal(pipe(ends), 0);
    oly_raw_begin(&raw, ends[1], false);
    oly_raw_seconds(&raw, 12000345678);
    oly_raw_text(&raw, " ");
    oly_raw_seconds(&raw, -5);
    oly_raw_text(&raw, " ");
    oly_raw_hex(&raw, 0xdeadbeef00);
    oly_raw_text(&raw, " ");
    oly_raw_field(&raw, "a\tb\nc\033[31m", 6);
    oly_raw_flush(&raw);
    ssize_t n = read(ends[0], text, sizeof text - 1);
    assert_true(n > 0 && !raw.failed);
    text[n] = 0;
    assert_string_equal(text, "12.000345678 -0.000000005 0xdeadbeef00 a?b?c?");
    close(ends[0]);
    oly_raw_text(&raw, "nobody reads");
    signal(SIGPIPE, SIG_IGN);
    oly_raw_flush(&raw);
    assert_true(raw.failed);
    close(ends[1]);
}

static void nothing_is_written_before_the_start(void **state)
{
    (void)state;
    assert_false(oly_recorder_dump(OLY_RECORDER_ASKED, "nobody"));
}

/* A handler of the program's is called after the recorder's, and put back at the end. */
static volatile sig_atomic_t caught;
static void catch_it(int number)
{
    caught = number;
}

static void handlers_of_the_program_stay(void **state)
{
    (void)state;
    struct sigaction now;
    signal(SIGFPE, catch_it);
    signal(SIGQUIT, catch_it);
    oly_init(NULL, NULL);
    assert_int_equal(sigaction(SIGQUIT, NULL, &now), 0);
    if (now.sa_handler == catch_it) /* with MPI, or without: a handler of the program's for SIGQUIT is not replaced */
        raise(SIGQUIT);
    assert_int_equal(caught, SIGQUIT);
    oly_fatal_signals_begin();
    raise(SIGFPE);
    assert_int_equal(caught, SIGFPE);
    oly_finalize();
    assert_int_equal(sigaction(SIGFPE, NULL, &now), 0);
    assert_ptr_equal(now.sa_handler, catch_it);
    signal(SIGFPE, SIG_DFL);
    signal(SIGQUIT, SIG_DFL);
}

/* A child that is told to end `after` nanoseconds later, while it writes its record. */
static void write_and_be_ended(const char *folder, long after)
{
    pid_t child = fork();
    if (child == 0) {
        timer_t timer;
        struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGTERM};
        struct itimerspec when = {.it_value = {.tv_nsec = after}};
        setenv("OLYMPUS_RECORDER", "1000", 1);
        setenv("OLYMPUS_RECORDER_DIR", folder, 1);
        oly_init(NULL, NULL);
        if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 || timer_settime(timer, 0, &when, NULL) != 0)
            _exit(3);
        oly_recorder_dump(OLY_RECORDER_ASKED, "the test");
        for (;;)
            pause();
    }
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGTERM);
}

static void a_signal_waits_for_the_file(void **state)
{
    (void)state;
    char folder[] = "/tmp/olympus-recorder-test-XXXXXX", path[400];
    assert_non_null(mkdtemp(folder));
    for (int k = 0; k < 24; k++) {
        write_and_be_ended(folder, 20000 * (1 + k));
        DIR *d = opendir(folder);
        assert_non_null(d);
        for (struct dirent *e; (e = readdir(d));) {
            if (!strstr(e->d_name, "recorder"))
                continue;
            if (strstr(e->d_name, ".new"))
                fail_msg("after %d us %s is left, half written", 20 * (1 + k), e->d_name);
            snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
            assert_int_equal(unlink(path), 0);
        }
        closedir(d);
    }
    assert_int_equal(rmdir(folder), 0);
}

/* -- programs that fail ----------------------------------------------------------------------------------------------- */

static volatile long levels = 1L << 40;

static int deeper(volatile char *before)
{
    if (levels-- == 0)
        return 0;
    volatile char here[4096];
    here[0] = before ? (char)(before[0] + 1) : 0;
    return deeper(here) + here[0];
}

static void *volatile nowhere = (void *)8;

static pthread_t first_thread;

/* Overflows the stack of a worker; the first thread leaves the work to the others. */
static void overflow_elsewhere(const oly_inside *called, const oly_shard_part *in, oly_shard_part *out, void *user)
{
    (void)called, (void)in, (void)out, (void)user;
    if (!pthread_equal(pthread_self(), first_thread))
        deeper(NULL);
    sleep(5);
}

static void go_wrong(const char *how, oly_array x)
{
    static const oly_kernel kernel = {.name = "overflow", .factors = "i->i", .cpu = overflow_elsewhere, .flops = 1e7};
    if (!strcmp(how, "worker")) {
        oly_array y = NULL;
        first_thread = pthread_self();
        oly_kernel_call(&kernel, OLY_IN(x), OLY_OUT(y));
        oly_block_until_ready(y);
    }
    if (!strcmp(how, "diverge"))
        oly_item(oly_max(oly_mul(x, 2)));
    if (!strcmp(how, "kill"))
        raise(SIGKILL);
    if (!strcmp(how, "stop"))
        raise(SIGSTOP);
    if (!strcmp(how, "crash"))
        *(volatile int *)nowhere = 1;
    if (!strcmp(how, "overflow"))
        deeper(NULL);
    if (!strcmp(how, "abort"))
        abort();
    if (!strcmp(how, "exit"))
        exit(3);
    if (!strcmp(how, "sleep"))
        sleep(60);
    if (!strcmp(how, "late_shape"))
        sleep(1); /* the others wait for longer than those of a job that runs */
    if (strstr(how, "shape"))
        oly_matmul(oly_zeros(OLY_FLOAT32, 2, 3), oly_zeros(OLY_FLOAT32, 2, 3));
}

static int run(const char *how, int guilty)
{
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    oly_init(NULL, NULL);
    int rank = oly_process_index();
    oly_mesh mesh = oly_make_mesh("i=4");
    oly_array x = oly_device_put(oly_arange(16, OLY_FLOAT32), oly_named(mesh, "i"));
    for (int k = 0; k < 12; k++) {
        if (k == 10 && rank == guilty)
            go_wrong(how, x);
        oly_item(oly_sum(oly_add(x, 1)));
    }
    return oly_finalize();
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_written_without_printf),
        cmocka_unit_test(nothing_is_written_before_the_start),
        cmocka_unit_test(handlers_of_the_program_stay),
        cmocka_unit_test(a_signal_waits_for_the_file),
    };
    if (argc < 3)
        return CHECK_MAIN(tests);
    return run(argv[1], atoi(argv[2]));
}
