/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks for packed messages. See staging.h. */
#include "staging.h"
#include "core/error.h"
#include "core/option.h"
#include <pthread.h>

typedef struct block {
    struct block *next;
    int64_t bytes;
    bool taken;
    char *memory;
} block;

static block *blocks;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int64_t peak;

static void *take_from_heap(size_t bytes)
{
    return oly_malloc(bytes);
}

static const oly_staging_memory heap = {take_from_heap, oly_release}, *source = &heap;

/* Of at most `most` bytes. */
static block *find(int64_t bytes, int64_t most, bool also_taken)
{
    block *best = NULL;
    for (block *b = blocks; b; b = b->next)
        if (b->bytes >= bytes && b->bytes <= most && (also_taken || !b->taken) && (!best || b->bytes < best->bytes))
            best = b;
    return best;
}

static int64_t bytes_of_all(bool also_idle)
{
    int64_t bytes = 0;
    for (const block *b = blocks; b; b = b->next)
        bytes += also_idle || b->taken ? b->bytes : 0;
    return bytes;
}

/* The rest is for partial results that wait to be reduced (plan/reduce/reduction_steps.c). */
int64_t oly_exchange_memory_limit(void)
{
    return (oly_option.exchange_memory << 20) / 4 * 3;
}

static void free_idle(void)
{
    for (block **at = &blocks; *at;) {
        block *b = *at;
        if (b->taken) {
            at = &b->next;
        } else {
            *at = b->next;
            source->give(b->memory);
            oly_release(b);
        }
    }
}

/* NULL: out of memory. */
static block *add(int64_t bytes)
{
    block *b = oly_malloc(sizeof *b);
    char *memory = b ? source->take((size_t)bytes) : NULL;
    if (!memory) {
        oly_release(b);
        b = NULL;
    }
    if (b) {
        *b = (block){.next = blocks, .bytes = bytes, .memory = memory};
        blocks = b;
        int64_t all = bytes_of_all(true);
        peak = all > peak ? all : peak;
    }
    return b;
}

oly_status oly_staging_reserve(int64_t bytes)
{
    oly_status status = OLY_OK;
    pthread_mutex_lock(&lock);
    if (!find(bytes, INT64_MAX, true)) {
        free_idle(); /* smaller ones: this one replaces them */
        int64_t taken = bytes_of_all(true);
        if ((taken == 0 || taken + bytes <= oly_exchange_memory_limit()) && !add(bytes))
            status = OLY_MEMORY;
    }
    pthread_mutex_unlock(&lock);
    return status == OLY_OK ? OLY_OK : oly_out_of_memory((size_t)bytes, "the messages of an exchange");
}

/* A free block, preferably not much too large, since it may be all that the limit leaves. NULL: none. */
static block *find_free(int64_t bytes)
{
    block *b = find(bytes, 2 * bytes, false);
    if (!b && bytes_of_all(true) + bytes > oly_exchange_memory_limit())
        b = find(bytes, INT64_MAX, false);
    return b;
}

oly_status oly_staging_take(int64_t bytes, bool wait, char **memory)
{
    bool room = true;
    pthread_mutex_lock(&lock);
    block *b = find_free(bytes);
    if (!b && bytes_of_all(true) + bytes > oly_exchange_memory_limit()) {
        int64_t taken = bytes_of_all(false);
        room = !wait || taken == 0 || taken + bytes <= oly_exchange_memory_limit();
        if (room)
            free_idle();
    }
    if (!b && room) {
        b = add(bytes);
        b = b ? b : find(bytes, INT64_MAX, false);
    }
    if (b)
        b->taken = true;
    pthread_mutex_unlock(&lock);
    *memory = b ? b->memory : NULL;
    return b || !room ? OLY_OK : oly_out_of_memory((size_t)bytes, "the messages of an exchange");
}

static block **find_link(const char *memory)
{
    block **at = &blocks;
    while (*at && (*at)->memory != memory)
        at = &(*at)->next;
    return at;
}

void oly_staging_give(char *memory)
{
    pthread_mutex_lock(&lock);
    block *b = *find_link(memory);
    if (b)
        b->taken = false;
    pthread_mutex_unlock(&lock);
}

void oly_staging_abandon(char *memory)
{
    pthread_mutex_lock(&lock);
    block **at = find_link(memory);
    if (*at)
        *at = (*at)->next;
    pthread_mutex_unlock(&lock);
}

/* Blocks still taken are those of exchanges that have failed: never used again. */
void oly_staging_use(const oly_staging_memory *memory)
{
    pthread_mutex_lock(&lock);
    free_idle();
    blocks = NULL;
    source = memory ? memory : &heap;
    pthread_mutex_unlock(&lock);
}

int64_t oly_staging_bytes(void)
{
    pthread_mutex_lock(&lock);
    int64_t bytes = bytes_of_all(true);
    pthread_mutex_unlock(&lock);
    return bytes;
}

int64_t oly_staging_peak(void)
{
    pthread_mutex_lock(&lock);
    int64_t bytes = peak;
    peak = bytes_of_all(true);
    pthread_mutex_unlock(&lock);
    return bytes;
}

void oly_staging_stop(void)
{
    pthread_mutex_lock(&lock);
    free_idle();
    pthread_mutex_unlock(&lock);
}
