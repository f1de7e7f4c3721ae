/* SPDX-License-Identifier: BSD-3-Clause */
/* The thread pool: parallel regions, and polling by idle threads. Used by device/queue and runtime/run.
 *
 * A region is on its caller's stack. Its indices are handed out by one atomic counter. Helpers join and leave it under the
 * lock; the caller removes it from the list when the indices have run out, and then waits for the helpers inside to leave.
 * So nobody touches a region that is gone, and a caller never waits for anything but its own indices.
 *
 * `news` counts everything that may give a thread something to do. A thread reads it, looks for work, finds none, and then
 * sleeps only if `news` is unchanged; whoever has news first counts it and then looks for sleepers. One of the two sees the
 * other (both sequentially consistent), so no wake-up is lost. */
#include "device/workers.h"
#include "core/error.h"
#include "core/fatal_signals.h"
#include "core/float_mode.h"
#include "core/timeline.h"
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

/* About 5 us, the time of a wake-up: spinning at most doubles the delay that sleeping would have had. */
#define SPINS             150
#define SPINS_FOR_HELPERS 1000 /* the last indices of a region usually end within 30 us */

typedef struct region {
    void (*body)(void *context, int i);
    void *context;
    int64_t n;
    atomic_int_fast64_t next; /* next index to hand out; may exceed n */
    atomic_int helpers;       /* inside, without the caller; changed under the lock */
    bool caller_sleeps;       /* under the lock */
    struct region *older;     /* under the lock */
} region;

static struct {
    pthread_mutex_t lock;
    pthread_cond_t workers_wake, waiters_wake, helpers_left;
    atomic_uint news;
    atomic_int sleeping_workers, sleeping_waiters;
    atomic_bool stopping;
    _Atomic(region *) newest; /* changed under the lock */
    pthread_t *threads;       /* owned; count - 1 of them */
    atomic_int count;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER,
          .workers_wake = PTHREAD_COND_INITIALIZER,
          .waiters_wake = PTHREAD_COND_INITIALIZER,
          .helpers_left = PTHREAD_COND_INITIALIZER,
          .count = 1};

static _Atomic(bool (*)(void)) poll_function;

static inline void pause_briefly(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#else
    atomic_signal_fence(memory_order_seq_cst);
#endif
}

/* -- slots ------------------------------------------------------------------------------------------------------------
 * Slots of visiting threads come first and are reused when their threads end; those of the workers follow. */

#define VISITORS 256

static struct {
    pthread_mutex_t lock;
    pthread_once_t once;
    pthread_key_t key; /* its destructor returns the slot */
    bool taken[VISITORS];
} slots = {.lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT};

static _Thread_local int own_slot = -1;

static void return_slot(void *slot_and_one)
{
    pthread_mutex_lock(&slots.lock);
    slots.taken[(intptr_t)slot_and_one - 1] = false;
    pthread_mutex_unlock(&slots.lock);
}

static void make_slot_key(void)
{
    pthread_key_create(&slots.key, return_slot);
}

static int take_slot(void)
{
    pthread_once(&slots.once, make_slot_key);
    for (;;) {
        pthread_mutex_lock(&slots.lock);
        int slot = 0;
        while (slot < VISITORS && slots.taken[slot])
            slot++;
        if (slot < VISITORS)
            slots.taken[slot] = true;
        pthread_mutex_unlock(&slots.lock);
        if (slot < VISITORS) {
            pthread_setspecific(slots.key, (void *)(intptr_t)(slot + 1));
            return slot;
        }
        sched_yield(); /* more visitors at once than slots: wait for one to end */
    }
}

int oly_workers_slot(void)
{
    if (own_slot < 0)
        own_slot = take_slot();
    return own_slot;
}

int oly_workers_slots(void)
{
    return VISITORS + oly_workers_count() - 1;
}

int oly_workers_count(void)
{
    return atomic_load_explicit(&pool.count, memory_order_relaxed);
}

/* -- news and sleep ---------------------------------------------------------------------------- */

/* Up to `threads` more threads have something to do. */
static void tell(int threads)
{
    atomic_fetch_add(&pool.news, 1);
    int workers = atomic_load(&pool.sleeping_workers), waiters = atomic_load(&pool.sleeping_waiters);
    if (workers + waiters == 0)
        return;
    pthread_mutex_lock(&pool.lock);
    if (workers > 0 && threads == 1)
        pthread_cond_signal(&pool.workers_wake);
    else if (workers > 0)
        pthread_cond_broadcast(&pool.workers_wake);
    if (waiters > 0 && threads > workers)
        pthread_cond_broadcast(&pool.waiters_wake);
    pthread_mutex_unlock(&pool.lock);
}

void oly_workers_wake(void)
{
    tell(1);
}

void oly_workers_notify(void)
{
    atomic_fetch_add(&pool.news, 1);
    if (atomic_load(&pool.sleeping_waiters) == 0)
        return;
    pthread_mutex_lock(&pool.lock);
    pthread_cond_broadcast(&pool.waiters_wake);
    pthread_mutex_unlock(&pool.lock);
}

static bool news_since(unsigned noted)
{
    return atomic_load(&pool.news) != noted;
}

/* Spins, then sleeps until there is news. */
static void rest(unsigned noted, atomic_int *sleepers, pthread_cond_t *wake)
{
    for (int i = 0; i < SPINS; i++) {
        if (news_since(noted))
            return;
        pause_briefly();
    }
    pthread_mutex_lock(&pool.lock);
    atomic_fetch_add(sleepers, 1);
    while (!news_since(noted))
        pthread_cond_wait(wake, &pool.lock);
    atomic_fetch_sub(sleepers, 1);
    pthread_mutex_unlock(&pool.lock);
}

/* -- regions ----------------------------------------------------------------------------------- */

static void run_indices(region *r)
{
    int64_t i;
    while ((i = atomic_fetch_add_explicit(&r->next, 1, memory_order_relaxed)) < r->n)
        r->body(r->context, (int)i);
}

/* Joins the newest region that has indices left. */
static bool help_region(void)
{
    if (!atomic_load(&pool.newest))
        return false;
    pthread_mutex_lock(&pool.lock);
    region *r = atomic_load_explicit(&pool.newest, memory_order_relaxed);
    while (r && atomic_load_explicit(&r->next, memory_order_relaxed) >= r->n)
        r = r->older;
    if (r)
        atomic_fetch_add_explicit(&r->helpers, 1, memory_order_relaxed);
    pthread_mutex_unlock(&pool.lock);
    if (!r)
        return false;

    run_indices(r);

    pthread_mutex_lock(&pool.lock);
    bool caller_sleeps = r->caller_sleeps;
    atomic_fetch_sub_explicit(&r->helpers, 1, memory_order_release); /* the last access: the region may be gone now */
    if (caller_sleeps)
        pthread_cond_broadcast(&pool.helpers_left);
    pthread_mutex_unlock(&pool.lock);
    return true;
}

static void open_region(region *r)
{
    pthread_mutex_lock(&pool.lock);
    r->older = atomic_load_explicit(&pool.newest, memory_order_relaxed);
    atomic_store(&pool.newest, r);
    pthread_mutex_unlock(&pool.lock);
    tell(r->n - 1 < INT_MAX ? (int)(r->n - 1) : INT_MAX);
}

static void take_out_locked(region *r)
{
    region *at = atomic_load_explicit(&pool.newest, memory_order_relaxed);
    if (at == r) {
        atomic_store(&pool.newest, r->older);
        return;
    }
    while (at->older != r)
        at = at->older;
    at->older = r->older;
}

/* All indices are handed out: waits for the helpers inside. */
static void close_region(region *r)
{
    pthread_mutex_lock(&pool.lock);
    take_out_locked(r);
    pthread_mutex_unlock(&pool.lock);
    for (int i = 0; i < SPINS_FOR_HELPERS; i++) {
        if (atomic_load_explicit(&r->helpers, memory_order_acquire) == 0)
            return;
        pause_briefly();
    }
    pthread_mutex_lock(&pool.lock);
    r->caller_sleeps = true;
    while (atomic_load_explicit(&r->helpers, memory_order_acquire) > 0)
        pthread_cond_wait(&pool.helpers_left, &pool.lock);
    pthread_mutex_unlock(&pool.lock);
}

void oly_parallel(int n, void (*body)(void *context, int i), void *context)
{
    if (n <= 1 || oly_workers_count() == 1) {
        for (int i = 0; i < n; i++)
            body(context, i);
        return;
    }
    region r = {.body = body, .context = context, .n = n};
    open_region(&r);
    run_indices(&r);
    close_region(&r);
}

/* -- idle threads -------------------------------------------------------------------------------------------------- */

void oly_workers_set_poll(bool (*poll)(void))
{
    atomic_store(&poll_function, poll);
}

bool oly_workers_help(void)
{
    if (help_region())
        return true;
    bool (*poll)(void) = atomic_load_explicit(&poll_function, memory_order_acquire);
    return poll && poll();
}

void oly_workers_wait(bool (*over)(void *context), void *context)
{
    for (;;) {
        unsigned noted = atomic_load(&pool.news);
        if (over(context))
            return;
        if (!oly_workers_help())
            rest(noted, &pool.sleeping_waiters, &pool.waiters_wake);
    }
}

static void *worker(void *slot)
{
    own_slot = (int)(intptr_t)slot;
    oly_timeline_name_thread("worker");
    oly_fatal_signals_thread_begin();
    oly_set_float_mode(OLY_FLOAT_MODE_OF_C);
    while (!atomic_load(&pool.stopping)) {
        unsigned noted = atomic_load(&pool.news);
        if (!oly_workers_help() && !atomic_load(&pool.stopping))
            rest(noted, &pool.sleeping_workers, &pool.workers_wake);
    }
    oly_fatal_signals_thread_end();
    return NULL;
}

/* -- start and stop ---------------------------------------------------------------------------- */

static void stop_threads(int n)
{
    atomic_store(&pool.stopping, true);
    tell(INT_MAX);
    for (int i = 0; i < n; i++)
        pthread_join(pool.threads[i], NULL);
    oly_release(pool.threads);
    pool.threads = NULL;
    atomic_store(&pool.count, 1);
    atomic_store(&pool.stopping, false);
}

oly_status oly_workers_start(int threads)
{
    if (pool.threads)
        return oly_fail(OLY_STATE, "the worker threads are already running");
    oly_workers_slot(); /* the first thread to ask gets the first slot */
    if (threads <= 1)
        return OLY_OK;
    pool.threads = oly_malloc((size_t)(threads - 1) * sizeof *pool.threads);
    if (!pool.threads)
        return oly_out_of_memory((size_t)(threads - 1) * sizeof *pool.threads, "the worker threads");

    sigset_t all, before; /* signals are for the program's own threads */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int started = 0, error = 0;
    while (started < threads - 1) {
        error = pthread_create(&pool.threads[started], NULL, worker, (void *)(intptr_t)(VISITORS + started));
        if (error)
            break;
        started++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error) {
        stop_threads(started);
        return oly_fail(OLY_STATE, "only %d of %d threads could be started: %s; set OLYMPUS_NUM_THREADS lower",
                        started + 1, threads, strerror(error));
    }
    atomic_store(&pool.count, threads);
    return OLY_OK;
}

void oly_workers_stop(void)
{
    if (pool.threads)
        stop_threads(oly_workers_count() - 1);
}
