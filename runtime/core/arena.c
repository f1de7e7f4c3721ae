/* Memory that dies together, cut from blocks that grow with the arena. Blocks of the largest size are kept for the next arena:
 * going back to the system and coming back cleared cost half the time of planning a thousand operations. Callable from every
 * layer, by any thread. */
#include "core/arena.h"
#include "core/error.h"
#include <pthread.h>
#include <string.h>

#define PIECE         ((size_t)64)
#define FIRST_BLOCK   ((size_t)4096)
#define LARGEST_BLOCK ((size_t)1 << 20)

#define MOST_KEPT 128 /* blocks: what planning ten thousand operations takes */

struct oly_arena_block {
    struct oly_arena_block *older;
    char *at, *end; /* what is left of it; `at` is aligned */
};

static struct oly_arena_block *kept;
static int n_kept;
static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;

static struct oly_arena_block *take_kept(void)
{
    pthread_mutex_lock(&kept_lock);
    struct oly_arena_block *block = kept;
    if (block) {
        kept = block->older;
        n_kept--;
    }
    pthread_mutex_unlock(&kept_lock);
    return block;
}

/* False: there are enough. */
static bool keep(struct oly_arena_block *block)
{
    pthread_mutex_lock(&kept_lock);
    bool room = n_kept < MOST_KEPT;
    if (room) {
        block->older = kept;
        kept = block;
        n_kept++;
    }
    pthread_mutex_unlock(&kept_lock);
    return room;
}

void oly_arena_trim(void)
{
    for (struct oly_arena_block *block; (block = take_kept());)
        oly_release(block);
}

static size_t round_up(size_t bytes)
{
    return (bytes + PIECE - 1) / PIECE * PIECE;
}

/* A block with room for `bytes` (rounded) becomes the newest. */
static bool add_block(oly_arena *a, size_t bytes)
{
    size_t room = a->total < FIRST_BLOCK ? FIRST_BLOCK : a->total < LARGEST_BLOCK ? a->total : LARGEST_BLOCK;
    if (room < bytes)
        room = bytes;
    size_t size = sizeof(struct oly_arena_block) + PIECE + room;
    struct oly_arena_block *block = NULL;
    if (room == LARGEST_BLOCK)
        block = oly_allocation_fails() ? NULL : take_kept();
    if (!block && !(block = oly_malloc(size)))
        return false;
    uintptr_t first = (uintptr_t)(block + 1);
    block->at = (char *)(block + 1) + (round_up(first) - first);
    block->end = (char *)block + size;
    block->older = a->block;
    a->block = block;
    a->total += size;
    return true;
}

void *oly_arena_take(oly_arena *a, size_t bytes)
{
    if (bytes > SIZE_MAX / 2)
        return NULL;
    bytes = round_up(bytes ? bytes : 1);
    if ((!a->block || (size_t)(a->block->end - a->block->at) < bytes) && !add_block(a, bytes))
        return NULL;
    void *piece = a->block->at;
    a->block->at += bytes;
    return memset(piece, 0, bytes);
}

void oly_arena_free(oly_arena *a)
{
    while (a->block) {
        struct oly_arena_block *older = a->block->older;
        if (a->block->end - (char *)a->block != (ptrdiff_t)(sizeof *older + PIECE + LARGEST_BLOCK) || !keep(a->block))
            oly_release(a->block);
        a->block = older;
    }
    a->total = 0;
}
