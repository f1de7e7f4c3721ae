/* SPDX-License-Identifier: BSD-3-Clause */
/* Launching kernels in a device's stream. See launcher.h. */
#include "run/cuda/launcher.h"
#include "device/cuda/modules.h"

static oly_status launch(void *context, const oly_cuda_launch *x)
{
    const oly_cuda_launching *l = context;
    const oly_gpu *g = l->device->gpu;
    CUfunction f;
    OLY_TRY(oly_cuda_function(g, x->module, x->kernel, x->shared, &f));
    void *task = (void *)(uintptr_t)x->task, *parameters[] = {task};
    return oly_cuda_check(
        oly_driver.cuLaunchKernel(f, x->blocks, 1, 1, x->threads, 1, 1, x->shared, l->device->stream, parameters, NULL),
        x->kernel, g->label);
}

static oly_status constant(void *context, const void *data, size_t bytes, const void **at)
{
    const oly_cuda_launching *l = context;
    return oly_cuda_constant(l->number, data, bytes, at);
}

static oly_status scratch(void *context, size_t bytes, void **at)
{
    oly_cuda_launching *l = context;
    const oly_gpu *g = l->device->gpu;
    CUdeviceptr memory = 0;
    if (l->n_scratch == OLY_CUDA_SCRATCHES)
        return oly_fail(OLY_MEMORY, "%s: a step takes scratch memory more than %d times", g->label, OLY_CUDA_SCRATCHES);
    OLY_TRY(oly_cuda_check(oly_driver.cuMemAllocFromPoolAsync(&memory, bytes ? bytes : 1, g->pool, l->device->stream),
                           "cuMemAllocFromPoolAsync", g->label));
    l->scratch[l->n_scratch++] = memory;
    *at = (void *)(uintptr_t)memory;
    return OLY_OK;
}

oly_status oly_cuda_launching_begin(oly_cuda_launching *l, int device)
{
    *l = (oly_cuda_launching){.number = device, .device = oly_cuda_device_at(device)};
    l->launcher = (oly_cuda_launcher){.context = l,
                                      .processors = l->device->gpu->processors,
                                      .launch = launch,
                                      .constant = constant,
                                      .scratch = scratch};
    return oly_gpu_enter(l->device->gpu);
}

/* In the order of the stream: after the launches. */
void oly_cuda_launching_end(oly_cuda_launching *l)
{
    for (int k = 0; k < l->n_scratch; k++)
        oly_driver.cuMemFreeAsync(l->scratch[k], l->device->stream);
    oly_gpu_leave();
}
