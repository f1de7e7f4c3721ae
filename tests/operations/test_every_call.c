/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1 devices=1 timeout=300  Every public function with every kind of wrong argument: NULL, dead handles or
 * handles of another kind, numbers out of range, meaningless texts; before oly_init and after oly_finalize; with errors
 * returned and with errors that end the job. Nothing crashes, and messages name the function and the line. Callers are
 * generated from the headers (every_call.h). */
#include "check.h"
#include "core/error.h"
#include "core/handle.h"
#include "wrong_arguments.h"
#include <olympus.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* -- callers ------------------------------------------------------------------------------------------------------------ */

typedef struct caller {
    const char *name;
    void (*call)(const int *pick);
    int n;
    const char *kind[14]; /* of its parameters */
} caller;

#include "every_call.h"
enum { CALLERS = sizeof callers / sizeof *callers };

static bool among(const char *name, const char *const *list)
{
    for (; *list; list++)
        if (strcmp(name, *list) == 0)
            return true;
    return false;
}

static const char *const at_any_time[] = {"oly_hdf5_available", "oly_range_push",
                                          "oly_range_pop",      "oly_progress_with",
                                          "oly_status_name",    "oly_status_text",
                                          "oly_simulated",      "oly_version",
                                          "oly_print_options",  "oly_set_error_mode",
                                          "oly_last_status",    "oly_last_error",
                                          "oly_clear_error",    "oly_dtype_name",
                                          "oly_dtype_size",     "oly_x64_enabled",
                                          "oly_promote_types",  "oly_explain_names",
                                          "oly_init",           "oly_distributed_initialize",
                                          "oly_init_comm",      NULL};
/* They start or end what this test needs, or read the error that it reads. */
static const char *const not_here[] = {"oly_init",
                                       "oly_distributed_initialize",
                                       "oly_init_comm",
                                       "oly_finalize",
                                       "oly_range_push",
                                       "oly_range_pop",
                                       "oly_progress_with",
                                       "oly_print_options",
                                       "oly_print_devices",
                                       "oly_last_status",
                                       "oly_last_error",
                                       "oly_clear_error",
                                       NULL};
/* "function parameter" where NULL is allowed. */
static const char *const null_is_fine[] = {"oly_keep 0",
                                           "oly_assign 1",
                                           "oly_free 0",
                                           "oly_set_default_device 0",
                                           "oly_set_mesh 0",
                                           "oly_typeof 0",
                                           "oly_device_str 0",
                                           "oly_mesh_str 0",
                                           "oly_sharding_str 0",
                                           "oly_spec_str 0",
                                           "oly_device_put 1",
                                           "oly_load_npy 1",
                                           "oly_load_raw_with 5",
                                           "oly_load_csv_with 2",
                                           "oly_arange_sharded 2",
                                           "oly_full_sharded 2",
                                           "oly_reshape_sharded_shape 1",
                                           "oly_broadcast_sharded_shape 1",
                                           "oly_broadcast_in_dim_sharded 1",
                                           "oly_random_choice_shape 3",
                                           "oly_random_choice_of_shape 4",
                                           NULL};

/* -- in a process of its own: crashes are detected, and all calls are tried ---------------------------------------- */

static const caller *now;
static char what[64];
static int complaints;

static void complain(const char *text)
{
    fprintf(stderr, "%s, %s: %s\n", now->name, what, text);
    complaints++;
}

/* The message begins with the function's name and a line of every_call.h; of functions recorded there, with one of
 * wrong_arguments.c. */
static void check_message(void)
{
    const char *text = oly_last_error();
    char begin[96];
    snprintf(begin, sizeof begin, "%s (tests/every_call.h:", now->name);
    if (strncmp(text, begin, strlen(begin)) != 0 && !strstr(text, "(tests/support/wrong_arguments.c:"))
        complain(text);
}

static void begin_call(void)
{
    oly_clear_error();
    oly_set_error_mode(OLY_ERRORS_RETURN);
    oly_scope_open();
    wrong.array = oly_ones(OLY_FLOAT32, 4, 4);
    wrong.function = oly_jit(wrong_same, 1, 1);
    OLY_SCOPE
    {
        wrong.gone_array = oly_zeros(OLY_FLOAT32, 4);
        wrong.gone_function = oly_jit(wrong_same, 1, 1);
    }
    rewind(wrong.file);
    if (oly_kept_status() != OLY_OK)
        complain(oly_last_error());
}

static void end_call(void)
{
    oly_set_mesh(NULL);
    oly_set_default_device(NULL);
    oly_enable_x64(false);
    oly_scope_close();
    oly_clear_error();
}

static void start(void)
{
    oly_init(NULL, NULL);
    oly_set_error_mode(OLY_ERRORS_RETURN);
    wrong.mesh = oly_make_mesh("i=1");
    wrong.sharding = oly_named(wrong.mesh, "i");
    wrong.device = oly_get_device(0);
}

static bool is_handle(const char *kind)
{
    return among(kind, (const char *const[]){"oly_array", "oly_fn", "oly_mesh", "oly_sharding", "oly_device",
                                             "oly_operand", NULL});
}

/* Is that an error whatever the other arguments? */
static bool must_fail(int parameter, int pick)
{
    char place[80];
    snprintf(place, sizeof place, "%s %d", now->name, parameter);
    return is_handle(now->kind[parameter]) &&
           (pick == OTHER_KIND || (pick == NOT_GIVEN && !among(place, null_is_fine)));
}

/* One wrong argument at a time; the first that crashes stays in failing[]. */
static bool go_through(int *failing)
{
    bool found = false;
    for (int k = 0; k < now->n; k++)
        for (int pick = 0; pick < PICKS; pick++) {
            int picks[14] = {0};
            if (pick == FINE && k > 0)
                continue;
            picks[k] = pick;
            snprintf(what, sizeof what, "parameter %d (%s), pick %d", k, now->kind[k], pick);
            begin_call();
            now->call(picks);
            oly_status st = oly_kept_status();
            if (st != OLY_OK)
                check_message();
            else if (must_fail(k, pick))
                complain("no error");
            if (st != OLY_OK && !found) {
                memcpy(failing, picks, sizeof picks);
                found = true;
            }
            end_call();
        }
    return found;
}

/* Checks the error while the library is not initialised. */
static void check_state(const char *text)
{
    int picks[14] = {0};
    snprintf(what, sizeof what, "%s", text);
    now->call(picks);
    if (oly_kept_status() != OLY_STATE)
        complain(oly_kept_status() == OLY_OK ? "no error" : oly_last_error());
    else
        check_message();
    oly_clear_error();
}

static int with_errors_returned(void)
{
    int failing[14];
    bool guarded = !among(now->name, at_any_time);
    atomic_store(&oly_life, OLY_BEFORE_INIT);
    oly_set_error_mode(OLY_ERRORS_RETURN);
    if (guarded)
        check_state("before oly_init");
    start();
    if (!among(now->name, not_here))
        go_through(failing);
    begin_call();
    oly_finalize();
    if (guarded)
        check_state("after oly_finalize");
    return complaints > 0;
}

static int with_the_job_ended(void)
{
    int failing[14];
    start();
    if (among(now->name, not_here) || !go_through(failing))
        return 1; /* no error; that is fine here */
    begin_call();
    fprintf(stderr, "HERE ");
    oly_set_error_mode(OLY_ERRORS_ABORT);
    now->call(failing);
    fprintf(stderr, "went on\n");
    return 2;
}

static int before_init_with_the_job_ended(void)
{
    int picks[14] = {0};
    atomic_store(&oly_life, OLY_BEFORE_INIT);
    fprintf(stderr, "HERE ");
    now->call(picks);
    return 2;
}

/* -- the parent ---------------------------------------------------------------------------------------------------- */

static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM};
static void crash(int number)
{
    dprintf(2, "%s, %s: signal %d\n", now->name, what, number);
    _exit(99);
}

/* Exit status of the function in a process of its own, and what it wrote to standard error. */
static int in_child(int (*function)(void), char *text, size_t size)
{
    int ends[2], status;
    size_t n = 0;
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], 2);
        dup2(ends[1], 1);
        close(ends[0]);
        for (int k = 0; k < (int)(sizeof fatal / sizeof *fatal); k++)
            signal(fatal[k], crash); /* replaces cmocka's handler, which continues with the next test */
        alarm(20);
        int result = function();
        fflush(NULL);
        _exit(result);
    }
    close(ends[1]);
    for (ssize_t got; (got = read(ends[0], text + n, size - 1 - n)) > 0 && n < size - 1;)
        n += (size_t)got;
    close(ends[0]);
    text[n] = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static bool wanted(const caller *c)
{
    const char *only = getenv("EVERY_CALL"); /* the name of a single function */
    return !only || strcmp(only, c->name) == 0;
}

static void nothing_wrong_crashes(void **state)
{
    static char text[1 << 16];
    int bad = 0;
    (void)state;
    for (int k = 0; k < CALLERS; k++) {
        now = &callers[k];
        int status = wanted(now) ? in_child(with_errors_returned, text, sizeof text) : 0;
        if (status != 0)
            print_message("%s: status %d\n%.4000s\n", now->name, status, text);
        bad += status != 0;
    }
    assert_int_equal(bad, 0);
}

static void ends_the_job(int (*function)(void), bool guarded_only)
{
    static char text[1 << 16];
    int bad = 0;
    for (int k = 0; k < CALLERS; k++) {
        char begin[96];
        now = &callers[k];
        if (!wanted(now) || (guarded_only && among(now->name, at_any_time)))
            continue;
        int status = in_child(function, text, sizeof text);
        const char *here = strstr(text, "HERE ");
        snprintf(begin, sizeof begin, "olympus: %s (tests/every_call.h:", now->name);
        bool fine = status == 1 &&
                    (!here || strncmp(here + 5, begin, strlen(begin)) == 0 || strstr(here, "wrong_arguments.c:"));
        if (!fine)
            print_message("%s: status %d\n%.2000s\n", now->name, status, text);
        bad += !fine;
    }
    assert_int_equal(bad, 0);
}

static void errors_end_the_job(void **state)
{
    (void)state;
    ends_the_job(with_the_job_ended, false);
}

static void calls_before_init_end_the_job(void **state)
{
    (void)state;
    ends_the_job(before_init_with_the_job_ended, true);
}

static int open_file(void **state)
{
    (void)state;
    setenv("OLYMPUS_NUM_THREADS", "1", 1);
    wrong.file = tmpfile();
    return wrong.file ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(nothing_wrong_crashes, open_file),
        cmocka_unit_test(errors_end_the_job),
        cmocka_unit_test(calls_before_init_end_the_job),
    };
    char folder[] = "/tmp/every_call.XXXXXX"; /* some calls write a file with the name they are passed */
    if (!mkdtemp(folder) || chdir(folder) != 0)
        return 1;
    int failed = CHECK_MAIN(tests);
    char command[64]; /* files and folders of checkpoints, all in this one */
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command) == 0 ? failed : 1;
}
