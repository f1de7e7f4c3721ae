/* SPDX-License-Identifier: BSD-3-Clause */
/* A communicator beside the one of the program's calls: messages of work that goes on in another thread meanwhile (checkpoints being
 * written), and small numbers on which all ranks agree without waiting for each other. Declared in communicator.h.
 *
 * Messages are few and small, and their sender may be busy with a disk for minutes: waits sleep, print the usual notice, and give up
 * after OLYMPUS_TIMEOUT seconds of silence. They do not use wait.c, which belongs to the thread of the program's calls. */
#include "world.h"
#include "core/error.h"
#include "core/option.h"
#include <sched.h>
#include <string.h>
#include <time.h>

enum { PIECE = 1 << 30, POLLS = 4, LONGEST_SLEEP_NS = 2000000 };

static struct {
    MPI_Comm comm;
    MPI_Request numbers;                                       /* of the agreement in flight */
    int64_t mine[OLY_AGREED_NUMBERS], all[OLY_AGREED_NUMBERS]; /* MPI's while it is in flight */
} side = {.comm = MPI_COMM_NULL, .numbers = MPI_REQUEST_NULL};

oly_status oly_side_open(const char *call)
{
    if (oly_world_comm() == MPI_COMM_NULL || side.comm != MPI_COMM_NULL)
        return OLY_OK;
    OLY_TRY(oly_world_meet(call)); /* all are here, so that the next call does not wait */
    oly_watch_block("MPI_Comm_dup", call);
    int code = MPI_Comm_dup(oly_world_comm(), &side.comm);
    oly_watch_end();
    if (code != MPI_SUCCESS)
        return oly_mpi_failed("MPI_Comm_dup", code);
    MPI_Comm_set_name(side.comm, "olympus beside");
    return OLY_OK;
}

void oly_side_close(bool all_are_here)
{
    if (side.comm != MPI_COMM_NULL && all_are_here) {
        if (side.numbers != MPI_REQUEST_NULL) /* all have begun it, as they have made the same calls */
            MPI_Wait(&side.numbers, MPI_STATUS_IGNORE);
        MPI_Comm_free(&side.comm);
    }
    side.comm = MPI_COMM_NULL;
    side.numbers = MPI_REQUEST_NULL;
}

/* -- messages ------------------------------------------------------------------------------------------------------------ */

static void say_waiting(int rank, const char *call)
{
    oly_late late = {0};
    oly_late_add(&late, rank);
    oly_wait_say(oly_world_rank(), &late, call);
}

static oly_status silent(int rank, const char *call)
{
    oly_world_break(OLY_TIMEOUT);
    return oly_fail(
        OLY_TIMEOUT,
        "rank %d waited %lld s in %s for rank %d, which may have ended, or be waiting for its disk; if it is still "
        "writing, raise OLYMPUS_TIMEOUT",
        oly_world_rank(), (long long)oly_option.timeout, call, rank);
}

/* Polls, then sleeps longer and longer. */
static void rest(int polls)
{
    long ns = polls < POLLS ? 0 : (long)(polls - POLLS + 1) * 20000;
    struct timespec t = {.tv_nsec = ns < LONGEST_SLEEP_NS ? ns : LONGEST_SLEEP_NS};
    if (ns == 0)
        sched_yield();
    else
        nanosleep(&t, NULL);
}

static oly_status wait_for(MPI_Request *request, int rank, const char *call)
{
    int64_t began = oly_wait_clock(), next = oly_wait_next_notice(0);
    for (int done = 0, polls = 0;; polls++) {
        int code = MPI_Test(request, &done, MPI_STATUS_IGNORE);
        if (code != MPI_SUCCESS)
            return oly_mpi_failed("MPI_Test", code);
        if (done)
            return OLY_OK;
        rest(polls);
        int64_t waited = oly_wait_clock() - began;
        if (waited >= next) {
            say_waiting(rank, call);
            next = oly_wait_next_notice(waited);
        }
        if (waited >= oly_option.timeout * INT64_C(1000000000))
            return silent(rank, call);
    }
}

/* NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker): wait_for tests the requests until they are done */
oly_status oly_side_send(int rank, const void *data, size_t bytes, const char *call)
{
    for (size_t at = 0; at < bytes; at += PIECE) {
        MPI_Request request;
        int n = bytes - at < PIECE ? (int)(bytes - at) : PIECE;
        int code = MPI_Isend((const char *)data + at, n, MPI_BYTE, rank, 0, side.comm, &request);
        if (code != MPI_SUCCESS)
            return oly_mpi_failed("MPI_Isend", code);
        OLY_TRY(wait_for(&request, rank, call));
    }
    return OLY_OK;
}

oly_status oly_side_receive(int rank, void *data, size_t bytes, const char *call)
{
    for (size_t at = 0; at < bytes; at += PIECE) {
        MPI_Request request;
        int n = bytes - at < PIECE ? (int)(bytes - at) : PIECE;
        int code = MPI_Irecv((char *)data + at, n, MPI_BYTE, rank, 0, side.comm, &request);
        if (code != MPI_SUCCESS)
            return oly_mpi_failed("MPI_Irecv", code);
        OLY_TRY(wait_for(&request, rank, call));
    }
    return OLY_OK;
}

/* -- agreements ---------------------------------------------------------------------------------------------------------- */

oly_status oly_numbers_begin(const int64_t mine[OLY_AGREED_NUMBERS])
{
    memcpy(side.mine, mine, sizeof side.mine);
    memcpy(side.all, mine, sizeof side.all);
    if (side.comm == MPI_COMM_NULL)
        return OLY_OK;
    int code = MPI_Iallreduce(side.mine, side.all, OLY_AGREED_NUMBERS, MPI_INT64_T, MPI_MAX, side.comm, &side.numbers);
    return code == MPI_SUCCESS ? OLY_OK : oly_mpi_failed("MPI_Iallreduce", code);
}
/* NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker) */

bool oly_numbers_are_here(void)
{
    int done = 1;
    if (side.numbers != MPI_REQUEST_NULL && MPI_Test(&side.numbers, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS)
        return false;
    return done != 0;
}

oly_status oly_numbers_end(int64_t all[OLY_AGREED_NUMBERS])
{
    if (side.numbers != MPI_REQUEST_NULL)
        OLY_TRY(oly_world_await_all(&side.numbers));
    memcpy(all, side.all, sizeof side.all);
    return OLY_OK;
}
