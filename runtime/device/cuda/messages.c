/* SPDX-License-Identifier: BSD-3-Clause */
/* What messages between processes need of the GPUs (core/gpu_access.h): memory for packed bytes, boxes packed and unpacked by kernels, events. */
#include "core/hash.h"
#include "core/gpu_pack.h"
#include "core/option.h"
#include "device/cuda/gpus.h"
#include "device/cuda/modules.h"
#include <string.h>

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

/* -- boxes ------------------------------------------------------------------------------------------------------------------------- */

/* Part of a box that is packed, or unpacked. */
typedef struct part {
    int gpu; /* whose stream */
    CUstream stream;
    const oly_gpu_box *box;
    CUdeviceptr at, packed; /* of the box; of its packed byte `begin` */
    int64_t begin, end;
    bool unpacks;
} part;

static oly_status copy_run(const part *p, CUdeviceptr strided, CUdeviceptr packed, size_t bytes)
{
    int gpu = p->gpu;
    DO(cuMemcpyAsync, p->unpacks ? strided : packed, p->unpacks ? packed : strided, bytes, p->stream);
    return OLY_OK;
}

/* Run by run: boxes of GPUs whose memory this one's kernels do not reach. */
static oly_status copy_runs(const part *p)
{
    const oly_gpu_box *b = p->box;
    for (int64_t at = p->begin, bytes; at < p->end; at += bytes) {
        int64_t point = at / b->run, within = at % b->run, offset = within;
        for (int d = b->loops - 1; d >= 0; d--) {
            offset += point % b->extent[d] * b->stride[d];
            point /= b->extent[d];
        }
        bytes = b->run - within < p->end - at ? b->run - within : p->end - at;
        OLY_TRY(copy_run(p, p->at + (CUdeviceptr)offset, p->packed + (CUdeviceptr)(at - p->begin), (size_t)bytes));
    }
    return OLY_OK;
}

/* The most bytes, up to 16, that all numbers and addresses are multiples of. */
static int64_t unit_of(const part *p)
{
    uint64_t all = 16 | p->at | p->packed | (uint64_t)p->begin | (uint64_t)p->end | (uint64_t)p->box->run;
    for (int d = 0; d < p->box->loops; d++)
        all |= (uint64_t)p->box->stride[d];
    return (int64_t)(all & -all);
}

static oly_status launch(const part *p)
{
    enum { THREADS = 256, BLOCKS_OF_PROCESSOR = 8 };
    static const char *const kernels[] = {
        [1] = "oly_pack_1", [2] = "oly_pack_2", [4] = "oly_pack_4", [8] = "oly_pack_8", [16] = "oly_pack_16"};
    int64_t unit = unit_of(p), n = (p->end - p->begin) / unit, blocks = (n + THREADS - 1) / THREADS;
    int gpu = p->gpu, most = oly_gpu_at(gpu)->processors * BLOCKS_OF_PROCESSOR;
    oly_gpu_pack_task t = {.box = (char *)(uintptr_t)p->at,
                           .packed = (char *)(uintptr_t)p->packed,
                           .begin = p->begin / unit,
                           .n = n,
                           .run = p->box->run / unit,
                           .loops = p->box->loops,
                           .unpacks = p->unpacks};
    for (int d = 0; d < t.loops; d++) {
        t.extent[d] = p->box->extent[d];
        t.stride[d] = p->box->stride[d] / unit;
    }
    CUfunction f;
    void *parameters[] = {&t};
    OLY_TRY(oly_cuda_function(oly_gpu_at(gpu), "pack", kernels[unit], 0, &f));
    DO(cuLaunchKernel, f, (unsigned)(blocks < most || most < 1 ? blocks : most), 1, 1, THREADS, 1, 1, 0, p->stream,
       parameters, NULL);
    return OLY_OK;
}

static oly_status move_part(const part *p, int box_gpu)
{
    if (p->begin >= p->end)
        return OLY_OK;
    if (p->box->loops == 0)
        return copy_run(p, p->at + (CUdeviceptr)p->begin, p->packed, (size_t)(p->end - p->begin));
    if (p->box->loops > OLY_GPU_PACK_LOOPS || !oly_gpu_reaches(oly_gpu_at(p->gpu), oly_gpu_at(box_gpu)))
        return copy_runs(p);
    return launch(p);
}

#define PART(lane, box_at, packed_at, unpack)                                                                          \
    &(part)                                                                                                            \
    {                                                                                                                  \
        .gpu = gpu, .stream = oly_gpu_at(gpu)->lane, .box = box, .at = (CUdeviceptr)(uintptr_t)(box_at),               \
        .packed = (CUdeviceptr)(uintptr_t)(packed_at), .begin = begin, .end = end, .unpacks = unpack                   \
    }

static oly_status pack(int gpu, int box_gpu, const oly_gpu_box *box, int64_t begin, int64_t end, const void *from,
                       void *packed)
{
    return move_part(PART(message_stream, from, packed, false), box_gpu);
}

static oly_status unpack(int gpu, int box_gpu, const oly_gpu_box *box, int64_t begin, int64_t end, void *to,
                         const void *packed)
{
    return move_part(PART(message_stream, to, packed, true), box_gpu);
}

static oly_status pack_now(int gpu, const oly_gpu_box *box, int64_t begin, int64_t end, const void *from, void *packed)
{
    return move_part(PART(packing_stream, from, packed, false), gpu);
}

static oly_status unpack_now(int gpu, const oly_gpu_box *box, int64_t begin, int64_t end, void *to, const void *packed)
{
    return move_part(PART(packing_stream, to, packed, true), gpu);
}

static oly_status finish_now(int gpu)
{
    DO(cuStreamSynchronize, oly_gpu_at(gpu)->packing_stream);
    return OLY_OK;
}

static void *pin(int gpu, size_t bytes)
{
    void *memory = NULL;
    (void)gpu;
    return oly_driver.cuMemHostAlloc(&memory, bytes, CU_MEMHOSTALLOC_PORTABLE) == CUDA_SUCCESS ? memory : NULL;
}

static void unpin(int gpu, void *memory)
{
    (void)gpu;
    oly_driver.cuMemFreeHost(memory);
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
                                    .pack_now = pack_now,
                                    .unpack_now = unpack_now,
                                    .finish_now = finish_now,
                                    .pin = pin,
                                    .unpin = unpin,
                                    .record = record,
                                    .reached = reached,
                                    .forget = forget};
    access.n = oly_gpu_count();
    access.n_devices = oly_cuda_device_count();
    return &access;
}
