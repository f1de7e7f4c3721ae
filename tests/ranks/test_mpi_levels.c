/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=2 devices=4  Programs that initialise MPI themselves, at any thread level, and call it between calls of
 * Olympus: values are right, and Olympus calls MPI from a thread of its own only where both may at once. Each level
 * needs a job of its own: with a number as argument this is one of the programs of test_mpi_levels.sh. */
#include "check.h"
#include "communicator.h"
#include <mpi.h>
#include <olympus.h>

static int sum_of_ranks(void)
{
    int mine = oly_process_index(), sum = 0;
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return sum;
}

static bool computes_and_communicates(void)
{
    int64_t n = 100 * oly_device_count();
    int ranks = oly_process_count();
    bool right = true;
    char axes[30];
    snprintf(axes, sizeof axes, "i=%d", oly_device_count());
    oly_array x = oly_device_put(oly_arange(n, OLY_FLOAT64), oly_named(oly_make_mesh(axes), "i"));
    for (int k = 0; k < 20; k++) {
        x = oly_add(oly_roll(x, 70, 0), oly_mul(0, oly_sum(x))); /* may still be running */
        right = right && sum_of_ranks() == ranks * (ranks - 1) / 2;
    }
    return right && oly_item(oly_sum(x)) == (double)(n * (n - 1) / 2) &&
           oly_item(oly_slice(oly_device_put(x, oly_named(oly_make_mesh(axes), "")), "0")) ==
               (double)((n - 1400 % n) % n);
}

static void between_calls_of_mpi(void **state)
{
    (void)state;
    oly_init(NULL, NULL);
    assert_true(computes_and_communicates());
    assert_int_equal(oly_finalize(), 0);
}

static int at_level(int level)
{
    int given, failed;
    MPI_Init_thread(NULL, NULL, level, &given);
    oly_init(NULL, NULL);
    failed = !computes_and_communicates() || oly_world_threads() != (given == MPI_THREAD_MULTIPLE);
    failed += oly_finalize();
    MPI_Finalize();
    printf("level %d, given %d: %s\n", level, given, failed ? "wrong" : "right");
    return failed;
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(between_calls_of_mpi),
};

int main(int argc, char **argv)
{
    static const int levels[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE};
    return argc > 1 ? at_level(levels[argv[1][0] & 3]) : CHECK_MAIN(tests);
}
