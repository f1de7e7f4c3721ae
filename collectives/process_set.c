/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets of processes and the calls they make together: numbers, rolling hashes, rings. Called by runtime/run as communicator.h
 * says, and by the files of collectives/. Calls are counted where communication takes place, so by one thread at a time, which also
 * compares them with those of others: no lock is needed. */
#include "process_set.h"
#include "divergence.h"
#include "core/error.h"
#include "core/events.h"
#include "core/hash.h"
#include <pthread.h>
#include <string.h>

static struct {
    pthread_mutex_t lock;
    oly_process_set *first; /* owned */
    oly_process_set *world; /* of all processes; NULL: not made yet, or alone */
} sets = {.lock = PTHREAD_MUTEX_INITIALIZER};

oly_process_set *oly_process_set_first(void)
{
    return __atomic_load_n(&sets.first, __ATOMIC_ACQUIRE);
}

oly_process_set *oly_process_set_find(uint64_t key)
{
    oly_process_set *s = oly_process_set_first();
    while (s && s->key != key)
        s = s->next;
    return s;
}

static int place_of(int n, const int *ranks, int rank)
{
    int low = 0, high = n;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (ranks[middle] < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n && ranks[low] == rank ? low : -1;
}

bool oly_process_set_has(const oly_process_set *s, int rank)
{
    return place_of(s->n, s->ranks, rank) >= 0;
}

uint64_t oly_process_set_key(const oly_process_set *s)
{
    return s ? s->key : 0;
}

bool oly_process_set_within(const oly_process_set *a, const oly_process_set *b)
{
    if (a == b)
        return true;
    if (a->n > b->n)
        return false;
    for (int k = 0; k < a->n; k++)
        if (!oly_process_set_has(b, a->ranks[k]))
            return false;
    return true;
}

bool oly_process_set_is_all(const oly_process_set *s)
{
    return s && s->n == oly_world_size();
}

static uint64_t key_of(int n, const int *ranks)
{
    uint64_t key = oly_hash((uint64_t)n, ranks, sizeof *ranks * (size_t)n);
    return key ? key : 1; /* 0 is no set */
}

static oly_process_set *new_set(int n, const int *ranks, int me)
{
    oly_process_set *s = oly_calloc(1, sizeof *s);
    int *own = s ? oly_malloc(sizeof *own * (size_t)n) : NULL;
    if (!own) {
        oly_release(s);
        return NULL;
    }
    memcpy(own, ranks, sizeof *own * (size_t)n);
    s->key = key_of(n, ranks);
    s->n = n;
    s->me = me;
    s->ranks = own;
    return s;
}

oly_status oly_process_set_of(int n, const int *ranks, oly_process_set **set)
{
    int me = n > 1 ? place_of(n, ranks, oly_world_rank()) : -1;
    *set = NULL;
    if (me < 0 || oly_world_comm() == MPI_COMM_NULL)
        return OLY_OK;
    pthread_mutex_lock(&sets.lock);
    oly_process_set *s = oly_process_set_find(key_of(n, ranks));
    if (!s && (s = new_set(n, ranks, me))) {
        s->next = sets.first;
        __atomic_store_n(&sets.first, s, __ATOMIC_RELEASE); /* others walk the list without the lock */
    }
    pthread_mutex_unlock(&sets.lock);
    *set = s;
    return s ? OLY_OK : oly_out_of_memory(sizeof *s, "a set of processes");
}

/* -- calls ----------------------------------------------------------------------------------------------- */

uint64_t oly_process_set_next(oly_process_set *s)
{
    return ++s->issued;
}

uint64_t oly_process_set_oldest(const oly_process_set *s)
{
    return s->calls > OLY_CALLS_KEPT ? s->calls - OLY_CALLS_KEPT + 1 : 1;
}

const oly_called *oly_process_set_call(const oly_process_set *s, uint64_t number)
{
    return &s->ring[(number - 1) % OLY_CALLS_KEPT];
}

oly_status oly_process_set_called(oly_process_set *s, uint64_t event, oly_called *call)
{
    s->hash = call->hash = oly_hash_mix(s->hash, event);
    s->ring[s->calls++ % OLY_CALLS_KEPT] = *call;
    return oly_divergence_any() ? oly_divergence_compare(s) : OLY_OK;
}

/* -- meetings -------------------------------------------------------------------------------------------- */

static oly_status set_of_all(oly_process_set **set)
{
    if (!sets.world) {
        int n = oly_world_size(), *ranks = oly_malloc(sizeof *ranks * (size_t)n);
        if (!ranks)
            return oly_out_of_memory(sizeof *ranks * (size_t)n, "a set of processes");
        for (int r = 0; r < n; r++)
            ranks[r] = r;
        oly_status st = oly_process_set_of(n, ranks, &sets.world);
        oly_release(ranks);
        OLY_TRY(st);
    }
    *set = sets.world;
    return OLY_OK;
}

/* Not the call site: the last recorded call may differ between ranks. */
static oly_status note(oly_process_set *s, const char *name)
{
    uint64_t event = oly_hash_text(3, name);
    oly_site site = oly_current_site();
    if (strncmp(name, "oly_", 4) == 0 && strcmp(name, site.call) != 0)
        site = (oly_site){.file = "", .call = name};
    oly_called call = {.program = (uint32_t)event, .site = site};
    oly_process_set_next(s);
    return oly_process_set_called(s, event, &call);
}

oly_status oly_process_sets_note_meeting(const char *call)
{
    oly_process_set *all;
    OLY_TRY(set_of_all(&all));
    return all ? note(all, call) : OLY_OK;
}

uint64_t oly_process_sets_balance(void)
{
    uint64_t sum = 0;
    for (const oly_process_set *s = sets.first; s; s = s->next) {
        uint64_t h = oly_hash_mix(oly_hash_mix(s->key, s->hash), s->calls);
        sum += s->me == 0 ? h * (uint64_t)(s->n - 1) : -h;
    }
    return sum;
}

void oly_process_sets_end(void)
{
    for (oly_process_set *s = sets.first; s; s = s->next)
        note(s, "oly_finalize");
}

enum {
    ALL_AT_ONCE = 16
}; /* members that send each other their tickets; in larger sets tickets are passed in a few steps */

typedef struct swaps {
    MPI_Request requests[2 * ALL_AT_ONCE];
    int ranks[2 * ALL_AT_ONCE]; /* of each request */
    oly_ticket mine, theirs[ALL_AT_ONCE];
} swaps;

/* Exchanges tickets with the members at distance `step`, `step` + 1, .. `end` - 1. Failed requests are left to MPI. */
static oly_status swap_tickets(const oly_process_set *s, int step, int end, const oly_ticket *mine)
{
    int n = 0;
    swaps *w = oly_malloc(sizeof *w);
    if (!w)
        return oly_out_of_memory(sizeof *w, "a meeting of processes");
    w->mine = *mine;
    for (; step < end; step++, n++) {
        int to = s->ranks[(s->me + step) % s->n];
        int from = s->ranks[(s->me + s->n - step) % s->n];
        w->ranks[2 * n] = from;
        w->ranks[2 * n + 1] = to;
        MPI_Irecv(&w->theirs[n], OLY_TICKET_BYTES, MPI_BYTE, from, OLY_TAG_MEETING, oly_world_comm(),
                  &w->requests[2 * n]);
        MPI_Isend(&w->mine, OLY_TICKET_BYTES, MPI_BYTE, to, OLY_TAG_MEETING, oly_world_comm(), &w->requests[2 * n + 1]);
    }
    OLY_TRY(oly_world_wait(2 * n, w->requests, w->ranks, mine->call));
    oly_status st = OLY_OK;
    for (int k = 0; k < n && st == OLY_OK; k++)
        if (memcmp(mine, &w->theirs[k], OLY_TICKET_COMPARED) != 0)
            st = oly_divergence_met(w->ranks[2 * k], mine, &w->theirs[k]);
    oly_release(w);
    return st;
}

oly_status oly_process_set_meet(oly_process_set *s, const char *call)
{
    if (!s)
        return OLY_OK;
    OLY_TRY(note(s, call));
    oly_ticket ticket = {.sequence = s->calls, .fingerprint = s->hash, .set = s->key};
    oly_site_text(&oly_process_set_call(s, s->calls)->site, ticket.call, sizeof ticket.call);
    oly_event_text(OLY_EVENT_MEETING, OLY_EVENT_BEGIN, ticket.call, s->n, 0);
    if (s->n <= ALL_AT_ONCE)
        OLY_TRY(swap_tickets(s, 1, s->n, &ticket));
    for (int step = 1; step < s->n && s->n > ALL_AT_ONCE; step *= 2)
        OLY_TRY(swap_tickets(s, step, step + 1, &ticket));
    oly_event_text(OLY_EVENT_MEETING, OLY_EVENT_FINISH, ticket.call, s->n, 0);
    s->verified = s->calls;
    return OLY_OK;
}

void oly_process_sets_verified(void)
{
    for (oly_process_set *s = oly_process_set_first(); s; s = s->next)
        s->verified = s->calls;
}

bool oly_process_set_is_verified(const oly_process_set *s, uint64_t number)
{
    return s && number <= s->verified;
}

void oly_process_sets_forget(void)
{
    while (sets.first) {
        oly_process_set *s = sets.first;
        sets.first = s->next;
        oly_release(s->ranks);
        oly_release(s);
    }
    sets.world = NULL;
}
