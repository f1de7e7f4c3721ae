/* Memory that dies together, cut from blocks that grow with the arena. Callable from every layer. */
#include "core/arena.h"
#include "core/error.h"

#define PIECE         ((size_t)64)
#define FIRST_BLOCK   ((size_t)4096)
#define LARGEST_BLOCK ((size_t)1 << 20)

struct oly_arena_block {
    struct oly_arena_block *older;
    char *at, *end; /* what is left of it; `at` is aligned */
};

static size_t round_up(size_t bytes)
{
    return (bytes + PIECE - 1) / PIECE * PIECE;
}

/* A block with room for `bytes` (rounded) becomes the newest. Cleared by the system where it is fresh. */
static bool add_block(oly_arena *a, size_t bytes)
{
    size_t room = a->total < FIRST_BLOCK ? FIRST_BLOCK : a->total < LARGEST_BLOCK ? a->total : LARGEST_BLOCK;
    if (room < bytes)
        room = bytes;
    size_t size = sizeof(struct oly_arena_block) + PIECE + room;
    struct oly_arena_block *block = oly_calloc(1, size);
    if (!block)
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
    return piece;
}

void oly_arena_free(oly_arena *a)
{
    while (a->block) {
        struct oly_arena_block *older = a->block->older;
        oly_release(a->block);
        a->block = older;
    }
    a->total = 0;
}
