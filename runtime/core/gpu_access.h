/* SPDX-License-Identifier: BSD-3-Clause */
/* What a transport that sends from the memory of GPUs needs of the platform: a table that the platform fills in (platform.h) and
 * collectives/transport_nccl.c uses. GPUs of a process are numbered from 0; several devices may share one. All functions are
 * called by the thread that interprets a plan, or at start and end; those below `stream` between enter and leave. fail as the device
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
    /* In that stream: memory for packed bytes, its release, and copies between a box and packed bytes. The box may be on another
     * GPU of this process. */
    oly_status (*take)(int gpu, size_t bytes, void **memory);
    void (*give)(int gpu, void *memory);
    oly_status (*pack)(int gpu, const oly_gpu_box *box, const void *from, void *packed);
    oly_status (*unpack)(int gpu, const oly_gpu_box *box, void *to, const void *packed);
    /* All that the stream has been given so far; is it done? An event can be recorded again once it has been reached. */
    oly_status (*record)(int gpu, void **event); /* *event NULL: makes one */
    oly_status (*reached)(int gpu, void *event, bool *yes);
    void (*forget)(int gpu, void *event);
} oly_gpu_access;
#endif
