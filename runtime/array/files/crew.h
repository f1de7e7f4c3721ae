/* SPDX-License-Identifier: BSD-3-Clause */
/* The processes of a call on a file: those that own a device of a mesh. They exchange a few numbers, and agree on a status, so that a
 * failure of one is the same error on all. Processes that the mesh leaves out may make the call, too: they learn the outcome from a
 * member. Callable by runtime/array. */
#ifndef OLY_ARRAY_FILES_CREW_H
#define OLY_ARRAY_FILES_CREW_H
#include "array/array.h"

typedef struct oly_crew {
    oly_mesh line;     /* the devices of all members in a line, those of a member adjacent; NULL: one process alone */
    int n;             /* members, in the order of their processes */
    int me;            /* this process's number among them; -1: it is none */
    int *process;      /* [n] of each member; owned */
    int *first;        /* [n] the position in the line of each member's first device; owned */
    int devices, here; /* in the line; of this process */
    bool leaves_out;   /* some process is no member */
    uint64_t id;       /* of this call, the same on all processes that make it */
} oly_crew;

/* mesh NULL, or that of uncommitted arrays: all processes. what: hash of what the processes ask for, such as the path's. Makes the
 * crew even after a failure, OLY_MEMORY. */
oly_status oly_crew_begin(oly_mesh mesh, uint64_t what, oly_crew *crew);
void oly_crew_end(oly_crew *crew);
static inline bool oly_crew_leads(const oly_crew *crew)
{
    return crew->me == 0;
}

/* By all members: all[m * k ...] are the k numbers of member m. Nothing for others. */
oly_status oly_crew_gather(const oly_crew *crew, int k, const int64_t *mine, int64_t *all);
/* By all members, each with its status and its message pending: OLY_OK if all have that, else the error of the first that failed on
 * all of them, with its rank. */
oly_status oly_crew_agree(const oly_crew *crew, oly_status mine);
/* The same, and then k numbers of each. */
oly_status oly_crew_agree_on(const oly_crew *crew, oly_status mine, int k, const int64_t *numbers, int64_t *all);
/* fails OLY_DIVERGED if the members do not call with the same number (a hash of their arguments). */
oly_status oly_crew_agree_same(const oly_crew *crew, oly_status mine, uint64_t arguments);

/* Returns when all members have called it, if nothing fails. A pending message stays. */
void oly_crew_wait(const oly_crew *crew);

/* At the end of the call, by members and others: others get the status and the record of the first member, bytes of it. */
oly_status oly_crew_tell(const oly_crew *crew, oly_status status, void *record, size_t bytes);

/* fails OLY_TRACE while a function is being recorded. */
oly_status oly_files_need_no_trace(void);
#endif
