/* Communication between the processes of a job: buffers, groups and ranks; no graphs. One lane: calls are made by one thread
 * at a time, in program order (the run queue sees to that). Non-blocking inside; every wait makes MPI progress, yields
 * when cores are short, and ends in bounded time. Called by runtime/run. The only layer besides launch/ that includes mpi.h. */
#ifndef OLY_COMMUNICATOR_H
#define OLY_COMMUNICATOR_H
#include <olympus/array.h>
#include "core/error.h"

/* -- the job (collectives/world.c) ------------------------------------------------------------------------------- */
/* Starts communication: initialises MPI when the program has not (asking for MPI_THREAD_MULTIPLE, working with any level),
 * duplicates the world's communicator, finds the ranks on this node. A process started alone is a job of one (MPI still
 * initialised only if a launcher is seen in the environment, so that a plain ./program starts fast). */
oly_status oly_world_start(int *argc, char ***argv);
/* May MPI be given the memory of the buffers? Otherwise every message is packed. Before any exchange is made. */
void oly_exchange_direct(bool allowed);
/* In its place: this process is rank 0 of so many ranks that are not there. Nothing can be sent. */
oly_status oly_world_imagine(int ranks, int node_ranks);
bool oly_world_has_peers(void); /* is there another rank to talk to? */
/* All ranks meet, compare the calls they have made, and free the communicator. A failure has been raised. */
oly_status oly_world_finish(void);
int oly_world_rank(void);
int oly_world_size(void);
int oly_world_node_ranks(void);         /* processes of the job on this node */
int oly_world_node_rank(void);          /* this one's number among them */
int oly_world_node_leader_of(int rank); /* the first rank of that rank's node */
/* Only with MPI_THREAD_MULTIPLE; else MPI is called where the program calls Olympus, as it may call MPI itself in between. */
bool oly_world_threads(void);
/* MPI_Abort of the whole job (or exit) with a status. Does not return. */
void oly_world_abort(int exit_status);

/* -- small host values (blocking, all ranks) ----------------------------------------------------------------------- */
/* Every rank gives `bytes` bytes and gets all of them in rank order. */
oly_status oly_world_gather(const void *mine, void *all, size_t bytes);
/* The bytes of one rank on all others. */
oly_status oly_world_share(void *data, size_t bytes, int root);
/* Like OLY_TRY for all: returns the worst status of any rank (the ranks that were fine get a message naming the others). */
oly_status oly_world_vote(oly_status mine, const char *what);

/* -- failures of one rank (failure.c) ------------------------------------------------------------------------------- */
/* Tells all ranks that this one cannot go on with calls that they make, too, because of the pending failure: whoever waits fails with
 * the same status. Nothing can be exchanged any more. */
void oly_world_tell(oly_status status);
/* fails as another rank has, if that has told so. */
oly_status oly_world_told(void);

/* -- sets of processes that make calls together (process_set.c) ------------------------------------------------------
 * The processes that own the devices of the meshes of a call make it together, whether it sends anything or not. Each of them keeps,
 * for each such set that it is in, a rolling hash of all the calls of the set and a ring of the last ones. Every message carries the
 * hash, so ranks whose programs differ in any call before it see that, and the rings tell which call was the first (divergence.c).
 * What a process does on its own devices alone is its own business. */
typedef struct oly_process_set oly_process_set;

enum { OLY_NOTED_OPERANDS = 6 };
/* What is kept of a call. */
typedef struct oly_called {
    uint64_t hash;                        /* of this call and all before it; oly_process_set_called writes it */
    uint32_t program;                     /* digest of the operation or plan: constants, types, shardings */
    uint16_t operand[OLY_NOTED_OPERANDS]; /* digests of the first operands: which array it is, or its contents */
    uint8_t n_operands, by_contents;      /* of those noted; bit k: operand k is a copy that each process has */
    oly_site site;
} oly_called;

/* The set of these ranks, ascending; NULL in *set if this process is not one of them, or the only one. Sets live until
 * oly_world_finish. */
oly_status oly_process_set_of(int n, const int *ranks, oly_process_set **set);
uint64_t oly_process_set_key(const oly_process_set *s); /* the same on all members; of NULL: 0 */
bool oly_process_set_has(const oly_process_set *s, int rank);
bool oly_process_set_is_all(const oly_process_set *s); /* of NULL: no */
/* Is every member of a in b? */
bool oly_process_set_within(const oly_process_set *a, const oly_process_set *b);
/* The number of the call that is being issued: 1, 2, ...; by the thread that issues calls. */
uint64_t oly_process_set_next(oly_process_set *s);
/* Counts a call, in the order in which they were issued, where its turn is to run. `event`: hash of all that must be the same on all
 * members. fails OLY_DIVERGED when another rank is known to have made another call. */
oly_status oly_process_set_called(oly_process_set *s, uint64_t event, oly_called *call);
/* Members meet, without data: fails OLY_DIVERGED on all of them unless they have made the same calls, OLY_TIMEOUT, OLY_MPI. Not while
 * calls are queued. */
oly_status oly_process_set_meet(oly_process_set *s, const char *call);
/* Have its members met since that call, so that they are known to have made it alike? Of no set: false. */
bool oly_process_set_is_verified(const oly_process_set *s, uint64_t number);
/* The same for all processes, and all sets that each of them is in. */
oly_status oly_world_meet(const char *call);

/* -- values for ranks that have no part of an array (values.c) --------------------------------------------------------
 * The ranks of an array's mesh fetch its value among themselves; one of them keeps it for ranks that have no part of it, which may ask
 * for it before or after; up to 1 MiB it is sent to them at once. All know it by the same id, not 0.
 *   has_part   [ranks] those that need not be sent it; NULL: nobody is sent it at once */
void oly_values_keep(uint64_t id, const void *value, size_t bytes, const bool *has_part);
/* Waits until that rank has it. what: the array's type, for messages. fails OLY_DIVERGED when the rank will never have it, or has dropped
 * it, OLY_TIMEOUT, OLY_MPI. Not while calls are queued. */
oly_status oly_values_ask(int rank, uint64_t id, void *value, size_t bytes, const char *what);
/* Looks now and then whether somebody asks; for calls that others have no part in. */
void oly_values_serve(void);

/* -- exchange ------------------------------------------------------------------------------------------------------
 * Sends boxes of local buffers to other ranks and receives theirs: halos, gathers, reshards and reductions are all lists of
 * boxes. Built once by the planner, replayed without allocation. One message per pair of ranks and exchange. */
typedef struct oly_piece {
    int buffer;                   /* index into the array of base pointers given at start */
    int64_t offset;               /* bytes from the base to the box's first element */
    int rank;                     /* dimensions */
    int64_t extent[OLY_MAX_RANK]; /* elements */
    int64_t stride[OLY_MAX_RANK]; /* elements */
} oly_piece;

typedef struct oly_message {
    int peer;          /* rank, not this one's own */
    int n_pieces;      /* packed one after the other, row-major */
    oly_piece *pieces; /* owned by the exchange */
    /* A received piece that several local buffers need is sent once: piece[k] with same[k] = j < k is unpacked from the same
     * bytes as piece j and takes no room in the message. -1: its own bytes. */
    int *same;
} oly_message;

typedef struct oly_exchange oly_exchange;
/* Takes the messages over (copies them). element_bytes of all pieces. */
oly_status oly_exchange_make(size_t element_bytes, int n_sends, const oly_message *sends, int n_receives,
                             const oly_message *receives, oly_exchange **exchange);
/* The same messages with other buffers: in the place of buffers from[k] to from[k] + width - 1 those from to[k] on. */
oly_status oly_exchange_make_like(const oly_exchange *x, int n, const int *from, const int *to, int width,
                                  oly_exchange **exchange);
/* An exchange of which only the outline is known: its messages are listed when it is first started, which for many of them takes
 * as long as sending them. It may go in stages, one after the other, each an exchange of its own: a stage sends what those before
 * it have brought. Every rank that takes part in one takes part in all, if only with nothing to send or receive. */
typedef struct oly_exchange_outline {
    int64_t bytes_sent, bytes_received; /* about */
    int64_t memory;                     /* about: oly_exchange_memory */
    int peers;                          /* about */
    int n_buffers;                      /* that it sends from, then as many that it receives into */
    const int *buffers;
    int n_stages; /* 1: all at once */
    /* NULL: nothing to send or receive */
    oly_status (*list)(const void *context, int stage, oly_exchange **exchange);
    void (*between)(const void *context, int stage,
                    void *const *base); /* when a stage is over, of several; NULL: nothing */
    const void *context;
} oly_exchange_outline;
/* Keeps the pointer. One in stages is started and finished with the same base pointers. */
oly_status oly_exchange_make_later(const oly_exchange_outline *outline, oly_exchange **exchange);
void oly_exchange_free(oly_exchange *x);
int64_t oly_exchange_bytes_sent(const oly_exchange *x);
int64_t oly_exchange_bytes_received(const oly_exchange *x);
int oly_exchange_peers(const oly_exchange *x); /* ranks it sends to or receives from */
/* Bytes through which its messages are packed; besides, every message has one of up to 8 KiB. All that are under way together have
 * at most oly_exchange_memory_limit, three quarters of OLYMPUS_EXCHANGE_MEMORY: another one waits in oly_exchange_start. */
int64_t oly_exchange_memory(const oly_exchange *x);
int64_t oly_exchange_memory_limit(void);

/* Another set that the call concerns: one of whose members made an operand, and are all in the call's own. */
typedef struct oly_shared_set {
    const oly_process_set *set;
    uint64_t hash;
} oly_shared_set;

/* What every message carries in front, so that ranks that have come apart are told so: the first 128 bytes, of which the first 32
 * must be the same on both sides. */
enum { OLY_TICKET_STEP_BITS = 24 };
typedef struct oly_ticket {
    uint64_t
        sequence; /* number of this call among those of the set, and, in so many bits, of the message in the call */
    uint64_t fingerprint; /* rolling hash of all these calls */
    uint64_t set;         /* key of the set; 0: none is counted */
    uint64_t shared;      /* hashes of the other sets that both sides are in; written for each message */
    char call[96];        /* "oly_matmul (layer.c:12)" */
    /* not sent: */
    int n_shared;
    const oly_shared_set *sets;
} oly_ticket;

/* Posts the receives, packs and sends. send_base[b], receive_base[b]: base pointer of buffer b. Big pieces without gaps are sent
 * from where they are: what is sent must not change before oly_exchange_finish. */
oly_status oly_exchange_start(oly_exchange *x, const oly_ticket *ticket, void *const *send_base);
/* The same, but nothing is sent yet: what goes to a rank is sent by oly_exchange_send when it is ready, all that is left with peer
 * -1. Until then nothing else may be waited for: others may be waiting for what is held back. */
oly_status oly_exchange_begin(oly_exchange *x, const oly_ticket *ticket, void *const *send_base);
oly_status oly_exchange_send(oly_exchange *x, int peer);
/* Leaves a started exchange under way: it goes on whenever oly_exchange_advance is called and during every wait for another one, so
 * that ranks may end the exchanges they have started in any order. Ended by oly_exchange_join, within the same run. */
void oly_exchange_leave(oly_exchange *x, const oly_ticket *ticket, void *const *receive_base);
/* As oly_exchange_finish, with what it was left with. */
oly_status oly_exchange_join(oly_exchange *x);
/* Waits for the message of one rank, and for the stages before; the exchange stays under way. */
oly_status oly_exchange_await(oly_exchange *x, int peer);
/* Whether exchanges that were left under way have big messages, which get on only while MPI is called; brings all on without
 * waiting. */
bool oly_exchange_any_left(void);
oly_status oly_exchange_advance(void);
/* Names the buffer of every piece. */
void oly_exchange_buffers(const oly_exchange *x, void (*visit)(void *context, int buffer, bool receives),
                          void *context);
/* Waits for everything and unpacks. fails OLY_DIVERGED when a message belongs to another call (both ranks, both calls and both
 * lines in the message), OLY_TIMEOUT when a rank has not come within oly_option.timeout seconds (which rank, which call),
 * OLY_MPI. */
oly_status oly_exchange_finish(oly_exchange *x, const oly_ticket *ticket, void *const *receive_base);
#endif
