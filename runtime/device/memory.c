/* SPDX-License-Identifier: BSD-3-Clause */
/* The pool of shard buffers: blocks in size classes, each with a list of free ones, under one lock (a take and a drop
 * together cost about as much as malloc and free of a small block, and large ones save their page faults).
 *
 * Classes: powers of two from 64 bytes to 4 KiB, then eight per doubling, so at most an eighth is wasted.
 *
 * Spent buffers, which only queued calls of one device still hold, are listed by device and class for the next call on that
 * device. They become free for all devices when the last of those calls has run. The amount of them that other devices, or
 * the host, cannot take is bounded: a call that needs a new block waits while too much is spent. */
#include "device/memory.h"
#include "device/pending.h"
#include "device/platform.h"
#include "device/queue.h"
#include "device/workers.h"
#include "core/error.h"
#include "core/events.h"
#include "core/timeline.h"
#include "core/option.h"
#include "core/text.h"
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define FINE_FROM_LOG2 12 /* 4 KiB: classes below are powers of two */
#define FIRST_LOG2     6
#define LARGEST_LOG2   47
#define FIRST_FINE     (FINE_FROM_LOG2 - FIRST_LOG2)
#define N_CLASSES      (FIRST_FINE + 8 * (LARGEST_LOG2 - FINE_FROM_LOG2) + 1)
#define N_KINDS        (OLY_MOST_MEMORIES * N_CLASSES) /* a class in each memory */
#define SPENT_LOG2     14

static struct {
    pthread_mutex_t lock;
    oly_pool_statistics statistics;
    oly_buffer *free_blocks[N_KINDS];
    oly_buffer *spent[1 << SPENT_LOG2]; /* by device and kind, chained */
    int64_t shown;                      /* of the memory in use, in the timeline */
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* -- classes ----------------------------------------------------------------------------------- */

/* The class of a request and the capacity of its blocks; -1 if no machine has that much. */
static int class_of(size_t bytes, size_t *capacity)
{
    if (bytes > (size_t)1 << LARGEST_LOG2) {
        if (oly_platform_get()->computes)
            return -1;
        bytes = (size_t)1 << LARGEST_LOG2; /* in simulation all are alike */
    }
    if (bytes <= (size_t)1 << FIRST_LOG2) {
        *capacity = (size_t)1 << FIRST_LOG2;
        return 0;
    }
    int log2 = 63 - __builtin_clzll(bytes - 1); /* 2^log2 < bytes <= 2^(log2+1) */
    if (log2 < FINE_FROM_LOG2) {
        *capacity = (size_t)2 << log2;
        return log2 + 1 - FIRST_LOG2;
    }
    size_t step = (size_t)1 << (log2 - 3);
    size_t steps = (bytes - ((size_t)1 << log2) + step - 1) / step; /* 1 to 8 */
    *capacity = ((size_t)1 << log2) + steps * step;
    return FIRST_FINE + 8 * (log2 - FINE_FROM_LOG2) + (int)steps;
}

/* A request. */
typedef struct need {
    int memory, kind;
    size_t capacity;
} need;

/* -- blocks of the system ------------------------------------------------------------------------------------------ */

static oly_buffer *block_from_system(const need *n)
{
    oly_buffer *b = malloc(sizeof *b);
    if (!b)
        return NULL;
    *b = (oly_buffer){.memory = (uint8_t)n->memory, .kind = n->kind, .capacity = n->capacity, .line = OLY_NO_LINE};
    if (oly_platform_get()->allocate(n->memory, n->capacity, &b->data))
        return b;
    free(b);
    return NULL;
}

static void block_to_system(oly_buffer *b)
{
    oly_platform_get()->release(b->memory, b->data, b->capacity);
    free(b);
}

static void trim_locked(void)
{
    for (int k = 0; k < N_KINDS; k++)
        for (oly_buffer *b; (b = pool.free_blocks[k]);) {
            pool.free_blocks[k] = b->next;
            pool.statistics.free_bytes -= b->capacity;
            block_to_system(b);
        }
}

/* A program whose sizes drift would leave free blocks in every class: before a new block is allocated, free ones are
 * released once they are twice as much as was ever in use. */
static oly_buffer *new_block_locked(const need *n)
{
    if (pool.statistics.free_bytes / 2 > pool.statistics.peak_bytes)
        trim_locked();
    oly_buffer *b = block_from_system(n);
    if (!b && pool.statistics.free_bytes > 0) {
        trim_locked();
        b = block_from_system(n);
    }
    return b;
}

/* -- spent buffers ------------------------------------------------------------------------------ */

static oly_buffer **spent_list(int device, int kind)
{
    uint64_t key = (uint64_t)device * N_KINDS + (uint64_t)kind;
    return &pool.spent[key * 0x9e3779b97f4a7c15u >> (64 - SPENT_LOG2)];
}

/* Includes those of several devices: they count, but nobody can take them. */
static void add_spent_locked(oly_buffer *b)
{
    b->spent = true;
    b->link = NULL;
    pool.statistics.spent_bytes += b->capacity;
    if (b->line < 0)
        return;
    oly_buffer **list = spent_list(b->line, b->kind);
    b->next = *list;
    b->link = list;
    if (b->next)
        b->next->link = &b->next;
    *list = b;
}

static void remove_spent_locked(oly_buffer *b)
{
    b->spent = false;
    pool.statistics.spent_bytes -= b->capacity;
    if (!b->link)
        return;
    *b->link = b->next;
    if (b->next)
        b->next->link = b->link;
    b->link = NULL;
}

static oly_buffer *take_spent_locked(const need *n, int device)
{
    oly_buffer *b = device < 0 ? NULL : *spent_list(device, n->kind);
    while (b && (b->line != device || b->kind != n->kind))
        b = b->next;
    if (b)
        remove_spent_locked(b);
    return b;
}

static bool too_much_is_spent_locked(size_t capacity)
{
    const oly_pool_statistics *s = &pool.statistics;
    size_t most = (size_t)oly_option.queue_memory << 20, others = (s->in_use_bytes - s->spent_bytes) / 4;
    return s->spent_bytes > 0 && s->spent_bytes + capacity > (most > others ? most : others);
}

static bool may_go_on(void *context)
{
    const need *n = context;
    pthread_mutex_lock(&pool.lock);
    bool yes = pool.free_blocks[n->kind] || !too_much_is_spent_locked(n->capacity);
    pthread_mutex_unlock(&pool.lock);
    return yes;
}

/* -- buffers ----------------------------------------------------------------------------------- */

static oly_buffer *take_free_locked(const need *n)
{
    oly_buffer *b = pool.free_blocks[n->kind];
    if (!b)
        return NULL;
    pool.free_blocks[n->kind] = b->next;
    pool.statistics.free_bytes -= n->capacity;
    pool.statistics.in_use_bytes += n->capacity;
    return b;
}

static oly_buffer *take_new_locked(need n, bool may_wait)
{
    may_wait = may_wait && pool.statistics.spent_bytes > 0 && !oly_queue_is_inside();
    if (may_wait && too_much_is_spent_locked(n.capacity)) {
        pthread_mutex_unlock(&pool.lock);
        oly_workers_wait(may_go_on, &n);
        pthread_mutex_lock(&pool.lock);
        oly_buffer *b = take_free_locked(&n);
        if (b)
            return b;
    }
    oly_buffer *b = new_block_locked(&n);
    if (!b && may_wait) {
        pthread_mutex_unlock(&pool.lock);
        oly_queue_drain();
        pthread_mutex_lock(&pool.lock);
        b = new_block_locked(&n);
    }
    if (b) {
        pool.statistics.in_use_bytes += n.capacity;
        oly_event_at(OLY_EVENT_MEMORY, OLY_EVENT_INSTANT, oly_current_site(), (int64_t)pool.statistics.in_use_bytes,
                     (int64_t)pool.statistics.free_bytes, (int64_t)n.capacity);
    }
    return b;
}

/* line: the device of the call that it is for; OLY_NO_LINE: for a handle. */
static oly_buffer *take_locked(int device, size_t bytes, int line, bool may_wait)
{
    need n = {.memory = oly_platform_memory(device)};
    int class = class_of(bytes, &n.capacity);
    if (class < 0 || oly_allocation_fails())
        return NULL;
    n.kind = n.memory * N_CLASSES + class;
    oly_buffer *b = take_spent_locked(&n, line);
    if (!b)
        b = take_free_locked(&n);
    if (!b)
        b = take_new_locked(n, may_wait);
    if (!b)
        return NULL;
    if (pool.statistics.in_use_bytes > pool.statistics.peak_bytes)
        pool.statistics.peak_bytes = pool.statistics.in_use_bytes;
    b->bytes = bytes;
    b->devices = 1;
    return b;
}

/* A buffer that has lost its last handle: to the spent ones, or free. */
static void pass_on_locked(oly_buffer *b)
{
    if (b->handles > 0)
        return;
    if (b->calls > 0) {
        if (!b->spent)
            add_spent_locked(b);
        return;
    }
    if (b->spent)
        remove_spent_locked(b);
    b->line = OLY_NO_LINE;
    b->next = pool.free_blocks[b->kind];
    pool.free_blocks[b->kind] = b;
    pool.statistics.in_use_bytes -= b->capacity;
    pool.statistics.free_bytes += b->capacity;
}

static oly_buffer *take(int device, size_t bytes, bool may_wait)
{
    pthread_mutex_lock(&pool.lock);
    oly_buffer *b = take_locked(device, bytes, OLY_NO_LINE, may_wait);
    if (b)
        b->handles = 1;
    pthread_mutex_unlock(&pool.lock);
    return b;
}

oly_buffer *oly_buffer_take(int device, size_t bytes)
{
    return take(device, bytes, true);
}

oly_buffer *oly_buffer_take_at_once(int device, size_t bytes)
{
    return take(device, bytes, false);
}

oly_status oly_buffer_fail(size_t bytes, const char *what_for)
{
    OLY_TRY(oly_pending_settle_all()); /* a device that has failed gives no memory */
    oly_pool_statistics s = oly_pool_statistics_get();
    size_t node_free = (size_t)sysconf(_SC_AVPHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
    return oly_fail(OLY_MEMORY, "out of memory: %s for %s; the pool holds %s in use and %s free, the node has %s free",
                    oly_size_text_of(bytes).chars, what_for, oly_size_text_of(s.in_use_bytes).chars,
                    oly_size_text_of(s.free_bytes).chars, oly_size_text_of(node_free).chars);
}

void oly_buffer_hold(oly_buffer *b)
{
    pthread_mutex_lock(&pool.lock);
    b->handles++;
    pthread_mutex_unlock(&pool.lock);
}

void oly_buffers_drop(int n, oly_buffer *const *all)
{
    if (n <= 0)
        return;
    pthread_mutex_lock(&pool.lock);
    for (int k = 0; k < n; k++)
        if (all[k] && --all[k]->handles == 0)
            pass_on_locked(all[k]);
    pthread_mutex_unlock(&pool.lock);
}

void oly_buffer_drop(oly_buffer *b)
{
    oly_buffers_drop(1, &b);
}

int oly_buffer_references(const oly_buffer *b)
{
    pthread_mutex_lock(&pool.lock);
    int n = b->handles + b->calls;
    pthread_mutex_unlock(&pool.lock);
    return n;
}

/* -- access by the host -------------------------------------------------------------------------------------------- */

oly_status oly_buffer_map(const oly_buffer *b, oly_access access, size_t bytes, void **host)
{
    const oly_platform *p = oly_platform_get();
    *host = b->data;
    if (oly_platform_is_host(b->memory) || bytes == 0)
        return OLY_OK;
    if (!(*host = oly_malloc(bytes)))
        return oly_out_of_memory(bytes, "a copy of a device's memory");
    oly_status st = access & OLY_ACCESS_READ ? p->read(*host, b->memory, b->data, bytes) : OLY_OK;
    if (st != OLY_OK)
        oly_release(*host);
    return st;
}

oly_status oly_buffer_unmap(const oly_buffer *b, oly_access access, size_t bytes, void *host)
{
    const oly_platform *p = oly_platform_get();
    if (oly_platform_is_host(b->memory) || bytes == 0)
        return OLY_OK;
    oly_status st = access & OLY_ACCESS_WRITE ? p->write(b->memory, b->data, host, bytes) : OLY_OK;
    oly_release(host);
    return st;
}

oly_status oly_buffer_read(const oly_buffer *b, size_t bytes, void *host)
{
    return bytes ? oly_platform_get()->read(host, b->memory, b->data, bytes) : OLY_OK;
}

oly_status oly_buffer_write(const oly_buffer *b, size_t bytes, const void *host)
{
    return bytes ? oly_platform_get()->write(b->memory, b->data, host, bytes) : OLY_OK;
}

oly_status oly_buffer_copy(const oly_buffer *to, const oly_buffer *from, size_t bytes)
{
    return bytes ? oly_platform_get()->copy(to->memory, to->data, from->memory, from->data, bytes) : OLY_OK;
}

/* -- buffers of queued calls --------------------------------------------------------------------------------------- */

void oly_pool_lock(void)
{
    pthread_mutex_lock(&pool.lock);
}

/* In the timeline, where it is seen: changes of 4 KiB and 1 % or more. */
static void show_use(void)
{
    int64_t in_use = (int64_t)pool.statistics.in_use_bytes, change = in_use - pool.shown;
    if ((change < 0 ? -change : change) < 4096 + in_use / 128)
        return;
    oly_timeline_count(OLY_EVENT_POOL, in_use, (int64_t)pool.statistics.free_bytes);
    pool.shown = in_use;
}

void oly_pool_unlock(void)
{
    if (oly_timeline_spans())
        show_use();
    pthread_mutex_unlock(&pool.lock);
}

oly_buffer *oly_buffer_take_locked(size_t bytes, int device, uint64_t call)
{
    oly_buffer *b = take_locked(device, bytes, device, true);
    if (b)
        oly_buffer_use_locked(b, device, call);
    return b;
}

void oly_buffer_use_locked(oly_buffer *b, int device, uint64_t call)
{
    b->uses = b->latest == call ? b->uses + 1 : 1;
    b->latest = call;
    b->line = b->calls == 0 || b->line == device ? device : OLY_SEVERAL_LINES;
    b->calls++;
}

void oly_buffer_hold_locked(oly_buffer *b)
{
    b->handles++;
}

bool oly_buffer_is_sole_locked(const oly_buffer *b, int device, uint64_t call)
{
    return b->handles == 1 && b->line == device && b->latest == call && b->uses == 1;
}

bool oly_buffer_is_theirs_locked(const oly_buffer *b, int devices, uint64_t call)
{
    return b->devices == devices && b->handles == devices && b->latest == call && b->uses == devices;
}

void oly_buffer_settle_locked(oly_buffer *b)
{
    pass_on_locked(b);
}

void oly_buffer_done_locked(oly_buffer *b)
{
    if (--b->calls > 0)
        return;
    b->line = OLY_NO_LINE;
    pass_on_locked(b);
}

/* -- the pool ---------------------------------------------------------------------------------- */

void oly_pool_trim(void)
{
    pthread_mutex_lock(&pool.lock);
    trim_locked();
    pthread_mutex_unlock(&pool.lock);
}

oly_pool_statistics oly_pool_statistics_get(void)
{
    pthread_mutex_lock(&pool.lock);
    oly_pool_statistics s = pool.statistics;
    pthread_mutex_unlock(&pool.lock);
    return s;
}

void oly_pool_stop(void)
{
    pthread_mutex_lock(&pool.lock);
    trim_locked();
    pool.statistics.peak_bytes = pool.statistics.in_use_bytes;
    pthread_mutex_unlock(&pool.lock);
}
