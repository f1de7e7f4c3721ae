/* Memory of the devices: shard buffers, counted, from a pool that reuses them. Buffers are aligned to 64 bytes (2 MiB and
 * huge-page advice from 4 MiB on), not cleared, first touched by whoever writes them first. Thread-safe. In steady state
 * taking and returning a buffer makes no system call. In a simulated job (core/simulate.h) buffers have no memory: data is NULL.
 * Called by runtime/run and runtime/array. */
#ifndef OLY_DEVICE_MEMORY_H
#define OLY_DEVICE_MEMORY_H
#include <olympus/base.h>

typedef struct oly_buffer {
    void *data;
    size_t bytes;    /* asked for */
    size_t capacity; /* of the pool's block */
    int references;  /* atomic */
    struct oly_buffer *next_free;
} oly_buffer;

/* A buffer with one reference. NULL when out of memory (the caller reports; the message of oly_buffer_fail tells sizes). Zero
 * bytes give a valid buffer. */
oly_buffer *oly_buffer_take(size_t bytes);
oly_status oly_buffer_fail(
    size_t bytes,
    const char *what_for); /* "out of memory: 64.0 MiB for ...; the pool holds ..., the node has ... free" */
void oly_buffer_hold(oly_buffer *b);
void oly_buffer_drop(oly_buffer *b); /* NULL allowed; the last reference returns it to the pool */
int oly_buffer_references(const oly_buffer *b);
void oly_pool_trim(void); /* gives free blocks back to the system */
typedef struct oly_pool_statistics {
    size_t in_use_bytes, free_bytes, peak_bytes;
} oly_pool_statistics;
oly_pool_statistics oly_pool_statistics_get(void);
void oly_pool_stop(void); /* frees everything free; at finalize */
#endif
