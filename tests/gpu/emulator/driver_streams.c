/* SPDX-License-Identifier: BSD-3-Clause */
/* The emulated driver's functions for streams and events. */
#include "driver.h"
#include <stdlib.h>

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority)
{
    EMULATED_ENTER(context);
    (void)priority;
    if (emulated_fails("stream"))
        return emulated_leave(CUDA_ERROR_OUT_OF_MEMORY);
    return emulated_leave(emulated_stream_make(context, !(flags & CU_STREAM_NON_BLOCKING), stream));
}

CUresult cuStreamCreate(CUstream *stream, unsigned flags)
{
    return cuStreamCreateWithPriority(stream, flags, 0);
}

CUresult cuStreamDestroy(CUstream stream)
{
    emulated_lock();
    CUstream s = emulated_stream(stream);
    emulated_finish(s, NULL);
    emulated_stream_end(s);
    return emulated_leave(CUDA_SUCCESS);
}

CUresult cuStreamSynchronize(CUstream stream)
{
    EMULATED_ENTER(context);
    (void)context;
    CUstream s = emulated_stream(stream);
    if (emulated_capturing(s))
        return emulated_leave(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    return emulated_leave(emulated_finish(s, NULL));
}

CUresult cuStreamQuery(CUstream stream)
{
    EMULATED_ENTER(context);
    CUstream s = emulated_stream(stream);
    emulated_poke();
    if (context->error != CUDA_SUCCESS)
        return emulated_leave(context->error);
    return emulated_leave(emulated_stream_idle(s) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY);
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext *context)
{
    emulated_lock();
    *context = emulated_stream_context(emulated_stream(stream));
    return emulated_leave(CUDA_SUCCESS);
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
    EMULATED_ENTER(context);
    (void)context;
    (void)flags;
    return emulated_leave(emulated_wait_event(stream, event));
}

CUresult cuEventCreate(CUevent *event, unsigned flags)
{
    EMULATED_ENTER(context);
    struct CUevent_st *e = emulated_fails("event") ? NULL : calloc(1, sizeof *e);
    if (!e)
        return emulated_leave(CUDA_ERROR_OUT_OF_MEMORY);
    e->context = context;
    e->timing = !(flags & CU_EVENT_DISABLE_TIMING);
    *event = e;
    return emulated_leave(CUDA_SUCCESS);
}

CUresult cuEventDestroy(CUevent event)
{
    emulated_lock();
    if (event->last)
        emulated_record_release(event->last);
    free(event->captured);
    free(event);
    return emulated_leave(CUDA_SUCCESS);
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
    EMULATED_ENTER(context);
    (void)context;
    return emulated_leave(emulated_record_event(stream, event));
}

CUresult cuEventQuery(CUevent event)
{
    EMULATED_ENTER(context);
    emulated_poke();
    if (context->error != CUDA_SUCCESS)
        return emulated_leave(context->error);
    if (event->last && event->last->done)
        emulated_clock_join(&emulated_host_clock, &event->last->clock);
    return emulated_leave(!event->last || event->last->done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY);
}

CUresult cuEventSynchronize(CUevent event)
{
    EMULATED_ENTER(context);
    (void)context;
    return emulated_leave(event->last ? emulated_finish_record(event->last, event->context) : CUDA_SUCCESS);
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end)
{
    EMULATED_ENTER(context);
    (void)context;
    if (!start->last || !end->last || !start->timing || !end->timing)
        return emulated_leave(CUDA_ERROR_INVALID_HANDLE);
    if (!start->last->done || !end->last->done)
        return emulated_leave(CUDA_ERROR_NOT_READY);
    *milliseconds = (float)(1e3 * (end->last->time - start->last->time));
    return emulated_leave(CUDA_SUCCESS);
}

#undef cuEventElapsedTime
EMULATED_EXPORT CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end);
CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end)
{
    return cuEventElapsedTime_v2(milliseconds, start, end);
}
