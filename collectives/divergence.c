/* SPDX-License-Identifier: BSD-3-Clause */
/* Notices between ranks that may have diverged, and the verdict. See divergence.h. Nothing here runs in normal operation except
 * a check for notices during long waits; so it may allocate. */
#include "divergence.h"
#include "core/error.h"
#include "core/events.h"
#include "core/machine.h"
#include "core/text.h"
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <time.h>

enum { CALLS, VERDICT, TOLD }; /* kinds of notices */
enum { ALL_DIRECTLY = 64 };    /* in larger jobs a verdict is forwarded from rank to rank */
static const int64_t MOMENT_NS = 700000000, FIRST_ASK_NS = 100000000;

typedef struct notice {
    int32_t kind, rank;     /* who sent it */
    int32_t status;         /* VERDICT */
    uint64_t set, calls;    /* CALLS: made on this set */
    int64_t bytes;          /* of what follows: the recorded calls, or the text */
    oly_failed_call failed; /* CALLS */
} notice;

/* A call in a message. */
typedef struct noted {
    uint64_t hash;
    uint32_t program;
    uint16_t operand[OLY_NOTED_OPERANDS];
    uint8_t n_operands, by_contents;
    char text[86];
} noted;

typedef struct parcel {
    struct parcel *next;
    MPI_Request request;
    int rank;
    notice head;
    char body[]; /* head.bytes */
} parcel;

static struct {
    pthread_mutex_t lock;
    parcel *sent;     /* owned: MPI may still read them */
    parcel *arriving; /* owned: MPI writes to it; NULL: none */
    /* Owned, as many as oly_divergence_claims: the last calls of each other rank and set that could not be compared to
     * their end. */
    parcel *claims;
    char verdict[1400];
    oly_status status; /* of the verdict */
    int behind;        /* 1 + a rank that has not made all calls that this one has made with it; 0: none known */
    char ahead[86];    /* the first of these */
    bool known;
    int64_t balance;       /* notices sent less those received */
    int told;              /* ranks that have reported the verdict */
    bool reported;         /* this one has */
    int64_t began, asking; /* of the wait that asks, and the time of its next inquiry */
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

atomic_int oly_divergence_claims;

int64_t oly_divergence_balance(void)
{
    return state.balance;
}
bool oly_divergence_known(void)
{
    return __atomic_load_n(&state.known, __ATOMIC_ACQUIRE);
}

oly_status oly_divergence_fail(void)
{
    return oly_fail(state.status, "%s", state.verdict);
}

/* -- sending --------------------------------------------------------------------------------------------- */

static void free_sent_locked(void)
{
    for (parcel **at = &state.sent; *at;) {
        int done = 0;
        parcel *p = *at;
        MPI_Test(&p->request, &done, MPI_STATUS_IGNORE);
        if (done) {
            *at = p->next;
            oly_release(p);
        } else {
            at = &p->next;
        }
    }
}

static parcel *new_parcel(int32_t kind, int64_t bytes)
{
    parcel *p = oly_malloc(sizeof *p + (size_t)bytes);
    if (p) {
        memset(&p->head, 0, sizeof p->head);
        p->head.kind = kind;
        p->head.rank = oly_world_rank();
        p->head.bytes = bytes;
    }
    return p;
}

/* Takes ownership of the parcel; NULL allowed: out of memory, another rank will notify. */
static void send_locked(parcel *p, int rank)
{
    if (!p)
        return;
    free_sent_locked();
    int code = MPI_Isend(&p->head, (int)(sizeof p->head + (size_t)p->head.bytes), MPI_BYTE, rank, OLY_TAG_NOTICE,
                         oly_world_comm(), &p->request);
    if (code != MPI_SUCCESS) {
        oly_release(p);
        return;
    }
    p->next = state.sent;
    state.sent = p;
    state.balance++;
}

static void note_call(const oly_called *c, noted *to)
{
    memset(to, 0, sizeof *to);
    to->hash = c->hash;
    to->program = c->program;
    memcpy(to->operand, c->operand, sizeof to->operand);
    to->n_operands = c->n_operands;
    to->by_contents = c->by_contents;
    oly_site_text(&c->site, to->text, sizeof to->text);
}

static parcel *calls_of(const oly_process_set *s)
{
    uint64_t first = oly_process_set_oldest(s), n = s->calls + 1 - first;
    parcel *p = new_parcel(CALLS, (int64_t)(n * sizeof(noted)));
    if (p) {
        p->head.set = s->key;
        p->head.calls = s->calls;
        p->head.failed = s->failed;
        for (uint64_t k = 0; k < n; k++) {
            noted to;
            note_call(oly_process_set_call(s, first + k), &to);
            memcpy(p->body + k * sizeof to, &to, sizeof to);
        }
    }
    return p;
}

static void ask_locked(int rank)
{
    for (const oly_process_set *s = oly_process_set_first(); s; s = s->next)
        if (oly_process_set_has(s, rank))
            send_locked(calls_of(s), rank);
}

void oly_divergence_ask(int rank)
{
    pthread_mutex_lock(&state.lock);
    if (rank != oly_world_rank())
        ask_locked(rank);
    pthread_mutex_unlock(&state.lock);
}

bool oly_divergence_is_time(int64_t began)
{
    if (began == 0)
        return false;
    int64_t waited = now_ns() - began;
    if (began != state.began) {
        state.began = began;
        state.asking = FIRST_ASK_NS;
    }
    if (waited < state.asking)
        return false;
    while (state.asking <= waited)
        state.asking *= 8;
    return true;
}

/* To all ranks; in large jobs to some, which forward it. */
static void pass_on_locked(oly_status status, const char *text)
{
    int n = oly_world_size(), me = oly_world_rank();
    int64_t bytes = (int64_t)strlen(text) + 1;
    for (int step = 1; step < n; step = n <= ALL_DIRECTLY ? step + 1 : 2 * step) {
        parcel *p = new_parcel(VERDICT, bytes);
        if (p) {
            p->head.status = (int32_t)status;
            memcpy(p->body, text, (size_t)bytes);
        }
        send_locked(p, (me + step) % n);
    }
}

static void decide_locked(oly_status status, const char *text)
{
    if (state.known)
        return;
    snprintf(state.verdict, sizeof state.verdict, "%s", text);
    state.status = status;
    oly_event_text(OLY_EVENT_VERDICT, OLY_EVENT_INSTANT, text, status, oly_world_rank());
    __atomic_store_n(&state.known, true, __ATOMIC_RELEASE);
    pass_on_locked(status, state.verdict);
}

void oly_divergence_decide(oly_status status, const char *text)
{
    pthread_mutex_lock(&state.lock);
    decide_locked(status, text);
    pthread_mutex_unlock(&state.lock);
}

/* -- comparing ------------------------------------------------------------------------------------------- */

static const char same_order[] = "all ranks must issue the same operations in the same order",
                  same_data[] = "give the same data everywhere, or each process's own part with oly_from_local";

/* The difference between two calls of the same name; returns the remedy. */
static const char *explain(oly_text *t, const noted *a, const noted *b)
{
    if (a->program != b->program) {
        oly_text_add(t, strcmp(a->text, b->text) == 0
                            ? ", with another operation, constant, shape, type or sharding inside"
                            : "");
        return same_order;
    }
    for (int k = 0; k < a->n_operands && k < b->n_operands; k++) {
        if (a->operand[k] == b->operand[k])
            continue;
        if (a->by_contents >> k & b->by_contents >> k & 1) {
            oly_text_add(t, ", whose array %d, of which each process made its own copy, has different values", k);
            return same_data;
        }
        oly_text_add(t, ", whose array %d is a different one, made by another call%s", k,
                     strstr(a->text, "oly_device_put")
                         ? " (a stand-in is for arrays of whose history this process has no handle: docs/processes.md)"
                         : "");
        return same_order;
    }
    return same_order;
}

/* Has one of two ranks failed alone, before the first call that differs? Then that is the verdict. */
static bool decide_failure_locked(const oly_failed_call *mine, const noted *my_next, int other,
                                  const oly_failed_call *theirs, const noted *their_next, uint64_t number)
{
    bool here = mine->times > 0 && mine->after == number - 1, there = theirs->times > 0 && theirs->after == number - 1;
    if (here == there && (!here || mine->times == theirs->times)) /* on neither, or on both */
        return false;
    int me = oly_world_rank();
    bool is_mine = here && (!there || mine->times > theirs->times);
    const oly_failed_call *f = is_mine ? mine : theirs;
    oly_text t = {0};
    oly_text_add(&t, "rank %d has failed in %s; it went on to %s, but rank %d to %s", is_mine ? me : other, f->text,
                 is_mine ? my_next->text : their_next->text, is_mine ? other : me,
                 is_mine ? their_next->text : my_next->text);
    decide_locked((oly_status)f->status, oly_text_chars(&t));
    oly_text_free(&t);
    return true;
}

static void decide_between_locked(const noted *mine, int other, const noted *theirs, uint64_t number, bool or_before)
{
    oly_text t = {0};
    int me = oly_world_rank(), low = me < other ? me : other, high = me < other ? other : me;
    const noted *of_low = me < other ? mine : theirs, *of_high = me < other ? theirs : mine;
    oly_text_add(&t,
                 "ranks %d and %d run different programs: their call %llu together is %s on rank %d and %s on rank %d",
                 low, high, (unsigned long long)number, of_low->text, low, of_high->text, high);
    const char *remedy = explain(&t, of_low, of_high);
    if (or_before)
        oly_text_add(&t, " (or one before it: only the last %d calls are kept)", OLY_CALLS_KEPT);
    oly_text_add(&t, "; %s", remedy);
    decide_locked(OLY_DIVERGED, oly_text_chars(&t));
    oly_text_free(&t);
}

/* Call `number` of those in a parcel. */
static noted claimed(const parcel *p, uint64_t number)
{
    noted c;
    uint64_t n = (uint64_t)p->head.bytes / sizeof c, first = p->head.calls + 1 - n;
    memcpy(&c, p->body + (number - first) * sizeof c, sizeof c);
    return c;
}

/* Compares the calls that both have made; true: to the parcel's end. */
static bool compare_locked(const parcel *p)
{
    const oly_process_set *s = oly_process_set_find(p->head.set);
    if (!s)
        return false;
    uint64_t n = (uint64_t)p->head.bytes / sizeof(noted), first = p->head.calls + 1 - n;
    uint64_t oldest = oly_process_set_oldest(s), last = s->calls < p->head.calls ? s->calls : p->head.calls;
    uint64_t k = oldest > first ? oldest : first;
    bool ended = last == p->head.calls;
    if (k <= last && claimed(p, last).hash != oly_process_set_call(s, last)->hash) {
        uint64_t begin = k;
        while (claimed(p, k).hash == oly_process_set_call(s, k)->hash)
            k++;
        noted theirs = claimed(p, k), mine;
        note_call(oly_process_set_call(s, k), &mine);
        if (!decide_failure_locked(&s->failed, &mine, p->head.rank, &p->head.failed, &theirs, k))
            decide_between_locked(&mine, p->head.rank, &theirs, k, k == begin && k > 1);
        return true;
    }
    if (s->calls > p->head.calls && p->head.calls + 1 >= oldest) {
        state.behind = p->head.rank + 1;
        oly_site_text(&oly_process_set_call(s, p->head.calls + 1)->site, state.ahead, sizeof state.ahead);
    }
    return ended;
}

oly_status oly_divergence_compare(const oly_process_set *s)
{
    pthread_mutex_lock(&state.lock);
    for (parcel **at = &state.claims; *at;) {
        parcel *p = *at;
        if (p->head.set == s->key && compare_locked(p)) {
            *at = p->next;
            atomic_fetch_sub(&oly_divergence_claims, 1);
            oly_release(p);
        } else {
            at = &p->next;
        }
    }
    pthread_mutex_unlock(&state.lock);
    return oly_divergence_known() ? oly_divergence_fail() : OLY_OK;
}

/* Replaces the calls that a rank sent before. */
static void keep_claim_locked(parcel *p)
{
    parcel **at = &state.claims;
    while (*at && ((*at)->head.rank != p->head.rank || (*at)->head.set != p->head.set))
        at = &(*at)->next;
    parcel *before = *at;
    p->next = before ? before->next : NULL;
    *at = p;
    if (!before)
        atomic_fetch_add(&oly_divergence_claims, 1);
    oly_release(before);
}

/* -- receiving ------------------------------------------------------------------------------------------- */

/* Takes ownership of the parcel. */
static void read_locked(parcel *p)
{
    state.balance--;
    p->head.failed.text[sizeof p->head.failed.text - 1] = 0;
    if (p->head.kind == TOLD)
        state.told++;
    if (p->head.kind == VERDICT && p->head.bytes > 0) {
        p->body[p->head.bytes - 1] = 0;
        bool known = p->head.status > OLY_OK && p->head.status < OLY_N_STATUS;
        decide_locked(known ? (oly_status)p->head.status : OLY_DIVERGED, p->body);
    }
    if (p->head.kind == CALLS && !compare_locked(p))
        keep_claim_locked(p);
    else
        oly_release(p);
}

/* The next notice, if one has arrived; its contents may take longer. */
static bool begin_receiving_locked(void)
{
    MPI_Status status;
    MPI_Message message;
    int found = 0, bytes = 0;
    MPI_Improbe(MPI_ANY_SOURCE, OLY_TAG_NOTICE, oly_world_comm(), &found, &message, &status);
    if (!found)
        return false;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    size_t room = sizeof(parcel) + (size_t)bytes;
    parcel *p = oly_malloc(room);
    if (!p) { /* it is lost; the sender will ask again, or give up */
        MPI_Mrecv(NULL, 0, MPI_BYTE, &message, MPI_STATUS_IGNORE);
        state.balance--;
        return false;
    }
    MPI_Imrecv(&p->head, bytes, MPI_BYTE, &message, &p->request);
    state.arriving = p;
    return true;
}

static void receive_locked(void)
{
    for (;;) {
        int done = 0;
        if (!state.arriving && !begin_receiving_locked())
            return;
        parcel *p = state.arriving;
        MPI_Test(&p->request, &done, MPI_STATUS_IGNORE);
        if (!done)
            return;
        state.arriving = NULL;
        read_locked(p);
    }
}

oly_status oly_divergence_look(void)
{
    if (oly_world_comm() == MPI_COMM_NULL)
        return OLY_OK;
    oly_values_look();
    pthread_mutex_lock(&state.lock);
    receive_locked();
    pthread_mutex_unlock(&state.lock);
    return oly_divergence_known() ? oly_divergence_fail() : OLY_OK;
}

/* Long enough for every rank to run, also where many share a core. */
static int64_t moment_ns(void)
{
    int cores = oly_machine_get()->cores, each = oly_world_core_ranks() / (4 * (cores > 0 ? cores : 1));
    return MOMENT_NS * (each < 1 ? 1 : each > 16 ? 16 : each);
}

/* -- coming apart ---------------------------------------------------------------------------------------- */

void oly_divergence_failed(oly_status status)
{
    if (oly_world_comm() == MPI_COMM_NULL || oly_divergence_known())
        return;
    char place[160];
    oly_place_text(NULL, place, sizeof place);
    pthread_mutex_lock(&state.lock);
    for (oly_process_set *s = oly_process_set_first(); s; s = s->next) {
        oly_failed_call *f = &s->failed;
        f->times = f->times > 0 && f->after == s->issued ? f->times + 1 : 1;
        f->after = s->issued;
        f->status = (int32_t)status;
        snprintf(f->text, sizeof f->text, "%s: %s", place, oly_pending_message());
    }
    pthread_mutex_unlock(&state.lock);
}

/* Waits for a moment for a verdict. */
static void await_verdict(void)
{
    for (int64_t end = now_ns() + moment_ns(); !oly_divergence_known() && now_ns() < end;) {
        pthread_mutex_lock(&state.lock);
        receive_locked();
        pthread_mutex_unlock(&state.lock);
        sched_yield();
    }
}

/* Without the calls of the other side: the information of the two tickets. */
static void compose(oly_text *t, int peer, const oly_ticket *mine, const oly_ticket *theirs)
{
    int here = oly_world_rank();
    if (strcmp(mine->call, theirs->call) != 0)
        oly_text_add(t, "rank %d is in %s, rank %d in %s: %s", here, mine->call, peer, theirs->call, same_order);
    else if (mine->sequence != theirs->sequence)
        oly_text_add(t, "rank %d is in %s, its call %llu, rank %d in %s, its call %llu: %s", here, mine->call,
                     (unsigned long long)(mine->sequence >> OLY_TICKET_STEP_BITS), peer, theirs->call,
                     (unsigned long long)(theirs->sequence >> OLY_TICKET_STEP_BITS), same_order);
    else
        oly_text_add(t,
                     "rank %d is in %s, rank %d in %s, but with other shapes, types, shardings or values that "
                     "the plan depends on: %s",
                     here, mine->call, peer, theirs->call, same_order);
}

/* A call that one of the two has made with the other, which has not reached it: in calls of different sets no two calls differ. */
static void add_calls_of_one_locked(oly_text *t, int peer)
{
    for (const parcel *p = state.claims; p; p = p->next) {
        const oly_process_set *s = oly_process_set_find(p->head.set);
        uint64_t first = p->head.calls + 1 - (uint64_t)p->head.bytes / sizeof(noted);
        if (p->head.rank != peer || !s || p->head.calls <= s->calls || s->calls + 1 < first)
            continue;
        noted theirs = claimed(p, s->calls + 1);
        oly_text_add(t, "; rank %d has called %s, rank %d has not", peer, theirs.text, oly_world_rank());
    }
    if (state.behind == peer + 1)
        oly_text_add(t, "; rank %d has called %s, rank %d has not", oly_world_rank(), state.ahead, peer);
}

oly_status oly_divergence_met(int peer, const oly_ticket *mine, const oly_ticket *theirs)
{
    oly_text t = {0};
    compose(&t, peer, mine, theirs);
    if (mine->set == 0) { /* calls are not counted */
        oly_fail(OLY_DIVERGED, "%s", oly_text_chars(&t));
        oly_text_free(&t);
        return OLY_DIVERGED;
    }
    oly_divergence_ask(peer);
    await_verdict();
    pthread_mutex_lock(&state.lock);
    if (!state.known)
        add_calls_of_one_locked(&t, peer);
    decide_locked(OLY_DIVERGED, oly_text_chars(&t));
    pthread_mutex_unlock(&state.lock);
    oly_text_free(&t);
    return oly_divergence_fail();
}

oly_status oly_divergence_search(const char *call)
{
    pthread_mutex_lock(&state.lock);
    for (const oly_process_set *s = oly_process_set_first(); s; s = s->next)
        if (s->me > 0)
            send_locked(calls_of(s), s->ranks[0]);
    pthread_mutex_unlock(&state.lock);
    await_verdict();
    pthread_mutex_lock(&state.lock);
    if (!state.known) {
        oly_text t = {0};
        oly_text_add(&t, "%s: the ranks have not made the same calls; %s", call, same_order);
        decide_locked(OLY_DIVERGED, oly_text_chars(&t));
        oly_text_free(&t);
    }
    pthread_mutex_unlock(&state.lock);
    return oly_divergence_fail();
}

void oly_divergence_await_reports(void)
{
    int n = oly_world_size();
    if (oly_world_comm() == MPI_COMM_NULL || state.reported)
        return;
    pthread_mutex_lock(&state.lock);
    state.reported = true;
    for (int r = 0; r < n && n <= ALL_DIRECTLY; r++)
        if (r != oly_world_rank())
            send_locked(new_parcel(TOLD, 0), r);
    pthread_mutex_unlock(&state.lock);
    for (int64_t end = now_ns() + moment_ns(); now_ns() < end;) {
        pthread_mutex_lock(&state.lock);
        receive_locked();
        bool all = state.told >= n - 1;
        pthread_mutex_unlock(&state.lock);
        if (all)
            return;
        sched_yield();
    }
}

static void free_all(parcel **list)
{
    while (*list) {
        parcel *p = *list;
        *list = p->next;
        oly_release(p);
    }
}

/* Memory that MPI still uses is left to it. */
void oly_divergence_forget(void)
{
    pthread_mutex_lock(&state.lock);
    if (oly_world_comm() != MPI_COMM_NULL) {
        receive_locked();
        free_sent_locked();
    }
    free_all(&state.claims);
    atomic_store(&oly_divergence_claims, 0);
    state.sent = state.arriving = NULL;
    state.verdict[0] = 0;
    state.known = false;
    state.told = 0;
    state.behind = 0;
    state.reported = false;
    state.balance = 0;
    state.began = 0;
    pthread_mutex_unlock(&state.lock);
}
