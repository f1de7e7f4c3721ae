/* SPDX-License-Identifier: BSD-3-Clause */
/* Which rank is at fault, from the recorders of a job. Called by report.c, page.c. */
#ifndef OLY_TOOL_VERDICT_H
#define OLY_TOOL_VERDICT_H
#include "core/text.h"
#include "recorder_read.h"

/* The recorders of one job. */
typedef struct recorded_job {
    int n;
    recorder *of; /* sorted by rank, one of each */
    int64_t ranks;
} recorded_job;

typedef enum verdict_kind {
    VERDICT_NONE,     /* nobody has failed: written on request */
    VERDICT_CRASHED,  /* SIGSEGV and the like */
    VERDICT_DIVERGED, /* other calls than the rest */
    VERDICT_KILLED,   /* the process is gone, without a word */
    VERDICT_LEFT,     /* exit without oly_finalize */
    VERDICT_STOPPED,  /* SIGSTOP, a debugger */
    VERDICT_BUSY,     /* others wait for it; it computes, or is in the program's own code */
    VERDICT_CYCLE,    /* ranks that wait for each other */
    VERDICT_MISSING,  /* others wait for it, nothing is known of it */
    VERDICT_UNCLEAR
} verdict_kind;

enum { VERDICT_MOST = 16 };

typedef struct verdict {
    verdict_kind kind;
    int n; /* ranks at fault; those beyond VERDICT_MOST are not listed */
    int64_t rank[VERDICT_MOST];
    oly_text text; /* sentences, without a line break; owned */
} verdict;

verdict verdict_of(const recorded_job *job);
const char *verdict_name(verdict_kind kind);
/* Of a rank without a recorder of its own: what the others of its node knew, latest; NULL. */
const recorder_peer *verdict_peer(const recorded_job *job, int64_t rank, const recorder **by);
const recorder *verdict_recorder(const recorded_job *job, int64_t rank); /* NULL: none */
/* An exchange with one rank that has begun and not ended, as when it is stuck inside MPI; NULL: none. */
const recorder_event *verdict_open_exchange(const recorder *r);
/* "oly_sum (heat.c:40)" of the last call; "" if unknown. */
void verdict_call(oly_text *to, const char *call, const char *file, int64_t line);
void verdict_last_call(oly_text *to, const recorder *r);
#endif
