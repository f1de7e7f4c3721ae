/* SPDX-License-Identifier: BSD-3-Clause */
/* What transports between the memories of GPUs need of the platform: a table that the platform fills in (platform.h) and
 * collectives/transport_gpu.c and transport_nccl.c use. GPUs of a process are numbered from 0; several devices may share one. All
 * functions are called by the thread that interprets a plan, or at start and end; those between enter and leave. fail as the device
 * does. */
#ifndef OLY_GPU_ACCESS_H
#define OLY_GPU_ACCESS_H
#include "core/error.h"
#include <stdint.h>

enum { OLY_MOST_GPUS = 16, OLY_MOST_GPU_DEVICES = 64 }; /* of one process */

/* A box in memory as loops over runs of consecutive bytes; packed, the runs follow each other. */
typedef struct oly_gpu_box {
    int64_t run;                    /* bytes */
    int loops;                      /* 0: one run */
    const int64_t *extent, *stride; /* [loops]; outermost first; bytes */
} oly_gpu_box;

typedef struct oly_gpu_access {
    int n;                         /* GPUs of this process */
    int n_devices;                 /* of this process, all of them on GPUs */
    int (*of_device)(int device);  /* the GPU of local device 0 to n_devices - 1 */
    uint64_t (*identity)(int gpu); /* of the card: the same for all processes that use it, otherwise different */
    oly_status (*enter)(int gpu);  /* its context becomes the calling thread's, until leave */
    void (*leave)(int gpu);
    void *(*stream)(int gpu); /* a CUstream for communication, ordered with nothing else */
    /* In that stream: memory for packed bytes, its release, and copies between bytes begin to end of a box, as it is packed, and
     * `packed`, where byte `begin` is: of a GPU, or pinned. The box may be on another GPU of this process, box_gpu. */
    oly_status (*take)(int gpu, size_t bytes, void **memory);
    void (*give)(int gpu, void *memory);
    oly_status (*pack)(int gpu, int box_gpu, const oly_gpu_box *box, int64_t begin, int64_t end, const void *from,
                       void *packed);
    oly_status (*unpack)(int gpu, int box_gpu, const oly_gpu_box *box, int64_t begin, int64_t end, void *to,
                         const void *packed);
    /* The same for a box of this GPU in a stream that never waits for other processes; and waits until it is done. */
    oly_status (*pack_now)(int gpu, const oly_gpu_box *box, int64_t begin, int64_t end, const void *from, void *packed);
    oly_status (*unpack_now)(int gpu, const oly_gpu_box *box, int64_t begin, int64_t end, void *to, const void *packed);
    oly_status (*finish_now)(int gpu);
    /* Memory of the host that GPUs copy from and to by themselves. NULL: none is left. */
    void *(*pin)(int gpu, size_t bytes);
    void (*unpin)(int gpu, void *memory);
    /* All that the stream has been given so far; is it done? An event can be recorded again once it has been reached. */
    oly_status (*record)(int gpu, void **event); /* *event NULL: makes one */
    oly_status (*reached)(int gpu, void *event, bool *yes);
    void (*forget)(int gpu, void *event);
} oly_gpu_access;
#endif
