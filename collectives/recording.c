/* SPDX-License-Identifier: BSD-3-Clause */
/* Connects the job with the flight recorder, the signals that write it, and the status socket (runtime/core). Called by world.c. */
#include "world.h"
#include "core/fatal_signals.h"
#include "core/progress.h"
#include "core/recorder.h"
#include "core/status_socket.h"
#include "job_name.h"
#include <stdlib.h>
#include <string.h>

static char job[80];

/* The program has called exit without oly_finalize. */
static void note_exit(void)
{
    if (oly_alive() && atomic_load(&oly_progress_here->leaving) == OLY_STAYS)
        atomic_store(&oly_progress_here->leaving, OLY_LEAVES_BY_EXIT);
    if (oly_alive())
        oly_status_socket_unlink();
}

void oly_recording_begin(const oly_launch *launch)
{
    static bool watching;
    if (!watching)
        watching = atexit(note_exit) == 0;
    oly_job_name(job, sizeof job);
    oly_recorder_peers = oly_peers_record;
    oly_recorder_peers_state = oly_peers_state_now;
    oly_recorder_tells = oly_peers_tell_first;
    oly_recorder_begin(job, launch->rank, launch->size > 0 ? launch->size : 1);
    oly_status_socket_begin();
}

void oly_recording_join(int rank, int size)
{
    bool moved = rank != oly_recorder_rank();
    oly_recorder_begin(job, rank, size);
    if (moved)
        oly_status_socket_begin();
    oly_fatal_signals_begin();
}

void oly_recording_end(void)
{
    oly_fatal_signals_end();
    oly_status_socket_end();
    oly_recorder_end();
}

void oly_recording_leave(void)
{
    oly_status_socket_unlink();
}
