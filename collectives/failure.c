/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank that cannot continue with a collective call (it has run out of memory) notifies all others, which would wait for it.
 * The note is separate from all other messages; every wait of more than a moment looks for one (wait.c). See communicator.h. */
#include "world.h"
#include "core/error.h"
#include "core/events.h"
#include "core/option.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>

typedef struct note {
    int32_t rank, status;
    char call[160], text[800];
} note;

static struct {
    pthread_mutex_t lock;
    note sent, received; /* not allocated: there may be no memory */
    bool has_sent, has_received, reported;
} failure = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* MPI completes the sends by itself; they are not waited for. */
/* NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker) */
static void send_to_all_locked(void)
{
    for (int r = 0; r < oly_world_size(); r++) {
        MPI_Request request;
        if (r != oly_world_rank() && MPI_Isend(&failure.sent, sizeof failure.sent, MPI_BYTE, r, OLY_TAG_FAILURE,
                                               oly_world_comm(), &request) == MPI_SUCCESS)
            MPI_Request_free(&request);
    }
}
/* NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker) */

void oly_world_tell(oly_status status)
{
    if (oly_world_comm() == MPI_COMM_NULL)
        return;
    pthread_mutex_lock(&failure.lock);
    if (!failure.has_sent && !failure.has_received) {
        failure.has_sent = true;
        failure.sent.rank = oly_world_rank();
        failure.sent.status = (int32_t)status;
        oly_place_text(NULL, failure.sent.call, sizeof failure.sent.call);
        const char *why = oly_pending_message();
        snprintf(failure.sent.text, sizeof failure.sent.text, "%s", why[0] ? why : "an earlier call failed there");
        send_to_all_locked();
        oly_world_break(status);
    }
    pthread_mutex_unlock(&failure.lock);
}

static void look_locked(void)
{
    int found = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, OLY_TAG_FAILURE, oly_world_comm(), &found, MPI_STATUS_IGNORE);
    if (!found || MPI_Recv(&failure.received, sizeof failure.received, MPI_BYTE, MPI_ANY_SOURCE, OLY_TAG_FAILURE,
                           oly_world_comm(), MPI_STATUS_IGNORE) != MPI_SUCCESS)
        return;
    failure.received.call[sizeof failure.received.call - 1] = 0;
    failure.received.text[sizeof failure.received.text - 1] = 0;
    oly_event_text(OLY_EVENT_VERDICT, OLY_EVENT_INSTANT, failure.received.text, failure.received.status,
                   failure.received.rank);
    failure.has_received = true;
    oly_world_break((oly_status)failure.received.status);
}

bool oly_failure_is_told(void)
{
    if (oly_world_comm() == MPI_COMM_NULL)
        return false;
    pthread_mutex_lock(&failure.lock);
    if (!failure.has_received)
        look_locked();
    pthread_mutex_unlock(&failure.lock);
    return failure.has_received;
}

oly_status oly_world_told(void)
{
    if (!oly_failure_is_told())
        return OLY_OK;
    const note *n = &failure.received;
    failure.reported = true;
    bool known = n->status > OLY_OK && n->status < OLY_N_STATUS;
    return oly_fail(known ? (oly_status)n->status : OLY_STATE, "rank %d has failed in %s: %s", n->rank, n->call,
                    n->text);
}

bool oly_failure_is_news(void)
{
    return oly_failure_is_told() && !failure.reported;
}

void oly_failure_forget(void)
{
    failure.has_sent = failure.has_received = failure.reported = false;
}
