/* SPDX-License-Identifier: BSD-3-Clause */
/* Values that go to the host while the device computes on. See early_reads.h.
 *
 *      computes   ... makes the value, made | next iteration ...
 *      copies                           wait, copy, there
 *      host       launches the next iteration, waits for `there`
 */
#include "run/cuda/early_reads.h"
#include "device/cuda/gpus.h"
#include <string.h>

enum { MOST_BYTES = 8 };

typedef struct pipe {
    char *value; /* pinned; NULL: not made yet */
    CUevent made, there;
} pipe;

/* By local devices: one thread at a time gives a device work. */
static pipe pipes[OLY_MOST_MEMORIES];

#define DO(function, ...) OLY_TRY(oly_cuda_check(oly_driver.function(__VA_ARGS__), #function, d->gpu->label))

static void close_pipe(pipe *p)
{
    if (p->made)
        oly_driver.cuEventDestroy(p->made);
    if (p->there)
        oly_driver.cuEventDestroy(p->there);
    if (p->value)
        oly_driver.cuMemFreeHost(p->value);
    *p = (pipe){0};
}

static void stop(void)
{
    for (int k = 0; k < oly_cuda_device_count(); k++)
        if (oly_gpu_enter(oly_cuda_device_at(k)->gpu) == OLY_OK) {
            close_pipe(&pipes[k]);
            oly_gpu_leave();
        }
}

/* False: it cannot be made, now. */
static bool open_pipe(pipe *p)
{
    if (p->value)
        return true;
    oly_gpus_at_stop(stop);
    if (oly_driver.cuEventCreate(&p->made, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS &&
        oly_driver.cuEventCreate(&p->there, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS &&
        oly_driver.cuMemHostAlloc((void **)&p->value, MOST_BYTES, 0) == CUDA_SUCCESS)
        return true;
    close_pipe(p);
    return false;
}

static oly_status send(const oly_cuda_device *d, const pipe *p, const void *from, size_t bytes)
{
    DO(cuEventRecord, p->made, d->stream);
    DO(cuStreamWaitEvent, d->copies, p->made, 0);
    DO(cuMemcpyDtoHAsync, p->value, (CUdeviceptr)(uintptr_t)from, bytes, d->copies);
    DO(cuEventRecord, p->there, d->copies);
    return OLY_OK;
}

oly_status oly_cuda_read_begin(int device, const void *from, size_t bytes, bool *begun)
{
    *begun = false;
    if (device >= oly_cuda_device_count() || bytes > MOST_BYTES) /* a CPU device computes at once */
        return OLY_OK;
    const oly_cuda_device *d = oly_cuda_device_at(device);
    OLY_TRY(oly_gpu_enter(d->gpu));
    oly_status st = OLY_OK;
    if (open_pipe(&pipes[device])) {
        st = send(d, &pipes[device], from, bytes);
        *begun = st == OLY_OK;
    }
    oly_gpu_leave();
    return st;
}

oly_status oly_cuda_read_end(int device, void *value, size_t bytes)
{
    const oly_cuda_device *d = oly_cuda_device_at(device);
    OLY_TRY(oly_gpu_enter(d->gpu));
    oly_status st =
        oly_cuda_check(oly_driver.cuEventSynchronize(pipes[device].there), "cuEventSynchronize", d->gpu->label);
    oly_gpu_leave();
    if (st == OLY_OK)
        memcpy(value, pipes[device].value, bytes);
    return st;
}
