/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1,2,4 devices=8  Mixed work without end needs no more memory, descriptors, threads and communicators than at its start:
 * functions made and dropped, gradients, loops, maps, moves between meshes, errors, files, checkpoints, and starting anew.
 *
 *     build/tests/test_mixed_work [SECONDS]      (default 2; a soak: 1800, with a line per minute)
 *
 * Values are compared with those of the first round. */
#include "check.h"
#include <dirent.h>
#include <mpi.h>
#include <olympus.h>
#include <time.h>
#include <unistd.h>

/* -- what must not grow --------------------------------------------------------------------------------------------- */

static int communicators; /* that this process has now, beside those of MPI itself */

int MPI_Comm_dup(MPI_Comm from, MPI_Comm *to)
{
    communicators++;
    return PMPI_Comm_dup(from, to);
}
int MPI_Comm_split(MPI_Comm from, int color, int key, MPI_Comm *to)
{
    int status = PMPI_Comm_split(from, color, key, to);
    communicators += *to != MPI_COMM_NULL;
    return status;
}
int MPI_Comm_split_type(MPI_Comm from, int type, int key, MPI_Info info, MPI_Comm *to)
{
    int status = PMPI_Comm_split_type(from, type, key, info, to);
    communicators += *to != MPI_COMM_NULL;
    return status;
}
int MPI_Comm_free(MPI_Comm *c)
{
    communicators--;
    return PMPI_Comm_free(c);
}

typedef struct usage {
    double megabytes; /* resident */
    int descriptors, threads, communicators;
} usage;

static int entries(const char *folder)
{
    int n = 0;
    DIR *d = opendir(folder);
    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

static usage usage_now(void)
{
    long pages = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%ld %ld", &pages, &resident), 2);
    fclose(f);
    return (usage){(double)resident * (double)sysconf(_SC_PAGESIZE) / 1e6, entries("/proc/self/fd"),
                   entries("/proc/self/task"), communicators};
}

/* -- a round of work ------------------------------------------------------------------------------------------------ */

enum { N = 48 };
static char folder[64];

static void heat(oly_array i, oly_array *carry, void *user)
{
    (void)i, (void)user;
    oly_array u = carry[0];
    oly_array sides = oly_add(oly_slice(u, ":-2"), oly_slice(u, "2:"));
    carry[0] = oly_update(u, "1:-1", oly_add(oly_mul(0.5, oly_slice(u, "1:-1")), oly_mul(0.25, sides)));
}
static void loss(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_mean(oly_square(oly_sub(oly_tanh(oly_matmul(in[0], in[1])), 0.5)));
}
static void heat_loop(const oly_array *in, oly_array *out, void *user)
{
    out[0] = in[0];
    oly_fori(0, 5, heat, 1, out, user);
}
static void sum_over_devices(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_psum(oly_sum(in[0]), "i");
}

static double reduced(oly_array x)
{
    return oly_item(oly_sum(oly_astype(x, OLY_FLOAT32)));
}

static double work(oly_mesh mesh, oly_mesh other)
{
    double value = 0;
    oly_array x = oly_device_put(oly_reshape(oly_sin(oly_arange(N * N, OLY_FLOAT32)), N, N), oly_named(mesh, "i"));
    oly_array w = oly_device_put(oly_mul(0.1, x), oly_named(mesh, "None, i"));
    value += reduced(oly_softmax(oly_add(oly_exp(x), w), -1));
    value += reduced(oly_device_put(x, oly_named(other, "b, a")));
    value += reduced(oly_apply(oly_jit(heat_loop, 1, 1), x));
    value += reduced(oly_apply(oly_grad(oly_jit(loss, 2, 1)), x, w));
    value += reduced(oly_sort(oly_reshape(x, N * N), 0));
    oly_array total = NULL;
    oly_shard_map(sum_over_devices, NULL, mesh, OLY_IN(x), OLY_SPECS("i"), OLY_OUT(total), OLY_SPECS(""));
    value += oly_item(total);
    assert_null(oly_matmul(x, oly_zeros(OLY_FLOAT32, N + 1)));
    assert_int_equal(oly_last_status(), OLY_SHAPE);
    oly_clear_error();
    return value;
}

static void save_and_restore(oly_mesh mesh)
{
    oly_array x = oly_device_put(oly_arange(N, OLY_INT32), oly_named(mesh, "i")), back = NULL;
    assert_int_equal(oly_save(folder, OLY_NAMES("x"), OLY_IN(x), .step = 1), OLY_OK);
    assert_int_equal(oly_restore(folder, OLY_NAMES("x"), OLY_OUT(back)), OLY_OK);
    assert_true(oly_item(oly_sum(back)) == N * (N - 1) / 2);
}

static double session(int rounds)
{
    double first = 0;
    oly_init(NULL, NULL);
    oly_set_error_mode(OLY_ERRORS_RETURN);
    oly_mesh mesh = oly_make_mesh("i=8"), other = oly_make_mesh("a=2, b=4");
    for (int k = 0; k < rounds; k++)
        OLY_SCOPE
        {
            double value = work(mesh, other);
            if (k == 0)
                first = value;
            assert_true(value == first);
        }
    save_and_restore(mesh);
    assert_int_equal(oly_finalize(), 0);
    return first;
}

/* -- the test ------------------------------------------------------------------------------------------------------- */

static double limit = 2;
#ifdef __SANITIZE_ADDRESS__
static const bool freed_memory_is_kept = true;
#else
static const bool freed_memory_is_kept = false;
#endif

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Process 0 decides for all. */
static bool goes_on(bool mine)
{
    int more = mine;
    MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return more;
}

static void test_nothing_grows(void **state)
{
    (void)state;
    int rank, sessions = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double first = session(3), begin = now(), minute = begin;
    session(3);
    usage before = usage_now();
    for (; goes_on(sessions < 2 || now() - begin < limit); sessions++) {
        assert_true(session(limit > 60 ? 20 : 3) == first);
        usage u = usage_now();
        for (int wait = 0; u.threads > before.threads && wait < 100;
             wait++, u = usage_now()) /* the last may still be ending */
            nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        if (now() - minute > 60) {
            printf("rank %d: %.0f s, %d sessions: %.1f MB, %d descriptors, %d threads, %d communicators\n", rank,
                   now() - begin, sessions + 1, u.megabytes, u.descriptors, u.threads, u.communicators);
            fflush(stdout);
            minute = now();
        }
        if (now() - begin < limit / 10)
            before.megabytes = before.megabytes > u.megabytes ? before.megabytes : u.megabytes;
        assert_int_equal(u.communicators, before.communicators);
        assert_int_equal(u.threads, before.threads);
        assert_true(u.descriptors <= before.descriptors);
        if (!freed_memory_is_kept && u.megabytes > before.megabytes * 1.05 + 8)
            fail_msg("after %d sessions: %g MB, %g at the start", sessions + 1, u.megabytes, before.megabytes);
    }
}

static bool owns_mpi;

static int make_folder(void **state)
{
    (void)state;
    int rank, made = 1, started;
    MPI_Initialized(&started);
    if (!started) { /* one process: check.c does not need MPI; the sessions do, which cannot start it again */
        int level;
        MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level);
        owns_mpi = true;
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        snprintf(folder, sizeof folder, "/tmp/olympus-mixed-XXXXXX");
        made = mkdtemp(folder) != NULL;
    }
    MPI_Bcast(folder, sizeof folder, MPI_CHAR, 0, MPI_COMM_WORLD);
    return made ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    int rank;
    char command[128];
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    int status = rank == 0 ? system(command) : 0;
    if (owns_mpi)
        MPI_Finalize();
    return status;
}

int main(int argc, char **argv)
{
    limit = argc > 1 ? atof(argv[1]) : limit;
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_nothing_grows, make_folder, remove_folder)};
    return CHECK_MAIN(tests);
}
