/* The pool of shard buffers: blocks in size classes, each with a list of free ones, under one lock (a take and
 * a drop together cost about as much as malloc and free of a small block, and large ones save their page
 * faults).
 *
 * Classes: powers of two from 64 bytes to 4 KiB, then eight steps to each doubling, so at most an eighth is
 * wasted. */
#include "device/memory.h"
#include "core/error.h"
#include "core/simulate.h"
#include "core/text.h"
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define ALIGNMENT      ((size_t)64)
#define HUGE_PAGE      ((size_t)2 << 20)
#define HUGE_FROM      ((size_t)4 << 20)
#define FINE_FROM_LOG2 12 /* 4 KiB: classes below are powers of two */
#define FIRST_LOG2     6
#define LARGEST_LOG2   47
#define FIRST_FINE     (FINE_FROM_LOG2 - FIRST_LOG2)
#define N_CLASSES      (FIRST_FINE + 8 * (LARGEST_LOG2 - FINE_FROM_LOG2) + 1)

static struct {
    pthread_mutex_t lock;
    oly_buffer *free_blocks[N_CLASSES];
    oly_pool_statistics statistics;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* -- classes ----------------------------------------------------------------------------------- */

/* The class of a request and the capacity of its blocks; -1 for what no machine has. */
static int class_of(size_t bytes, size_t *capacity)
{
    if (bytes > (size_t)1 << LARGEST_LOG2) {
        if (!oly_simulated())
            return -1;
        bytes = (size_t)1 << LARGEST_LOG2; /* without memory they are all alike */
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

/* -- blocks from and to the system ------------------------------------------------------------- */

static oly_buffer *block_from_system(size_t capacity)
{
    oly_buffer *b = malloc(sizeof *b);
    if (!b)
        return NULL;
    if (oly_simulated()) {
        *b = (oly_buffer){.capacity = capacity};
        return b;
    }
    bool huge = capacity >= HUGE_FROM;
    if (posix_memalign(&b->data, huge ? HUGE_PAGE : ALIGNMENT, capacity) != 0) {
        free(b);
        return NULL;
    }
    if (huge)
        madvise(b->data, capacity, MADV_HUGEPAGE); /* advice: kernels without it say no, and that is all right */
    b->capacity = capacity;
    return b;
}

static void block_to_system(oly_buffer *b)
{
    free(b->data);
    free(b);
}

static void trim_locked(void)
{
    for (int c = 0; c < N_CLASSES; c++)
        while (pool.free_blocks[c]) {
            oly_buffer *b = pool.free_blocks[c];
            pool.free_blocks[c] = b->next_free;
            pool.statistics.free_bytes -= b->capacity;
            block_to_system(b);
        }
}

/* A program whose sizes drift would leave free blocks of every class behind: before asking for more they go,
 * once they are twice as much as was ever in use. */
static oly_buffer *new_block_locked(size_t capacity)
{
    if (pool.statistics.free_bytes / 2 > pool.statistics.peak_bytes)
        trim_locked();
    oly_buffer *b = block_from_system(capacity);
    if (!b && pool.statistics.free_bytes > 0) {
        trim_locked();
        b = block_from_system(capacity);
    }
    return b;
}

/* -- buffers ----------------------------------------------------------------------------------- */

oly_buffer *oly_buffer_take(size_t bytes)
{
    size_t capacity;
    int class = class_of(bytes, &capacity);
    if (class < 0 || oly_allocation_fails())
        return NULL;
    pthread_mutex_lock(&pool.lock);
    oly_buffer *b = pool.free_blocks[class];
    if (b) {
        pool.free_blocks[class] = b->next_free;
        pool.statistics.free_bytes -= capacity;
    } else {
        b = new_block_locked(capacity);
    }
    if (b) {
        pool.statistics.in_use_bytes += capacity;
        if (pool.statistics.in_use_bytes > pool.statistics.peak_bytes)
            pool.statistics.peak_bytes = pool.statistics.in_use_bytes;
    }
    pthread_mutex_unlock(&pool.lock);
    if (!b)
        return NULL;
    b->bytes = bytes;
    b->next_free = NULL;
    __atomic_store_n(&b->references, 1, __ATOMIC_RELAXED);
    return b;
}

oly_status oly_buffer_fail(size_t bytes, const char *what_for)
{
    oly_pool_statistics s = oly_pool_statistics_get();
    size_t node_free = (size_t)sysconf(_SC_AVPHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
    return oly_fail(OLY_MEMORY, "out of memory: %s for %s; the pool holds %s in use and %s free, the node has %s free",
                    oly_size_text_of(bytes).chars, what_for, oly_size_text_of(s.in_use_bytes).chars,
                    oly_size_text_of(s.free_bytes).chars, oly_size_text_of(node_free).chars);
}

void oly_buffer_hold(oly_buffer *b)
{
    __atomic_fetch_add(&b->references, 1, __ATOMIC_RELAXED);
}

void oly_buffer_drop(oly_buffer *b)
{
    if (!b || __atomic_fetch_sub(&b->references, 1, __ATOMIC_ACQ_REL) != 1)
        return;
    size_t capacity;
    int class = class_of(b->capacity, &capacity);
    pthread_mutex_lock(&pool.lock);
    b->next_free = pool.free_blocks[class];
    pool.free_blocks[class] = b;
    pool.statistics.in_use_bytes -= b->capacity;
    pool.statistics.free_bytes += b->capacity;
    pthread_mutex_unlock(&pool.lock);
}

int oly_buffer_references(const oly_buffer *b)
{
    return __atomic_load_n(&b->references, __ATOMIC_ACQUIRE);
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
