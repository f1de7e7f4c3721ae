/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes started by hand, or by a Kubernetes job, become one MPI job: where they meet, and the meeting before MPI_Init
 * (docs/start.md). Makes no MPI calls. Called by collectives/world.c. */
#ifndef OLY_LAUNCH_MEETING_H
#define OLY_LAUNCH_MEETING_H
#include "environment.h"
#include "wire.h"
#include <olympus/base.h>

/* The arguments of oly_distributed_initialize. */
typedef struct oly_distributed {
    bool asked;              /* it was called; false: by oly_init */
    const char *coordinator; /* NULL: not given */
    int processes, process;  /* -1: not given */
} oly_distributed;

typedef struct oly_place {
    bool wanted; /* false: no meeting; MPI's launcher, or a process alone */
    char coordinator[512];
    int processes, process;
} oly_place;

/* Where to meet: by the arguments, else OLYMPUS_COORDINATOR, OLYMPUS_NUM_PROCESSES and OLYMPUS_PROCESS_ID, else what Kubernetes has
 * set; nowhere under a launcher. fails OLY_INVALID: incomplete or impossible; the message says what is missing. */
oly_status oly_meeting_find(const oly_distributed *asked, const oly_launch *launch, oly_place *place);
/* Meets: afterwards the environment is that of a rank, and *launch says which. fails OLY_TIMEOUT, OLY_DIVERGED, OLY_STATE, OLY_IO
 * with a message that is the same on all processes that have come. */
oly_status oly_meeting_hold(const oly_place *place, oly_mpi_kind mpi, oly_launch *launch);
/* After MPI_Finalize: waits, for at most five seconds, until those have finished whose start this process serves. */
void oly_meeting_leave(void);

/* The pod's name and the addresses in /etc/hosts as text: "jobs-workers-0-3" -> "jobs-workers-0-0.jobs.default.svc.cluster.local".
 * False: the name does not end in the index. For tests. */
bool oly_meeting_first_pod(const char *host, const char *index, const char *hosts, char *first, size_t size);
#endif
