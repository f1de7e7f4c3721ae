/* SPDX-License-Identifier: BSD-3-Clause */
/* The lines that runtime/core/recorder.c writes, read from a file or from a socket. Nothing in them is trusted: what is not exactly of
 * that form is refused, and texts have no control characters when they come out. Called by report.c, status.c, page.c. */
#ifndef OLY_TOOL_RECORDER_READ_H
#define OLY_TOOL_RECORDER_READ_H
#include "core/arena.h"
#include "core/error.h"

enum { RECORDER_MOST_RANKS = 10000000, RECORDER_MOST_BYTES = 16 << 20, RECORDER_NOBODY = -2 };

typedef struct recorder_event {
    double time; /* s, CLOCK_MONOTONIC of its host */
    const char *kind, *phase;
    int64_t thread, a, b, c, line;
    const char *call, *file, *text;
} recorder_event;

/* What a rank knew of another one of its node. */
typedef struct recorder_peer {
    int64_t rank, pid, ended, leaving, waits_for, meetings, line;
    char state; /* of the process; '-': gone, '?': not known */
    double since;
    const char *call, *file, *wait;
} recorder_peer;

typedef struct recorder {
    const char *name; /* of the file, or of the socket */
    bool complete;    /* false: cut short, as by a SIGKILL */
    const char *job, *host, *version, *program, *reason, *because;
    int64_t rank, ranks, pid;
    double began, written, clock;      /* s: the first two of the calendar, since 1970 */
    int64_t resident, pool, pool_free; /* bytes */
    const char *call, *file;           /* the last call, "" if none */
    int64_t line, meetings, recorded;
    const char *wait; /* "oly_sum (heat.c:40) for rank 3"; NULL: it does not wait */
    int64_t waits_for;
    double since;
    int n_peers, n_events;
    recorder_peer *peers;
    recorder_event *events;
    int n_calls;
    const recorder_event **calls; /* those of kind "call": of ascending numbers, unless somebody has made the file up */
} recorder;

/* fails OLY_PARSE ("NAME: line 7: ..."), OLY_MEMORY. The recorder points into the arena. */
oly_status recorder_read(oly_arena *arena, const char *name, const char *text, size_t length, recorder *r);
/* Its file's text: fails OLY_IO, OLY_PARSE (not a regular file, too long). */
oly_status recorder_read_file(oly_arena *arena, const char *path, recorder *r);
/* A moment of its clock, in seconds since 1970. */
double recorder_calendar(const recorder *r, double clock);
#endif
