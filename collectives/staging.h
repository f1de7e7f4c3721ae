/* Memory for packed messages, shared by all exchanges of the process: an exchange takes a block when it starts and gives it back
 * when it is finished, so that plans that are kept hold none. Called by exchange.c and exchange_make.c, in any thread. */
#ifndef OLY_COLLECTIVES_STAGING_H
#define OLY_COLLECTIVES_STAGING_H
#include "communicator.h"

/* Sees to it that there is a block of so many bytes: what an exchange will take is allocated when it is made. */
oly_status oly_staging_reserve(int64_t bytes);
/* The smallest free block of at least so many bytes. One more is allocated when others hold all of them (exchanges under way at
 * the same time, in their first run). NULL: out of memory. */
char *oly_staging_take(int64_t bytes);
void oly_staging_give(char *block);
/* A block that MPI may still write to: never taken again. */
void oly_staging_abandon(char *block);
int64_t oly_staging_bytes(void); /* of all blocks */
void oly_staging_stop(void);     /* frees those that nobody holds */
#endif
