/* SPDX-License-Identifier: BSD-3-Clause */
/* What this process is doing, stored where the other processes of its node can read it, so that a process that waits for it can
 * report why. Written by runtime/core (calls) and collectives/ (everything else); read by collectives/peers.c. */
#ifndef OLY_CORE_PROGRESS_H
#define OLY_CORE_PROGRESS_H
#include "core/error.h"
#include <stdatomic.h>

enum { OLY_WAITS_FOR_NOBODY = -2, OLY_WAITS_FOR_SEVERAL = -1 };
/* How a process that has not called oly_finalize ends. */
enum {
    OLY_STAYS,
    OLY_LEAVES_BY_ERROR,   /* the program's: a message, no record */
    OLY_LEAVES_BY_FAILURE, /* a divergence, a time limit, a crash: other ranks record their state, too */
    OLY_LEAVES_BY_EXIT,    /* the program has called exit */
    OLY_LEAVES_BY_SIGTERM  /* as it was told */
};

/* Same layout in all processes of a node, and zero before its process has begun. Texts may be torn when read: every reader
 * terminates them itself. */
typedef struct oly_progress {
    _Atomic int32_t begun, rank;
    _Atomic int64_t pid, pid_space; /* the pid namespace of pid */
    _Atomic uint64_t meetings;      /* of all ranks that it has reached: a rank with fewer is late */
    _Atomic int32_t ended;          /* oly_finalize is over */
    _Atomic int32_t waits_for;      /* a rank, or one of the above */
    _Atomic int32_t line;
    char call[60], file[100]; /* of the last call */
    char wait[240];           /* "oly_sum (heat.c:40) for ranks 2, 3", while it waits */
    _Atomic int32_t leaving;  /* OLY_STAYS ... */
    _Atomic int32_t told;     /* of the node's first place: a rank has told where the recorder files are */
    _Atomic int64_t since;    /* ns, CLOCK_MONOTONIC: the begin of the wait */
} oly_progress;

/* Never NULL: memory of the process itself until there is shared memory. */
extern oly_progress *oly_progress_here;
/* False while nobody can read it: calls are then not recorded. */
extern bool oly_progress_is_read;

/* Moves the current state to another slot. NULL: back to the process's own. */
void oly_progress_use(oly_progress *place);
/* The current call of this thread. */
void oly_progress_note(const oly_site *site);
void oly_progress_wait(int rank, const char *call, const char *whom);
void oly_progress_go_on(void);
#endif
