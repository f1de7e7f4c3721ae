/* SPDX-License-Identifier: BSD-3-Clause */
/* The coordinator of a meeting. See coordinator.h. Its state changes once, from meeting to running, when all processes have handed in
 * their cards; or it fails with a text, which every process that has come, or comes within two seconds, gets to know. */
#define _GNU_SOURCE
#include "coordinator.h"
#include "channel.h"
#include "pairs.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MOST_STRANGERS = 64, NAMED = 8 };
static const double PROOF_SECONDS = 5, LINGER_SECONDS = 2;

typedef struct guest {
    channel channel;
    double came;
    bool joined, bye, released;
    oly_card card;
    int node;
} guest;

/* Data that the processes of a list exchange: one part of each of their nodes. */
typedef struct fence {
    buffer list, data;
    bool *given; /* by node */
    int wanted, got;
    struct fence *next;
} fence;

static struct {
    int socket;
    const oly_request *request;
    double deadline, failed_at;
    bool running, failed, ended;
    char text[2048]; /* why it failed, or ended */
    guest **guests;  /* all connections */
    size_t n_guests, room, refused;
    guest **of;  /* by process; NULL: has not come, or is gone */
    bool *gone;  /* by process */
    int n, here; /* processes; those that have come */
    int n_nodes, *leader, barrier;
    fence *fences;
} meeting = {.socket = -1};

void coordinator_start(int socket, const oly_request *request, double deadline)
{
    meeting.socket = socket;
    meeting.request = request;
    meeting.deadline = deadline;
    meeting.n = request->card.processes;
    meeting.of = calloc((size_t)meeting.n, sizeof *meeting.of);
    meeting.gone = calloc((size_t)meeting.n, sizeof *meeting.gone);
    meeting.leader = calloc((size_t)meeting.n, sizeof *meeting.leader);
    if (!meeting.of || !meeting.gone || !meeting.leader) {
        fprintf(stderr, "olympus: no memory for a meeting of %d processes\n", meeting.n);
        exit(1);
    }
}

/* -- texts -------------------------------------------------------------------------------------------------------- */

static void send_text(guest *g, oly_wire_kind kind, const char *text, int say)
{
    oly_wire w = {0};
    size_t place = oly_wire_begin(&w, kind);
    oly_wire_text(&w, text);
    oly_wire_u8(&w, (uint8_t)say);
    oly_wire_end(&w, place);
    channel_send(&g->channel, &w);
}

static void __attribute__((format(printf, 2, 3))) fail(double now, const char *format, ...)
{
    va_list arguments;
    if (meeting.failed || meeting.running)
        return;
    va_start(arguments, format);
    vsnprintf(meeting.text, sizeof meeting.text, format, arguments);
    va_end(arguments);
    meeting.failed = true;
    meeting.failed_at = now;
    for (size_t k = 0; k < meeting.n_guests; k++)
        if (meeting.guests[k]->joined)
            send_text(meeting.guests[k], OLY_WIRE_FAILED, meeting.text, false);
}

/* "process 2", "processes 2, 3 and 7 more" of those that have not come. */
static void name_missing(char *text, size_t size)
{
    int missing = meeting.n - meeting.here, named = 0;
    size_t n = (size_t)snprintf(text, size, missing == 1 ? "process" : "processes");
    for (int k = 0; k < meeting.n && named < NAMED && n < size; k++)
        if (!meeting.of[k]) {
            const char *before = named == 0 ? " " : named + 1 == missing ? " and " : ", ";
            n += (size_t)snprintf(text + n, size - n, "%s%d", before, k);
            named++;
        }
    if (named < missing && n < size)
        snprintf(text + n, size - n, " and %d more", missing - named);
}

static void give_up(double now)
{
    char missing[256], refused[160] = "";
    name_missing(missing, sizeof missing);
    if (meeting.refused)
        snprintf(refused, sizeof refused, "; %zu connection%s with another secret, or not of Olympus, %s refused",
                 meeting.refused, meeting.refused == 1 ? "" : "s", meeting.refused == 1 ? "was" : "were");
    fail(now,
         "process 0 waited %u s at %s for %s of %d%s; start them with the same coordinator, number of processes and "
         "secret, or "
         "raise OLYMPUS_START_TIMEOUT",
         meeting.request->timeout, meeting.request->coordinator, missing, meeting.n, refused);
}

/* -- cards --------------------------------------------------------------------------------------------------------- */

static const char *mpi_name(int kind)
{
    return kind == OLY_MPI_OPEN ? "Open MPI" : kind == OLY_MPI_MPICH ? "MPICH" : "another MPI";
}

static void compare(const oly_card *a, const oly_card *b, double now)
{
    bool mixed = a->mixed && b->mixed;
    if (a->version != b->version)
        fail(now, "process %d (%s) runs Olympus %u.%u, process %d (%s) %u.%u; all must use one version", a->process,
             a->host, a->version / 1000, a->version % 1000, b->process, b->host, b->version / 1000, b->version % 1000);
    else if (a->mpi != b->mpi)
        fail(now, "process %d (%s) uses %s, process %d (%s) %s; all must use one MPI", a->process, a->host,
             mpi_name(a->mpi), b->process, b->host, mpi_name(b->mpi));
    else if (!mixed && (a->program != b->program || a->library != b->library))
        fail(now,
             "process %d runs the %s %.400s (build %016llx on %s), process %d %.400s (build %016llx on %s); all "
             "processes must run "
             "the same, or have OLYMPUS_MIXED_PROGRAMS=1",
             a->process, a->program != b->program ? "program" : "library of", a->path,
             (unsigned long long)(a->program != b->program ? a->program : a->library), a->host, b->process, b->path,
             (unsigned long long)(a->program != b->program ? b->program : b->library), b->host);
}

static void check_card(guest *g, double now)
{
    const oly_card *card = &g->card;
    if (card->processes != -1 && card->processes != meeting.n)
        fail(now, "process %d (pid %u on %s) was started as one of %d processes, process 0 as one of %d", card->process,
             card->pid, card->host, card->processes, meeting.n);
    else if (card->process >= meeting.n)
        fail(now, "process %d (pid %u on %s) has no place among %d processes: their numbers are 0 to %d", card->process,
             card->pid, card->host, meeting.n, meeting.n - 1);
    else if (meeting.of[card->process])
        fail(now, "two processes have the number %d: pid %u on %s and pid %u on %s; each needs a process id of its own",
             card->process, meeting.of[card->process]->card.pid, meeting.of[card->process]->card.host, card->pid,
             card->host);
    else {
        meeting.of[card->process] = g;
        meeting.here++;
        for (int k = 0; k < meeting.n; k++)
            if (meeting.of[k] && k != card->process) {
                compare(k < card->process ? &meeting.of[k]->card : card,
                        k < card->process ? card : &meeting.of[k]->card, now);
                break;
            }
    }
}

/* -- nodes --------------------------------------------------------------------------------------------------------- */

/* Hosts of one name that share no memory get names of their own. */
static void name_node(int node, char *name, size_t size)
{
    const char *host = meeting.of[meeting.leader[node]]->card.host;
    bool again = false;
    for (int k = 0; k < node; k++)
        again = again || strcmp(meeting.of[meeting.leader[k]]->card.host, host) == 0;
    snprintf(name, size, again ? "%s-%d" : "%s", host, node);
}

static void divide(void)
{
    for (int k = 0; k < meeting.n; k++) {
        guest *g = meeting.of[k];
        for (g->node = 0; g->node < meeting.n_nodes; g->node++)
            if (strcmp(meeting.of[meeting.leader[g->node]]->card.node, g->card.node) == 0)
                break;
        if (g->node == meeting.n_nodes)
            meeting.leader[meeting.n_nodes++] = k;
    }
}

static void send_plan(void)
{
    unsigned char random[8] = {0};
    char job[64], name[300];
    secret_random(random, sizeof random);
    snprintf(job, sizeof job, "olympus.%02x%02x%02x%02x%02x%02x%02x%02x", random[0], random[1], random[2], random[3],
             random[4], random[5], random[6], random[7]);
    for (int to = 0; to < meeting.n; to++) {
        oly_wire w = {0};
        size_t place = oly_wire_begin(&w, OLY_WIRE_PLAN);
        oly_wire_text(&w, job);
        oly_wire_u32(&w, (uint32_t)meeting.n);
        oly_wire_u32(&w, (uint32_t)meeting.n_nodes);
        for (int k = 0; k < meeting.n_nodes; k++) {
            name_node(k, name, sizeof name);
            oly_wire_text(&w, name);
        }
        for (int k = 0; k < meeting.n; k++)
            oly_wire_u32(&w, (uint32_t)meeting.of[k]->node);
        oly_wire_end(&w, place);
        channel_send(&meeting.of[to]->channel, &w);
    }
}

static void join(guest *g, oly_read *fields, double now)
{
    if (!oly_read_card(fields, &g->card) || !oly_read_done(fields)) {
        channel_close(&g->channel, "a malformed card");
        meeting.refused++;
        return;
    }
    g->joined = true;
    if (meeting.failed) { /* it may be of the next job */
        meeting.here++;
        send_text(g, OLY_WIRE_FAILED, meeting.text, true);
        return;
    }
    check_card(g, now);
    if (meeting.running) { /* a second process with a number of this job */
        snprintf(meeting.text, sizeof meeting.text,
                 "process %d (pid %u on %s) is one too many: the %d processes of a job have met at %s already; another "
                 "job needs another port",
                 g->card.process, g->card.pid, g->card.host, meeting.n, meeting.request->coordinator);
        send_text(g, OLY_WIRE_FAILED, meeting.text, false);
        return;
    }
    if (meeting.failed)
        return;
    g->channel.most = OLY_WIRE_MOST;
    if (meeting.here < meeting.n)
        return;
    meeting.running = true;
    divide();
    send_plan();
}

/* -- the running job ------------------------------------------------------------------------------------------------ */

static bool leads(const guest *g)
{
    return meeting.leader[g->node] == g->card.process;
}

static guest *leader_of(uint32_t process)
{
    return process < (uint32_t)meeting.n && meeting.of[process] ? meeting.of[meeting.leader[meeting.of[process]->node]]
                                                                : NULL;
}

static bool is_there(int process, int but)
{
    return meeting.of[process] && !meeting.gone[process] && process != but;
}

/* Is it the first of its node that is there and has not finished? */
static bool speaks(int process, int but)
{
    bool first = !meeting.of[process]->bye;
    for (int k = 0; k < process && first; k++)
        first = !is_there(k, but) || meeting.of[k]->bye || meeting.of[k]->node != meeting.of[process]->node;
    return first;
}

/* The job is over: everybody ends his process, but for the one that has ended the job and exits by itself. On each node one of those who
 * are still there says why: terminals of other hosts show only their own. */
static void end_all(const char *text, int but)
{
    if (meeting.ended)
        return;
    meeting.ended = true;
    for (int k = 0; k < meeting.n; k++)
        if (is_there(k, but))
            send_text(meeting.of[k], OLY_WIRE_END, text, text[0] && speaks(k, but));
}

/* Has everybody finished who must before this one may leave? Process 0's olymeet carries the messages of all, the first of a node
 * those of its node. */
static bool may_leave(const guest *g)
{
    bool may = g->bye;
    for (int k = 0; k < meeting.n && may; k++)
        if (g->card.process == 0 || (leads(g) && meeting.of[k] && meeting.of[k]->node == g->node))
            may = meeting.gone[k] || (meeting.of[k] && meeting.of[k]->bye);
    return may;
}

static void release(void)
{
    for (int k = meeting.n - 1; k >= 0; k--) {
        guest *g = meeting.of[k];
        if (!g || meeting.gone[k] || g->released || !may_leave(g))
            continue;
        g->released = true;
        send_text(g, OLY_WIRE_RELEASE, "", false);
    }
}

/* Passes a message on. */
static void pass(guest *to, oly_wire_kind kind, const void *bytes, size_t n)
{
    oly_wire w = {0};
    size_t place = oly_wire_begin(&w, kind);
    const unsigned char *from = bytes;
    for (size_t k = 0; k < n; k++)
        oly_wire_u8(&w, from[k]);
    oly_wire_end(&w, place);
    channel_send(&to->channel, &w);
}

/* -- fences --------------------------------------------------------------------------------------------------------- */

static fence *find_fence(const void *list, size_t n)
{
    for (fence *f = meeting.fences; f; f = f->next)
        if (f->list.n == n && memcmp(f->list.at, list, n) == 0)
            return f;
    return NULL;
}

static bool append(buffer *b, const void *from, size_t n)
{
    if (b->n + n > OLY_WIRE_MOST)
        return false;
    unsigned char *larger = realloc(b->at, b->n + n + 1);
    if (!larger)
        return false;
    memcpy(larger + b->n, from, n);
    b->at = larger;
    b->n += n;
    return true;
}

/* Nodes of the processes in a list; an empty one means all. -1: malformed. */
static int count_nodes(const unsigned char *list, size_t n, bool *of)
{
    int count = 0;
    oly_read r = oly_read_of(list, n);
    for (int k = 0; n == 0 && k < meeting.n_nodes; k++)
        of[k] = true;
    while (n > 0 && r.at < r.end && !r.bad) {
        uint32_t process = oly_read_u32(&r);
        if (process >= (uint32_t)meeting.n || !meeting.of[process])
            return -1;
        of[meeting.of[process]->node] = true;
    }
    for (int k = 0; k < meeting.n_nodes; k++)
        count += of[k];
    return r.bad ? -1 : count;
}

static fence *new_fence(const void *list, size_t n)
{
    fence *f = calloc(1, sizeof *f);
    bool *of = calloc((size_t)meeting.n_nodes, sizeof *of);
    if (f && of && append(&f->list, list, n) && (f->wanted = count_nodes(list, n, of)) > 0) {
        memset(of, 0, (size_t)meeting.n_nodes * sizeof *of);
        f->given = of;
        f->next = meeting.fences;
        return meeting.fences = f;
    }
    if (f)
        free(f->list.at);
    free(f);
    free(of);
    return NULL;
}

static void finish_fence(fence *f)
{
    bool *of = calloc((size_t)meeting.n_nodes, sizeof *of);
    if (of && count_nodes(f->list.at, f->list.n, of) > 0)
        for (int k = 0; k < meeting.n_nodes; k++) {
            guest *to = of[k] ? meeting.of[meeting.leader[k]] : NULL;
            if (!to)
                continue;
            oly_wire w = {0};
            size_t place = oly_wire_begin(&w, OLY_WIRE_FENCE);
            oly_wire_blob(&w, f->list.at, f->list.n);
            oly_wire_blob(&w, f->data.at, f->data.n);
            oly_wire_end(&w, place);
            channel_send(&to->channel, &w);
        }
    free(of);
    for (fence **at = &meeting.fences; *at; at = &(*at)->next)
        if (*at == f) {
            *at = f->next;
            break;
        }
    free(f->list.at);
    free(f->data.at);
    free(f->given);
    free(f);
}

/* False: the message is not what a node's first process would send. */
static bool take_fence(guest *g, oly_read *fields)
{
    size_t n, bytes;
    const void *list = oly_read_blob(fields, &n), *data = oly_read_blob(fields, &bytes);
    if (!oly_read_done(fields) || !leads(g))
        return false;
    fence *f = find_fence(list, n);
    if (!f)
        f = new_fence(list, n);
    if (!f || f->given[g->node] || !append(&f->data, data, bytes))
        return false;
    f->given[g->node] = true;
    if (++f->got == f->wanted)
        finish_fence(f);
    return true;
}

/* -- messages of running processes --------------------------------------------------------------------------------- */

static bool take_get(guest *g, oly_read *fields)
{
    char key[PAIR_TEXT];
    oly_read_text(fields, key, sizeof key);
    const char *value = oly_read_done(fields) ? pairs_get(key) : NULL;
    oly_wire w = {0};
    size_t place = oly_wire_begin(&w, OLY_WIRE_GET);
    oly_wire_u8(&w, value != NULL);
    oly_wire_text(&w, value ? value : "");
    oly_wire_end(&w, place);
    channel_send(&g->channel, &w);
    return true;
}

static bool take_put(oly_read *fields)
{
    char key[PAIR_TEXT], value[PAIR_TEXT];
    oly_read_text(fields, key, sizeof key);
    oly_read_text(fields, value, sizeof value);
    return oly_read_done(fields) && pairs_put(key, value);
}

static void take_barrier(void)
{
    if (++meeting.barrier < meeting.n)
        return;
    meeting.barrier = 0;
    for (int k = 0; k < meeting.n; k++)
        if (meeting.of[k])
            send_text(meeting.of[k], OLY_WIRE_BARRIER, "", false);
}

/* The first process of a node tells it of those of its node. */
static bool take_abort(const guest *g, oly_read *fields)
{
    char text[256], line[700];
    oly_read_text(fields, text, sizeof text);
    uint32_t process = oly_read_u32(fields);
    if (!oly_read_done(fields) || process >= (uint32_t)meeting.n || meeting.of[process]->node != g->node)
        return false;
    const oly_card *card = &meeting.of[process]->card;
    snprintf(line, sizeof line, "process %d (pid %u on %s) %s; its job ends", card->process, card->pid, card->host,
             text);
    end_all(line, card->process);
    return true;
}

/* Messages between nodes begin with the process they are for. */
static bool take_passed(guest *g, oly_wire_kind kind, oly_read *fields)
{
    const unsigned char *bytes = fields->at;
    uint32_t process = oly_read_u32(fields);
    guest *to = kind == OLY_WIRE_FETCH          ? leader_of(process)
                : process < (uint32_t)meeting.n ? meeting.of[process]
                                                : NULL;
    bool allowed = !fields->bad && leads(g) && to && (kind != OLY_WIRE_RANK || to->node == g->node);
    if (allowed)
        pass(to, kind, bytes, (size_t)(fields->end - bytes));
    return allowed;
}

static bool take(guest *g, oly_wire_kind kind, oly_read *fields)
{
    switch (kind) {
    case OLY_WIRE_RANK:
    case OLY_WIRE_FETCH:
    case OLY_WIRE_FETCHED: return take_passed(g, kind, fields);
    case OLY_WIRE_FENCE: return take_fence(g, fields);
    case OLY_WIRE_PUT: return take_put(fields);
    case OLY_WIRE_GET: return take_get(g, fields);
    case OLY_WIRE_BARRIER: take_barrier(); return true;
    case OLY_WIRE_ABORT: return take_abort(g, fields);
    case OLY_WIRE_BYE:
        g->bye = true;
        release();
        return true;
    default: return false;
    }
}

/* -- connections ------------------------------------------------------------------------------------------------------ */

static bool has_place(const guest *g)
{
    return g->joined && g->card.process < meeting.n && meeting.of[g->card.process] == g;
}

static void lost(guest *g, double now)
{
    char line[700];
    if (!g->joined && !g->channel.trusted && strcmp(g->channel.why, "another secret") == 0)
        meeting.refused++;
    if (!has_place(g))
        return;
    int process = g->card.process;
    bool ended = meeting.running && !meeting.gone[process];
    if (!meeting.running) {
        fail(now, "process %d (pid %u on %s) ended while the processes were meeting", process, g->card.pid,
             g->card.host);
        return;
    }
    meeting.gone[process] = true;
    if (ended && !g->bye) {
        bool closed = strcmp(g->channel.why, CHANNEL_CLOSED) == 0;
        snprintf(line, sizeof line, "process %d (pid %u on %s) ended without oly_finalize%s%s; its job ends", process,
                 g->card.pid, g->card.host, closed ? "" : ": ", closed ? "" : g->channel.why);
        end_all(line, -1);
    }
    release();
}

static void serve(guest *g, double now)
{
    oly_wire_kind kind;
    oly_read fields;
    while (channel_next(&g->channel, &kind, &fields)) {
        if (!g->joined && kind == OLY_WIRE_JOIN)
            join(g, &fields, now);
        else if (!meeting.running || !has_place(g) || !take(g, kind, &fields))
            channel_close(&g->channel, "an unexpected message");
    }
}

static void accept_one(double now)
{
    int socket = accept4(meeting.socket, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    size_t strangers = 0;
    for (size_t k = 0; k < meeting.n_guests; k++)
        strangers += !meeting.guests[k]->joined;
    if (socket < 0)
        return;
    if (strangers >= MOST_STRANGERS + (size_t)(meeting.n - meeting.here)) {
        close(socket);
        return;
    }
    if (meeting.n_guests == meeting.room) {
        size_t room = 2 * meeting.room + 16;
        guest **larger = realloc(meeting.guests, room * sizeof *larger);
        if (larger) {
            meeting.guests = larger;
            meeting.room = room;
        }
    }
    guest *g = meeting.n_guests < meeting.room ? calloc(1, sizeof *g) : NULL;
    if (!g) {
        close(socket);
        return;
    }
    g->came = now;
    channel_open(&g->channel, socket, true, false);
    meeting.guests[meeting.n_guests++] = g;
}

size_t coordinator_sockets(void)
{
    return meeting.n_guests + 1;
}

size_t coordinator_poll(struct pollfd *fds, size_t room)
{
    size_t n = 0;
    for (; n < meeting.n_guests && n < room; n++)
        fds[n] =
            (struct pollfd){.fd = meeting.guests[n]->channel.stage == CLOSED ? -1 : meeting.guests[n]->channel.socket,
                            .events = channel_events(&meeting.guests[n]->channel)};
    if (n < room)
        fds[n++] = (struct pollfd){.fd = meeting.socket, .events = POLLIN};
    return n;
}

/* Guests that are gone and have no place in the job. */
static void sweep(void)
{
    size_t kept = 0;
    for (size_t k = 0; k < meeting.n_guests; k++) {
        guest *g = meeting.guests[k];
        if (g->channel.stage != CLOSED || (has_place(g) && meeting.running && !meeting.gone[g->card.process])) {
            meeting.guests[kept++] = g;
            continue;
        }
        bool keep_card = has_place(g) && meeting.running; /* its card is still looked at */
        channel_free(&g->channel);
        if (has_place(g) && !meeting.running)
            meeting.of[g->card.process] = NULL;
        if (!keep_card)
            free(g);
    }
    meeting.n_guests = kept;
}

void coordinator_move(const struct pollfd *fds, size_t n, double now)
{
    for (size_t k = 0; k + 1 < n; k++) {
        guest *g = meeting.guests[k];
        channel_move(&g->channel, fds[k].revents);
        serve(g, now);
        if (!g->joined && g->channel.stage != CLOSED && now - g->came > PROOF_SECONDS) {
            channel_close(&g->channel, "no proof in time");
            meeting.refused++;
        }
        if (g->channel.stage == CLOSED)
            lost(g, now);
    }
    if (n > 0 && fds[n - 1].revents)
        accept_one(now);
    sweep();
    if (!meeting.running && !meeting.failed && now > meeting.deadline)
        give_up(now);
}

bool coordinator_is_over(double now)
{
    if (meeting.failed)
        return now - meeting.failed_at > (meeting.here >= meeting.n ? 0.3 : LINGER_SECONDS);
    bool over = meeting.running;
    for (int k = 0; k < meeting.n && over; k++)
        over = meeting.gone[k] || meeting.of[k]->released;
    return over;
}
