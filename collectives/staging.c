/* Blocks for packed messages. See staging.h. */
#include "staging.h"
#include "core/error.h"
#include <pthread.h>

typedef struct block {
    struct block *next;
    int64_t bytes;
    bool taken;
    _Alignas(16) char memory[];
} block;

static block *blocks;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static block *find(int64_t bytes, bool also_taken)
{
    block *best = NULL;
    for (block *b = blocks; b; b = b->next)
        if (b->bytes >= bytes && (also_taken || !b->taken) && (!best || b->bytes < best->bytes))
            best = b;
    return best;
}

static void free_idle(void)
{
    for (block **at = &blocks; *at;) {
        block *b = *at;
        if (b->taken) {
            at = &b->next;
        } else {
            *at = b->next;
            oly_release(b);
        }
    }
}

static block *add(int64_t bytes)
{
    block *b = oly_malloc(sizeof *b + (size_t)bytes);
    if (b) {
        *b = (block){.next = blocks, .bytes = bytes};
        blocks = b;
    }
    return b;
}

oly_status oly_staging_reserve(int64_t bytes)
{
    pthread_mutex_lock(&lock);
    bool there = find(bytes, true);
    if (!there) {
        free_idle(); /* smaller ones: this one will do for what they were for */
        there = add(bytes);
    }
    pthread_mutex_unlock(&lock);
    return there ? OLY_OK : oly_out_of_memory((size_t)bytes, "the messages of an exchange");
}

char *oly_staging_take(int64_t bytes)
{
    pthread_mutex_lock(&lock);
    block *b = find(bytes, false);
    if (!b)
        b = add(bytes);
    if (b)
        b->taken = true;
    pthread_mutex_unlock(&lock);
    if (!b)
        oly_out_of_memory((size_t)bytes, "the messages of an exchange");
    return b ? b->memory : NULL;
}

static block *block_of(char *memory)
{
    return (block *)(memory - offsetof(block, memory));
}

void oly_staging_give(char *memory)
{
    pthread_mutex_lock(&lock);
    block_of(memory)->taken = false;
    pthread_mutex_unlock(&lock);
}

void oly_staging_abandon(char *memory)
{
    pthread_mutex_lock(&lock);
    for (block **at = &blocks; *at; at = &(*at)->next)
        if (*at == block_of(memory)) {
            *at = block_of(memory)->next;
            break;
        }
    pthread_mutex_unlock(&lock);
}

int64_t oly_staging_bytes(void)
{
    int64_t bytes = 0;
    pthread_mutex_lock(&lock);
    for (block *b = blocks; b; b = b->next)
        bytes += b->bytes;
    pthread_mutex_unlock(&lock);
    return bytes;
}

void oly_staging_stop(void)
{
    pthread_mutex_lock(&lock);
    free_idle();
    pthread_mutex_unlock(&lock);
}
