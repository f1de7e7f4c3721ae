/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory for packed messages, shared by all exchanges of the process: an exchange takes a block when it starts and returns it
 * when it is over, so that cached plans hold none. All blocks together have at most oly_exchange_memory_limit bytes: an
 * exchange that finds no room waits until a pending one is over. Called by exchange.c and exchange_make.c, in any thread. */
#ifndef OLY_COLLECTIVES_STAGING_H
#define OLY_COLLECTIVES_STAGING_H
#include "communicator.h"

/* Ensures that there is a block of that many bytes: the memory of an exchange is allocated when it is made. */
oly_status oly_staging_reserve(int64_t bytes);
/* The smallest free block of at least that many bytes. If others hold all blocks (exchanges pending at the same time, in their
 * first run) another one is allocated, unless that would exceed the limit and others will return theirs (`wait`): then *block
 * is NULL and OLY_OK is returned. */
oly_status oly_staging_take(int64_t bytes, bool wait, char **block);
void oly_staging_give(char *block);
/* A block that MPI may still write to: never taken again. */
void oly_staging_abandon(char *block);
int64_t oly_staging_bytes(void); /* of all blocks */
/* Its maximum since the last call: for tests. */
int64_t oly_staging_peak(void);
/* Where blocks come from: the heap, or a transport's own memory (take: NULL: none left). Frees the idle ones. While no exchange is
 * started. NULL: the heap. */
typedef struct oly_staging_memory {
    void *(*take)(size_t bytes);
    void (*give)(void *memory);
} oly_staging_memory;
void oly_staging_use(const oly_staging_memory *memory);
void oly_staging_stop(void); /* frees the unused ones */
#endif
