/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections of olymeet. See channel.h. */
#define _GNU_SOURCE
#include "channel.h"
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAGIC "OLYMEET1"
enum { MAGIC_BYTES = 8, GREETING_BYTES = MAGIC_BYTES + NONCE, PROOF_BYTES = GREETING_BYTES + PROOF, CHUNK = 64 << 10 };

static bool add(buffer *b, const void *from, size_t n)
{
    if (b->room - b->n < n) {
        size_t room = 2 * (b->n + n) + 256;
        unsigned char *larger = realloc(b->at, room);
        if (!larger)
            return false;
        b->at = larger;
        b->room = room;
    }
    if (from)
        memcpy(b->at + b->n, from, n);
    b->n += n;
    return true;
}

static void drop(buffer *b, size_t n)
{
    b->n -= n;
    memmove(b->at, b->at + n, b->n);
}

/* A host that has lost its power, or a cut cable, is noticed after 8 s; a link that is back after 4 s is not lost. */
static void watch_link(int socket)
{
    static const struct {
        int name, value;
    } settings[] = {
        {TCP_KEEPIDLE, 3}, {TCP_KEEPINTVL, 1}, {TCP_KEEPCNT, 5}, {TCP_USER_TIMEOUT, 8000}, {TCP_NODELAY, 1}};
    setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &(int){1}, sizeof(int));
    for (size_t k = 0; k < sizeof settings / sizeof *settings; k++)
        setsockopt(socket, IPPROTO_TCP, settings[k].name, &settings[k].value, sizeof(int));
}

void channel_close(channel *c, const char *why)
{
    if (c->stage == CLOSED)
        return;
    c->why = why;
    c->stage = CLOSED;
    close(c->socket);
    free(c->out.at);
    c->out = (buffer){0};
}

static void greet(channel *c)
{
    if (!secret_random(c->mine, NONCE)) {
        channel_close(c, "no random numbers");
        return;
    }
    if (c->coordinator && (!add(&c->out, MAGIC, MAGIC_BYTES) || !add(&c->out, c->mine, NONCE)))
        channel_close(c, "out of memory");
}

void channel_open(channel *c, int socket, bool coordinator, bool connecting)
{
    *c = (channel){.socket = socket,
                   .coordinator = coordinator,
                   .stage = connecting ? CONNECTING : GREETING,
                   .most = coordinator ? OLY_WIRE_MOST_JOIN : OLY_WIRE_MOST};
    fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
    watch_link(socket);
    greet(c);
}

void channel_open_local(channel *c, int socket)
{
    *c = (channel){.socket = socket, .local = true, .trusted = true, .stage = OPEN, .most = OLY_WIRE_MOST};
    fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
}

void channel_free(channel *c)
{
    channel_close(c, "");
    free(c->in.at);
    c->in = (buffer){0};
}

short channel_events(const channel *c)
{
    if (c->stage == CLOSED)
        return 0;
    return (short)(c->stage == CONNECTING ? POLLOUT : POLLIN | (c->out.n ? POLLOUT : 0));
}

/* -- proofs ------------------------------------------------------------------------------------------------------- */

static void prove(unsigned char *proof, const char *what, const unsigned char *first, const unsigned char *second)
{
    secret_proof(proof, NULL, (const part[]){{what, strlen(what)}, {first, NONCE}, {second, NONCE}}, 3);
}

static void become_open(channel *c)
{
    prove(c->key, "key", c->coordinator ? c->mine : c->theirs, c->coordinator ? c->theirs : c->mine);
    c->stage = OPEN;
    c->trusted = true;
}

/* Of the coordinator: the other's proof has arrived. */
static void judge(channel *c)
{
    unsigned char proof[PROOF];
    memcpy(c->theirs, c->in.at + MAGIC_BYTES, NONCE);
    prove(proof, "other", c->mine, c->theirs);
    if (memcmp(c->in.at, MAGIC, MAGIC_BYTES) != 0 || !secret_equal(proof, c->in.at + GREETING_BYTES, PROOF)) {
        channel_close(c, "another secret");
        return;
    }
    drop(&c->in, PROOF_BYTES);
    prove(proof, "coordinator", c->theirs, c->mine);
    if (!add(&c->out, proof, PROOF))
        channel_close(c, "out of memory");
    else
        become_open(c);
}

/* Of the other: the coordinator's number, then its proof. */
static void answer(channel *c)
{
    unsigned char proof[PROOF];
    if (memcmp(c->in.at, MAGIC, MAGIC_BYTES) != 0) {
        channel_close(c, "no coordinator of Olympus");
        return;
    }
    memcpy(c->theirs, c->in.at + MAGIC_BYTES, NONCE);
    drop(&c->in, GREETING_BYTES);
    prove(proof, "other", c->theirs, c->mine);
    if (!add(&c->out, MAGIC, MAGIC_BYTES) || !add(&c->out, c->mine, NONCE) || !add(&c->out, proof, PROOF))
        channel_close(c, "out of memory");
    else
        c->stage = PROVING;
}

static void trust(channel *c)
{
    unsigned char proof[PROOF];
    prove(proof, "coordinator", c->mine, c->theirs);
    if (!secret_equal(proof, c->in.at, PROOF)) {
        channel_close(c, "another secret");
        return;
    }
    drop(&c->in, PROOF);
    become_open(c);
}

static void shake_hands(channel *c)
{
    if (c->stage == GREETING && c->coordinator && c->in.n >= PROOF_BYTES)
        judge(c);
    else if (c->stage == GREETING && !c->coordinator && c->in.n >= GREETING_BYTES)
        answer(c);
    if (c->stage == PROVING && c->in.n >= PROOF)
        trust(c);
}

/* -- moving ------------------------------------------------------------------------------------------------------- */

static void finish_connecting(channel *c)
{
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(c->socket, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error)
        channel_close(c, strerror(error));
    else
        c->stage = GREETING;
}

static void push(channel *c)
{
    while (c->stage != CLOSED && c->out.n > 0) {
        ssize_t n = send(c->socket, c->out.at, c->out.n, MSG_NOSIGNAL);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n < 0)
            channel_close(c, strerror(errno));
        else
            drop(&c->out, (size_t)n);
    }
}

/* Before the proof, no more is read than it is long. */
static size_t wanted(const channel *c)
{
    return c->stage == OPEN ? CHUNK : c->coordinator ? PROOF_BYTES - c->in.n : GREETING_BYTES + PROOF;
}

static void pull(channel *c)
{
    while (c->stage != CLOSED) {
        size_t room = wanted(c);
        if (!add(&c->in, NULL, room)) {
            channel_close(c, "out of memory");
            return;
        }
        ssize_t n = recv(c->socket, c->in.at + c->in.n - room, room, 0);
        c->in.n -= room - (size_t)(n > 0 ? n : 0);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
            channel_close(c, n == 0 ? CHANNEL_CLOSED : strerror(errno));
            return;
        }
        if (n < 0)
            return;
        if (c->stage != OPEN)
            shake_hands(c);
        if (c->in.n > c->most + OLY_WIRE_HEAD + TAG) /* one message at a time */
            return;
    }
}

void channel_move(channel *c, short events)
{
    if (c->stage == CONNECTING && events)
        finish_connecting(c);
    if (events & (POLLIN | POLLHUP | POLLERR))
        pull(c);
    push(c);
}

/* -- messages ----------------------------------------------------------------------------------------------------- */

static void tag_of(const channel *c, bool by_coordinator, uint64_t number, const void *message, size_t n,
                   unsigned char *tag)
{
    unsigned char direction = by_coordinator;
    secret_proof(tag, c->key, (const part[]){{&direction, 1}, {&number, sizeof number}, {message, n}}, 3);
}

bool channel_next(channel *c, oly_wire_kind *kind, oly_read *fields)
{
    unsigned char tag[PROOF];
    size_t tail = c->local ? 0 : TAG;
    if (c->taken)
        drop(&c->in, c->taken);
    c->taken = 0;
    if (!c->trusted)
        return false;
    long n = oly_wire_first(c->in.at, c->in.n, c->most, kind);
    if (n < 0) {
        channel_close(c, "a malformed or oversized message");
        c->in.n = 0;
    }
    if (n <= 0 || c->in.n < (size_t)n + tail)
        return false;
    if (!c->local)
        tag_of(c, !c->coordinator, c->received++, c->in.at, (size_t)n, tag);
    if (!c->local && !secret_equal(tag, c->in.at + n, TAG)) {
        channel_close(c, "a forged message");
        c->in.n = 0;
        return false;
    }
    c->taken = (size_t)n + tail;
    *fields = oly_read_of(c->in.at + OLY_WIRE_HEAD, (size_t)n - OLY_WIRE_HEAD);
    return true;
}

void channel_send(channel *c, oly_wire *message)
{
    unsigned char tag[PROOF];
    if (c->stage == OPEN && !message->failed) {
        bool ok = add(&c->out, message->bytes, message->n);
        if (ok && !c->local) {
            tag_of(c, c->coordinator, c->sent++, message->bytes, message->n, tag);
            ok = add(&c->out, tag, TAG);
        }
        if (ok)
            push(c);
    }
    if (message->failed || (c->stage == OPEN && c->out.n > 4ull * OLY_WIRE_MOST))
        channel_close(c, "out of memory");
    oly_wire_free(message);
}
