/* SPDX-License-Identifier: BSD-3-Clause */
/* The order of work on GPUs: a stream for each device, events between them. See gpus.h. */
#include "device/cuda/gpus.h"
#include "device/cuda/modules.h"
#include <pthread.h>

/* Held while launches are recorded; shared by those who wait for streams. */
static pthread_rwlock_t recording = PTHREAD_RWLOCK_INITIALIZER;

/* Numbers count a device's events; as many as there is room for are kept apart. Who waits for one whose event has been recorded again waits
 * for more than it must, all of which was submitted before. */
bool oly_cuda_record(int device, oly_event *event)
{
    oly_cuda_device *d = oly_cuda_device_at(device);
    if (oly_gpu_enter(d->gpu) != OLY_OK)
        return false;
    bool done = oly_driver.cuEventRecord(d->event[(d->recorded + 1) % OLY_CUDA_EVENTS], d->stream) == CUDA_SUCCESS;
    oly_gpu_leave();
    if (done)
        *event = (oly_event){device, ++d->recorded};
    return done;
}

bool oly_cuda_wait(int device, oly_event event)
{
    const oly_cuda_device *d = oly_cuda_device_at(device), *of = oly_cuda_device_at(event.device);
    if (event.number == 0 || d == of)
        return true;
    if (oly_gpu_enter(d->gpu) != OLY_OK)
        return false;
    bool done = oly_driver.cuStreamWaitEvent(d->stream, of->event[event.number % OLY_CUDA_EVENTS], 0) == CUDA_SUCCESS;
    oly_gpu_leave();
    return done;
}

bool oly_cuda_capture_begins(void)
{
    if (pthread_rwlock_trywrlock(&recording) != 0)
        return false;
    oly_cuda_capturing = true;
    return true;
}

void oly_cuda_capture_ends(void)
{
    oly_cuda_capturing = false;
    pthread_rwlock_unlock(&recording);
}

oly_status oly_cuda_drain(int device)
{
    const oly_cuda_device *d = oly_cuda_device_at(device);
    if (oly_cuda_capturing)
        return oly_fail(OLY_STATE, "%s: launches are being recorded", d->gpu->label);
    OLY_TRY(oly_gpu_enter(d->gpu));
    pthread_rwlock_rdlock(&recording);
    oly_status st = oly_cuda_check(oly_driver.cuStreamSynchronize(d->stream), "cuStreamSynchronize", d->gpu->label);
    pthread_rwlock_unlock(&recording);
    oly_gpu_leave();
    return st;
}

static oly_status set_mark(const oly_cuda_device *d, CUevent mark, bool was_set)
{
    if (was_set)
        OLY_TRY(oly_cuda_check(oly_driver.cuEventSynchronize(mark), "cuEventSynchronize", d->gpu->label));
    return oly_cuda_check(oly_driver.cuEventRecord(mark, d->stream), "cuEventRecord", d->gpu->label);
}

oly_status oly_cuda_run_ahead(int device, int k, bool was_set)
{
    const oly_cuda_device *d = oly_cuda_device_at(device);
    OLY_TRY(oly_gpu_enter(d->gpu));
    oly_status st = set_mark(d, d->mark[k], was_set);
    oly_gpu_leave();
    return st;
}
