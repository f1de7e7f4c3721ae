/* SPDX-License-Identifier: BSD-3-Clause */
/* Launching kernels in a device's stream. See launcher.h. */
#include "run/cuda/launcher.h"
#include "device/cuda/generated.h"
#include "device/cuda/modules.h"
#include "run/device_counts.h"

static oly_status start(const oly_cuda_launching *l, const oly_cuda_launch *x, CUfunction f)
{
    void *task = (void *)(uintptr_t)x->task, *parameters[] = {task};
    oly_count(&oly_device_counted.launches, 1);
    return oly_cuda_check(
        oly_driver.cuLaunchKernel(f, x->blocks, 1, 1, x->threads, 1, 1, x->shared, l->device->stream, parameters, NULL),
        x->kernel, l->device->gpu->label);
}

static oly_status launch(void *context, const oly_cuda_launch *x)
{
    const oly_cuda_launching *l = context;
    CUfunction f;
    OLY_TRY(oly_cuda_function(l->device->gpu, x->module, x->kernel, x->shared, &f));
    return start(l, x, f);
}

/* More shared memory than every GPU has has to be asked for. False: this GPU has less. */
static bool has_shared(CUfunction f, unsigned bytes)
{
    enum { WITHOUT_ASKING = 48 << 10 };
    return bytes <= WITHOUT_ASKING || oly_driver.cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                                    (int)bytes) == CUDA_SUCCESS;
}

static oly_status generated(void *context, const oly_cuda_generated *g, const oly_cuda_launch *x, bool *launched)
{
    const oly_cuda_launching *l = context;
    const oly_cuda_source source = {.key = g->key,
                                    .key_bytes = g->key_bytes,
                                    .work = g->work,
                                    .shared = x->shared,
                                    .kernel = x->kernel,
                                    .text = g->text,
                                    .of = g->of};
    CUfunction f = oly_cuda_generated_function(l->device->gpu, &source);
    *launched = f != NULL && has_shared(f, x->shared);
    return *launched ? start(l, x, f) : OLY_OK;
}

static oly_status constant(void *context, const void *data, size_t bytes, const void **at)
{
    const oly_cuda_launching *l = context;
    return oly_cuda_constant(l->number, data, bytes, at);
}

/* -- scratch memory ---------------------------------------------------------------------------------------------------------- */

/* KEPT: larger blocks are given back after the step. */
enum { ALIGNED = 256, LEAST = 1 << 16, KEPT = 64 << 20 };

static struct {
    CUdeviceptr at;
    size_t bytes;
} block[OLY_MOST_MEMORIES];

static oly_status grow(oly_cuda_launching *l, size_t bytes)
{
    const oly_gpu *g = l->device->gpu;
    size_t twice = 2 * block[l->number].bytes;
    CUdeviceptr at = 0;
    bytes = bytes > twice ? bytes : twice;
    bytes = bytes > LEAST ? bytes : LEAST;
    if (oly_cuda_capturing)
        return oly_fail(OLY_MEMORY, "%s: no scratch memory is taken while launches are recorded", g->label);
    oly_cuda_new_epoch();
    OLY_TRY(oly_cuda_check(oly_driver.cuMemAllocFromPoolAsync(&at, bytes, g->pool, l->device->stream),
                           "cuMemAllocFromPoolAsync", g->label));
    if (block[l->number].at)
        l->outgrown[l->n_outgrown++] = block[l->number].at;
    block[l->number].at = at;
    block[l->number].bytes = bytes;
    l->scratch = 0;
    return OLY_OK;
}

static CUdeviceptr tickets[OLY_MOST_MEMORIES]; /* one for each device, whose launches follow each other */

static oly_status ticket(void *context, uint32_t **at)
{
    oly_cuda_launching *l = context;
    const oly_gpu *g = l->device->gpu;
    *at = NULL;
    if (!tickets[l->number] && !oly_cuda_capturing) {
        CUdeviceptr made = 0;
        OLY_TRY(oly_cuda_check(oly_driver.cuMemAllocFromPoolAsync(&made, ALIGNED, g->pool, l->device->stream),
                               "cuMemAllocFromPoolAsync", g->label));
        OLY_TRY(oly_cuda_check(oly_driver.cuMemsetD32Async(made, 0, ALIGNED / 4, l->device->stream), "cuMemsetD32Async",
                               g->label));
        tickets[l->number] = made;
    }
    *at = (uint32_t *)(uintptr_t)tickets[l->number];
    return OLY_OK;
}

static oly_status scratch(void *context, size_t bytes, void **at)
{
    oly_cuda_launching *l = context;
    bytes = (bytes + ALIGNED - 1) / ALIGNED * ALIGNED;
    if (l->scratch + bytes > block[l->number].bytes)
        OLY_TRY(grow(l, bytes));
    *at = (char *)(uintptr_t)block[l->number].at + l->scratch;
    l->scratch += bytes;
    return OLY_OK;
}

oly_cuda_mark oly_cuda_scratch_mark(const oly_cuda_launching *l)
{
    return (oly_cuda_mark){l->scratch, l->n_outgrown};
}

void oly_cuda_scratch_return(oly_cuda_launching *l, oly_cuda_mark before)
{
    if (l->n_outgrown == before.n_outgrown)
        l->scratch = before.scratch;
}

/* In the order of the stream: after the launches. */
static void give_back(const oly_cuda_launching *l)
{
    for (int k = 0; k < l->n_outgrown; k++)
        oly_driver.cuMemFreeAsync(l->outgrown[k], l->device->stream);
    if (block[l->number].bytes > KEPT) {
        oly_driver.cuMemFreeAsync(block[l->number].at, l->device->stream);
        block[l->number].at = 0;
        block[l->number].bytes = 0;
    }
}

static void stop_blocks(void)
{
    for (int d = 0; d < oly_cuda_device_count(); d++) {
        const oly_cuda_device *of = oly_cuda_device_at(d);
        if ((block[d].at || tickets[d]) && oly_gpu_enter(of->gpu) == OLY_OK) {
            if (block[d].at)
                oly_driver.cuMemFreeAsync(block[d].at, of->stream);
            if (tickets[d])
                oly_driver.cuMemFreeAsync(tickets[d], of->stream);
            oly_driver.cuStreamSynchronize(of->stream);
            oly_gpu_leave();
        }
        block[d].at = 0;
        block[d].bytes = 0;
        tickets[d] = 0;
    }
}

/* -- launching ---------------------------------------------------------------------------------------------------------------- */

oly_status oly_cuda_launching_begin(oly_cuda_launching *l, int device)
{
    oly_gpus_at_stop(stop_blocks);
    *l = (oly_cuda_launching){.number = device, .device = oly_cuda_device_at(device)};
    l->launcher = (oly_cuda_launcher){.context = l,
                                      .processors = l->device->gpu->processors,
                                      .shared = l->device->gpu->shared,
                                      .shared_each = l->device->gpu->shared_each,
                                      .launch = launch,
                                      .constant = constant,
                                      .scratch = scratch,
                                      .generated = generated,
                                      .ticket = ticket};
    return oly_gpu_enter(l->device->gpu);
}

void oly_cuda_launching_end(oly_cuda_launching *l)
{
    give_back(l);
    oly_gpu_leave();
}
