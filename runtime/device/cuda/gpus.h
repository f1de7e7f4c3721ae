/* SPDX-License-Identifier: BSD-3-Clause */
/* The GPUs of this process and its devices on them: a device is a GPU, or one of the OLYMPUS_DEVICES_PER_GPU parts of it, with streams of its own.
 * Contexts and streams are made when the platform starts. For runtime/device/cuda and runtime/run/cuda only. */
#ifndef OLY_DEVICE_CUDA_GPUS_H
#define OLY_DEVICE_CUDA_GPUS_H
#include "core/gpu_access.h"
#include "device/cuda/driver.h"
#include "device/pending.h"
#include "device/platform.h"

enum { OLY_CUDA_EVENTS = 64, OLY_CUDA_STAGES = 2, OLY_CUDA_STAGE_BYTES = 4 << 20 };

typedef struct oly_gpu {
    int number; /* of the driver, among those that this process sees */
    CUdevice device;
    CUuuid uuid;
    char name[96];
    char label[128]; /* for messages: "CUDA device 0 (NVIDIA H100)" */
    size_t bytes;    /* of its memory */
    int major, minor, processors;
    int shared, shared_each; /* bytes of shared memory: of a processor, and at most of a block */
    int clock, memory_clock; /* kHz, at most; 0: the driver does not say */
    int bus, cache;          /* bits of the memory's bus; bytes of the last cache */
    int links;    /* number of the first GPU that it is linked to (NVLink), itself among them: the same for a group */
    char pci[16]; /* "0000:3b:00.0" */
    CUcontext context;       /* its primary context; NULL: not started */
    CUmemoryPool pool;       /* of its devices together */
    CUstream memory_stream;  /* in which memory is taken and returned */
    CUstream message_stream; /* messages between processes: NCCL, boxes packed and unpacked */
    CUstream packing_stream; /* small boxes; waits for no other process */
    _Atomic size_t used, peak;
    size_t most; /* bytes that the pool may hold */
} oly_gpu;

typedef struct oly_cuda_device {
    oly_gpu *gpu;
    CUstream stream; /* in which it computes */
    CUstream copies; /* reads and writes by the host */
    CUevent event[OLY_CUDA_EVENTS];
    uint64_t recorded;
    CUevent mark[OLY_PENDING_MARKS]; /* of runs that leave work pending */
    pthread_mutex_t staging;         /* of `stage`: pinned memory through which the host reads and writes */
    char *stage[OLY_CUDA_STAGES];
    CUevent staged[OLY_CUDA_STAGES];
} oly_cuda_device;

int oly_gpu_count(void); /* that this process uses */
oly_gpu *oly_gpu_at(int k);
int oly_cuda_device_count(void);
oly_cuda_device *oly_cuda_device_at(int device);
int oly_cuda_link_group(int device); /* of this process's share; oly_platform.link_group */
/* Can kernels of GPU `a` use the memory of GPU `b`? */
bool oly_gpu_reaches(const oly_gpu *a, const oly_gpu *b);

/* Around calls of the driver: the GPU's context is the calling thread's. */
oly_status oly_gpu_enter(const oly_gpu *g);
void oly_gpu_leave(void);

/* gpus.c: lists the GPUs. False: none, and why. */
oly_status oly_gpus_list(bool *any, const char **why);
void oly_gpus_share(int index, int of);
uint64_t oly_gpus_set(void); /* the same for processes that see the same GPUs; 0: of this process alone */
oly_status oly_gpus_start(void);
void oly_gpus_stop(void);
/* Called once when the platform stops, before contexts are given back: what runtime/run/cuda keeps on GPUs. The same function again does
 * nothing. */
void oly_gpus_at_stop(void (*stop)(void));

/* memory.c, order.c: cells of the platform. */
bool oly_cuda_allocate(int memory, size_t bytes, void **data);
void oly_cuda_release(int memory, void *data, size_t bytes);
oly_status oly_cuda_read(void *host, int memory, const void *from, size_t bytes);
oly_status oly_cuda_write(int memory, void *to, const void *host, size_t bytes);
oly_status oly_cuda_move(int to_memory, void *to, int from_memory, const void *from, size_t bytes);
bool oly_cuda_record(int device, oly_event *event);
bool oly_cuda_wait(int device, oly_event event);
oly_status oly_cuda_drain(int device); /* any thread */
oly_status oly_cuda_run_ahead(int device, int k, bool was_set);
/* Around recording the launches of this thread: nobody may wait for a stream that is recorded. False: somebody waits, now. */
bool oly_cuda_capture_begins(void);
void oly_cuda_capture_ends(void);
const oly_gpu_access *oly_cuda_gpu_access(void);
#endif
