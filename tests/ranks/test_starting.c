/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=2,3  Starting: on a communicator of the program, again and again, and starts that fail: with OLY_ERRORS_RETURN they return a
 * status, MPI and the program go on, and the next start works. */
#include "check.h"
#include "world.h"
#include "environment.h"
#include "meeting.h"
#include <mpi.h>
#include <olympus.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;

static bool message_has(const char *text)
{
    bool has = strstr(oly_last_error(), text) != NULL;
    if (!has)
        print_error("not \"%s\" in: %s\n", text, oly_last_error());
    oly_clear_error();
    return has;
}

static double sum_of_ten(void)
{
    char axes[32];
    snprintf(axes, sizeof axes, "i=%d", oly_device_count());
    return oly_item(oly_sum(oly_device_put(oly_arange(10, OLY_INT32), oly_named(oly_make_mesh(axes), "i"))));
}

static void the_program_has_mpi(void **state)
{
    (void)state;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    assert_true(size > 1);
}

static void a_communicator_is_the_job(void **state)
{
    (void)state;
    MPI_Comm some;
    MPI_Comm_split(MPI_COMM_WORLD, rank == 0, -rank, &some); /* the others in reverse order */
    if (rank > 0) {
        assert_int_equal(oly_init_comm(some), OLY_OK);
        assert_int_equal(oly_process_count(), size - 1);
        assert_int_equal(oly_process_index(), size - 1 - rank);
        assert_true(sum_of_ten() == 45);
        assert_int_equal(oly_finalize(), 0);
    }
    MPI_Comm_free(&some);
}

static void it_may_be_started_again_on_another(void **state)
{
    (void)state;
    MPI_Comm reversed;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
    for (int k = 0; k < 3; k++) {
        assert_int_equal(oly_init_comm(k % 2 ? MPI_COMM_WORLD : reversed), OLY_OK);
        assert_int_equal(oly_process_index(), k % 2 ? rank : size - 1 - rank);
        assert_true(sum_of_ten() == 45);
        assert_int_equal(oly_finalize(), 0);
    }
    MPI_Comm_free(&reversed);
}

static void nothing_is_sent_over_the_programs_communicator(void **state)
{
    (void)state;
    int flag, token = rank;
    MPI_Comm mine;
    MPI_Comm_dup(MPI_COMM_WORLD, &mine);
    assert_int_equal(oly_init_comm(mine), OLY_OK);
    MPI_Request request;
    MPI_Irecv(&token, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, mine, &request);
    assert_true(sum_of_ten() == 45);
    oly_sync("here");
    MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    assert_false(flag);
    MPI_Cancel(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (size > 1) {
        char name[MPI_MAX_OBJECT_NAME];
        int length;
        MPI_Comm_get_name(oly_world_comm(), name, &length);
        assert_string_equal(name, "olympus");
    }
    assert_int_equal(oly_finalize(), 0);
    MPI_Comm_free(&mine);
}

static void failed_starts_return(void **state)
{
    (void)state;
    oly_set_error_mode(OLY_ERRORS_RETURN);
    assert_int_equal(oly_init_comm(MPI_COMM_NULL), OLY_INVALID);
    assert_true(message_has("the communicator is MPI_COMM_NULL"));
    assert_int_equal((oly_init_comm)(NULL), OLY_INVALID);
    assert_true(message_has("no communicator"));
    if (size > 1) {
        assert_int_equal(oly_distributed_initialize("127.0.0.1", size + 1, rank), OLY_INVALID);
        assert_true(message_has("processes, not"));
        assert_int_equal(oly_distributed_initialize(NULL, size, (rank + 1) % size), OLY_INVALID);
        assert_true(message_has("as oly_distributed_initialize says"));
    }
    setenv("OLYMPUS_OVERLAP", "perhaps", 1);
    oly_init(NULL, NULL);
    assert_true(message_has("OLYMPUS_OVERLAP"));
    unsetenv("OLYMPUS_OVERLAP");
    assert_int_equal(oly_init_comm(MPI_COMM_WORLD), OLY_OK);
    assert_int_equal(oly_init_comm(MPI_COMM_WORLD), OLY_STATE);
    assert_true(message_has("already started"));
    assert_int_equal(oly_distributed_initialize(), OLY_STATE);
    assert_true(message_has("has its devices already, since oly_init"));
    oly_set_error_mode(OLY_ERRORS_ABORT);
    assert_true(sum_of_ten() == 45);
    assert_int_equal(oly_finalize(), 0);
}

static void oly_init_may_follow(void **state)
{
    (void)state;
    assert_int_equal(oly_distributed_initialize(), OLY_OK);
    oly_init(NULL, NULL);
    assert_int_equal(oly_process_count(), size);
    assert_true(sum_of_ten() == 45);
    assert_int_equal(oly_finalize(), 0);
}

/* Without MPI: which meeting the arguments ask for. */
static void incomplete_places_are_refused(void **state)
{
    (void)state;
    static const oly_launch alone = {NULL, 0, 1, 0, 1}, mpirun = {"mpirun", 0, 4, 0, 4};
    static const struct {
        oly_distributed asked;
        const char *why;
    } wrong[] = {
        {{true, "h1", -1, 0}, "missing is the number of processes"},
        {{true, "h1", 4, -1}, "missing is the number of this process"},
        {{true, NULL, 4, 0}, "missing is the coordinator's address"},
        {{true, "h1", 4, 4}, "process id 4 of 4 processes: ids are 0 to 3"},
        {{true, "h1", 4, -2}, "missing is the number of this process"},
        {{true, "h1", 0, 0}, "0 processes"},
        {{true, "h1:99999", 4, 0}, "is not HOST:PORT"},
        {{true, "a b", 4, 0}, "is not HOST:PORT"},
        {{true, "::1", 4, 0}, "is not HOST:PORT"},
    };
    oly_place place;
    oly_set_error_mode(OLY_ERRORS_RETURN);
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        oly_status status = oly_meeting_find(&wrong[k].asked, &alone, &place);
        assert_int_equal(status, OLY_INVALID);
        oly_raise(status);
        assert_true(message_has(wrong[k].why));
    }
    assert_int_equal(oly_meeting_find(&(oly_distributed){true, "h1", 4, 2}, &alone, &place), OLY_OK);
    assert_true(place.wanted && place.processes == 4 && place.process == 2);
    assert_int_equal(oly_meeting_find(&(oly_distributed){true, "h1", 1, 0}, &alone, &place), OLY_OK);
    assert_false(place.wanted);
    assert_int_equal(oly_meeting_find(&(oly_distributed){true, "h1", 4, 2}, &mpirun, &place), OLY_OK);
    assert_false(place.wanted);
    assert_int_equal(oly_meeting_find(&(oly_distributed){false, NULL, -1, -1}, &alone, &place), OLY_OK);
    assert_false(place.wanted);
    oly_set_error_mode(OLY_ERRORS_ABORT);
}

static void the_first_pod_is_known_by_a_pods_own_name(void **state)
{
    (void)state;
    static const char hosts[] =
        "127.0.0.1 localhost\n10.1.2.3\tjobs-workers-0-12.jobs.space.svc.cluster.local\tjobs-workers-0-12\n";
    char first[300];
    assert_true(oly_meeting_first_pod("jobs-workers-0-12", "12", hosts, first, sizeof first));
    assert_string_equal(first, "jobs-workers-0-0.jobs.space.svc.cluster.local:10000");
    assert_true(oly_meeting_first_pod("jobs-3", "3", "", first, sizeof first));
    assert_string_equal(first, "jobs-0:10000");
    assert_false(oly_meeting_first_pod("jobs-3", "4", hosts, first, sizeof first));
    assert_false(oly_meeting_first_pod("jobs3", "3", hosts, first, sizeof first));
    assert_false(oly_meeting_first_pod("3", "3", hosts, first, sizeof first));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_program_has_mpi),
        cmocka_unit_test(a_communicator_is_the_job),
        cmocka_unit_test(it_may_be_started_again_on_another),
        cmocka_unit_test(nothing_is_sent_over_the_programs_communicator),
        cmocka_unit_test(failed_starts_return),
        cmocka_unit_test(oly_init_may_follow),
        cmocka_unit_test(incomplete_places_are_refused),
        cmocka_unit_test(the_first_pod_is_known_by_a_pods_own_name),
    };
    return CHECK_MAIN(tests);
}
