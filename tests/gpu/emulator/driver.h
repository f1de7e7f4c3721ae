/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of the emulated driver. One lock protects all of it; whoever waits for a stream does the work of all of them.
 *
 *   memory.c    device memory, which only copies and kernels can touch
 *   streams.c   streams and events: what is done when
 *   work.c      what streams do: kernels, copies
 *   faults.c    calls that fail on request
 *   graphs.c    graphs, and streams that are captured into them
 *   driver.c, driver_memory.c, driver_streams.c   the driver's functions
 *
 * The other emulated libraries (cuBLASLt, NCCL) use what is exported. */
#ifndef EMULATED_DRIVER_H
#define EMULATED_DRIVER_H
#include "launch.h"
#pragma GCC visibility push(default)
#include <cuda.h>
#pragma GCC visibility pop
#include <pthread.h>

enum { MOST_GPUS = 16 };

/* -- locking: every entry point holds the lock ---------------------------------------------------------------------------------- */
EMULATED_EXPORT void emulated_lock(void);
EMULATED_EXPORT void emulated_unlock(void);

/* -- faults.c: EMULATED_FAIL="alloc:7,launch:3+,lost:100@1": the 7th allocation, launches from the 3rd on, ... of rank 1 only ----- */
/* Does this call of `kind` fail? */
EMULATED_EXPORT bool emulated_fails(const char *kind);
EMULATED_EXPORT long emulated_slow(const char *way);
EMULATED_EXPORT bool emulated_is_idle(void); /* EMULATED_IDLE: kernels do nothing */
int emulated_process_rank(void);             /* as its launcher says; 0 */

/* -- contexts (driver.c) ---------------------------------------------------------------------------------------------------------- */
struct CUctx_st {
    int device, retained;
    bool primary;
    CUresult error; /* what failed stays so */
    unsigned peers; /* devices whose memory its kernels may use */
    struct CUctx_st *next;
};
/* The calling thread's; NULL: none. */
EMULATED_EXPORT CUcontext emulated_context(void);
int emulated_devices(void);
bool emulated_has_failed(int device); /* nothing uses its memory any more */
size_t emulated_device_memory(void);

/* -- order.c: what comes after what, by streams, events and the host's waits alone --------------------------------------------------- */
enum { MOST_CLOCKS = 64 };
typedef struct emulated_clock { /* pieces of work of each stream that come before */
    uint64_t of[MOST_CLOCKS];
} emulated_clock;
typedef struct emulated_uses { /* of a block: the latest of each stream */
    emulated_clock reads, writes;
} emulated_uses;
int emulated_clock_take(void); /* a number for a stream; given back, and taken again by a later one */
void emulated_clock_give(int number);
void emulated_clock_join(emulated_clock *to, const emulated_clock *from);
extern emulated_clock emulated_host_clock; /* what the host has waited for */
/* The piece of work that runs: its stream's number and what came before it; NULL: none. */
void emulated_order_begin(int number, const emulated_clock *before);
void emulated_order_end(void);
/* It uses a block, or frees it. Uses that nothing orders before the free end the process; with EMULATED_ORDER=1 also writes that
 * nothing orders with other uses of the same block, which may touch other bytes of it. */
struct emulated_block;
void emulated_order_use(struct emulated_block *block, bool writes);
void emulated_order_free(const struct emulated_block *block);

/* -- memory.c --------------------------------------------------------------------------------------------------------------------- */
enum block_state { RESERVED, LIVE, FREED };
typedef struct emulated_block {
    char *address;       /* of the device */
    size_t bytes, pages; /* asked for; of its pages, in bytes */
    int device, number;
    enum block_state state; /* RESERVED: cuMemAllocAsync was called, and its moment has not come */
    int open;               /* protection now */
    unsigned peers;         /* devices that may use it by its pool */
    bool pooled;            /* of cuMemAllocAsync */
    emulated_uses *uses;    /* owned; until it is freed */
} emulated_block;

/* NULL: out of memory. */
emulated_block *emulated_memory_take(int device, size_t bytes, enum block_state state);
void emulated_memory_free(emulated_block *block);          /* from now on */
emulated_block *emulated_memory_find(const void *address); /* a block that has this byte, or NULL; freed ones, too */
/* Where the host reads or writes these bytes: the address itself for host memory; otherwise inside one live block. `what` names who. */
EMULATED_EXPORT void *emulated_memory_at(const char *what, const void *address, size_t bytes, bool writes);
EMULATED_EXPORT bool emulated_memory_is_device(const void *address);
/* Device memory can be touched by this thread between the two, as kernels of the context may. */
EMULATED_EXPORT void emulated_memory_open(CUcontext context);
EMULATED_EXPORT void emulated_memory_close(void);
void emulated_memory_check(const void *address, size_t bytes); /* of a kernel that tells what it uses */
size_t emulated_memory_used(int device);
void emulated_memory_leaks(int *blocks, size_t *bytes);
/* Pinned host memory. */
EMULATED_EXPORT void emulated_pinned_add(const void *address, size_t bytes);
EMULATED_EXPORT bool emulated_pinned_remove(const void *address);
EMULATED_EXPORT bool emulated_pinned_has(const void *address);

/* -- work: what a stream, or a node of a graph, does ------------------------------------------------------------------------------- */
typedef struct emulated_work {
    const char *name;
    bool (*run)(struct emulated_work *work, CUcontext context); /* false: again later */
    void (*drop)(struct emulated_work *work);                   /* releases it; NULL: free */
    bool unlocked;                                              /* run without the lock: a function of the user's */
    bool foreign;                                               /* needs other processes */
    bool always;                                                /* also after a failure: memory is freed */
    size_t bytes;                                               /* of the whole; 0: it cannot be copied into a graph */
} emulated_work;
/* Next in the stream; owns the work, also on failure. */
EMULATED_EXPORT CUresult emulated_submit(CUstream stream, emulated_work *work);
void emulated_work_drop(emulated_work *work);

/* -- work.c -------------------------------------------------------------------------------------------------------------------------- */
typedef struct emulated_copy {
    char *to;
    const char *from;
    size_t bytes, rows, to_pitch, from_pitch, layers, to_layer, from_layer;
    void *snapshot; /* owned: pageable memory was read at the call */
} emulated_copy;
struct CUfunc_st {
    const emulated_kernel *kernel;
    int dynamic; /* most bytes of shared memory allowed */
    struct CUfunc_st *next;
};
emulated_work *emulated_work_kernel(CUfunction function, emulated_size blocks, emulated_size threads, unsigned shared,
                                    void **parameters, void **extra);
emulated_work *emulated_work_copy(emulated_copy copy);
emulated_copy emulated_copy_of(const CUDA_MEMCPY3D *copy);
emulated_work *emulated_work_set(CUdeviceptr to, uint32_t value, int width, size_t count);
emulated_work *emulated_work_host(CUhostFn function, void *argument);
emulated_work *emulated_work_free(emulated_block *block);
emulated_work *emulated_work_live(emulated_block *block);
/* New parameters of a kernel in a graph. */
CUresult emulated_work_kernel_update(emulated_work *work, emulated_work *with);
bool emulated_work_is_kernel(const emulated_work *work);

/* -- streams.c ------------------------------------------------------------------------------------------------------------------------ */
typedef struct emulated_record { /* a call of cuEventRecord */
    int references;
    bool done;
    double time;
    emulated_clock clock; /* of what came before, when it is done */
} emulated_record;
struct CUevent_st {
    emulated_record *last; /* NULL: never recorded */
    CUcontext context;
    bool timing;
    struct capture_point *captured; /* recorded in a stream that is captured */
};
CUstream emulated_stream(CUstream stream); /* with the default stream of the context for 0; NULL: none */
CUresult emulated_stream_make(CUcontext context, bool blocking, CUstream *made);
CUresult emulated_record_event(CUstream stream, CUevent event);
CUresult emulated_wait_event(CUstream stream, CUevent event);
void emulated_record_release(emulated_record *record);
/* Works until the stream (NULL: all of the context; context NULL: everything) has done what it was given; what failed. */
CUresult emulated_finish(CUstream stream, CUcontext context);
CUresult emulated_finish_record(emulated_record *record, CUcontext context);
void emulated_poke(void); /* somebody asks: some work may be done */
bool emulated_stream_idle(CUstream stream);
void emulated_stream_end(CUstream stream); /* when its work is done */
void emulated_streams_end(CUcontext context);
CUcontext emulated_stream_context(CUstream stream);
int emulated_streams_left(void);
/* What happens at exit and on request to the streams' order. */
struct graph_capture;
struct graph_capture **emulated_stream_capture(CUstream stream);
struct capture_point **emulated_stream_point(CUstream stream);
void emulated_streams_forget_capture(const struct graph_capture *capture);
EMULATED_EXPORT double emulated_now(void);

/* -- graphs.c ---------------------------------------------------------------------------------------------------------------------------- */
/* Is the stream captured? Then the work, an event or a wait becomes part of the graph. */
bool emulated_capturing(CUstream stream);
CUresult emulated_capture_work(CUstream stream, emulated_work *work);
CUresult emulated_capture_record(CUstream stream, CUevent event);
bool emulated_capture_waits(CUstream stream, CUevent event); /* true: it was a matter of a capture */

/* Conditional nodes: EMULATED_CONDITIONS=0: the driver has none; a kernel sets a condition of its graph. */
bool emulated_has_conditions(void);
void emulated_graph_condition(uint64_t handle, unsigned value);

/* What a function does first: the context's error, a lost device, no context. */
#define EMULATED_ENTER(context)                                                                                        \
    emulated_lock();                                                                                                   \
    CUcontext context = emulated_context();                                                                            \
    CUresult entered = emulated_enter(context);                                                                        \
    if (entered != CUDA_SUCCESS)                                                                                       \
    return emulated_leave(entered)
CUresult emulated_enter(CUcontext context);
EMULATED_EXPORT CUresult emulated_leave(CUresult result); /* unlocks */
#endif
