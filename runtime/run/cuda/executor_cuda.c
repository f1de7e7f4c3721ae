/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of the executor for GPUs. See executor_cuda.h. */
#include "run/cuda/executor_cuda.h"
#include "core/error.h"
#include "device/cuda/gpus.h"
#include "run/cuda/bytes.h"
#include "run/cuda/early_reads.h"
#include "run/cuda/epilogues.h"
#include "run/cuda/features_last.h"
#include "run/cuda/forecast_gpu.h"
#include "run/cuda/graphs.h"
#include "run/cuda/loop_graphs.h"
#include "run/cuda/row_chains.h"
#include "run/cuda/steps.h"
#include <string.h>

/* The counter of a loop: set by the device, in its order. */
static oly_status write_value(int device, void *to, const void *value, size_t bytes)
{
    const oly_cuda_device *d = oly_cuda_device_at(device);
    uint32_t word;
    if (device >= oly_cuda_device_count()) { /* a CPU device */
        memcpy(to, value, bytes);
        return OLY_OK;
    }
    if (bytes != sizeof word) {
        OLY_TRY(oly_cuda_drain(device));
        return oly_cuda_write(device, to, value, bytes);
    }
    memcpy(&word, value, sizeof word);
    OLY_TRY(oly_gpu_enter(d->gpu));
    oly_status st = oly_cuda_check(oly_driver.cuMemsetD32Async((CUdeviceptr)(uintptr_t)to, word, 1, d->stream),
                                   "cuMemsetD32Async", d->gpu->label);
    oly_gpu_leave();
    return st;
}

static oly_status copy_value(int device, void *to, const void *from, size_t bytes)
{
    const oly_cuda_device *d = oly_cuda_device_at(device);
    if (device >= oly_cuda_device_count()) {
        memcpy(to, from, bytes);
        return OLY_OK;
    }
    OLY_TRY(oly_gpu_enter(d->gpu));
    oly_status st = oly_cuda_check(
        oly_driver.cuMemcpyDtoDAsync((CUdeviceptr)(uintptr_t)to, (CUdeviceptr)(uintptr_t)from, bytes, d->stream),
        "cuMemcpyDtoDAsync", d->gpu->label);
    oly_gpu_leave();
    return st;
}

static oly_status prepare(oly_plan *plan)
{
    OLY_TRY(oly_cuda_find_byte_products(plan));
    OLY_TRY(oly_cuda_find_epilogues(plan));
    OLY_TRY(oly_cuda_find_features_last(plan));
    return oly_cuda_find_row_chains(plan);
}

const oly_executor *oly_executor_cuda(void)
{
    static oly_executor cuda = {.name = "cuda",
                                .launch = oly_cuda_launch_share,
                                .has = oly_cuda_has,
                                .prepare = prepare,
                                .write = write_value,
                                .copy = copy_value,
                                .read_begin = oly_cuda_read_begin,
                                .read_end = oly_cuda_read_end,
                                .forecast = oly_cuda_forecast,
                                .replay = oly_cuda_replay,
                                .forget = oly_cuda_forget,
                                .iterate = oly_cuda_iterate,
                                .forget_loop = oly_cuda_forget_loop};
    return &cuda;
}
