/* SPDX-License-Identifier: BSD-3-Clause */
/* Communication between the processes of a job: buffers, groups and ranks; no graphs. One communication queue: calls are made
 * by one thread at a time, in program order (the run queue ensures this). Non-blocking inside; every wait makes MPI progress,
 * yields when cores are oversubscribed, and ends in bounded time. Called by runtime/run. The only layer besides launch/ that
 * includes mpi.h. */
#ifndef OLY_COMMUNICATOR_H
#define OLY_COMMUNICATOR_H
#include <olympus/array.h>
#include "core/error.h"
#include "core/gpu_access.h"

/* -- the job (collectives/world.c) ------------------------------------------------------------------------------- */
/* Starts communication: initialises MPI if the program has not (requests MPI_THREAD_MULTIPLE, works with any level),
 * duplicates MPI_COMM_WORLD or the program's communicator, finds the ranks on this node. A process started alone is a job of one (MPI still
 * initialised only if the environment shows a launcher, so that a plain ./program starts fast). */
oly_status oly_world_start(int *argc, char ***argv);
/* How this process finds the others, where neither a launcher nor the program's MPI says so. */
typedef struct oly_world_way {
    bool asked;               /* by oly_distributed_initialize: */
    const char *coordinator;  /* NULL: not given */
    int processes, process;   /* -1: not given */
    const void *communicator; /* an MPI_Comm of the program, instead of MPI_COMM_WORLD; NULL: none */
} oly_world_way;
/* The same; processes that were started by hand meet first (launch/meeting.h). */
oly_status oly_world_start_as(int *argc, char ***argv, const oly_world_way *way);
/* How transports through host memory reach buffers that the host cannot use where they are; by ids of devices. fail as the device
 * does. */
typedef struct oly_device_access {
    oly_status (*read)(void *host, int device, const void *from, size_t bytes);
    oly_status (*write)(int device, void *to, const void *host, size_t bytes);
} oly_device_access;
/* Chooses the transport of this job's exchanges (transport.h). access: NULL: the host, and MPI, may use buffers where they are. Before
 * any exchange is made. */
void oly_transport_choose(const oly_device_access *access);
/* Where all devices of all ranks are on GPUs: chooses the way of messages between processes, the same on all ranks. NCCL, if every rank has it and
 * no two share a GPU; MPI, from the memory of GPUs where it was found to take it; MPI, staged in pinned memory: of several the cheapest, as
 * measured now (OLYMPUS_GPU_MESSAGES). oly_transport_why says which one, its price or why it is the only one. NULL: nothing changes. Collective, when the ranks have agreed on their platform and
 * transport. fails OLY_TIMEOUT, OLY_MPI, OLY_MEMORY. */
oly_status oly_transport_open(const oly_gpu_access *gpus);
const char *oly_transport_why(void);
typedef enum oly_way {
    OLY_WAY_HOST,   /* MPI, memory of the host */
    OLY_WAY_STAGED, /* GPUs: MPI through pinned memory */
    OLY_WAY_AWARE,  /* MPI takes memory of GPUs */
    OLY_WAY_NCCL,
    OLY_N_WAYS
} oly_way;
oly_way oly_transport_way(void);
/* What a message by this way takes, as measured at start where there was a choice: seconds, and bytes per second. False: not measured. */
bool oly_transport_price(double *latency, double *bandwidth);
/* Before the platform ends, when no exchange is left. Collective unless something has failed. */
void oly_transport_close(void);
/* What a rank tells the others of its transport. */
typedef struct oly_transport_name {
    char chars[16];
} oly_transport_name;
oly_transport_name oly_transport_my_name(void);
/* The same on all n ranks? of[k * stride bytes] is rank k's. fails OLY_DIVERGED on all of them otherwise. */
oly_status oly_transport_agree(int n, const oly_transport_name *of, size_t stride);
/* Instead of oly_world_start, for simulation: this process is rank 0 of that many ranks that do not exist. Nothing can be sent. */
oly_status oly_world_imagine(int ranks, int node_ranks);
bool oly_world_has_peers(void); /* is there another rank? */
bool oly_world_is_broken(void); /* has a wait failed, so that ranks cannot communicate any more? */
/* Collective: all ranks compare the calls they have made, and free the communicator. Raises failures itself. */
oly_status oly_world_finish(void);
int oly_world_rank(void);
int oly_world_size(void);
int oly_world_node_ranks(void);         /* processes of the job on this node */
int oly_world_core_ranks(void);         /* of these, this one included, that may run on some of this one's cores */
int oly_world_node_rank(void);          /* this one's number among them */
int oly_world_node_leader_of(int rank); /* the first rank of that rank's node */
/* Whether other threads may call MPI: only with MPI_THREAD_MULTIPLE; otherwise MPI is called where the program calls Olympus, since
 * the program may call MPI itself in between. */
bool oly_world_threads(void);
/* MPI_Abort of the whole job (or exit) with a status. Does not return. */
void oly_world_abort(int exit_status);

/* -- small host values (blocking, all ranks) ----------------------------------------------------------------------- */
/* Every rank contributes `bytes` bytes and receives all of them in rank order. */
oly_status oly_world_gather(const void *mine, void *all, size_t bytes);
/* Broadcasts the bytes of one rank. */
oly_status oly_world_share(void *data, size_t bytes, int root);
/* A vote: returns the worst status of any rank (the ranks that succeeded get a message naming the others). */
oly_status oly_world_vote(oly_status mine, const char *what);

/* -- between two ranks, for the timeline (clock.c) ------------------------------------------------------------------------ */
/* By how many nanoseconds rank 0's clock (CLOCK_MONOTONIC) is ahead of this process's, and at most how wrong that is: half the
 * shortest of some round trips. 0 and 0 on rank 0 and on its node. All ranks. */
typedef struct oly_clock_offset {
    int64_t at, ahead, error; /* at: this process's clock when it was measured */
} oly_clock_offset;
oly_status oly_world_clock(oly_clock_offset *offset);
/* For tests: this process's clock pretends to be ahead. */
extern int64_t oly_clock_pretends;
/* Blocking. what: for messages. */
oly_status oly_world_send(int rank, const void *bytes, size_t n, const char *what);
oly_status oly_world_receive(int rank, void *bytes, size_t n, const char *what);

/* -- failures of one rank (failure.c) ------------------------------------------------------------------------------- */
/* Notifies all ranks that this one cannot continue with collective calls because of the pending failure: ranks that wait fail with
 * the same status. Nothing more can be exchanged. */
void oly_world_tell(oly_status status);
/* fails like another rank that has notified this one. */
oly_status oly_world_told(void);

/* -- sets of processes that make calls together (process_set.c) ------------------------------------------------------
 * The processes that own the devices of the meshes of a call make it together, whether it sends anything or not. Each of them
 * keeps, for each such set that it is in, a rolling hash of all the calls of the set and a ring of the last ones. Every message
 * carries the hash, so ranks whose programs differ in any earlier call detect it, and the rings show which call was the first
 * (divergence.c). Calls of one process alone are not counted. */
typedef struct oly_process_set oly_process_set;

enum { OLY_NOTED_OPERANDS = 6 };
/* The record of a call. */
typedef struct oly_called {
    uint64_t hash;                        /* of this call and all before it; oly_process_set_called writes it */
    uint32_t program;                     /* digest of the operation or plan: constants, types, shardings */
    uint16_t operand[OLY_NOTED_OPERANDS]; /* digests of the first operands: identity of the array, or its contents */
    uint8_t n_operands, by_contents;      /* of those recorded; bit k: operand k is a copy that each process has */
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
/* Counts a call, in the order in which calls were issued, when it runs. `event`: hash of everything that must be the same on all
 * members. fails OLY_DIVERGED if another rank is known to have made another call. */
oly_status oly_process_set_called(oly_process_set *s, uint64_t event, oly_called *call);
/* Barrier of the members, without data: fails OLY_DIVERGED on all of them unless they have made the same calls, OLY_TIMEOUT,
 * OLY_MPI. Not while calls are queued. */
oly_status oly_process_set_meet(oly_process_set *s, const char *call);
/* Have its members met since that call, so that they are known to have made the same call? Of no set: false. */
bool oly_process_set_is_verified(const oly_process_set *s, uint64_t number);
/* The same for all processes, and all sets to which each of them belongs. */
oly_status oly_world_meet(const char *call);

/* -- values for ranks that have no part of an array (values.c) --------------------------------------------------------
 * The ranks of an array's mesh gather its value among themselves; one of them keeps it for ranks that hold no part of it, which may
 * request it before or after; up to 1 MiB it is sent to them at once. All identify it by the same id, not 0.
 *   has_part   [ranks] those that need not receive it; NULL: it is not sent at once */
void oly_values_keep(uint64_t id, const void *value, size_t bytes, const bool *has_part);
/* Waits until that rank has it. what: the array's type, for messages. fails OLY_DIVERGED if the rank will never have it, or has
 * dropped it, OLY_TIMEOUT, OLY_MPI. Not while calls are queued. */
oly_status oly_values_ask(int rank, uint64_t id, void *value, size_t bytes, const char *what);
/* Answers pending requests from time to time; for calls without communication. */
void oly_values_serve(void);

/* -- beside the program's calls (side.c) ---------------------------------------------------------------------------------
 * A communicator of its own, for messages of work that goes on in another thread (oly_world_threads), and for numbers on which all
 * ranks agree while they go on. In a job of one rank there is nothing to open. */
oly_status oly_side_open(const char *call); /* all ranks, at the same call; again: nothing */
/* A message of these bytes; the other side knows how many. Waits until it is sent or there, at most OLYMPUS_TIMEOUT seconds (then
 * MPI may still use the memory). fail OLY_TIMEOUT, OLY_MPI. By one thread at a time. */
oly_status oly_side_send(int rank, const void *data, size_t bytes, const char *call);
oly_status oly_side_receive(int rank, void *data, size_t bytes, const char *call);
/* The largest of each number over all ranks: begun without waiting, one at a time, in the same order on all ranks. */
enum { OLY_AGREED_NUMBERS = 2 };
oly_status oly_numbers_begin(const int64_t mine[OLY_AGREED_NUMBERS]);
bool oly_numbers_are_here(void); /* without waiting */
oly_status
oly_numbers_end(int64_t all[OLY_AGREED_NUMBERS]); /* waits; not while calls are queued, unless they are here */

/* -- exchange ------------------------------------------------------------------------------------------------------
 * Sends boxes of local buffers to other ranks and receives theirs: halos, gathers, reshards and reductions are all lists of
 * boxes. Built once by the planner, replayed without allocation. One message per pair of ranks and exchange. */
typedef struct oly_piece {
    int buffer;                   /* index into the array of base pointers given at start */
    int device, peer_device;      /* ids of the device whose buffer it is, and of the one at the other end; -1: host */
    int64_t offset;               /* bytes from the base to the box's first element */
    int rank;                     /* dimensions */
    int64_t extent[OLY_MAX_RANK]; /* elements */
    int64_t stride[OLY_MAX_RANK]; /* elements */
} oly_piece;

typedef struct oly_message {
    int peer;          /* rank, not this one's own */
    int n_pieces;      /* packed consecutively, row-major */
    oly_piece *pieces; /* owned by the exchange */
    /* A received piece that several local buffers need is sent once: piece[k] with same[k] = j < k is unpacked from the same
     * bytes as piece j and takes no space in the message. -1: its own bytes. The sender's peer_device is that of piece j. */
    int *same;
} oly_message;

typedef struct oly_exchange oly_exchange;
/* Copies the messages. element_bytes: of all pieces. */
oly_status oly_exchange_make(size_t element_bytes, int n_sends, const oly_message *sends, int n_receives,
                             const oly_message *receives, oly_exchange **exchange);
/* The same messages with other buffers: buffers from[k] to from[k] + width - 1 are replaced by those from to[k] on. */
oly_status oly_exchange_make_like(const oly_exchange *x, int n, const int *from, const int *to, int width,
                                  oly_exchange **exchange);
/* Sums over all GPUs of the job, each with its own terms, in an order that the transport chooses (OLYMPUS_NCCL_ALLREDUCE). The exchange sends
 * no boxes: only tickets, in a ring of all ranks, so that a sum is begun where the rank before has made the same call, and ends where all
 * have. */
typedef struct oly_summed {
    int64_t count;        /* elements */
    const int *from, *to; /* [GPUs of this process, one device each] buffers */
} oly_summed;
/* Does the transport of this job add values of this type? The same on all ranks. */
bool oly_transport_adds(oly_dtype dtype);
/* Copies the values. n_gpus: of this process. */
oly_status oly_exchange_make_sum(oly_dtype dtype, int n_gpus, int n_values, const oly_summed *values,
                                 oly_exchange **exchange);
/* An exchange of which only the outline is known: its messages are listed when it is first started, which for many messages
 * takes as long as sending them. It may consist of consecutive stages, each an exchange of its own: a stage sends what those
 * before it brought. A rank that takes part in one stage takes part in all, even with nothing to send or receive. */
typedef struct oly_exchange_outline {
    int64_t bytes_sent, bytes_received; /* about */
    int64_t memory;                     /* about: oly_exchange_memory */
    int peers;                          /* about */
    int n_buffers;                      /* buffers it sends from, then as many it receives into */
    const int *buffers;
    int n_stages; /* 1: all at once */
    /* NULL: nothing to send or receive */
    oly_status (*list)(const void *context, int stage, oly_exchange **exchange);
    oly_status (*between)(
        const void *context, int stage,
        void *const *base); /* called after each stage of several; NULL: nothing. fails as devices do */
    const void *context;
} oly_exchange_outline;
/* Keeps the pointer. An exchange in stages is started and finished with the same base pointers. */
oly_status oly_exchange_make_later(const oly_exchange_outline *outline, oly_exchange **exchange);
void oly_exchange_free(oly_exchange *x);
int64_t oly_exchange_bytes_sent(const oly_exchange *x);
int64_t oly_exchange_bytes_received(const oly_exchange *x);
int oly_exchange_peers(const oly_exchange *x); /* ranks it sends to or receives from */
/* The rank, if there is only one; else minus how many messages it sends or receives, whichever is more. For events. */
int oly_exchange_partner(const oly_exchange *x);
/* Bytes of staging memory for its messages, besides up to 8 KiB per message. All pending exchanges together have at most
 * oly_exchange_memory_limit, three quarters of OLYMPUS_EXCHANGE_MEMORY: a further one waits in oly_exchange_start. */
int64_t oly_exchange_memory(const oly_exchange *x);
int64_t oly_exchange_memory_limit(void);

/* Another set that the call concerns: its members made an operand and all belong to the call's own set. */
typedef struct oly_shared_set {
    const oly_process_set *set;
    uint64_t hash;
} oly_shared_set;

/* An operand that processes made of their own data, as they introduce it to those that hold no part of it (introduction.c). Numbers
 * of arrays are those of the process that says them. */
typedef struct oly_introduction {
    uint64_t origin; /* the calls that led to it; 0: no such operand */
    uint32_t made;   /* arrays that have been made of own data on its mesh; 0: unknown, or some are stand-ins */
    uint32_t number; /* of it among all made of own data; 0: computed from such */
    uint16_t place,
        of; /* its place among those of its type and sharding that have not moved among the call's processes; 0: unknown */
    uint32_t holds; /* 1: the process owns devices of its mesh */
} oly_introduction;

/* How this process knows it. */
typedef struct oly_acquaintance {
    uint64_t kind;         /* digest of type and sharding */
    uint64_t made, issued; /* when it was made, and when this call was issued: numbers that grow */
} oly_acquaintance;

/* The header of every message, by which diverged ranks are detected: the first 128 bytes, of which the first 32 must be the same on
 * both sides. */
enum { OLY_TICKET_STEP_BITS = 24 };
typedef struct oly_ticket {
    uint64_t sequence; /* number of this call among those of the set and, in the low bits, of the message in the call */
    uint64_t fingerprint; /* rolling hash of all these calls */
    uint64_t set;         /* key of the set; 0: no counted set */
    uint64_t shared;      /* hashes of the other sets that both sides are in; written for each message */
    char call[72];        /* "oly_matmul (layer.c:12)" */
    oly_introduction introduction;
    /* not sent: */
    oly_acquaintance acquaintance; /* with what is introduced */
    int n_shared;
    const oly_shared_set *sets;
} oly_ticket;
enum { OLY_TICKET_BYTES = offsetof(oly_ticket, acquaintance), OLY_TICKET_COMPARED = offsetof(oly_ticket, call) };

/* Posts the receives, packs and sends. send_base[b], receive_base[b]: base pointer of buffer b. Large contiguous pieces are
 * sent in place: they must not change before oly_exchange_finish. */
oly_status oly_exchange_start(oly_exchange *x, const oly_ticket *ticket, void *const *send_base);
/* The same, but nothing is sent yet: the message to a rank is sent by oly_exchange_send when it is ready, all remaining ones
 * with peer -1. Until then nothing else may be waited for: others may be waiting for the messages held back. */
oly_status oly_exchange_begin(oly_exchange *x, const oly_ticket *ticket, void *const *send_base);
oly_status oly_exchange_send(oly_exchange *x, int peer);
/* Leaves a started exchange pending: it progresses whenever oly_exchange_advance is called and during every wait for another
 * one, so that ranks may finish the exchanges they have started in any order. Ended by oly_exchange_join, within the same run.
 * */
void oly_exchange_leave(oly_exchange *x, const oly_ticket *ticket, void *const *receive_base);
/* Like oly_exchange_finish, with the arguments of oly_exchange_leave. */
oly_status oly_exchange_join(oly_exchange *x);
/* Waits for the message of one rank, and for the earlier stages; the exchange stays pending. */
oly_status oly_exchange_await(oly_exchange *x, int peer);
uint64_t oly_exchange_sequence(const oly_exchange *x); /* of the ticket of its last start */
/* Whether pending exchanges have large messages, which progress only inside MPI calls; and progresses all without waiting. */
bool oly_exchange_any_left(void);
oly_status oly_exchange_advance(void);
/* Names the buffer of every piece. */
void oly_exchange_buffers(const oly_exchange *x, void (*visit)(void *context, int buffer, bool receives),
                          void *context);
/* Waits for everything and unpacks. fails OLY_DIVERGED if a message belongs to another call (both ranks, both calls and both
 * lines in the message), OLY_TIMEOUT if a rank has not arrived within oly_option.timeout seconds (which rank, which call),
 * OLY_MPI. */
oly_status oly_exchange_finish(oly_exchange *x, const oly_ticket *ticket, void *const *receive_base);
#endif
