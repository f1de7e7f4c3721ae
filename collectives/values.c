/* Values that this rank has fetched, kept for ranks that have no part of the arrays. See communicator.h. Small ones are sent to those
 * ranks at once, whether they will ask or not: the rank that has fetched may go on to MPI calls of the program's own, where nobody
 * answers. For larger ones they ask, and whoever has the value answers during its waits, its fetches, and now and then between calls;
 * at oly_finalize, where it waits for all, until the last has come.
 *
 * A rank that asks waits. So this rank sees that an answer will never come: when it comes to oly_finalize itself, or is stuck in a call
 * that the other has not made yet. Then all ranks are told. Ranks that ask each other in another order are left to the time limit: each
 * of them may be about to be answered. */
#include "divergence.h"
#include "core/error.h"
#include "core/option.h"
#include "core/text.h"
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { MOST_VALUES = 1 << 16, HEADER = 64, CHUNK = 1 << 30, DROPPED_KNOWN = 4096, MOST_SENT_AT_ONCE = 1 << 20 };

typedef struct value {
    struct value *newer, *older;
    int sends;   /* that MPI has not finished with */
    bool pushed; /* sent to all who have no part of it */
    /* as it is sent: */
    uint64_t id;
    uint64_t bytes;
    char data[];
} value;
enum { PUSH_HEAD = 2 * sizeof(uint64_t) };

/* A value that is on its way here. */
typedef struct arriving {
    struct arriving *next;
    value *value;
    MPI_Request request;
} arriving;

typedef struct ask {
    uint64_t id, bytes;
    uint64_t together; /* calls that both ranks have made together before */
    int32_t rank;
    int32_t again; /* what was sent at once has been dropped */
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
    value *value;
    answer head;
    size_t pushed; /* bytes that are sent at once */
    int n;
    MPI_Request request[];
} sending;

static struct {
    pthread_mutex_t lock;
    value *newest, *oldest; /* owned */
    int n;
    size_t bytes; /* of all */
    uint64_t dropped[DROPPED_KNOWN];
    uint64_t n_dropped;
    pending *asked;     /* owned: not answered yet */
    sending *sent;      /* owned */
    arriving *arriving; /* owned */
    size_t pushing;     /* bytes of values that MPI still sends at once */
    int64_t balance;    /* values sent at once less those received */
    bool ending;
} values = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* -- keeping --------------------------------------------------------------------------------------------- */

static size_t limit(void)
{
    return (size_t)oly_option.fetch_memory << 20;
}

static void remember_dropped_locked(uint64_t id)
{
    values.dropped[values.n_dropped++ % DROPPED_KNOWN] = id;
}

static bool was_dropped_locked(uint64_t id)
{
    for (uint64_t k = 0; k < values.n_dropped && k < DROPPED_KNOWN; k++)
        if (values.dropped[k] == id)
            return true;
    return false;
}

static void take_out_locked(value *v)
{
    *(v->newer ? &v->newer->older : &values.newest) = v->older;
    *(v->older ? &v->older->newer : &values.oldest) = v->newer;
    values.n--;
    values.bytes -= v->bytes + HEADER;
}

/* The newest stays, however large it is. */
static void drop_old_locked(void)
{
    while (values.n > 1 && (values.n > MOST_VALUES || values.bytes > limit()) && !values.oldest->sends) {
        value *v = values.oldest;
        take_out_locked(v);
        remember_dropped_locked(v->id);
        oly_release(v);
    }
}

static void put_in_locked(value *v)
{
    v->older = values.newest;
    v->newer = NULL;
    *(values.newest ? &values.newest->newer : &values.oldest) = v;
    values.newest = v;
    values.n++;
    values.bytes += v->bytes + HEADER;
    drop_old_locked();
}

static value *find_locked(uint64_t id)
{
    value *v = values.newest;
    while (v && v->id != id)
        v = v->older;
    return v;
}

static value *new_value(size_t bytes)
{
    value *v = oly_malloc(sizeof *v + bytes);
    if (v) {
        v->sends = 0;
        v->pushed = false;
        v->bytes = bytes;
    }
    return v;
}

static void forget_asks_locked(uint64_t id)
{
    for (pending **at = &values.asked; *at;) {
        pending *p = *at;
        if (p->ask.id != id || p->ask.again) {
            at = &p->next;
            continue;
        }
        *at = p->next;
        oly_release(p);
    }
}

/* To all ranks without a part of it, whoever asks; unless it is large, or MPI has too much to send already. */
static void push_locked(value *v, const bool *has_part)
{
    int n = oly_world_size();
    if (!has_part || v->bytes > MOST_SENT_AT_ONCE || values.pushing + v->bytes > limit())
        return;
    sending *s = oly_malloc(sizeof *s + sizeof *s->request * (size_t)n);
    if (!s)
        return;
    s->value = v;
    s->pushed = v->bytes;
    s->n = 0;
    for (int r = 0; r < n; r++)
        if (!has_part[r] && MPI_Isend(&v->id, (int)(PUSH_HEAD + v->bytes), MPI_BYTE, r, OLY_TAG_PUSH, oly_world_comm(),
                                      &s->request[s->n]) == MPI_SUCCESS)
            s->n++;
    values.balance += s->n;
    values.pushing += v->bytes;
    v->sends++;
    v->pushed = true;
    s->next = values.sent;
    values.sent = s;
    forget_asks_locked(v->id);
}

void oly_values_keep(uint64_t id, const void *data, size_t bytes, const bool *has_part)
{
    if (oly_world_comm() == MPI_COMM_NULL || id == 0)
        return;
    pthread_mutex_lock(&values.lock);
    value *v = find_locked(id) ? NULL : new_value(bytes);
    if (v) {
        v->id = id;
        memcpy(v->data, data, bytes);
        push_locked(v, has_part);
        put_in_locked(v);
    } else if (!find_locked(id)) {
        remember_dropped_locked(id);
    }
    pthread_mutex_unlock(&values.lock);
    oly_values_look();
}

/* -- receiving what was sent at once ---------------------------------------------------------------------- */

static void begin_arrivals_locked(void)
{
    for (int found = 1, bytes = 0; found;) {
        MPI_Message message;
        MPI_Status status;
        if (MPI_Iprobe(MPI_ANY_SOURCE, OLY_TAG_PUSH, oly_world_comm(), &found, &status) != MPI_SUCCESS || !found)
            return;
        MPI_Get_count(&status, MPI_BYTE, &bytes);
        value *v = new_value((size_t)bytes);
        arriving *a = v ? oly_malloc(sizeof *a) : NULL;
        if (!a ||
            MPI_Improbe(status.MPI_SOURCE, OLY_TAG_PUSH, oly_world_comm(), &found, &message, &status) != MPI_SUCCESS ||
            !found) {
            oly_release(v);
            oly_release(a);
            return; /* another time */
        }
        *a = (arriving){values.arriving, v, MPI_REQUEST_NULL};
        MPI_Imrecv(&v->id, bytes, MPI_BYTE, &message, &a->request);
        values.arriving = a;
    }
}

static void end_arrivals_locked(void)
{
    for (arriving **at = &values.arriving; *at;) {
        int done = 0;
        arriving *a = *at;
        MPI_Test(&a->request, &done, MPI_STATUS_IGNORE);
        if (!done) {
            at = &a->next;
            continue;
        }
        *at = a->next;
        values.balance--;
        put_in_locked(a->value);
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
        int done = 0;
        sending *s = *at;
        MPI_Testall(s->n, s->request, &done, MPI_STATUSES_IGNORE);
        if (!done) {
            at = &s->next;
            continue;
        }
        *at = s->next;
        s->value->sends--;
        values.pushing -= s->pushed;
        oly_release(s);
    }
}

/* What MPI refuses, the other will wait for until its time limit. */
static void send_locked(sending *s, const void *data, size_t bytes, int rank, int tag)
{
    if (MPI_Isend(data, (int)bytes, MPI_BYTE, rank, tag, oly_world_comm(), &s->request[s->n]) == MPI_SUCCESS)
        s->n++;
}

/* False: out of memory; another time. */
static bool answer_locked(const ask *a, value *v)
{
    size_t pieces = (v->bytes + CHUNK - 1) / CHUNK;
    sending *s = oly_malloc(sizeof *s + sizeof *s->request * (pieces + 1));
    if (!s)
        return false;
    s->value = v;
    s->head = (answer){v->bytes};
    s->pushed = 0;
    s->n = 0;
    v->sends++;
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
        value *v = find_locked(p->ask.id);
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
        const value *v = find_locked(a.id);
        if (v && v->pushed && !a.again) { /* it is on its way */
            oly_release(p);
            continue;
        }
        a.rank = status.MPI_SOURCE;
        a.call[sizeof a.call - 1] = a.what[sizeof a.what - 1] = 0;
        *p = (pending){values.asked, a};
        values.asked = p;
    }
}

/* That nobody will ever answer: all ranks are told. */
static void refuse_locked(const ask *a, const char *here)
{
    oly_text t = {0};
    int me = oly_world_rank();
    oly_text_add(&t, "rank %d asks rank %d in %s for the value of %s, of which it has no part; ", a->rank, me, a->call,
                 a->what);
    if (was_dropped_locked(a->id))
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
        if (values.ending || was_dropped_locked(p->ask.id))
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

/* Calls that this rank has made together with that one. */
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

/* What MPI has not finished with is left to it. */
void oly_values_forget(void)
{
    pthread_mutex_lock(&values.lock);
    if (oly_world_comm() != MPI_COMM_NULL)
        free_sent_locked();
    while (values.newest) {
        value *v = values.newest;
        take_out_locked(v);
        if (!v->sends)
            oly_release(v);
    }
    while (values.asked) {
        pending *p = values.asked;
        values.asked = p->next;
        oly_release(p);
    }
    values.sent = NULL;
    values.arriving = NULL;
    values.pushing = 0;
    values.balance = 0;
    values.n_dropped = 0;
    values.ending = false;
    pthread_mutex_unlock(&values.lock);
}

/* -- asking ---------------------------------------------------------------------------------------------- */

static bool was_dropped(uint64_t id)
{
    pthread_mutex_lock(&values.lock);
    bool yes = was_dropped_locked(id);
    pthread_mutex_unlock(&values.lock);
    return yes;
}

typedef struct question {
    ask ask;
    answer answer;
} question;

/* A value that was sent at once. */
static bool take_pushed(uint64_t id, void *data, size_t bytes)
{
    pthread_mutex_lock(&values.lock);
    const value *v = find_locked(id);
    bool there = v && v->bytes == bytes;
    if (there)
        memcpy(data, v->data, bytes);
    pthread_mutex_unlock(&values.lock);
    return there;
}

typedef struct wanted {
    uint64_t id;
    void *data;
    size_t bytes;
} wanted;

static bool has_come(void *context)
{
    const wanted *w = context;
    return take_pushed(w->id, w->data, w->bytes);
}

/* Sends the question and waits for the head of the answer, or for the value itself (*come). `q` is MPI's after a failure. */
static oly_status put(question *q, int rank, const char *call, wanted *w, bool *come)
{
    MPI_Request requests[2];
    int code = MPI_Irecv(&q->answer, sizeof q->answer, MPI_BYTE, rank, OLY_TAG_ANSWER, oly_world_comm(), &requests[0]);
    if (code == MPI_SUCCESS)
        code = MPI_Isend(&q->ask, sizeof q->ask, MPI_BYTE, rank, OLY_TAG_ASK, oly_world_comm(), &requests[1]);
    if (code != MPI_SUCCESS)
        return oly_mpi_failed(call, code);
    oly_status st = oly_world_wait_or(2, requests, rank, call, has_come, w);
    *come = st == OLY_OK && requests[0] != MPI_REQUEST_NULL;
    if (*come) { /* nobody answers what is on its way */
        MPI_Cancel(&requests[0]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
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
        oly_status st = oly_world_wait(1, &request, rank, call);
        if (st != OLY_OK) {
            if (request != MPI_REQUEST_NULL) /* the caller's memory must not be written to any more */
                MPI_Cancel(&request);
            return st;
        }
    }
    return OLY_OK;
}

oly_status oly_values_ask(int rank, uint64_t id, void *data, size_t bytes, const char *what)
{
    wanted w = {id, data, bytes};
    bool come;
    oly_values_look();
    if (has_come(&w))
        return OLY_OK;
    question *q = oly_calloc(1, sizeof *q);
    if (!q)
        return oly_out_of_memory(sizeof *q, "a question to another process");
    q->ask = (ask){.id = id, .bytes = bytes, .together = calls_with(rank), .rank = oly_world_rank()};
    q->ask.again = was_dropped(id);
    oly_place_text(NULL, q->ask.call, sizeof q->ask.call);
    snprintf(q->ask.what, sizeof q->ask.what, "%s", what);
    char call[sizeof q->ask.call];
    memcpy(call, q->ask.call, sizeof call);
    OLY_TRY(put(q, rank, call, &w, &come));
    size_t there = q->answer.bytes;
    oly_release(q);
    if (come)
        return OLY_OK;
    if (there != bytes)
        return oly_fail(OLY_DIVERGED, "rank %d has %zu bytes for %s, of which rank %d wants %zu", rank, there, what,
                        oly_world_rank(), bytes);
    return receive_value(data, bytes, rank, call);
}
