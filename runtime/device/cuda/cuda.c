/* SPDX-License-Identifier: BSD-3-Clause */
/* The platform "cuda". See cuda.h, and device/platform.h for the cells. */
#include "device/cuda/cuda.h"
#include "device/cuda/gpus.h"
#include <stdio.h>

static int describe(int device, char *text, size_t size)
{
    const oly_gpu *g = oly_cuda_device_at(device)->gpu;
    return snprintf(text, size, "%s, %.1f GiB, compute capability %d.%d, %d multiprocessors", g->name,
                    (double)g->bytes / (1 << 30), g->major, g->minor, g->processors);
}

static const oly_platform cuda = {.name = "cuda",
                                  .device_name = "cuda",
                                  .computes = true,
                                  .devices = oly_cuda_device_count,
                                  .gpus = oly_cuda_gpu_access,
                                  .set = oly_gpus_set,
                                  .share = oly_gpus_share,
                                  .start = oly_gpus_start,
                                  .stop = oly_gpus_stop,
                                  .describe = describe,
                                  .allocate = oly_cuda_allocate,
                                  .release = oly_cuda_release,
                                  .read = oly_cuda_read,
                                  .write = oly_cuda_write,
                                  .copy = oly_cuda_move,
                                  .record = oly_cuda_record,
                                  .wait = oly_cuda_wait,
                                  .drain = oly_cuda_drain};

oly_status oly_cuda_platform(const oly_platform **platform, const char **why)
{
    bool any;
    *platform = NULL;
    OLY_TRY(oly_gpus_list(&any, why));
    if (any)
        *platform = &cuda;
    return OLY_OK;
}

bool oly_cuda_is_there(const char **why)
{
    return oly_cuda_driver_open(why);
}
