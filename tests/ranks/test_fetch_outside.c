/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=2,4,8 devices=8  Arrays on meshes that leave ranks out: the ranks of the mesh fetch alone, or others too,
 * before, after, in loops; and what can never be fetched is an error on every rank, soon, with both calls. */
#include "check_session.h"
#include <mpi.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void nap(int ms)
{
    usleep((useconds_t)ms * 1000);
}

/* Devices of the first half of the ranks, of the last half, of one rank, of all but rank 0 and one more. */
static oly_mesh part(int which)
{
    int all = oly_device_count(), own = all / oly_process_count(), n = 0, devices[8];
    for (int id = 0; id < all; id++) {
        bool in = which == 0   ? id < all / 2
                  : which == 1 ? id >= all / 2
                  : which == 2 ? id / own == oly_process_count() - 1
                               : id >= own;
        if (in)
            devices[n++] = id;
    }
    if (which == 3) /* in another order, so that the first device is not the first rank's */
        for (int k = 0; k < n / 2; k++) {
            int d = devices[k];
            devices[k] = devices[n - 1 - k];
            devices[n - 1 - k] = d;
        }
    return oly_mesh_from_devices(1, (const char *[]){"x"}, &n, devices);
}
enum { PARTS = 4, N = 24 };

static bool member(oly_mesh mesh)
{
    return oly_shard_count(oly_full_sharded(oly_operand_int(0), OLY_INT32, oly_named(mesh, "x"), 1, (int64_t[]){N})) >
           0;
}

static oly_array numbers(oly_mesh mesh, const char *spec, double first)
{
    return oly_device_put(oly_add(oly_arange(N, OLY_FLOAT32), first), oly_named(mesh, spec));
}

/* All of these ranks fetch it: first, first + step, ... */
static void check_values(oly_array x, double first, double step)
{
    float got[N];
    assert_int_equal(oly_process_allgather(x, got, sizeof got), OLY_OK);
    for (int k = 0; k < N; k++)
        assert_float_equal(got[k], first + step * k, 0);
}

/* A call that all ranks make: twice as many as there are devices. */
static double call_of_all(void)
{
    int64_t n = 2 * oly_device_count();
    oly_mesh all = oly_mesh_from_devices(1, (const char *[]){"x"}, (int[]){oly_device_count()}, NULL);
    oly_array x = oly_full_sharded(oly_operand_int(1), OLY_FLOAT32, oly_named(all, "x"), 1, &n);
    return oly_item(oly_sum(oly_roll(x, 1, 0)));
}

static void check_all(void)
{
    assert_float_equal(call_of_all(), 2 * oly_device_count(), 0);
}

static void the_ranks_of_the_mesh_alone(void **state)
{
    (void)state;
    for (int p = 0; p < PARTS; p++) {
        oly_mesh mesh = part(p);
        oly_array x = oly_add(numbers(mesh, "x", 1), 1), whole = numbers(mesh, "", 5);
        for (int k = 0; k < 3; k++)
            if (oly_shard_count(x)) {
                check_values(x, 2, 1);
                check_values(whole, 5, 1);
            }
        check_all();
        oly_sync("after it");
    }
}

static void all_ranks(void **state)
{
    (void)state;
    for (int p = 0; p < PARTS; p++) {
        oly_mesh mesh = part(p);
        oly_array x = oly_mul(numbers(mesh, "x", 1), 2);
        check_values(x, 2, 2);
        check_values(numbers(mesh, "", 5), 5, 1);
        check_all();
        check_values(x, 2, 2);
    }
}

/* Other ranks fetch sooner or later, and only some of the arrays. */
static void in_loops(void **state)
{
    (void)state;
    for (int p = 0; p < PARTS; p++) {
        oly_mesh mesh = part(p);
        oly_array x = numbers(mesh, "x", 0);
        bool in = member(mesh);
        for (int k = 1; k <= 12; k++)
            OLY_SCOPE
            {
                oly_assign(&x, oly_add(x, 1));
                if (in == (k % 2 == 0) && k % 4 == 0)
                    nap(5);
                if (in || k % 3 == 0)
                    check_values(x, k, 1);
                if (k % 5 == 0)
                    check_all();
            }
    }
}

/* Ranks of the mesh create and fetch arrays of their own; these are not confused with others. */
static void besides_work_of_the_mesh(void **state)
{
    (void)state;
    for (int p = 0; p < PARTS; p++) {
        oly_mesh mesh = part(p);
        bool in = member(mesh);
        oly_array x = numbers(mesh, "x", 0);
        for (int k = 0; k < 5; k++) {
            if (in) {
                assert_float_equal(oly_item(oly_max(x)), N - 1 + k, 0);
                check_values(numbers(mesh, "x", 100 + k), 100 + k, 1);
                check_values(oly_add(x, 7), 7 + k, 1);
            }
            x = oly_add(x, 1);
            check_values(x, 1 + k, 1);
        }
    }
}

/* Two meshes without a rank in common: each side fetches the other's arrays. */
static void two_meshes(void **state)
{
    (void)state;
    oly_array a = numbers(part(0), "x", 10), b = numbers(part(1), "x", 20);
    for (int k = 0; k < 5; k++) {
        check_values(a, 10, 1);
        check_values(b, 20, 1);
        if (oly_shard_count(a))
            check_values(oly_mul(a, 2), 20, 2);
        check_values(oly_mul(b, 2), 40, 2);
    }
    check_values(oly_device_put(oly_mul(a, 3), oly_named(part(1), "x")), 30, 3); /* moved: a call of both */
    check_all();
}

/* From parts that only the ranks of the mesh have; the others pass none. */
static void parts_of_each_process(void **state)
{
    (void)state;
    for (int p = 0; p < 3; p++) {
        oly_mesh mesh = part(p);
        oly_array like = numbers(mesh, "x", 0);
        for (int round = 0; round < 3; round++) {
            float own[N];
            int64_t n = N, here = 0;
            OLY_FOR_EACH_SHARD(s, like)
            for (int64_t k = 0; k < s.extent[0]; k++)
                own[here++] = (float)(100 * round + s.start[0] + k);
            oly_array x = oly_from_local(oly_named(mesh, "x"), OLY_FLOAT32, 1, &n, own, &here);
            check_values(round == 1 ? oly_add(x, 1) : x, 100 * round + (round == 1), 1);
        }
        float three = 3;
        check_values(oly_add(like, oly_from_host(&three, OLY_FLOAT32, 0, NULL)), 3, 1);
    }
}

static void large_values(void **state)
{
    (void)state;
    enum { LARGE = 3 << 20 };
    float *got = malloc(sizeof *got * LARGE);
    for (int k = 0; k < 3; k++) {
        oly_array x = oly_add(oly_device_put(oly_arange(LARGE, OLY_FLOAT32), oly_named(part(1), "x")), k);
        assert_int_equal(oly_process_allgather(x, got, sizeof *got * LARGE), OLY_OK);
        for (int j = 0; j < LARGE; j += 1013)
            assert_float_equal(got[j], (float)j + (float)k, 0);
    }
    free(got);
}

static void pictures(void **state)
{
    (void)state;
    char good[100], bad[100];
    snprintf(good, sizeof good, "/tmp/test_fetch_outside.%d.png", oly_process_count());
    snprintf(bad, sizeof bad, "/tmp/test_fetch_outside.%d/none.png", oly_process_count());
    oly_array x = oly_reshape(numbers(part(1), "x", 0), 4, 6);
    assert_int_equal(oly_write_png(good, x, 0, 24), OLY_OK);
    assert_int_equal(access(good, R_OK), 0);
    oly_sync("all have seen it");
    if (oly_process_index() == 0)
        unlink(good);
    oly_set_error_mode(OLY_ERRORS_RETURN);
    assert_int_equal(oly_write_png(bad, x, 0, 24), OLY_IO);
    oly_clear_error();
    oly_set_error_mode(OLY_ERRORS_ABORT);
    if (oly_shard_count(x))
        assert_int_equal(oly_write_png(good, x, 0, 24), OLY_OK);
    oly_sync("written again");
    if (oly_process_index() == 0)
        unlink(good);
}

/* -- what can never be fetched ------------------------------------------------------------------------------------- */

static void fetch_if(bool wanted, oly_array x)
{
    float got[N];
    if (wanted)
        oly_process_allgather(x, got, sizeof got);
}

static void members_never_fetch(oly_mesh mesh, bool in)
{
    fetch_if(!in, numbers(mesh, "x", 0));
}

static void members_wait_elsewhere(oly_mesh mesh, bool in)
{
    oly_array x = numbers(mesh, "x", 0);
    fetch_if(!in, x);
    oly_sync("here");
    fetch_if(in, x);
}

static void another_array(oly_mesh mesh, bool in)
{
    oly_array x = numbers(mesh, "x", 0), y = numbers(mesh, "x", 1);
    fetch_if(true, in ? x : y);
}

static void another_constant(oly_mesh mesh, bool in)
{
    fetch_if(true, oly_mul(numbers(mesh, "x", 0), in ? 2 : 3));
}

static void another_order(oly_mesh mesh, bool in)
{
    oly_array x = numbers(mesh, "x", 0);
    fetch_if(!in, x);
    call_of_all();
    fetch_if(in, x);
}

static const struct wrong {
    const char *name, *text;
    void (*run)(oly_mesh mesh, bool in);
} wrong[] = {
    {"members never fetch", "without having fetched this array", members_never_fetch},
    {"members wait elsewhere", "without having fetched this array", members_wait_elsewhere},
    {"another array", "without having fetched this array", another_array},
    {"another constant", "without having fetched this array", another_constant},
    {"another order", "without having fetched this array", another_order},
};

static void what_nobody_fetches_is_an_error(void **state)
{
    (void)state;
    double slowest = 0;
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++)
        for (int p = 0; p < PARTS; p++) {
            oly_init(NULL, NULL);
            oly_set_error_mode(OLY_ERRORS_RETURN);
            oly_mesh mesh = part(p);
            bool in = member(mesh);
            oly_sync("begin");
            double begin = now();
            wrong[k].run(mesh, in);
            int status = oly_finalize();
            slowest = now() - begin > slowest ? now() - begin : slowest;
            if (status != 1 || oly_last_status() != OLY_DIVERGED || !strstr(oly_last_error(), wrong[k].text) ||
                !strstr(oly_last_error(), "test_fetch_outside.c:"))
                fail_msg("%s, mesh %d: status %d, %s: %s", wrong[k].name, p, status, oly_status_name(oly_last_status()),
                         oly_last_error());
            oly_clear_error();
        }
    print_message("the slowest took %.2f s\n", slowest);
}

/* After a fetch ranks make MPI calls of the program's own, in which the library does not answer. */
static void before_mpi_calls_of_the_program(void **state)
{
    (void)state;
    enum { MANY = 200000 };
    static float got[MANY];
    for (int p = 0; p < PARTS; p++) {
        oly_mesh mesh = part(p);
        oly_array few = numbers(mesh, "x", p),
                  many = oly_device_put(oly_arange(MANY, OLY_FLOAT32), oly_named(mesh, "x"));
        if (!member(mesh))
            nap(50);
        check_values(few, p, 1);
        MPI_Barrier(MPI_COMM_WORLD);
        if (!member(mesh))
            nap(50);
        assert_int_equal(oly_process_allgather(many, got, sizeof got), OLY_OK);
        MPI_Barrier(MPI_COMM_WORLD);
        assert_float_equal(got[MANY - 1], MANY - 1, 0);
        check_all();
    }
}

static long peak_kib(void)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return use.ru_maxrss;
}

/* What the ranks of the mesh fetch alone takes no memory on others, whether they fetch it or are busy; dropped values
 * can still be requested. */
#ifdef __SANITIZE_ADDRESS__ /* which keeps freed memory for a while */
enum { MOST_KIB = 500 << 10 };
#else
enum { MOST_KIB = 90 << 10 };
#endif
static void nobody_asks_for_most(void **state)
{
    (void)state;
    enum { MEBI = 1 << 18, ROUNDS = 200 };
    static float got[MEBI];
    oly_mesh mesh = part(0);
    bool mine = member(mesh);
    for (int busy = 0; busy < 2; busy++)
        OLY_SCOPE
        {
            oly_array x = oly_device_put(oly_arange(MEBI, OLY_FLOAT32), oly_named(mesh, "x")), first = oly_add(x, 7);
            if (mine)
                assert_int_equal(oly_process_allgather(first, got, sizeof got), OLY_OK);
            long before = peak_kib();
            for (int k = 0; k < ROUNDS; k++) {
                oly_assign(&x, oly_add(x, 1));
                if (mine)
                    assert_int_equal(oly_process_allgather(x, got, sizeof got), OLY_OK);
                if (!busy && k % 8 == 0)
                    check_all(); /* others wait in calls of Olympus */
            }
            if (busy)
                MPI_Barrier(MPI_COMM_WORLD);
            if (!mine)
                assert_in_range(peak_kib() - before, 0, MOST_KIB);
            assert_int_equal(oly_process_allgather(x, got, sizeof got), OLY_OK);
            assert_float_equal(got[3], 3 + ROUNDS, 0);
            assert_int_equal(oly_process_allgather(first, got, sizeof got), OLY_OK);
            assert_float_equal(got[3], 3 + 7, 0);
            check_all(); /* in the program's barrier nobody could answer */
        }
}

#define STARTED(test) cmocka_unit_test_setup_teardown(test, check_open, check_close)
static const struct CMUnitTest tests[] = {
    STARTED(the_ranks_of_the_mesh_alone),
    STARTED(all_ranks),
    STARTED(in_loops),
    STARTED(besides_work_of_the_mesh),
    STARTED(two_meshes),
    STARTED(parts_of_each_process),
    STARTED(large_values),
    STARTED(before_mpi_calls_of_the_program),
    STARTED(nobody_asks_for_most),
    STARTED(pictures),
    cmocka_unit_test(what_nobody_fetches_is_an_error),
};

int main(void)
{
    return CHECK_MAIN(tests);
}
