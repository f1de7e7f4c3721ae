/* SPDX-License-Identifier: BSD-3-Clause */
/* Arenas: memory that is freed together, cut from blocks that grow with the arena: 4 KiB, 8 KiB, ... 2 MiB. Freed blocks are
 * kept for the next arena: returning them to the system and getting cleared ones back took half the time of planning a thousand
 * operations. Callable from every layer, by any thread. */
#include "core/arena.h"
#include "core/error.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PIECE       ((size_t)64) /* alignment of large pieces; smaller ones have SMALL_PIECE */
#define SMALL_PIECE ((size_t)16)
#define FIRST_BLOCK ((size_t)4096)
#define MOST_KEPT   ((size_t)128 << 20) /* bytes: enough to plan fifteen thousand operations */

enum { SIZES = 10, LARGEST = SIZES - 1, ONE_OF_A_KIND = SIZES }; /* a block made for one large piece is not kept */

struct oly_arena_block {
    struct oly_arena_block *older;
    char *at, *end; /* its free part; `at` is aligned to SMALL_PIECE */
    int size;       /* FIRST_BLOCK << size bytes */
};

static struct oly_arena_block *kept[SIZES];
static size_t kept_bytes;
static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;

static struct oly_arena_block *take_kept(int size)
{
    pthread_mutex_lock(&kept_lock);
    struct oly_arena_block *block = kept[size];
    if (block) {
        kept[size] = block->older;
        kept_bytes -= FIRST_BLOCK << size;
    }
    pthread_mutex_unlock(&kept_lock);
    return block;
}

/* False: enough are kept. */
static bool keep(struct oly_arena_block *block)
{
#ifdef __SANITIZE_ADDRESS__
    return block == NULL; /* never: so that sanitizers see reads of freed memory */
#endif
    pthread_mutex_lock(&kept_lock);
    bool room = kept_bytes + (FIRST_BLOCK << block->size) <= MOST_KEPT;
    if (room) {
        block->older = kept[block->size];
        kept[block->size] = block;
        kept_bytes += FIRST_BLOCK << block->size;
    }
    pthread_mutex_unlock(&kept_lock);
    return room;
}

void oly_arena_trim(void)
{
    for (int size = 0; size < SIZES; size++)
        for (struct oly_arena_block *block; (block = take_kept(size));)
            oly_release(block);
}

static size_t round_up(size_t bytes, size_t to)
{
    return (bytes + to - 1) / to * to;
}

/* The largest blocks are huge pages, where the kernel gives any: one fault instead of 512, and one entry of the TLB. */
static struct oly_arena_block *largest_block(void)
{
    size_t bytes = FIRST_BLOCK << LARGEST;
    void *block;
    if (posix_memalign(&block, bytes, bytes) != 0)
        return NULL;
    madvise(block, bytes, MADV_HUGEPAGE); /* only advice: if refused, pages are small */
    return block;
}

/* A block with room for `bytes` becomes the newest. */
static bool add_block(oly_arena *a, size_t bytes)
{
    int size = 0;
    while (size < SIZES - 1 && FIRST_BLOCK << size < a->total)
        size++;
    size_t needed = sizeof(struct oly_arena_block) + PIECE + bytes;
    while (size < SIZES && FIRST_BLOCK << size < needed)
        size++;
    size_t all = size == ONE_OF_A_KIND ? needed : FIRST_BLOCK << size;
    struct oly_arena_block *block = NULL;
    if (size < SIZES)
        block = take_kept(size);
    if (!block)
        block = size == LARGEST ? largest_block() : malloc(all);
    if (!block)
        return false;
    uintptr_t first = (uintptr_t)(block + 1);
    block->at = (char *)(block + 1) + (round_up(first, SMALL_PIECE) - first);
    block->end = (char *)block + all;
    block->size = size;
    block->older = a->block;
    a->block = block;
    a->total += all;
    return true;
}

/* The start of a piece in the newest block; NULL: no room. */
static char *begin_of(const oly_arena *a, size_t bytes)
{
    size_t before = 0;
    if (!a->block)
        return NULL;
    if (bytes >= PIECE)
        before = round_up((uintptr_t)a->block->at, PIECE) - (uintptr_t)a->block->at;
    return (size_t)(a->block->end - a->block->at) >= before + bytes ? a->block->at + before : NULL;
}

void *oly_arena_take_raw(oly_arena *a, size_t bytes)
{
    if (bytes > SIZE_MAX / 2 || (oly_some_allocation_fails() && oly_allocation_fails()))
        return NULL;
    bytes = round_up(bytes ? bytes : 1, SMALL_PIECE);
    char *piece = begin_of(a, bytes);
    if (!piece) {
        if (!add_block(a, bytes))
            return NULL;
        piece = begin_of(a, bytes);
    }
    a->block->at = piece + bytes;
    a->used += bytes;
    return piece;
}

void *oly_arena_take(oly_arena *a, size_t bytes)
{
    void *piece = oly_arena_take_raw(a, bytes);
    return piece ? memset(piece, 0, bytes) : NULL;
}

void oly_arena_free(oly_arena *a)
{
    while (a->block) {
        struct oly_arena_block *older = a->block->older;
        if (a->block->size == ONE_OF_A_KIND || !keep(a->block))
            oly_release(a->block);
        a->block = older;
    }
    a->total = a->used = 0;
}
