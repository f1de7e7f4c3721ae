/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays that processes made of their own data, sent to processes that hold no part of them: is the array that arrives the one that
 * was given to the call here? Declared in divergence.h; called for every message with a valid ticket.
 *
 * Such an array has no contents here to compare, and perhaps was not made by the same calls: it may be a stand-in. What both sides
 * know is compared: the calls that led to it, where both have made all arrays of its mesh; its place among the arrays of its type
 * that have not moved yet, where both have as many; and the order in which arrays were made that were waiting at the same time. */
#include "divergence.h"
#include "core/text.h"
#include <pthread.h>

typedef struct known {
    oly_acquaintance here;
    uint64_t set;
    uint32_t number; /* on the peer */
    int peer;
} known;

enum { KEPT = 64 };
static struct {
    pthread_mutex_t lock;
    known ring[KEPT]; /* the last arrays that came */
    int n;            /* ever */
} memory = {.lock = PTHREAD_MUTEX_INITIALIZER};

void oly_introductions_forget(void)
{
    memory.n = 0;
}

static bool is_comparable(const known *a, const known *b)
{
    return a->peer == b->peer && a->set == b->set && a->here.kind == b->here.kind;
}

/* Both could have been meant when the first of them came, and the peer has made them in the other order. */
static bool contradicts(const known *first, const known *second)
{
    if (!is_comparable(first, second))
        return false;
    return first->number == second->number ||
           (second->here.made < first->here.issued &&
            (first->here.made < second->here.made) != (first->number < second->number));
}

static bool contradicts_any_locked(const known *now)
{
    int n = memory.n < KEPT ? memory.n : KEPT;
    for (int k = 0; k < n; k++) /* has it come before? */
        if (is_comparable(&memory.ring[k], now) && memory.ring[k].here.made == now->here.made)
            return memory.ring[k].number != now->number;
    for (int k = 0; k < n; k++)
        if (contradicts(&memory.ring[k], now))
            return true;
    memory.ring[memory.n % KEPT] = *now;
    memory.n = memory.n + 1 < 2 * KEPT ? memory.n + 1 : KEPT;
    return false;
}

static bool contradicts_any(const known *now)
{
    pthread_mutex_lock(&memory.lock);
    bool found = contradicts_any_locked(now);
    pthread_mutex_unlock(&memory.lock);
    return found;
}

static oly_status fail(int peer, const oly_ticket *mine, const char *why)
{
    oly_text t = {0};
    oly_text_add(
        &t,
        "rank %d sends in %s an array that ranks made of their own data, but rank %d, which holds no part of it, has "
        "given the call another one of its type: %s; issue the calls in the same order, and make stand-ins in the "
        "order of "
        "the arrays that they stand for",
        peer, mine->call, oly_world_rank(), why);
    oly_divergence_decide(OLY_DIVERGED, oly_text_chars(&t));
    oly_text_free(&t);
    return oly_divergence_fail();
}

oly_status oly_introduction_met(int peer, const oly_ticket *mine, const oly_ticket *theirs)
{
    const oly_introduction *here = &mine->introduction, *there = &theirs->introduction;
    char why[96];
    if (!here->origin || here->holds || !there->origin || !there->holds)
        return OLY_OK;
    if (here->made && here->made == there->made && here->origin != there->origin)
        return fail(peer, mine, "other calls led to it");
    if (here->of && here->of == there->of && here->place != there->place) {
        snprintf(why, sizeof why, "of %d that have not moved yet, number %d there and number %d here", here->of,
                 there->place, here->place);
        return fail(peer, mine, why);
    }
    if (!here->number || !there->number || here->origin == there->origin)
        return OLY_OK;
    known now = {.here = mine->acquaintance, .set = mine->set, .number = there->number, .peer = peer};
    return contradicts_any(&now) ? fail(peer, mine, "they were made in another order") : OLY_OK;
}
