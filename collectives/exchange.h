/* SPDX-License-Identifier: BSD-3-Clause */
/* What an exchange is. For exchange_make.c, which makes it, and exchange.c, which replays it, only. */
#ifndef OLY_COLLECTIVES_EXCHANGE_H
#define OLY_COLLECTIVES_EXCHANGE_H
#include "transport.h"
#include "world.h"

enum { TICKET = OLY_TICKET_BYTES };
_Static_assert(TICKET == 128, "the ticket travels between programs built apart");

typedef struct exchange_message {
    oly_payload payload;
    bool big;                  /* the payload is not in the first message */
    bool in_place;             /* large, and the transport does without packing it */
    char *staging;             /* the ticket, then the payload unless large */
    int first_chunk, n_chunks; /* its requests beyond the ticket's */
    int tag;                   /* of the chunks, in this replay */
    int left;                  /* requests not complete, in this replay */
    bool arrived;              /* its ticket, in this replay */
    bool sent;                 /* in this replay */
} exchange_message;

/* The purpose of a request. */
typedef struct exchange_slot {
    exchange_message *message;
    bool receives;
    bool done;      /* in this replay; of those that go in rounds */
    int64_t at;     /* first byte of the payload; -1: the first message, ticket and small payload */
    int bytes;      /* its length */
    int64_t memory; /* where it is packed in the block; -1: nowhere */
} exchange_slot;

/* Chunks that are sent in rounds, because packing all of them at once would take too much memory: each uses the memory of the one
 * `n_buffers` before it. */
typedef struct exchange_rounds {
    int n, n_buffers, next;
    int *order; /* owned; slots. n = 0: all at once */
} exchange_rounds;

struct oly_exchange {
    const oly_exchange_outline *outline; /* until its messages are listed; then NULL, unless it has stages */
    struct oly_exchange **stages;        /* owned; NULL entries: not listed yet; NULL: no stages */
    struct oly_exchange *running;        /* the current stage; NULL: it has not begun, for lack of memory */
    int stage;                           /* its number, in this replay */
    int n_sends, n_receives;
    exchange_message *receives, *sends; /* owned: one piece of memory, with what they point to */
    size_t bytes;                       /* of it */
    int *buffers, n_sent, n_received;   /* in the same memory: of sends, then of receives; some more than once */
    char *staging;                      /* owned: of all messages */
    int n_requests; /* tickets of receives, tickets of sends, chunks; the order is the message's number */
    int left;       /* requests, or stages, not complete, in this replay */
    bool started;
    bool big;   /* some message is large */
    bool quiet; /* its messages are not shown in the timeline, in this replay */
    int64_t block_bytes;
    char *block;               /* of staging.h, while it is started; NULL: not needed */
    exchange_rounds rounds[2]; /* of sends, of receives */
    exchange_slot *slots;      /* owned: one piece of memory with the two below */
    oly_completion *done;      /* [n_requests] */
    void *requests;            /* the transport's */
    /* while it is left pending */
    oly_exchange *next_left;
    oly_ticket ticket;
    void *const *base;
};

static inline exchange_message *oly_exchange_message(const oly_exchange *x, int number)
{
    return number < x->n_receives ? &x->receives[number] : &x->sends[number - x->n_receives];
}
/* Lists the messages of an exchange that has only an outline, if necessary; for one in stages nothing yet. */
oly_status oly_exchange_list(oly_exchange *x);
/* The stage x->stage, listed if necessary. */
oly_status oly_exchange_take_stage(oly_exchange *x, oly_exchange **stage);
/* For an exchange that is being freed: removes it from the list of pending ones, and leaves what is in flight to MPI. */
void oly_exchange_stop(oly_exchange *x);
#endif
