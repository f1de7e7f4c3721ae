/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of the devices: reference-counted shard buffers from a pool that reuses them. Buffers come from the platform
 * (platform.h), are aligned to 64 bytes, not cleared, and first touched by their first writer. Thread-safe. In steady state
 * taking and returning a buffer makes no system call. Called by runtime/run and runtime/array.
 *
 * `data` is device memory: executors and messages use it, all other code reads and writes it by oly_buffer_map,
 * oly_buffer_read, oly_buffer_write and oly_buffer_copy.
 *
 * A buffer is held by handles, which may be read at any time, and by queued calls, which use it in their turn. As calls on
 * one device run in order, a buffer that only queued calls of one device still hold is given to the next call on that
 * device at once, before they have run. So queued calls need no more memory than if each were waited for. */
#ifndef OLY_DEVICE_MEMORY_H
#define OLY_DEVICE_MEMORY_H
#include <olympus/base.h>

enum { OLY_NO_LINE = -1, OLY_SEVERAL_LINES = -2 };

typedef struct oly_buffer {
    void *data;
    size_t bytes;    /* requested */
    size_t capacity; /* of the pool's block */
    /* the pool's, under its lock: */
    int handles;
    int calls;        /* queued or running */
    int line;         /* the local device on which all those calls are; OLY_NO_LINE, OLY_SEVERAL_LINES */
    bool spent;       /* no handle will read it again, only calls that are already queued */
    uint8_t memory;   /* of the platform; never changes */
    uint16_t devices; /* for which the call that made it held it; no others ever have */
    uint64_t latest;  /* number of the last call that used it, and how often that call names it */
    int uses;
    int kind;                        /* the memory and the size class; never changes */
    struct oly_buffer *next, **link; /* in the list of free or of spent ones */
    uint64_t hashed,
        contents; /* number of the last value that was hashed, and its hash; owned by the communication queue */
} oly_buffer;

/* A buffer with one handle, in this local device's memory. Waits (helping) while spent buffers hold more than
 * OLYMPUS_QUEUE_MEMORY and a quarter of the other memory in use. NULL when out of memory (the caller reports;
 * oly_buffer_fail's message gives sizes). Zero bytes give a valid buffer. */
oly_buffer *oly_buffer_take(int device, size_t bytes);
oly_buffer *oly_buffer_take_at_once(int device, size_t bytes); /* never waits: for use inside a call */
oly_status oly_buffer_fail(
    size_t bytes,
    const char *what_for);           /* "out of memory: 64.0 MiB for ...; the pool holds ..., the node has ... free" */
void oly_buffer_hold(oly_buffer *b); /* one more handle */
void oly_buffer_drop(oly_buffer *b); /* one less; NULL allowed */
void oly_buffers_drop(int n, oly_buffer *const *all); /* the same for many, NULLs allowed */
int oly_buffer_references(const oly_buffer *b);       /* handles and calls */

/* -- for the host ------------------------------------------------------------------------------------------------
 * The first `bytes` bytes of a buffer whose calls the caller has waited for. Where the platform's devices have no memory
 * (simulated), *host is NULL and what is written goes nowhere.
 *
 *   READ     *host holds the bytes until unmap, also while others read them
 *   WRITE    *host is to be filled, in whole; the bytes are in the buffer after unmap
 *   CHANGE   both
 *
 * On a CPU *host is the buffer's own memory, elsewhere a copy. fail OLY_MEMORY, or as the device does; then nothing is mapped. */
typedef enum oly_access { OLY_ACCESS_READ = 1, OLY_ACCESS_WRITE = 2, OLY_ACCESS_CHANGE = 3 } oly_access;
oly_status oly_buffer_map(const oly_buffer *b, oly_access access, size_t bytes, void **host);
oly_status oly_buffer_unmap(const oly_buffer *b, oly_access access, size_t bytes, void *host);
oly_status oly_buffer_read(const oly_buffer *b, size_t bytes, void *host);
oly_status oly_buffer_write(const oly_buffer *b, size_t bytes, const void *host);
oly_status oly_buffer_copy(const oly_buffer *to, const oly_buffer *from, size_t bytes);

/* -- for runtime/run: buffers of calls that will be queued. Between oly_pool_lock and oly_pool_unlock:
 *   take or use every buffer  ->  the call is queued on its devices: settle  ->  it has run: done
 * A call that takes a buffer must be queued on that device before anybody else learns of the buffer. */
void oly_pool_lock(void);
void oly_pool_unlock(void);
/* A buffer for a call on this device, perhaps one that earlier calls on it still use. It has no handle. Waits as
 * oly_buffer_take does, releasing the lock meanwhile; NULL when out of memory. */
oly_buffer *oly_buffer_take_locked(size_t bytes, int device, uint64_t call); /* call: its number, never 0 */
void oly_buffer_use_locked(oly_buffer *b, int device, uint64_t call); /* a call on this device will read or write it */
void oly_buffer_hold_locked(oly_buffer *b);
/* May this call, which uses it on this device, overwrite it? If a single handle holds it and donates it, the call names
 * it once, and all other calls that use it come before on the device. */
bool oly_buffer_is_sole_locked(const oly_buffer *b, int device, uint64_t call);
/* The same of a buffer that as many devices hold together, all of which the call uses. */
bool oly_buffer_is_theirs_locked(const oly_buffer *b, int devices, uint64_t call);
void oly_buffer_settle_locked(oly_buffer *b); /* its calls are queued: later ones may take it if it has no handle */
void oly_buffer_done_locked(oly_buffer *b);   /* one call less */

void oly_pool_trim(void); /* returns free blocks to the system */
typedef struct oly_pool_statistics {
    size_t in_use_bytes, free_bytes, peak_bytes;
    size_t spent_bytes; /* of those in use: held by queued calls only */
} oly_pool_statistics;
oly_pool_statistics oly_pool_statistics_get(void);
void oly_pool_stop(void); /* frees all free blocks; at finalize */
#endif
