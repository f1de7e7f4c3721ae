/* SPDX-License-Identifier: BSD-3-Clause */
/* The emulated driver's functions for memory: allocations, pools, pinned memory, copies. */
#include "driver.h"
#include <stdlib.h>
#include <string.h>

struct CUmemPoolHandle_st {
    int device;
    unsigned peers;
    cuuint64_t threshold, most;
};
static struct CUmemPoolHandle_st usual[MOST_GPUS];

/* -- allocating --------------------------------------------------------------------------------------------------------------------------- */

static CUresult take(CUdeviceptr *address, int device, size_t bytes, enum block_state state, emulated_block **block)
{
    *address = 0;
    if (bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    *block = emulated_fails("alloc") ? NULL : emulated_memory_take(device, bytes, state);
    if (!*block)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *address = (CUdeviceptr)(*block)->address;
    return CUDA_SUCCESS;
}

CUresult cuMemAlloc(CUdeviceptr *address, size_t bytes)
{
    EMULATED_ENTER(context);
    emulated_block *block;
    return emulated_leave(take(address, context->device, bytes, LIVE, &block));
}

static emulated_block *block_of(const char *what, CUdeviceptr address)
{
    emulated_block *b = emulated_memory_find((void *)address);
    if (!b || b->address != (char *)address)
        emulated_violation("%s: %p is not the beginning of a block", what, (void *)address);
    return b;
}

/* Waits for the device, as the driver does. */
CUresult cuMemFree(CUdeviceptr address)
{
    emulated_lock();
    if (!address)
        return emulated_leave(CUDA_SUCCESS);
    emulated_block *b = block_of("cuMemFree", address);
    CUresult r = emulated_finish(NULL, NULL);
    emulated_memory_free(b);
    return emulated_leave(r);
}

static CUresult take_in_order(CUdeviceptr *address, size_t bytes, CUmemoryPool pool, CUstream stream)
{
    emulated_block *block;
    if (bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult r = take(address, pool->device, bytes, RESERVED, &block);
    if (r != CUDA_SUCCESS)
        return r;
    block->pooled = true;
    block->peers = pool->peers;
    return emulated_submit(stream, emulated_work_live(block));
}

static CUmemoryPool pool_of(int device)
{
    usual[device].device = device;
    return &usual[device];
}

CUresult cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream stream)
{
    EMULATED_ENTER(context);
    return emulated_leave(take_in_order(address, bytes, pool_of(context->device), stream));
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t bytes, CUmemoryPool pool, CUstream stream)
{
    EMULATED_ENTER(context);
    (void)context;
    return emulated_leave(take_in_order(address, bytes, pool, stream));
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream)
{
    emulated_lock();
    if (!address)
        return emulated_leave(CUDA_SUCCESS);
    return emulated_leave(emulated_submit(stream, emulated_work_free(block_of("cuMemFreeAsync", address))));
}

CUresult cuMemGetInfo(size_t *available, size_t *total)
{
    EMULATED_ENTER(context);
    *total = emulated_device_memory();
    *available = *total - emulated_memory_used(context->device);
    return emulated_leave(CUDA_SUCCESS);
}

CUresult cuMemGetAddressRange(CUdeviceptr *base, size_t *bytes, CUdeviceptr address)
{
    EMULATED_ENTER(context);
    (void)context;
    const emulated_block *b = emulated_memory_find((void *)address);
    if (!b || b->state == FREED)
        return emulated_leave(CUDA_ERROR_NOT_FOUND);
    if (base)
        *base = (CUdeviceptr)b->address;
    if (bytes)
        *bytes = b->bytes;
    return emulated_leave(CUDA_SUCCESS);
}

CUresult cuPointerGetAttribute(void *value, CUpointer_attribute attribute, CUdeviceptr address)
{
    emulated_lock(); /* asked by who has no context, too */
    const emulated_block *b = emulated_memory_find((void *)address);
    bool pinned = emulated_pinned_has((void *)address);
    if ((!b || b->state == FREED) && !pinned)
        return emulated_leave(CUDA_ERROR_INVALID_VALUE);
    if (attribute == CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
        *(unsigned *)value = b ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
    else if (attribute == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
        *(int *)value = b ? b->device : 0;
    else
        return emulated_leave(CUDA_ERROR_NOT_SUPPORTED);
    return emulated_leave(CUDA_SUCCESS);
}

/* -- pools ---------------------------------------------------------------------------------------------------------------------------------- */

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device)
{
    *pool = pool_of(device);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device)
{
    return cuDeviceGetDefaultMemPool(pool, device);
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties)
{
    if (properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE || properties->location.id >= emulated_devices())
        return CUDA_ERROR_INVALID_VALUE;
    *pool = calloc(1, sizeof **pool);
    if (!*pool)
        return CUDA_ERROR_OUT_OF_MEMORY;
    (*pool)->device = properties->location.id;
    return CUDA_SUCCESS;
}

CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
    if (pool < usual || pool >= usual + MOST_GPUS)
        free(pool);
    return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
    if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
        pool->threshold = *(cuuint64_t *)value;
    return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
    emulated_lock();
    *(cuuint64_t *)value =
        attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD ? pool->threshold : emulated_memory_used(pool->device);
    return emulated_leave(CUDA_SUCCESS);
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t bytes)
{
    (void)pool;
    (void)bytes;
    return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t n)
{
    for (size_t k = 0; k < n; k++)
        if (map[k].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE)
            pool->peers &= ~(1u << map[k].location.id);
        else
            pool->peers |= 1u << map[k].location.id;
    return CUDA_SUCCESS;
}

/* -- pinned memory ---------------------------------------------------------------------------------------------------------------------------- */

CUresult cuMemHostAlloc(void **address, size_t bytes, unsigned flags)
{
    EMULATED_ENTER(context);
    (void)context;
    (void)flags;
    *address = emulated_fails("host") || bytes == 0 ? NULL : aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    if (!*address)
        return emulated_leave(CUDA_ERROR_OUT_OF_MEMORY);
    emulated_pinned_add(*address, bytes);
    return emulated_leave(CUDA_SUCCESS);
}

CUresult cuMemAllocHost(void **address, size_t bytes)
{
    return cuMemHostAlloc(address, bytes, 0);
}

CUresult cuMemFreeHost(void *address)
{
    emulated_lock();
    emulated_finish(NULL, NULL);
    if (!emulated_pinned_remove(address))
        emulated_violation("cuMemFreeHost: %p is not the beginning of pinned memory", address);
    free(address);
    return emulated_leave(CUDA_SUCCESS);
}

CUresult cuMemHostRegister(void *address, size_t bytes, unsigned flags)
{
    EMULATED_ENTER(context);
    (void)context;
    (void)flags;
    emulated_pinned_add(address, bytes);
    return emulated_leave(CUDA_SUCCESS);
}

CUresult cuMemHostUnregister(void *address)
{
    emulated_lock();
    return emulated_leave(emulated_pinned_remove(address) ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

CUresult cuMemHostGetDevicePointer(CUdeviceptr *device, void *address, unsigned flags)
{
    (void)flags;
    *device = (CUdeviceptr)address;
    return emulated_pinned_has(address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* -- copies --------------------------------------------------------------------------------------------------------------------------------------- */

static bool pageable(const void *address)
{
    return !emulated_memory_is_device(address) && !emulated_pinned_has(address);
}

static size_t copy_bytes(const emulated_copy *c)
{
    return (c->layers - 1) * c->from_layer + (c->rows - 1) * c->from_pitch + c->bytes;
}

/* What is pageable is read at the call, or has been written when it returns; other copies are done when their moment comes. */
static CUresult submit_copy(CUstream stream, emulated_copy c, bool waits)
{
    bool to_pageable = pageable(c.to);
    if (c.bytes == 0 || c.rows == 0 || c.layers == 0)
        return CUDA_SUCCESS;
    CUstream s = emulated_stream(stream);
    if (!s)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (pageable(c.from) && !emulated_capturing(s)) {
        c.snapshot = malloc(copy_bytes(&c));
        if (!c.snapshot)
            return CUDA_ERROR_OUT_OF_MEMORY;
        memcpy(c.snapshot, c.from, copy_bytes(&c));
        c.from = c.snapshot;
    }
    bool captured = emulated_capturing(s);
    CUresult r = emulated_submit(s, emulated_work_copy(c));
    return r == CUDA_SUCCESS && !captured && (waits || to_pageable) ? emulated_finish(s, NULL) : r;
}

static emulated_copy line(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    return (emulated_copy){.to = (char *)to, .from = (const char *)from, .bytes = bytes, .rows = 1, .layers = 1};
}

static void check_sides(const char *what, CUdeviceptr to, CUdeviceptr from, bool to_device, bool from_device,
                        size_t bytes)
{
    if (bytes && emulated_memory_is_device((void *)to) != to_device)
        emulated_violation("%s: the destination %p is %smemory of a device", what, (void *)to, to_device ? "not " : "");
    if (bytes && emulated_memory_is_device((void *)from) != from_device)
        emulated_violation("%s: the source %p is %smemory of a device", what, (void *)from, from_device ? "not " : "");
}

#define COPY(name, to_type, from_type, to_device, from_device, asynchronous_name)                                      \
    CUresult name(to_type to, from_type from, size_t bytes)                                                            \
    {                                                                                                                  \
        EMULATED_ENTER(context);                                                                                       \
        (void)context;                                                                                                 \
        check_sides(#name, (CUdeviceptr)to, (CUdeviceptr)from, to_device, from_device, bytes);                         \
        return emulated_leave(submit_copy(NULL, line((CUdeviceptr)to, (CUdeviceptr)from, bytes), true));               \
    }                                                                                                                  \
    CUresult asynchronous_name(to_type to, from_type from, size_t bytes, CUstream stream)                              \
    {                                                                                                                  \
        EMULATED_ENTER(context);                                                                                       \
        (void)context;                                                                                                 \
        check_sides(#asynchronous_name, (CUdeviceptr)to, (CUdeviceptr)from, to_device, from_device, bytes);            \
        return emulated_leave(submit_copy(stream, line((CUdeviceptr)to, (CUdeviceptr)from, bytes), false));            \
    }
COPY(cuMemcpyHtoD, CUdeviceptr, const void *, true, false, cuMemcpyHtoDAsync)
COPY(cuMemcpyDtoH, void *, CUdeviceptr, false, true, cuMemcpyDtoHAsync)
COPY(cuMemcpyDtoD, CUdeviceptr, CUdeviceptr, true, true, cuMemcpyDtoDAsync)

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    EMULATED_ENTER(context);
    (void)context;
    return emulated_leave(submit_copy(NULL, line(to, from, bytes), true));
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    EMULATED_ENTER(context);
    (void)context;
    return emulated_leave(submit_copy(stream, line(to, from, bytes), false));
}

static void check_peer(CUdeviceptr address, CUcontext context)
{
    const emulated_block *b = emulated_memory_find((void *)address);
    if (b && b->device != context->device)
        emulated_violation("cuMemcpyPeer: block %d is on GPU %d, its context on GPU %d", b->number, b->device,
                           context->device);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes,
                           CUstream stream)
{
    EMULATED_ENTER(context);
    (void)context;
    check_peer(to, to_context);
    check_peer(from, from_context);
    return emulated_leave(submit_copy(stream, line(to, from, bytes), false));
}

CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes)
{
    EMULATED_ENTER(context);
    (void)context;
    check_peer(to, to_context);
    check_peer(from, from_context);
    return emulated_leave(submit_copy(NULL, line(to, from, bytes), true));
}

emulated_copy emulated_copy_of(const CUDA_MEMCPY3D *c)
{
    bool to_host = c->dstMemoryType == CU_MEMORYTYPE_HOST, from_host = c->srcMemoryType == CU_MEMORYTYPE_HOST;
    char *to = to_host ? c->dstHost : (char *)c->dstDevice;
    const char *from = from_host ? c->srcHost : (const char *)c->srcDevice;
    size_t to_pitch = c->dstPitch ? c->dstPitch : c->WidthInBytes,
           from_pitch = c->srcPitch ? c->srcPitch : c->WidthInBytes;
    size_t to_layer = to_pitch * (c->dstHeight ? c->dstHeight : c->Height),
           from_layer = from_pitch * (c->srcHeight ? c->srcHeight : c->Height);
    return (emulated_copy){.to = to + c->dstZ * to_layer + c->dstY * to_pitch + c->dstXInBytes,
                           .from = from + c->srcZ * from_layer + c->srcY * from_pitch + c->srcXInBytes,
                           .bytes = c->WidthInBytes,
                           .rows = c->Height,
                           .layers = c->Depth,
                           .to_pitch = to_pitch,
                           .from_pitch = from_pitch,
                           .to_layer = to_layer,
                           .from_layer = from_layer};
}

static CUDA_MEMCPY3D in_layers(const CUDA_MEMCPY2D *c)
{
    return (CUDA_MEMCPY3D){.srcXInBytes = c->srcXInBytes,
                           .srcY = c->srcY,
                           .srcMemoryType = c->srcMemoryType,
                           .srcHost = c->srcHost,
                           .srcDevice = c->srcDevice,
                           .srcPitch = c->srcPitch,
                           .dstXInBytes = c->dstXInBytes,
                           .dstY = c->dstY,
                           .dstMemoryType = c->dstMemoryType,
                           .dstHost = c->dstHost,
                           .dstDevice = c->dstDevice,
                           .dstPitch = c->dstPitch,
                           .WidthInBytes = c->WidthInBytes,
                           .Height = c->Height,
                           .Depth = 1};
}

CUresult cuMemcpy3DAsync(const CUDA_MEMCPY3D *copy, CUstream stream)
{
    EMULATED_ENTER(context);
    (void)context;
    return emulated_leave(submit_copy(stream, emulated_copy_of(copy), false));
}

CUresult cuMemcpy3D(const CUDA_MEMCPY3D *copy)
{
    EMULATED_ENTER(context);
    (void)context;
    return emulated_leave(submit_copy(NULL, emulated_copy_of(copy), true));
}

CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D *copy, CUstream stream)
{
    CUDA_MEMCPY3D c = in_layers(copy);
    if (copy->srcPitch > INT32_MAX || copy->dstPitch > INT32_MAX) /* CU_DEVICE_ATTRIBUTE_MAX_PITCH */
        return CUDA_ERROR_INVALID_VALUE;
    return cuMemcpy3DAsync(&c, stream);
}

CUresult cuMemcpy2D(const CUDA_MEMCPY2D *copy)
{
    CUDA_MEMCPY3D c = in_layers(copy);
    return cuMemcpy3D(&c);
}

#define SET(name, asynchronous_name, type, width)                                                                      \
    CUresult asynchronous_name(CUdeviceptr to, type value, size_t n, CUstream stream)                                  \
    {                                                                                                                  \
        EMULATED_ENTER(context);                                                                                       \
        (void)context;                                                                                                 \
        return emulated_leave(emulated_submit(stream, emulated_work_set(to, value, width, n)));                        \
    }                                                                                                                  \
    CUresult name(CUdeviceptr to, type value, size_t n)                                                                \
    {                                                                                                                  \
        return asynchronous_name(to, value, n, NULL);                                                                  \
    }
SET(cuMemsetD8, cuMemsetD8Async, unsigned char, 1)
SET(cuMemsetD16, cuMemsetD16Async, unsigned short, 2)
SET(cuMemsetD32, cuMemsetD32Async, unsigned, 4)
