/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of GPUs: blocks from the driver's pool, and reads and writes by the host through pinned memory of a fixed size. See gpus.h. */
#include "device/cuda/gpus.h"
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define DO(function, ...) OLY_TRY(oly_cuda_check(oly_driver.function(__VA_ARGS__), #function, d->gpu->label))

bool oly_cuda_allocate(int memory, size_t bytes, void **data)
{
    oly_gpu *g = oly_cuda_device_at(memory)->gpu;
    CUdeviceptr at = 0;
    size_t before = atomic_load(&g->used);
    if (bytes > g->most || before > g->most - bytes || oly_gpu_enter(g) != OLY_OK)
        return false;
    CUresult result = oly_driver.cuMemAllocFromPoolAsync(&at, bytes, g->pool, g->memory_stream);
    if (result == CUDA_SUCCESS) /* other streams use it at once */
        result = oly_driver.cuStreamSynchronize(g->memory_stream);
    oly_gpu_leave();
    if (result != CUDA_SUCCESS)
        return false;
    size_t used = atomic_fetch_add(&g->used, bytes) + bytes, peak = atomic_load(&g->peak);
    while (used > peak && !atomic_compare_exchange_weak(&g->peak, &peak, used))
        ;
    *data = (void *)(uintptr_t)at;
    return true;
}

void oly_cuda_release(int memory, void *data, size_t bytes)
{
    oly_gpu *g = oly_cuda_device_at(memory)->gpu;
    if (oly_gpu_enter(g) != OLY_OK)
        return;
    oly_driver.cuMemFreeAsync((CUdeviceptr)(uintptr_t)data, g->memory_stream);
    oly_gpu_leave();
    atomic_fetch_sub(&g->used, bytes);
}

/* -- staging ---------------------------------------------------------------------------------------------------------------------- */

static oly_status have_stages(oly_cuda_device *d)
{
    for (int k = 0; k < OLY_CUDA_STAGES; k++)
        if (!d->stage[k])
            DO(cuMemHostAlloc, (void **)&d->stage[k], OLY_CUDA_STAGE_BYTES, 0);
    return OLY_OK;
}

static size_t piece(size_t bytes, size_t k)
{
    size_t left = bytes - k * OLY_CUDA_STAGE_BYTES;
    return left < OLY_CUDA_STAGE_BYTES ? left : OLY_CUDA_STAGE_BYTES;
}

static size_t pieces_of(size_t bytes)
{
    return (bytes + OLY_CUDA_STAGE_BYTES - 1) / OLY_CUDA_STAGE_BYTES;
}

/* One stage is filled by the host while the other is copied. */
static oly_status write_staged(oly_cuda_device *d, CUdeviceptr to, const char *host, size_t bytes)
{
    OLY_TRY(have_stages(d));
    for (size_t k = 0; k < pieces_of(bytes); k++) {
        size_t n = piece(bytes, k), stage = k % OLY_CUDA_STAGES;
        if (k >= OLY_CUDA_STAGES)
            DO(cuEventSynchronize, d->staged[stage]);
        memcpy(d->stage[stage], host + k * OLY_CUDA_STAGE_BYTES, n);
        DO(cuMemcpyHtoDAsync, to + k * OLY_CUDA_STAGE_BYTES, d->stage[stage], n, d->copies);
        DO(cuEventRecord, d->staged[stage], d->copies);
    }
    DO(cuStreamSynchronize, d->copies);
    return OLY_OK;
}

static oly_status fetch_piece(oly_cuda_device *d, size_t k, CUdeviceptr from, size_t bytes)
{
    size_t stage = k % OLY_CUDA_STAGES;
    DO(cuMemcpyDtoHAsync, d->stage[stage], from + k * OLY_CUDA_STAGE_BYTES, piece(bytes, k), d->copies);
    DO(cuEventRecord, d->staged[stage], d->copies);
    return OLY_OK;
}

static oly_status read_staged(oly_cuda_device *d, char *host, CUdeviceptr from, size_t bytes)
{
    size_t n = pieces_of(bytes);
    OLY_TRY(have_stages(d));
    OLY_TRY(fetch_piece(d, 0, from, bytes));
    for (size_t k = 0; k < n; k++) {
        if (k + 1 < n)
            OLY_TRY(fetch_piece(d, k + 1, from, bytes));
        DO(cuEventSynchronize, d->staged[k % OLY_CUDA_STAGES]);
        memcpy(host + k * OLY_CUDA_STAGE_BYTES, d->stage[k % OLY_CUDA_STAGES], piece(bytes, k));
    }
    return OLY_OK;
}

oly_status oly_cuda_read(void *host, int memory, const void *from, size_t bytes)
{
    oly_cuda_device *d = oly_cuda_device_at(memory);
    OLY_TRY(oly_gpu_enter(d->gpu));
    pthread_mutex_lock(&d->staging);
    oly_status st = read_staged(d, host, (CUdeviceptr)(uintptr_t)from, bytes);
    pthread_mutex_unlock(&d->staging);
    oly_gpu_leave();
    return st;
}

oly_status oly_cuda_write(int memory, void *to, const void *host, size_t bytes)
{
    oly_cuda_device *d = oly_cuda_device_at(memory);
    OLY_TRY(oly_gpu_enter(d->gpu));
    pthread_mutex_lock(&d->staging);
    oly_status st = write_staged(d, (CUdeviceptr)(uintptr_t)to, host, bytes);
    pthread_mutex_unlock(&d->staging);
    oly_gpu_leave();
    return st;
}

/* The driver finds out which GPUs the addresses belong to. */
oly_status oly_cuda_move(int to_memory, void *to, int from_memory, const void *from, size_t bytes)
{
    const oly_cuda_device *d = oly_cuda_device_at(to_memory);
    (void)from_memory;
    OLY_TRY(oly_gpu_enter(d->gpu));
    oly_status st = oly_cuda_check(
        oly_driver.cuMemcpyAsync((CUdeviceptr)(uintptr_t)to, (CUdeviceptr)(uintptr_t)from, bytes, d->copies),
        "cuMemcpyAsync", d->gpu->label);
    if (st == OLY_OK)
        st = oly_cuda_check(oly_driver.cuStreamSynchronize(d->copies), "cuStreamSynchronize", d->gpu->label);
    oly_gpu_leave();
    return st;
}
