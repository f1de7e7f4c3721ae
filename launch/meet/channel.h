/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections of olymeet: messages of wire.h over a socket, without blocking. Over a network both sides first prove that they know
 * the secret, and every message carries a tag that only they can make:
 *
 *     coordinator -> other     "OLYMEET1", a random number S
 *     other -> coordinator     "OLYMEET1", a random number C, HMAC(secret, "other", S, C)
 *     coordinator -> other     HMAC(secret, "coordinator", C, S)
 *     then, both ways          messages, each followed by 16 bytes of HMAC(key, direction, number, message);
 *                              key = HMAC(secret, "key", S, C)
 *
 * So a stranger gets no further than 72 bytes, which have a fixed length, and gets nothing but a random number. Used by olymeet. */
#ifndef OLYMEET_CHANNEL_H
#define OLYMEET_CHANNEL_H
#include "secret.h"
#include "wire.h"
#include <stdbool.h>
#include <stddef.h>

enum { TAG = 16 };
#define CHANNEL_CLOSED "closed by the other side"
typedef enum stage {
    CONNECTING,
    GREETING, /* the other side's random number is awaited; for the coordinator, the other's proof */
    PROVING,  /* the coordinator's proof is awaited */
    OPEN,
    CLOSED,
} stage;
typedef struct buffer {
    unsigned char *at; /* owned */
    size_t n, room;
} buffer;
typedef struct channel {
    int socket;
    bool coordinator, local; /* local: to the process of this olymeet, without proofs and tags */
    bool trusted;            /* has been OPEN */
    stage stage;
    unsigned char mine[NONCE], theirs[NONCE], key[PROOF];
    uint64_t sent, received;
    buffer in, out;
    size_t most, taken; /* longest message accepted; bytes of the message that channel_next has returned */
    const char *why;    /* closed: the reason */
} channel;

/* The channel owns the socket, which becomes non-blocking. */
void channel_open(channel *c, int socket, bool coordinator, bool connecting);
void channel_open_local(channel *c, int socket);
short channel_events(const channel *c);
/* After poll: sends and receives what is possible. The channel may be CLOSED afterwards; messages that arrived before can still be
 * taken. */
void channel_move(channel *c, short events);
/* The next message, valid until the following call; false: none. */
bool channel_next(channel *c, oly_wire_kind *kind, oly_read *fields);
/* Queues a whole message (oly_wire_begin, fields, oly_wire_end), and frees it. */
void channel_send(channel *c, oly_wire *message);
void channel_close(channel *c, const char *why);
void channel_free(channel *c); /* closes it, too */
#endif
