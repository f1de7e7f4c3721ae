/* SPDX-License-Identifier: BSD-3-Clause */
/* Values that this rank has fetched, kept for ranks that have no part of the arrays. See communicator.h.
 *
 * Small ones are sent to those ranks at once ("pushed"), whether they will ask or not: the rank that has fetched may continue
 * with MPI calls of the program's own, where it cannot answer. Only a few are in flight at a time, so a rank that never takes
 * them costs no memory. Other values are requested, and the rank that has the value answers during its waits, its fetches, and
 * from time to time between calls; in oly_finalize, where it waits for all, until the last rank has arrived.
 *
 * Pushes are numbered, and arrive in order. A request says which was the last to arrive, so that a value is never both pushed and
 * sent as an answer.
 *
 * A rank that asks waits. So this rank can see that an answer will never come: when it reaches oly_finalize itself, or is
 * blocked in a call that the other has not made yet. Then all ranks are notified. Ranks that ask each other in different orders
 * are left to the time limit: each of them may be about to be answered. */
#include "divergence.h"
#include "value_store.h"
#include "core/error.h"
#include "core/option.h"
#include "core/text.h"
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum {
    CHUNK = 1 << 30,
    MOST_PUSHED = 1 << 20, /* bytes of a value */
    MOST_PUSHING = 256,    /* in flight, and their bytes; as many bytes are kept at the receiver */
    MOST_PUSHING_BYTES = 16 << 20
};

/* A pushed value that is arriving. */
typedef struct arriving {
    struct arriving *next;
    kept_value *value;
    int from;
    MPI_Request request;
} arriving;

typedef struct ask {
    uint64_t id, bytes;
    uint64_t together;  /* calls that both ranks have made together before */
    uint64_t last_push; /* of this rank's pushes that has arrived there */
    int32_t rank;
    char call[96], what[96];
} ask;

typedef struct pending {
    struct pending *next;
    ask ask;
} pending;

typedef struct answer {
    uint64_t bytes;
} answer;

/* An answer and its value, in pieces. */
typedef struct sending {
    struct sending *next;
    kept_value *value;
    answer head;
    bool is_push;
    int n;
    MPI_Request request[];
} sending;

/* The value that this rank waits for. */
typedef struct wanted {
    uint64_t id;
    void *data;
    size_t bytes;
    bool come; /* pushed */
} wanted;

static struct {
    pthread_mutex_t lock;
    value_store kept;     /* for others */
    value_store arrived;  /* pushed by others */
    uint64_t *last_push;  /* [ranks] number of the last that has arrived; owned; NULL: none has */
    pending *asked;       /* owned: not answered yet */
    sending *sent;        /* owned */
    arriving *arriving;   /* owned, in order */
    wanted *wanted;       /* NULL: nothing */
    uint64_t pushes;      /* ever begun */
    int pushing;          /* of them in flight */
    size_t pushing_bytes; /* of these */
    int64_t balance;      /* messages of pushes sent less those received */
    bool ending;
} values = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* -- keeping --------------------------------------------------------------------------------------------- */

static void forget_asks_locked(uint64_t id)
{
    for (pending **at = &values.asked; *at;) {
        pending *p = *at;
        if (p->ask.id != id) {
            at = &p->next;
            continue;
        }
        *at = p->next;
        oly_release(p);
    }
}

/* To all ranks without a part of it. Sent synchronously, so that a completed send has arrived. */
static void push_locked(kept_value *v, const bool *has_part)
{
    int n = oly_world_size();
    if (!has_part || v->bytes > MOST_PUSHED || values.pushing == MOST_PUSHING ||
        values.pushing_bytes + v->bytes > MOST_PUSHING_BYTES)
        return;
    sending *s = oly_malloc(sizeof *s + sizeof *s->request * (size_t)n);
    if (!s)
        return;
    *s = (sending){.next = values.sent, .value = v, .is_push = true};
    v->push = ++values.pushes;
    v->uses++;
    for (int r = 0; r < n; r++)
        if (!has_part[r] && MPI_Issend(&v->id, (int)(VALUE_HEAD + v->bytes), MPI_BYTE, r, OLY_TAG_PUSH,
                                       oly_world_comm(), &s->request[s->n]) == MPI_SUCCESS)
            s->n++;
    values.sent = s;
    values.pushing++;
    values.pushing_bytes += v->bytes;
    values.balance += s->n;
    forget_asks_locked(v->id);
}

void oly_values_keep(uint64_t id, const void *data, size_t bytes, const bool *has_part)
{
    if (oly_world_comm() == MPI_COMM_NULL || id == 0)
        return;
    oly_values_look();
    pthread_mutex_lock(&values.lock);
    values.kept.most = (size_t)oly_option.fetch_memory << 20;
    kept_value *known = value_store_find(&values.kept, id), *v = known ? NULL : value_new(bytes);
    if (v) {
        v->id = id;
        memcpy(v->data, data, bytes);
        push_locked(v, has_part);
        value_store_put(&values.kept, v);
    } else if (!known) {
        value_store_note_dropped(&values.kept, id);
    }
    pthread_mutex_unlock(&values.lock);
    oly_values_look();
}

/* -- what arrives ---------------------------------------------------------------------------------------- */

/* False: out of memory; another time. */
static bool begin_arrival_locked(const MPI_Status *status)
{
    int bytes = 0, found = 0;
    MPI_Message message;
    if (!values.last_push)
        values.last_push = oly_calloc((size_t)oly_world_size(), sizeof *values.last_push);
    MPI_Get_count(status, MPI_BYTE, &bytes);
    kept_value *v = values.last_push ? value_new((size_t)bytes - VALUE_HEAD) : NULL;
    arriving *a = v ? oly_malloc(sizeof *a) : NULL;
    if (a &&
        MPI_Improbe(status->MPI_SOURCE, OLY_TAG_PUSH, oly_world_comm(), &found, &message, MPI_STATUS_IGNORE) ==
            MPI_SUCCESS &&
        found) {
        arriving **last = &values.arriving;
        while (*last)
            last = &(*last)->next;
        *a = (arriving){NULL, v, status->MPI_SOURCE, MPI_REQUEST_NULL};
        MPI_Imrecv(&v->id, bytes, MPI_BYTE, &message, &a->request);
        *last = a;
        return true;
    }
    oly_release(v);
    oly_release(a);
    return false;
}

static void begin_arrivals_locked(void)
{
    int found = 1;
    MPI_Status status;
    while (MPI_Iprobe(MPI_ANY_SOURCE, OLY_TAG_PUSH, oly_world_comm(), &found, &status) == MPI_SUCCESS && found)
        if (!begin_arrival_locked(&status))
            return;
}

/* Passes it to a waiting request, so that it cannot be dropped before; otherwise it is kept for later. */
static void arrive_locked(kept_value *v, int from)
{
    wanted *w = values.wanted;
    values.balance--;
    if (v->push > values.last_push[from])
        values.last_push[from] = v->push;
    if (w && w->id == v->id && w->bytes == v->bytes) {
        memcpy(w->data, v->data, v->bytes);
        w->come = true;
    }
    v->uses = 0;
    values.arrived.most = MOST_PUSHING_BYTES;
    value_store_put(&values.arrived, v);
}

/* Those of one rank in their order: the last to arrive implies all before it. */
static bool is_behind_another_locked(const arriving *a)
{
    const arriving *b = values.arriving;
    while (b != a && b->from != a->from)
        b = b->next;
    return b != a;
}

static void end_arrivals_locked(void)
{
    for (arriving **at = &values.arriving; *at;) {
        int done = 0;
        arriving *a = *at;
        if (!is_behind_another_locked(a))
            MPI_Test(&a->request, &done, MPI_STATUS_IGNORE);
        if (!done) {
            at = &a->next;
            continue;
        }
        *at = a->next;
        arrive_locked(a->value, a->from);
        oly_release(a);
    }
}

int64_t oly_values_balance(void)
{
    return values.balance;
}

/* -- answering ------------------------------------------------------------------------------------------- */

static void free_sent_locked(void)
{
    for (sending **at = &values.sent; *at;) {
        bool done = true;
        sending *s = *at;
        oly_world_test(s->n, s->request, &done);
        if (!done) {
            at = &s->next;
            continue;
        }
        *at = s->next;
        s->value->uses--;
        values.pushing -= s->is_push;
        values.pushing_bytes -= s->is_push ? s->value->bytes : 0;
        oly_release(s);
    }
}

/* If MPI refuses, the other rank waits until its time limit. */
static void send_locked(sending *s, const void *data, size_t bytes, int rank, int tag)
{
    if (MPI_Isend(data, (int)bytes, MPI_BYTE, rank, tag, oly_world_comm(), &s->request[s->n]) == MPI_SUCCESS)
        s->n++;
}

/* False: out of memory; another time. */
static bool answer_locked(const ask *a, kept_value *v)
{
    size_t pieces = (v->bytes + CHUNK - 1) / CHUNK;
    sending *s = oly_malloc(sizeof *s + sizeof *s->request * (pieces + 1));
    if (!s)
        return false;
    *s = (sending){.value = v, .head = {v->bytes}};
    v->uses++;
    send_locked(s, &s->head, sizeof s->head, a->rank, OLY_TAG_ANSWER);
    for (size_t at = 0; at < v->bytes; at += CHUNK)
        send_locked(s, v->data + at, v->bytes - at < CHUNK ? v->bytes - at : CHUNK, a->rank, OLY_TAG_VALUE);
    s->next = values.sent;
    values.sent = s;
    return true;
}

static void answer_all_locked(void)
{
    for (pending **at = &values.asked; *at;) {
        pending *p = *at;
        kept_value *v = value_store_find(&values.kept, p->ask.id);
        if (v && answer_locked(&p->ask, v)) {
            *at = p->next;
            oly_release(p);
        } else {
            at = &p->next;
        }
    }
}

static void receive_asks_locked(void)
{
    for (int found = 1; found;) {
        MPI_Message message;
        MPI_Status status;
        if (MPI_Improbe(MPI_ANY_SOURCE, OLY_TAG_ASK, oly_world_comm(), &found, &message, &status) != MPI_SUCCESS ||
            !found)
            return;
        ask a = {0};
        MPI_Mrecv(&a, sizeof a, MPI_BYTE, &message, MPI_STATUS_IGNORE);
        pending *p = oly_malloc(sizeof *p);
        if (!p)
            continue; /* the other gives up at its time limit */
        const kept_value *v = value_store_find(&values.kept, a.id);
        if (v && v->push > a.last_push) { /* it is in flight */
            oly_release(p);
            continue;
        }
        a.rank = status.MPI_SOURCE;
        a.call[sizeof a.call - 1] = a.what[sizeof a.what - 1] = 0;
        *p = (pending){values.asked, a};
        values.asked = p;
    }
}

/* Notifies all ranks that nobody will ever answer. */
static void refuse_locked(const ask *a, const char *here)
{
    oly_text t = {0};
    int me = oly_world_rank();
    oly_text_add(&t, "rank %d asks rank %d in %s for the value of %s, of which it has no part; ", a->rank, me, a->call,
                 a->what);
    if (value_store_has_dropped(&values.kept, a->id))
        oly_text_add(
            &t,
            "rank %d has fetched it, but dropped it since: it keeps %lld MiB of values; fetch it earlier, or raise "
            "OLYMPUS_FETCH_MEMORY",
            me, (long long)oly_option.fetch_memory);
    else
        oly_text_add(
            &t,
            "rank %d is in %s without having fetched this array: the ranks that have parts of it must fetch it, "
            "too, not after calls that all make, and all ranks must make it by the same calls",
            me, here);
    oly_divergence_decide(OLY_DIVERGED, oly_text_chars(&t));
    oly_text_free(&t);
}

void oly_values_look(void)
{
    if (oly_world_comm() == MPI_COMM_NULL)
        return;
    pthread_mutex_lock(&values.lock);
    if (values.sent)
        free_sent_locked();
    begin_arrivals_locked();
    if (values.arriving)
        end_arrivals_locked();
    receive_asks_locked();
    if (values.asked)
        answer_all_locked();
    for (const pending *p = values.asked; p; p = p->next)
        if (values.ending || value_store_has_dropped(&values.kept, p->ask.id))
            refuse_locked(&p->ask, "oly_finalize");
    pthread_mutex_unlock(&values.lock);
}

void oly_values_serve(void)
{
    enum { CALLS = 32 };
    static _Atomic unsigned calls;
    if (atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed) % CALLS == 0)
        oly_values_look();
}

/* The calls that this rank has made together with that one. */
static uint64_t calls_with(int rank)
{
    uint64_t n = 0;
    for (const oly_process_set *s = oly_process_set_first(); s; s = s->next)
        n += oly_process_set_has(s, rank) ? s->calls : 0;
    return n;
}

void oly_values_stuck(const char *call)
{
    pthread_mutex_lock(&values.lock);
    for (const pending *p = values.asked; p; p = p->next)
        if (calls_with(p->ask.rank) > p->ask.together)
            refuse_locked(&p->ask, call);
    pthread_mutex_unlock(&values.lock);
}

void oly_values_end(void)
{
    pthread_mutex_lock(&values.lock);
    values.ending = true;
    pthread_mutex_unlock(&values.lock);
}

/* Memory that MPI still uses is left to it. */
void oly_values_forget(void)
{
    pthread_mutex_lock(&values.lock);
    if (oly_world_comm() != MPI_COMM_NULL)
        free_sent_locked();
    value_store_clear(&values.kept);
    value_store_clear(&values.arrived);
    oly_release(values.last_push);
    values.last_push = NULL;
    while (values.asked) {
        pending *p = values.asked;
        values.asked = p->next;
        oly_release(p);
    }
    values.sent = NULL;
    values.arriving = NULL;
    values.pushes = 0;
    values.pushing = 0;
    values.pushing_bytes = 0;
    values.balance = 0;
    values.ending = false;
    pthread_mutex_unlock(&values.lock);
}

/* -- asking ---------------------------------------------------------------------------------------------- */

typedef struct question {
    ask ask;
    answer answer;
} question;

/* Sets the requested value (w: NULL: none), and takes it if it has already arrived. */
static void want(wanted *w, uint64_t *last_push, int rank)
{
    oly_values_look();
    pthread_mutex_lock(&values.lock);
    values.wanted = w;
    const kept_value *v = w ? value_store_find(&values.arrived, w->id) : NULL;
    if (v && v->bytes == w->bytes) {
        memcpy(w->data, v->data, w->bytes);
        w->come = true;
    }
    *last_push = values.last_push ? values.last_push[rank] : 0;
    pthread_mutex_unlock(&values.lock);
}

static bool has_come(void *context)
{
    const wanted *w = context;
    pthread_mutex_lock(&values.lock);
    bool come = w->come;
    pthread_mutex_unlock(&values.lock);
    return come;
}

/* Sends the request and waits for the head of the answer, or for the value itself. `q` is left to MPI after a failure. */
static oly_status put(question *q, int rank, const char *call, wanted *w)
{
    MPI_Request requests[2];
    int code = MPI_Irecv(&q->answer, sizeof q->answer, MPI_BYTE, rank, OLY_TAG_ANSWER, oly_world_comm(), &requests[0]);
    if (code == MPI_SUCCESS)
        code = MPI_Isend(&q->ask, sizeof q->ask, MPI_BYTE, rank, OLY_TAG_ASK, oly_world_comm(), &requests[1]);
    if (code != MPI_SUCCESS)
        return oly_mpi_failed(call, code);
    oly_status st = oly_world_wait_or(2, requests, (int[]){rank, rank}, call, has_come, w);
    if (st == OLY_OK && w->come) { /* a value in flight is not answered */
        MPI_Cancel(&requests[0]);
        for (int k = 0; k < 2; k++)
            MPI_Wait(&requests[k], MPI_STATUS_IGNORE);
    }
    return st;
}

static oly_status receive_value(char *data, size_t bytes, int rank, const char *call)
{
    for (size_t at = 0; at < bytes; at += CHUNK) {
        MPI_Request request;
        size_t piece = bytes - at < CHUNK ? bytes - at : CHUNK;
        int code = MPI_Irecv(data + at, (int)piece, MPI_BYTE, rank, OLY_TAG_VALUE, oly_world_comm(), &request);
        if (code != MPI_SUCCESS)
            return oly_mpi_failed(call, code);
        oly_status st = oly_world_wait(1, &request, &rank, call);
        if (st != OLY_OK) {
            if (request != MPI_REQUEST_NULL) /* the caller's memory must no longer be written */
                MPI_Cancel(&request);
            return st;
        }
    }
    return OLY_OK;
}

static oly_status ask_for(wanted *w, uint64_t last_push, int rank, const char *what)
{
    question *q = oly_calloc(1, sizeof *q);
    if (!q)
        return oly_out_of_memory(sizeof *q, "a question to another process");
    q->ask = (ask){
        .id = w->id, .bytes = w->bytes, .together = calls_with(rank), .last_push = last_push, .rank = oly_world_rank()};
    oly_place_text(NULL, q->ask.call, sizeof q->ask.call);
    snprintf(q->ask.what, sizeof q->ask.what, "%s", what);
    char call[sizeof q->ask.call];
    memcpy(call, q->ask.call, sizeof call);
    OLY_TRY(put(q, rank, call, w));
    size_t there = q->answer.bytes;
    oly_release(q);
    if (w->come)
        return OLY_OK;
    if (there != w->bytes)
        return oly_fail(OLY_DIVERGED, "rank %d has %zu bytes for %s, of which rank %d wants %zu", rank, there, what,
                        oly_world_rank(), w->bytes);
    return receive_value(w->data, w->bytes, rank, call);
}

oly_status oly_values_ask(int rank, uint64_t id, void *data, size_t bytes, const char *what)
{
    wanted w = {id, data, bytes, false};
    uint64_t last_push;
    want(&w, &last_push, rank);
    oly_status st = w.come ? OLY_OK : ask_for(&w, last_push, rank, what);
    want(NULL, &last_push, rank);
    return st;
}
