/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of this process as text: what it is, what it waits for and since when, what the other ranks of its node do, its last
 * events. The status socket sends it (status_socket.h); at divergence, at a time limit, at a fatal signal (fatal_signals.h) and on
 * request it is written to a file, a rank's recorder, which `oly report` reads. docs/oly.md describes the lines.
 *
 * Begun and ended by collectives/world.c; everything else here may be called from any thread and from signal handlers. */
#ifndef OLY_CORE_RECORDER_H
#define OLY_CORE_RECORDER_H
#include "core/error.h"
#include "core/raw_text.h"

/* Texts, also for the lines of a file. */
#define OLY_RECORDER_DIVERGED "diverged"   /* ranks made different calls */
#define OLY_RECORDER_TIMEOUT  "timeout"    /* OLYMPUS_TIMEOUT */
#define OLY_RECORDER_MPI      "mpi"        /* a call of MPI failed */
#define OLY_RECORDER_PEER     "peer"       /* another rank has failed or ended while this one waits */
#define OLY_RECORDER_SIGNAL   "signal"     /* SIGSEGV and the like, on this rank */
#define OLY_RECORDER_ENDED    "terminated" /* SIGTERM, as another rank has failed or this one waits */
#define OLY_RECORDER_ASKED    "asked"      /* SIGQUIT, oly status --dump */

/* Says who this process is, and decides where its file would be. Again when the rank is known better. job: the job's name, which
 * becomes part of the file's name; rank -1: unknown. */
void oly_recorder_begin(const char *job, int rank, int ranks);
void oly_recorder_end(void);
const char *oly_recorder_job(void);
int oly_recorder_rank(void);
/* From here on a divergence is one of the program, not of how it was started. */
void oly_recorder_arm(void);

/* The state; of the events the last `most`. */
void oly_recorder_write(oly_raw *raw, const char *reason, const char *because, int most);
/* Writes it to the file (OLYMPUS_RECORDER_DIR, or where the program was started, or TMPDIR), which takes the place of this rank's
 * earlier one, and says so on standard error. False: not written; with OLYMPUS_RECORDER=0 silently. */
bool oly_recorder_dump(const char *reason, const char *because);
/* Before the process ends: waits until another thread has written its file, half a second at most. From signal handlers, too. */
void oly_recorder_finish(void);
/* A public call has failed: dumps at the first divergence and the first timeout since the start; other failures are the program's. The
 * first, before anything is printed, if the job ends with it: other ranks that are ended then learn whether they should record, too. */
void oly_recorder_ends(oly_status status, const char *text);
void oly_recorder_failed(oly_status status, const char *text);
/* Of a process that gets SIGTERM: the reason and the text of the failure with which it was ending anyway, if any. */
void oly_recorder_why(const char **reason, const char **because);
/* This rank has been waiting for a while: dumps, once, if another rank of the node has failed (oly_recorder_peers_state). */
void oly_recorder_look(void);
/* This rank has dumped because of another's failure, or of the one that is ending it: what it would dump later tells less. */
bool oly_recorder_has_recorded(void);
/* The file of the last dump; "" if there is none. */
const char *oly_recorder_file(void);

/* Has this rank been in one wait or one exchange for that long? An exchange may be stuck inside MPI, where no wait is noted. */
bool oly_recorder_is_stuck(int64_t ns);

/* Set by collectives/peers.c: adds a line "peer" for each rank of the node; whether this rank is the one of its node that tells
 * where the files are. */
extern void (*oly_recorder_peers)(oly_raw *raw);
extern bool (*oly_recorder_tells)(void);
/* How another rank of the node ends, or has ended: by a failure that is worth a record, or by an error that its message tells. */
typedef enum oly_peers_state { OLY_PEERS_STAY, OLY_PEERS_ERROR, OLY_PEERS_FAILURE } oly_peers_state;
extern oly_peers_state (*oly_recorder_peers_state)(void);
#endif
