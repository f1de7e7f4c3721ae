/* SPDX-License-Identifier: BSD-3-Clause */
/* Arenas: memory that is freed together, as of a trace or a plan. Pieces are zeroed, and aligned to 16 bytes, from 64 bytes on to 64. */
#ifndef OLY_CORE_ARENA_H
#define OLY_CORE_ARENA_H
#include "core/error.h"
#include <stddef.h>

typedef struct oly_arena {
    struct oly_arena_block *block; /* newest */
    size_t total;                  /* bytes taken from the system */
    size_t used;                   /* of the pieces */
} oly_arena;

void *oly_arena_take(oly_arena *a, size_t bytes);     /* NULL if out of memory */
void *oly_arena_take_raw(oly_arena *a, size_t bytes); /* not zeroed */
/* list = room for count entries, and one more; out of memory, the enclosing function returns. */
#define OLY_ARENA_LIST(arena, list, count)                                                                             \
    do {                                                                                                               \
        (list) = oly_arena_take((arena), sizeof *(list) * ((size_t)(count) + 1));                                      \
        if (!(list))                                                                                                   \
            return oly_out_of_memory(sizeof *(list) * (size_t)(count), "a list");                                      \
    } while (0)
#define OLY_ARENA_NEW(arena, type, count) ((type *)oly_arena_take((arena), sizeof(type) * (size_t)(count)))
void oly_arena_free(oly_arena *a);
void oly_arena_trim(void); /* frees kept blocks; at finalize */
#endif
