/* SPDX-License-Identifier: BSD-3-Clause */
/* What a kind of devices provides: which devices a process has, their memory, the order of their work, and facts about them. All code above
 * knows devices by this table only: the pool (device/memory.h) allocates through it, arrays read and write buffers through
 * oly_buffer_map, and the executor (runtime/run) computes. A job has one platform; ranks whose platforms differ are refused
 * at start. docs/platforms.md says what a platform for GPUs has to provide.
 *
 *   cpu         cpu.c         threads of the process as devices, which share host memory
 *   cuda        cuda/         GPUs of NVIDIA
 *   simulated   simulated.c   OLYMPUS_SIMULATE: any number of devices; no memory, nothing is computed
 *
 * Devices are numbered within their process, 0 to devices() - 1. A memory is one address space: on a CPU all devices share
 * memory 0, a GPU has its own. Called by runtime/device, runtime/run and runtime/array. */
#ifndef OLY_DEVICE_PLATFORM_H
#define OLY_DEVICE_PLATFORM_H
#include "core/facts.h"
#include "core/gpu_access.h"
#include <olympus/base.h>

/* Of one process; the last memory is the host's, of CPU devices beside GPUs. */
enum { OLY_MOST_APART = 16, OLY_MOST_MEMORIES = OLY_MOST_APART + 1, OLY_MOST_LATE_DEVICES = 64 };

/* All work submitted to a device up to some point; number 0: none. It may be waited for even after the device was
 * drained. */
typedef struct oly_event {
    int device;
    uint64_t number;
} oly_event;

typedef struct oly_platform {
    const char *name;        /* "cpu" */
    const char *device_name; /* what oly_device_platform returns for its devices */
    bool computes;           /* false: functions are planned and explained, never run */
    bool host_memory;        /* the host may read and write buffers in place; otherwise through read and write below */

    bool one_memory;      /* devices share memory 0; otherwise device d has memory d */
    int (*devices)(void); /* of this process */
    /* CPU devices of each process beside those, all with memory number devices(); the same on every rank. NULL: none. */
    int (*beside)(void);
    const oly_facts *(*facts)(void); /* for the planner; the same on every rank, or the job is refused. NULL: a CPU's */
    /* Number of the group of directly linked devices (as GPUs by their own links) that a device belongs to; NULL: all are one. */
    int (*link_group)(int device);
    /* What NCCL needs of them, once devices() is known; NULL: no GPUs. */
    const oly_gpu_access *(*gpus)(void);

    /* Processes of a node may see the same devices: `set` is the same number for those, 0 where nobody else sees them; `share` says which
     * part of them this process has, and comes before devices() counts. NULL: they are this process's alone. */
    uint64_t (*set)(void);
    void (*share)(int index, int of);
    /* Before anything is allocated, when devices() is known, and at finalize, also after a start that has failed. NULL: nothing to do.
     * fails as the devices do. */
    oly_status (*start)(void);
    void (*stop)(void);
    /* The device's kind and memory, for people; as snprintf. NULL: nothing is said. */
    int (*describe)(int device, char *text, size_t size);
    /* Line k of what they compute with beside kernels of Olympus, and what of it is missing; false: there are no more. NULL: none. */
    bool (*libraries)(int k, char *text, size_t size);
    /* Bytes of the memories of this process's devices that are in use, the most that were, and may be. NULL: not counted. */
    void (*memory_use)(int64_t *now, int64_t *most, int64_t *limit);

    /* A block aligned to 64 bytes, not cleared. False: out of memory. Any thread. */
    bool (*allocate)(int memory, size_t bytes, void **data);
    void (*release)(int memory, void *data, size_t bytes);

    /* The caller has waited for the device, so nothing but pending work (run_ahead) uses these bytes. Return when the copy is complete. fail as
     * the device does. */
    oly_status (*read)(void *host, int memory, const void *from, size_t bytes);
    oly_status (*write)(int memory, void *to, const void *host, size_t bytes);
    oly_status (*copy)(int to_memory, void *to, int from_memory, const void *from, size_t bytes);

    /* Around every use of a buffer by kernels and messages of the host; NULL: not needed. A buffer may be open several
     * times, also in several threads. */
    void (*open)(void *data);
    void (*close)(void *data);

    /* Devices that compute late: work is done some time after it was submitted, on one device in the order of
     * submission, on different devices in any order that waits allow. All four are NULL where work is complete when a
     * function returns. Called by runtime/run/device_order.c, for one device by one thread at a time. False: nothing
     * was queued, for lack of memory; the caller then drains instead. */
    bool (*submit)(int device, void (*run)(void *argument), void *argument); /* run is called once, in any thread.
        NULL: the executor has kernels of its own, and launches them in the device's order itself */
    bool (*record)(int device, oly_event *event);                            /* all work submitted so far */
    bool (*wait)(int device, oly_event event); /* work submitted to the device from now on comes after the event */
    oly_status (*drain)(int device);           /* returns when all is complete; fails as the device did */
    /* Runs may end before the device has done their work (pending.h). Sets mark k, of OLY_PENDING_MARKS, in the device's order, and
     * waits before for what it was set after, if it was. By the thread that submits. `read`, `write`, `copy` and `release` then wait for pending work themselves, and drain may be
     * called by any thread. fails as the device did. NULL: every run is drained. */
    oly_status (*run_ahead)(int device, int k, bool was_set);
} oly_platform;

extern const oly_platform oly_platform_cpu, oly_platform_simulated;

/* The platform of this job; the CPU outside jobs. */
extern const oly_platform *oly_platform_chosen;
static inline const oly_platform *oly_platform_get(void)
{
    return oly_platform_chosen;
}
/* The local device, and the memory, from which on they are the host's: CPU devices beside GPUs. INT32_MAX: none. */
extern int oly_platform_first_beside;
/* The memory of a local device. */
static inline int oly_platform_memory(int device)
{
    if (oly_platform_chosen->one_memory)
        return 0;
    return device < oly_platform_first_beside ? device : oly_platform_first_beside;
}
/* May the host use this memory in place? */
static inline bool oly_platform_is_host(int memory)
{
    return oly_platform_chosen->host_memory || memory >= oly_platform_first_beside;
}
/* Makes the next job's platform this one, in place of the CPU. Before oly_init; NULL takes it back. For platforms that are
 * not part of the library, such as the one of the tests. */
void oly_platform_register(const oly_platform *platform);
/* Does the platform compute submitted work later? */
static inline bool oly_platform_is_late(void)
{
    return oly_platform_chosen->drain != NULL;
}
/* Must kernels of the host be given copies of buffers in host memory? (runtime/run/detour.h) */
static inline bool oly_platform_is_apart(void)
{
    return !oly_platform_chosen->host_memory && !oly_platform_chosen->open;
}
/* At start: the registered platform, or the first of OLYMPUS_PLATFORMS that is there; `simulated`: that one. fails OLY_INVALID: none is
 * there (the message says why); more memories, or late devices, than a process may have. */
oly_status oly_platform_choose(bool simulated);
/* When devices() is final: how many CPU devices each process has beside them. */
int oly_platform_count_beside(void);
void oly_platform_forget(void); /* at finalize, after all buffers are released */

/* What a rank sends the others about its platform. */
typedef struct oly_platform_name {
    char chars[16];
    oly_facts facts;
} oly_platform_name;
oly_platform_name oly_platform_my_name(void);
/* Where OLYMPUS_PLATFORMS lets ranks choose and some of them have no GPU, all use the CPU: true, then, on every rank. Before the next. */
bool oly_platform_fall_back(int n, const oly_platform_name *of, size_t stride);
const char *oly_platform_given_up(void); /* why, in words that end a sentence; "": it was not so */
/* Is the platform the same on all n ranks? of[k * stride bytes] is rank k's. fails OLY_DIVERGED on all of them
 * otherwise. */
oly_status oly_platform_agree(int n, const oly_platform_name *of, size_t stride);
#endif
