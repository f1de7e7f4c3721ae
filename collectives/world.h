/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the files of collectives/ only: the communicator, and how to wait. */
#ifndef OLY_COLLECTIVES_WORLD_H
#define OLY_COLLECTIVES_WORLD_H
#include "communicator.h"
#include "core/raw_text.h"
#include "core/recorder.h"
#include "core/text.h"
#include "environment.h"
#include <mpi.h>

/* Tags of messages. MPI keeps the order of messages with the same tag between two ranks. */
enum {
    OLY_TAG_TICKET,  /* the first message of an exchange, which begins with a ticket */
    OLY_TAG_PAYLOAD, /* the first of OLY_PAYLOAD_TAGS tags for large payloads: oly_world_payload_tag */
    OLY_PAYLOAD_TAGS = 16384,
    OLY_TAG_NOTICE = OLY_TAG_PAYLOAD + OLY_PAYLOAD_TAGS, /* a diverged rank's notice (divergence.h) */
    OLY_TAG_MEETING,                                     /* tickets of processes that meet (process_set.c) */
    OLY_TAG_FAILURE,                                     /* a rank that cannot continue says so (failure.c) */
    OLY_TAG_ASK, /* a rank requests a value, gets an answer, and the value (values.c) */
    OLY_TAG_ANSWER,
    OLY_TAG_VALUE,
    OLY_TAG_PUSH,    /* a value sent without a request (values.c) */
    OLY_TAG_INQUIRY, /* what ranks of other nodes are doing (inquiry.c) */
    OLY_TAG_CLOCK,   /* the time on another rank (clock.c) */
    OLY_TAG_BYTES,   /* bytes from one rank to another (clock.c) */
    OLY_TAG_PRICE,   /* the first of OLY_N_WAYS tags: messages by which ways are measured (way_prices.c) */
};
/* A duplicate of MPI_COMM_WORLD, or of the program's communicator, that returns errors; MPI_COMM_NULL in a job of one rank. */
MPI_Comm oly_world_comm(void);
/* Tag of the next large payload to or from a rank. Both sides count them and start their exchanges in the same order, so they
 * agree; a payload matches its receive even if exchanges in flight finish in another order. */
int oly_world_payload_tag(int peer, bool receiving);
/* A wait has failed with this status: messages in flight will stay there, so that MPI can no longer be finalised. Ranks that
 * wait for this one in oly_finalize are notified then. */
void oly_world_break(oly_status why);
/* "oly_sync (heat.c:40)": the public call this thread is in; with `only`, nothing but that. Returns text. */
const char *oly_place_text(const char *only, char *text, size_t size);
/* Has another rank reported a failure? (failure.c) */
bool oly_failure_is_told(void);
bool oly_failure_is_news(void); /* and this rank has not failed with it yet */
void oly_failure_forget(void);
/* MPI_Testall without statuses: requests that have completed become null. Returns MPI's code. (Compilers warn of MPI_Testall with
 * MPICH's MPI_STATUSES_IGNORE.) */
int oly_world_test(int n, MPI_Request *requests, bool *done);
/* Waits for requests, number k of which is a message from or to ranks[k]. Looks for notices; fails as exchanges do. */
oly_status oly_world_wait(int n, MPI_Request *requests, const int *ranks, const char *call);
/* The same; returns early if over(context) is true. */
oly_status oly_world_wait_or(int n, MPI_Request *requests, const int *ranks, const char *call, bool (*over)(void *),
                             void *context);
/* Waits for a collective of all ranks that this and all others have begun; fails as a meeting does. */
oly_status oly_world_await_all(MPI_Request *request);
void oly_side_close(bool all_are_here); /* side.c; at the end */
/* OLY_MPI with the name of the call and MPI's text for the code. */
oly_status oly_mpi_failed(const char *call, int code);

/* -- waiting (wait.c) -----------------------------------------------------------------------------------------
 * oly_wait w = {.call = "oly_sum (heat.c:40)", .late = ..., .context = ...}; while (not there yet)
 *     if (!oly_wait_more(&w)) { too late; break; }
 * oly_wait_end(&w); */
/* Ranks that are waited for. Allocates nothing, as replays must not. */
enum { OLY_LATE_NAMED = 8 };
typedef struct oly_late {
    int n, rank[OLY_LATE_NAMED]; /* how many; the first of them */
    uint64_t meetings;     /* of all ranks that the waiting rank has reached, the late ones fewer; 0: no such wait */
    const char *otherwise; /* text instead of ranks if none is known */
} oly_late;
typedef struct oly_late_text {
    char chars[192];
} oly_late_text;
void oly_late_add(oly_late *late, int rank);
oly_late_text oly_late_text_of(const oly_late *late); /* "rank 5", "ranks 1, 3 and 7 more" */

typedef struct oly_wait {
    const char *call;
    void (*late)(const void *context, oly_late *late); /* adds the ranks that are waited for */
    const void *context;
    int polls;
    bool yielding, published, in_vain;
    int64_t began, next; /* ns; 0 until the first look at the clock; from there to the next notice */
    int64_t asking;      /* ns from the start to the next inquiry to ranks of other nodes */
    int64_t looked;      /* for failures of others, and their inquiries */
    int64_t checked;     /* whether other ranks have ended */
    int64_t told;        /* when such a failure was reported; 0: none */
} oly_wait;

/* Called after each fruitless poll: spins for a moment, then yields the core each time; prints a notice after
 * oly_option.wait_notice seconds. False once oly_option.timeout seconds have passed, or another rank has reported a failure: then
 * oly_world_told fails. */
bool oly_wait_more(oly_wait *w);
void oly_wait_restart(oly_wait *w); /* something has arrived: the limit is for silence, not for the total */
void oly_wait_end(oly_wait *w);
int64_t oly_wait_clock(void);                 /* ns */
int64_t oly_wait_next_notice(int64_t waited); /* ns, both from the start */
void oly_wait_say(int rank, const oly_late *late, const char *call);
/* Whether there are more ranks than cores on this node: then waits do not spin. */
void oly_wait_set_crowded(bool crowded);

/* -- values of others (values.c) ------------------------------------------------------------------------------------- */
void oly_values_look(void);              /* called by every wait: answers requests */
void oly_values_stuck(const char *call); /* called when this rank has been waiting in a call for a while */
void oly_values_end(void);               /* oly_finalize: nothing more will be fetched */
int64_t oly_values_balance(void);        /* values sent at once less those received */
void oly_values_forget(void);

/* -- blocking MPI calls (watch.c) --------------------------------------------------- */
void oly_watch_start(int rank); /* the thread, once; the rank for messages */
/* From here to oly_watch_end the process is inside this MPI function; all ranks call the same ones in the same order. */
void oly_watch_block(const char *inside, const char *call);
void oly_watch_poll(const char *call); /* a wait that polls */
void oly_watch_abort(int status);      /* MPI_Abort, with a limit of a few seconds */
void oly_watch_end(void);

/* -- the other ranks of the node (peers.c) -------------------------------------------------------------------------- */
void oly_peers_begin(
    const oly_launch *launch); /* before MPI is initialised, if the launcher provides a place to meet */
void oly_peers_meet(MPI_Comm node, int node_rank, int node_ranks, int rank, int size);
void oly_peers_arrive(void); /* this rank has reached the next meeting of all ranks */
void oly_peers_end(void);    /* oly_finalize is over */
/* The ranks that have not reached the meeting at which this rank is; see oly_wait. */
void oly_peers_late(const void *unused, oly_late *late);
/* Those of this node that have reached fewer meetings. */
void oly_peers_late_here(uint64_t meetings, oly_late *late);
/* The late rank that is the cause, as far as known: one that is not waiting itself. OLY_WAITS_FOR_SEVERAL if none is known. */
int oly_peers_culprit(const oly_late *late);
/* Of this one, adds "; rank 5 is not waiting, its last call is oly_sum (heat.c:40)", and the rank for which that one waits. */
void oly_peers_describe(oly_text *text, const oly_late *late);
/* For the flight recorder (core/recorder.h): a line for each other rank of the node; how one of them ends, or has ended, without
 * oly_finalize; is this rank the first to say where the files are? Async-signal-safe. */
void oly_peers_record(oly_raw *raw);
oly_peers_state oly_peers_state_now(void);
bool oly_peers_tell_first(void);
/* Whether the state of this rank is visible here; the second adds it, without the "; ", and returns the rank it waits for. */
bool oly_peers_see(int rank);
int oly_peers_describe_seen(oly_text *text, int rank);

/* -- the flight recorder (recording.c) --------------------------------------------------------------------------------- */
/* Before MPI is initialised; once the rank is known; at the end; and at an end without oly_finalize. */
void oly_recording_begin(const oly_launch *launch);
void oly_recording_join(int rank, int size);
void oly_recording_end(void);
void oly_recording_leave(void);

/* -- ranks of other nodes (inquiry.c) ------------------------------------------------------------------------------- */
void oly_inquiry_begin(void); /* from here on inquiries are answered */
void oly_inquiry_end(void);   /* before the communicator is freed */
/* Before the end: from now on this rank sends neither questions nor answers. Then: messages sent less those received. */
void oly_inquiry_quiet(void);
int64_t oly_inquiry_balance(void);
/* Asks about the late ranks and, for a meeting, which ranks are late. `first`: the first time since this rank began to wait. */
void oly_inquiry_ask(const oly_late *late, bool first);
int64_t oly_inquiry_interval(void); /* ns between two inquiries, and before the first */
/* Answers inquiries and records answers, for long waits. */
void oly_inquiry_look(void);
/* The same, for the watching thread; false: it may not call MPI. */
bool oly_inquiry_watch(void);
/* Results of the answers: the ranks that have not reached a meeting; whether a rank waits itself; its state, and the rank it waits for. */
void oly_inquiry_late(uint64_t meetings, oly_late *late);
bool oly_inquiry_waits(int rank);
int oly_inquiry_describe(oly_text *text, int rank);

/* The last message of each rank, for ranks that do not answer. */
typedef struct oly_hearing_of {
    uint64_t set, sequence, meetings; /* of its ticket; meetings of all ranks before it */
} oly_hearing_of;
typedef struct oly_hearing {
    oly_hearing_of *of; /* owned, by rank; NULL: no memory for it */
    uint64_t meetings;
} oly_hearing;
extern oly_hearing oly_heard;
static inline void oly_hear(int rank, const oly_ticket *ticket)
{
    if (oly_heard.of)
        oly_heard.of[rank] = (oly_hearing_of){ticket->set, ticket->sequence, oly_heard.meetings};
}
void oly_inquiry_met(const char *call); /* all ranks have been heard from */
#endif
