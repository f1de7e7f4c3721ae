/* SPDX-License-Identifier: BSD-3-Clause */
/* What a set of processes is: its members, and the calls that this process has made with them. For process_set.c, which
 * maintains it, and divergence.c, which compares it with those of others, only. */
#ifndef OLY_COLLECTIVES_PROCESS_SET_H
#define OLY_COLLECTIVES_PROCESS_SET_H
#include "world.h"

enum { OLY_CALLS_KEPT = 512 };

/* A call of this rank that failed here before it was counted. If other ranks made it, it is the cause of the divergence. */
typedef struct oly_failed_call {
    uint64_t after; /* calls of the set issued before */
    int32_t times;  /* failures there; 0: none */
    int32_t status; /* of the last */
    char text[400];
} oly_failed_call;

struct oly_process_set {
    struct oly_process_set *next;
    uint64_t key;
    int n, me;              /* members; this process's index among them */
    int *ranks;             /* owned, ascending */
    uint64_t issued;        /* calls */
    oly_failed_call failed; /* under the lock of divergence.c */
    /* of the calls that have run: */
    uint64_t calls, hash;
    uint64_t verified;               /* number of calls known to be the same on all members: they have met since */
    oly_called ring[OLY_CALLS_KEPT]; /* call number k, from 1, at (k - 1) % OLY_CALLS_KEPT */
};

oly_process_set *oly_process_set_first(void); /* of the list */
oly_process_set *oly_process_set_find(uint64_t key);
/* The first call in the ring, from 1. */
uint64_t oly_process_set_oldest(const oly_process_set *s);
const oly_called *oly_process_set_call(const oly_process_set *s, uint64_t number);
void oly_process_sets_verified(void); /* called after all members of all sets have met */
/* A meeting of all processes counts as a call on the set of all. */
oly_status oly_process_sets_note_meeting(const char *call);
/* Numbers whose sum over all processes is zero if the members of every set have made the same calls. */
uint64_t oly_process_sets_balance(void);
void oly_process_sets_end(void); /* every set's last call is oly_finalize */
void oly_process_sets_forget(void);
#endif
