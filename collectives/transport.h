/* SPDX-License-Identifier: BSD-3-Clause */
/* Transports: how boxes get from the devices of this process to those of others. A table of functions with one implementation
 * per file, chosen at start beside the platform:
 *
 *   transport_mpi.c    messages of MPI between processes, through host memory
 *   transport_gpu.c    messages of MPI between the memories of GPUs: staged in pinned memory, or taken by MPI from there
 *   transport_nccl.c   large ones between the memories of GPUs, the others through MPI
 *
 * An exchange (communicator.h) is the protocol above, the same for every transport: which message is sent when, the ticket in
 * front of each and its check, divergence, stages, memory for packed bytes, and waiting with a time limit (exchange.c,
 * exchange_make.c). The transport moves bytes:
 *
 *   protocol                                       transport
 *   an exchange is made                            make, in_place
 *   it starts: memory, tickets                     receive (first messages); pack and send (all messages)
 *   it advances or is waited for: time limit       test
 *     a first message is there: check its ticket     unpack; or receive, where the payload follows in chunks
 *     a chunk is there: check its length             unpack, if it was packed
 *   it fails                                       give_up
 *
 *   first message   | ticket | payload, if it has at most `small_bytes` |
 *   chunks          | the payload otherwise, cut at the same bytes on both sides |
 *
 * Partial results are boxes like all others. The order in which they are added is part of a result, so no transport adds them
 * (but for sums that may be in any order, `adds`): they are received, and reduced between two stages of the exchange (oly_exchange_outline.between).
 *
 * Called by exchange.c and exchange_make.c only, in the thread that interprets a plan, when the devices have computed what is sent and
 * use no longer what is received (runtime/run/messages.c). README.md says how to add one. */
#ifndef OLY_COLLECTIVES_TRANSPORT_H
#define OLY_COLLECTIVES_TRANSPORT_H
#include "pack.h"

/* Values that all GPUs of the job add, with the first rank's message of the ring (oly_exchange_make_sum): behind this in memory. */
typedef struct oly_sum_of_all {
    oly_dtype dtype;
    int n_values, n_gpus;
    const int64_t *count; /* [n_values] */
    const int *from, *to; /* [n_values][n_gpus] buffers */
} oly_sum_of_all;

/* The boxes of a message, packed one after the other. The same boxes, in the same order, at both ends. */
typedef struct oly_payload {
    int peer;    /* the other process */
    int n_boxes; /* here: received boxes at the same position are the same bytes, sent once, to the first one's device */
    oly_walk
        *box;    /* [n_boxes] each between a device here and one of the peer's: box[k].device and box[k].peer_device */
    int64_t *at; /* [n_boxes] position of each in the packed bytes */
    int64_t bytes;             /* packed */
    const oly_sum_of_all *sum; /* instead of boxes, of which there are none; NULL: boxes */
    void **sources; /* owned; [n_boxes] addresses of the boxes' buffers, if it is packed after the start; or NULL */
} oly_payload;

/* What is sent or received at once: part of a payload. Between two processes, chunks with the same tag arrive in the order in
 * which they are sent; those with different tags in any order. */
typedef struct oly_chunk {
    const oly_payload *payload;
    int64_t begin, end; /* of the payload's packed bytes */
    char *host; /* `head` bytes and the packed bytes, in host memory; NULL: sent from the buffer or received into it */
    int head;   /* the ticket's bytes; 0: no first message */
    int room;   /* bytes to send; or to receive, at most */
    int tag;
    void *const *base; /* of each buffer, on its device */
} oly_chunk;

typedef struct oly_completion {
    int request;
    int bytes; /* received */
} oly_completion;

/* The most that `small_bytes` may be. A longer payload need not be packed: between two ranks of a node 16 KiB then take 1.1 times as
 * long as MPI_Sendrecv, packed 1.9 times; 8 KiB take the same either way. */
enum { OLY_MOST_SMALL_BYTES = 8 << 10, OLY_FIRST_MESSAGE_BYTES = OLY_TICKET_BYTES + OLY_MOST_SMALL_BYTES };

typedef struct oly_transport {
    const char *name; /* "mpi"; the same on all ranks */
    int small_bytes;  /* payloads up to this size travel behind their ticket */
    int chunk_bytes;  /* the longest chunk; 0: no limit but the protocol's. The same on all ranks, as small_bytes */

    /* Prepares memory for requests 0 to n - 1 of an exchange, the first n_first of them those of first messages. Returns its size;
     * memory NULL: that only. */
    size_t (*make)(int n, int n_first, void *requests);
    void (*free)(void *requests); /* NULL: nothing to do */
    /* Can this payload be sent from its buffer, or received into it, without being packed in host memory? Not asked of small ones. */
    bool (*in_place)(const oly_payload *p);

    /* The boxes' bytes begin to end, from the devices to c->host + c->head, and back. fail as the devices do. */
    oly_status (*pack)(const oly_chunk *c);
    oly_status (*unpack)(const oly_chunk *c);

    /* Begin request k, and return. What c->host and the buffers hold must stay until it is complete. fail OLY_MPI. */
    oly_status (*send)(void *requests, int k, const oly_chunk *c);
    oly_status (*receive)(void *requests, int k, const oly_chunk *c);
    /* Which requests have completed since the last call: n_done of them. Advances all; does not wait. fails OLY_MPI. */
    oly_status (*test)(void *requests, int n, int *n_done, oly_completion *done);
    /* Gives up request k of an exchange that has failed. True: its memory may still be read or written, as long as the process lives. */
    bool (*give_up)(void *requests, int k);
    /* Does it add values of this type over all GPUs? Then payloads with a sum come to `receive`. NULL: no. */
    bool (*adds)(oly_dtype dtype);
    /* Takes a first message that nothing here receives: its sender, which has diverged; -1: there is none. bytes: as many as a first
     * message may have. */
    int (*stray)(void *bytes);
} oly_transport;

extern const oly_transport oly_transport_mpi, oly_transport_nccl;

/* A transport is being tried: what fails is reported to nobody else, and messages can be exchanged after it. */
extern bool oly_transport_tries;

/* The transport of this job. */
const oly_transport *oly_transport_get(void);
/* Makes the next job's transport this one, in place of MPI. Before oly_init; NULL takes it back. For transports that are not part
 * of the library, such as the one of the tests. */
void oly_transport_register(const oly_transport *transport);

/* -- for transports through host memory (transport.c) ------------------------------------------------------------------- */
/* May the host, and MPI, use buffers where they are? Otherwise every message is packed. */
bool oly_transport_in_host_memory(void);
/* The address of box k's buffer. */
static inline void *oly_chunk_buffer(const oly_chunk *c, int k)
{
    return c->payload->sources ? c->payload->sources[k] : c->base[c->payload->box[k].buffer];
}
/* Pack and unpack: loops over the boxes, or reads and writes of every run of bytes by oly_device_access. */
oly_status oly_host_pack(const oly_chunk *c);
oly_status oly_host_unpack(const oly_chunk *c);
oly_status oly_host_copy_box(const oly_chunk *c, int k, bool packing); /* box k only */
/* Bytes begin to end of box k that are in the chunk; false: none. */
bool oly_chunk_part(const oly_chunk *c, int k, int64_t *begin, int64_t *end);
#endif
