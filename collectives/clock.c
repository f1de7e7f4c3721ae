/* SPDX-License-Identifier: BSD-3-Clause */
/* How far apart the clocks of processes are, and bytes from one process to another. Called for the timeline.
 *
 *      this rank      rank 0
 *         t0 ----------->        rank 0's clock was at t somewhere between t0 and t1: most likely in the middle, and
 *                       t        wrong by at most half of t1 - t0. The shortest of some round trips is the best one.
 *         t1 <-----------
 *
 * Ranks of rank 0's node share its clock. The others are served one after the other. */
#include "world.h"
#include "core/error.h"
#include "core/ticks.h"
#include <limits.h>

enum { ROUND_TRIPS = 24 };

int64_t oly_clock_pretends;

static int64_t now(void)
{
    return oly_monotonic_ns() + oly_clock_pretends;
}

static oly_status pass(int rank, void *bytes, size_t n, int tag, bool sends, const char *what)
{
    MPI_Request request;
    if (n > INT_MAX)
        return oly_fail(OLY_OVERFLOW, "%s: %zu bytes at once; at most %d", what, n, INT_MAX);
    int code = sends ? MPI_Isend(bytes, (int)n, MPI_BYTE, rank, tag, oly_world_comm(), &request)
                     : MPI_Irecv(bytes, (int)n, MPI_BYTE, rank, tag, oly_world_comm(), &request);
    if (code != MPI_SUCCESS)
        return oly_mpi_failed(sends ? "MPI_Isend" : "MPI_Irecv", code);
    return oly_world_wait(1, &request, &rank, what);
}

oly_status oly_world_send(int rank, const void *bytes, size_t n, const char *what)
{
    return pass(rank, (void *)(uintptr_t)bytes, n, OLY_TAG_BYTES, true, what);
}

oly_status oly_world_receive(int rank, void *bytes, size_t n, const char *what)
{
    return pass(rank, bytes, n, OLY_TAG_BYTES, false, what);
}

static bool has_own_clock(int rank)
{
    return oly_world_node_leader_of(rank) != oly_world_node_leader_of(0);
}

static const char compares[] = "comparing clocks";

static oly_status serve(int rank)
{
    for (int k = 0; k < ROUND_TRIPS; k++) {
        int64_t time;
        OLY_TRY(pass(rank, &time, sizeof time, OLY_TAG_CLOCK, false, compares));
        time = now();
        OLY_TRY(pass(rank, &time, sizeof time, OLY_TAG_CLOCK, true, compares));
    }
    return OLY_OK;
}

static oly_status ask(oly_clock_offset *offset)
{
    int64_t shortest = INT64_MAX;
    for (int k = 0; k < ROUND_TRIPS; k++) {
        int64_t before = now(), theirs = before;
        OLY_TRY(pass(0, &theirs, sizeof theirs, OLY_TAG_CLOCK, true, compares));
        OLY_TRY(pass(0, &theirs, sizeof theirs, OLY_TAG_CLOCK, false, compares));
        int64_t after = now();
        if (after - before >= shortest)
            continue;
        shortest = after - before;
        int64_t middle = before + (after - before) / 2;
        *offset = (oly_clock_offset){.at = middle, .ahead = theirs - middle, .error = (after - before + 1) / 2};
    }
    return OLY_OK;
}

oly_status oly_world_clock(oly_clock_offset *offset)
{
    *offset = (oly_clock_offset){.at = now()};
    int n = oly_world_size();
    if (!oly_world_has_peers())
        return OLY_OK;
    if (oly_world_rank() != 0)
        return has_own_clock(oly_world_rank()) ? ask(offset) : OLY_OK;
    for (int r = 1; r < n; r++)
        if (has_own_clock(r))
            OLY_TRY(serve(r));
    return OLY_OK;
}
