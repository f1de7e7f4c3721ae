/* SPDX-License-Identifier: BSD-3-Clause */
/* The main of every test program: cmocka under MPI. cmocka alone would interleave the lines of all ranks, and a rank
 * whose assertion failed would leave the others waiting in a collective. So the ranks other than 0 print to a file
 * beside the program (NAME.rank-N; tests/run.sh shows what a crashed rank left there), and each test is wrapped: a
 * failure ends the whole job before the next test begins, and not earlier, because cmocka prints the reason after the
 * test. */
#include "check.h"
#include "check_races.h"
#include "core/error.h"
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <unistd.h>

extern char *program_invocation_name;

static struct {
    const struct CMUnitTest *tests; /* as given by the program */
    int count, current;             /* `current` is the running one; -1 before the first */
    bool open;                      /* the current test has neither returned nor been skipped */
    int passed, skipped;
    bool started_mpi;
    int rank, ranks;
    int screen[2];   /* the real standard output and error of a rank that writes to a file; else -1 */
    char path[4096]; /* that file */
} check = {.current = -1, .ranks = 1, .screen = {-1, -1}};

/* -- output ---------------------------------------------------------------------------------------------- */

static void capture_output(void)
{
    int length = snprintf(check.path, sizeof check.path, "%s.rank-%d", program_invocation_name, check.rank);
    if (length < 0 || (size_t)length >= sizeof check.path)
        return;
    int file = open(check.path, O_CREAT | O_TRUNC | O_RDWR | O_APPEND | O_CLOEXEC, 0644);
    if (file < 0)
        return; /* the folder is not writable: output is mixed, results are the same */
    fflush(NULL);
    for (int i = 0; i < 2; i++) {
        check.screen[i] = fcntl(STDOUT_FILENO + i, F_DUPFD_CLOEXEC, 3);
        dup2(file, STDOUT_FILENO + i);
    }
    close(file);
}

/* Back to the real output; `show`: with everything captured so far. */
static void release_output(bool show)
{
    if (check.screen[0] < 0)
        return;
    fflush(NULL);
    for (int i = 0; i < 2; i++) {
        dup2(check.screen[i], STDOUT_FILENO + i);
        close(check.screen[i]);
        check.screen[i] = -1;
    }
    FILE *file = show ? fopen(check.path, "r") : NULL;
    char line[4096];
    while (file && fgets(line, sizeof line, file))
        fprintf(stderr, "rank %d: %s", check.rank, line);
    if (file)
        fclose(file);
    unlink(check.path);
}

/* A program that calls exit() still shows its output. */
static void show_output_at_exit(void)
{
    release_output(true);
}

static void print_counts(int failed)
{
    printf("CHECK: %d passed, %d failed, %d skipped\n", check.passed, failed, check.skipped);
    fflush(NULL);
}

/* -- failing together ------------------------------------------------------------------------------------ */

/* Ends the job: other ranks may be waiting for this one in the middle of a test. */
static void end_job(void)
{
    release_output(true);
    fprintf(stderr, "rank %d of %d failed in test %d of %d; ending the job\n", check.rank, check.ranks,
            check.current + 1, check.count);
    print_counts(1);
    usleep(100000); /* lets the launcher forward the output before it ends all ranks */
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static bool mpi_is_up(void)
{
    int initialized = 0, finalized = 0;
    MPI_Initialized(&initialized);
    MPI_Finalized(&finalized);
    return initialized && !finalized;
}

static void stop_if_last_test_failed(void)
{
    if (check.open && check.ranks > 1 && mpi_is_up())
        end_job();
}

/* -- the wrapped test ------------------------------------------------------------------------------------ */

void check_note_skip(void)
{
    check.open = false;
    check.skipped++;
}

static int before(void **state)
{
    stop_if_last_test_failed();
    check.current++;
    check.open = true;
    const struct CMUnitTest *test = &check.tests[check.current];
    return test->setup_func ? test->setup_func(state) : 0;
}

static void run(void **state)
{
    check.tests[check.current].test_func(state);
    check.open = false; /* reached only if no assertion failed */
    check.passed++;
}

static int run_wrapped(const char *name)
{
    struct CMUnitTest *wrapped = calloc((size_t)check.count + 1, sizeof *wrapped);
    if (!wrapped) {
        fprintf(stderr, "%s: no memory for %d tests\n", name, check.count);
        return 1;
    }
    for (int i = 0; i < check.count; i++) {
        wrapped[i] = check.tests[i];
        wrapped[i].setup_func = before;
        wrapped[i].test_func = run;
    }
    int failed = _cmocka_run_group_tests(name, wrapped, (size_t)check.count, NULL, NULL);
    free(wrapped);
    return failed;
}

/* -- main ------------------------------------------------------------------------------------------------ */

static void start_mpi(void)
{
    if (!getenv("OMPI_COMM_WORLD_SIZE") && !getenv("PMIX_RANK") && !getenv("PMI_RANK"))
        return; /* started by hand: no MPI, which also starts faster */
    int level;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &check.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &check.ranks);
    check.started_mpi = true;
}

int check_main(const char *file, const struct CMUnitTest *tests, int count)
{
    const char *slash = strrchr(file, '/');
    const char *name = slash ? slash + 1 : file;
    check.tests = tests;
    check.count = count;
    atomic_store(&oly_life, OLY_ALIVE); /* tests of layers call public functions without oly_init */
    start_mpi();
    check_races();
    if (check.rank > 0) {
        capture_output();
        atexit(show_output_at_exit);
    }

    int failed = run_wrapped(name);
    int failed_anywhere = failed;
    if (check.ranks > 1 && mpi_is_up()) {
        if (failed)
            end_job();
        MPI_Allreduce(&failed, &failed_anywhere, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    }
    release_output(failed > 0);
    if (check.rank == 0)
        print_counts(failed_anywhere);
    if (check.started_mpi && mpi_is_up())
        MPI_Finalize();
    return failed_anywhere > 0;
}
