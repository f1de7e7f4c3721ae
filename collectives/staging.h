/* Memory for packed messages, shared by all exchanges of the process: an exchange takes a block when it starts and gives it back
 * when it is over, so that plans that are kept hold none. All blocks together have at most oly_exchange_memory_limit bytes: who
 * finds no room waits until an exchange that is under way is over. Called by exchange.c and exchange_make.c, in any thread. */
#ifndef OLY_COLLECTIVES_STAGING_H
#define OLY_COLLECTIVES_STAGING_H
#include "communicator.h"

/* Sees to it that there is a block of so many bytes: what an exchange will take is allocated when it is made. */
oly_status oly_staging_reserve(int64_t bytes);
/* The smallest free block of at least so many bytes. One more is allocated when others hold all of them (exchanges under way at
 * the same time, in their first run), unless that would be too much and others will give theirs back (`wait`): then *block is
 * NULL, and OLY_OK returned. */
oly_status oly_staging_take(int64_t bytes, bool wait, char **block);
void oly_staging_give(char *block);
/* A block that MPI may still write to: never taken again. */
void oly_staging_abandon(char *block);
int64_t oly_staging_bytes(void); /* of all blocks */
/* The most that it has been since the last call: for tests. */
int64_t oly_staging_peak(void);
void oly_staging_stop(void); /* frees those that nobody holds */
#endif
