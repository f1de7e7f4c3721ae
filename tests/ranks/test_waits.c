/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1  When notices about waiting appear. With arguments the program is one of the faulty programs of test_waits.sh:
 *
 *     test_waits PHASE FAULT RANK
 *
 * Rank RANK commits the FAULT just before the call of PHASE, where all others wait for it. */
#include "check.h"
#include "core/option.h"
#include "world.h"
#include <olympus.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

static const int64_t second = 1000000000;

static void notices_come_after_a_while_and_then_less_often(void **state)
{
    (void)state;
    assert_int_equal(oly_option.wait_notice, 10);
    assert_int_equal(oly_option.timeout, 120);
    assert_int_equal(oly_wait_next_notice(0), 10 * second);
    assert_int_equal(oly_wait_next_notice(10 * second), 70 * second);
    assert_int_equal(oly_wait_next_notice(69 * second), 70 * second);
    assert_int_equal(oly_wait_next_notice(71 * second), 130 * second);
}

/* -- faults ------------------------------------------------------------------------------------------------------ */

static const char *phase, *fault;
static int guilty;

static void commit(int rank, const char *here)
{
    if (rank != guilty || strcmp(phase, here) != 0)
        return;
    const char *job = getenv("OMPI_MCA_ess_base_jobid");
    fprintf(stderr, "rank %d is process %d of job %s\n", rank, (int)getpid(), job ? job : "?");
    if (!strcmp(fault, "sleep"))
        sleep(60);
    else if (!strcmp(fault, "nap"))
        sleep(8);
    else if (!strcmp(fault, "stop"))
        raise(SIGSTOP);
    else if (!strcmp(fault, "kill"))
        raise(SIGKILL);
    else if (!strcmp(fault, "exit"))
        _exit(0);
    else if (!strcmp(fault, "abort"))
        abort();
}

/* -- a function that takes seconds to plan ------------------------------------------------------------------------ */

enum { MANY = 40000 };
static atomic_bool is_recorded;

static void record_many(const oly_array *in, oly_array *out, void *unused)
{
    (void)unused;
    oly_array y = in[0];
    for (int k = 0; k < MANY; k++)
        y = k % 3 == 0 ? oly_matmul(y, in[0]) : k % 3 == 1 ? oly_transpose(oly_sin(y)) : oly_add(y, oly_sum(y));
    out[0] = y;
    atomic_store(&is_recorded, true);
}

/* The guilty rank commits the fault a moment after it has started to plan or, for others-plan, instead of its call. */
static void *commit_while_planning(void *rank)
{
    while (!atomic_load(&is_recorded))
        usleep(1000);
    usleep(100000);
    commit(*(int *)rank, "planning");
    return NULL;
}

static void plan_many(int rank, oly_array x)
{
    pthread_t thread;
    oly_array y;
    if (rank == guilty && !strcmp(phase, "others-plan"))
        usleep(400000);
    commit(rank, "others-plan");
    if (pthread_create(&thread, NULL, commit_while_planning, &rank) != 0)
        return;
    oly_call(oly_jit(record_many, 1, 1), OLY_IN(x), OLY_OUT(y));
    oly_block_until_ready(y);
    pthread_join(thread, NULL);
    fprintf(stderr, "rank %d has planned\n", rank);
}

static int rank_of_launcher(void)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    rank = rank ? rank : getenv("PMI_RANK");
    return rank ? atoi(rank) : 0;
}

static int run_phases(int argc, char **argv)
{
    float all[64];
    commit(rank_of_launcher(), "init");
    oly_init(&argc, &argv);
    int rank = oly_process_index(), last = oly_device_count() - 1;
    oly_array x = oly_device_put(oly_reshape(oly_arange(64, OLY_FLOAT32), 8, 8), oly_named(oly_make_mesh("x=4"), "x"));
    oly_array one = oly_device_put(oly_ones(OLY_FLOAT32, 64), oly_single_device(oly_get_device(last)));
    oly_sync("begin");
    commit(rank, "sync");
    oly_sync("middle");
    if (!strcmp(phase, "planning") || !strcmp(phase, "others-plan"))
        plan_many(rank, x);
    commit(rank, "sum");
    oly_block_until_ready(oly_sum(x));
    commit(rank, "put");
    oly_array there = oly_device_put(one, oly_single_device(oly_get_device(0)));
    oly_block_until_ready(there);
    oly_sync("moved");
    commit(rank, "gather");
    oly_process_allgather(x, all, sizeof all);
    commit(rank, "png");
    oly_write_png(argv[4], x, 0, 64);
    commit(rank, "finalize");
    int status = oly_finalize();
    commit(rank, "exit");
    return status;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(notices_come_after_a_while_and_then_less_often)};
    if (argc < 5)
        return CHECK_MAIN(tests);
    phase = argv[1];
    fault = argv[2];
    guilty = atoi(argv[3]);
    return run_phases(argc, argv);
}
