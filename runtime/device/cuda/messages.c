/* SPDX-License-Identifier: BSD-3-Clause */
/* What NCCL needs of the GPUs (core/gpu_access.h): memory for packed bytes, copies between boxes and packed bytes, events. */
#include "core/hash.h"
#include "core/option.h"
#include "device/cuda/gpus.h"

#define DO(function, ...) OLY_TRY(oly_cuda_check(oly_driver.function(__VA_ARGS__), #function, oly_gpu_at(gpu)->label))

static int of_device(int device)
{
    return device / (int)oly_option.devices_per_gpu;
}

static uint64_t identity(int gpu)
{
    uint64_t h = 1;
    for (int k = 0; k < 16; k++)
        h = oly_hash_mix(h, (unsigned char)oly_gpu_at(gpu)->uuid.bytes[k]);
    return h;
}

static oly_status enter(int gpu)
{
    return oly_gpu_enter(oly_gpu_at(gpu));
}

static void leave(int gpu)
{
    (void)gpu;
    oly_gpu_leave();
}

static void *stream_of(int gpu)
{
    return oly_gpu_at(gpu)->message_stream;
}

static oly_status take(int gpu, size_t bytes, void **memory)
{
    CUdeviceptr at = 0;
    DO(cuMemAllocFromPoolAsync, &at, bytes, oly_gpu_at(gpu)->pool, oly_gpu_at(gpu)->message_stream);
    *memory = (void *)(uintptr_t)at;
    return OLY_OK;
}

static void give(int gpu, void *memory)
{
    oly_driver.cuMemFreeAsync((CUdeviceptr)(uintptr_t)memory, oly_gpu_at(gpu)->message_stream);
}

/* Runs of one loop: as a plane of rows where they are apart, otherwise run by run. */
static oly_status copy_rows(int gpu, CUdeviceptr box, int64_t stride, int64_t n, CUdeviceptr packed, size_t run,
                            bool packs)
{
    CUstream stream = oly_gpu_at(gpu)->message_stream;
    if (stride >= (int64_t)run && run > 0) {
        CUDA_MEMCPY2D c = {.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                           .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                           .srcDevice = packs ? box : packed,
                           .srcPitch = packs ? (size_t)stride : run,
                           .dstDevice = packs ? packed : box,
                           .dstPitch = packs ? run : (size_t)stride,
                           .WidthInBytes = run,
                           .Height = (size_t)n};
        DO(cuMemcpy2DAsync, &c, stream);
        return OLY_OK;
    }
    for (int64_t k = 0; k < n; k++, box += (CUdeviceptr)stride, packed += run)
        DO(cuMemcpyAsync, packs ? packed : box, packs ? box : packed, run, stream);
    return OLY_OK;
}

static oly_status copy_box(int gpu, const oly_gpu_box *b, int loop, CUdeviceptr box, CUdeviceptr *packed, bool packs)
{
    size_t run = (size_t)b->run;
    if (loop >= b->loops - 1) {
        int64_t n = b->loops ? b->extent[loop] : 1;
        OLY_TRY(copy_rows(gpu, box, b->loops ? b->stride[loop] : (int64_t)run, n, *packed, run, packs));
        *packed += run * (size_t)n;
        return OLY_OK;
    }
    for (int64_t k = 0; k < b->extent[loop]; k++)
        OLY_TRY(copy_box(gpu, b, loop + 1, box + (CUdeviceptr)(k * b->stride[loop]), packed, packs));
    return OLY_OK;
}

static oly_status pack(int gpu, const oly_gpu_box *box, const void *from, void *packed)
{
    CUdeviceptr at = (CUdeviceptr)(uintptr_t)packed;
    return copy_box(gpu, box, 0, (CUdeviceptr)(uintptr_t)from, &at, true);
}

static oly_status unpack(int gpu, const oly_gpu_box *box, void *to, const void *packed)
{
    CUdeviceptr at = (CUdeviceptr)(uintptr_t)packed;
    return copy_box(gpu, box, 0, (CUdeviceptr)(uintptr_t)to, &at, false);
}

static oly_status record(int gpu, void **event)
{
    if (!*event)
        DO(cuEventCreate, (CUevent *)event, CU_EVENT_DISABLE_TIMING);
    DO(cuEventRecord, (CUevent)*event, oly_gpu_at(gpu)->message_stream);
    return OLY_OK;
}

static oly_status reached(int gpu, void *event, bool *yes)
{
    CUresult result = oly_driver.cuEventQuery((CUevent)event);
    *yes = result == CUDA_SUCCESS;
    return result == CUDA_ERROR_NOT_READY ? OLY_OK : oly_cuda_check(result, "cuEventQuery", oly_gpu_at(gpu)->label);
}

static void forget(int gpu, void *event)
{
    (void)gpu;
    oly_driver.cuEventDestroy((CUevent)event);
}

const oly_gpu_access *oly_cuda_gpu_access(void)
{
    static oly_gpu_access access = {.of_device = of_device,
                                    .identity = identity,
                                    .enter = enter,
                                    .leave = leave,
                                    .stream = stream_of,
                                    .take = take,
                                    .give = give,
                                    .pack = pack,
                                    .unpack = unpack,
                                    .record = record,
                                    .reached = reached,
                                    .forget = forget};
    access.n = oly_gpu_count();
    access.n_devices = oly_cuda_device_count();
    return &access;
}
