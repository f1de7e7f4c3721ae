/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams and events. Nothing is done when it is submitted. Whoever waits for something works until it is there: one piece of work at a time,
 * of any stream whose next piece may be done, in an order drawn at random; so does, now and then, who only asks. Work that others may
 * wait for (another process, a function of the host) is also done by a thread of its own, late. See driver.h. */
#include "driver.h"
#include <stdlib.h>
#include <time.h>

enum what { WORK, RECORD, WAIT };
enum strategy { ANY, TARGET_FIRST, TARGET_LAST, STRATEGIES };

typedef struct piece {
    struct piece *next;
    enum what what;
    emulated_work *work;     /* owned */
    emulated_record *record; /* a reference */
    emulated_clock clock;    /* what the host had waited for when it was submitted */
} piece;

struct CUstream_st {
    CUcontext context;
    bool blocking, usual; /* ordered with the default stream; that stream */
    piece *first, **end;
    bool busy;    /* its first piece is being done, without the lock */
    bool waiting; /* its first piece was tried and waits for another process */
    struct graph_capture *capture;
    struct capture_point *point;
    int number;           /* in clocks */
    emulated_clock clock; /* of its work that is done */
    struct CUstream_st *next;
};

static struct {
    pthread_mutex_t lock;
    struct CUstream_st *first;
    int others_need; /* pieces that others may wait for */
    bool helped;
} streams = {.lock = PTHREAD_MUTEX_INITIALIZER};

void emulated_lock(void)
{
    pthread_mutex_lock(&streams.lock);
}

void emulated_unlock(void)
{
    pthread_mutex_unlock(&streams.lock);
}

double emulated_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* -- streams ------------------------------------------------------------------------------------------------------------------------ */

CUresult emulated_stream_make(CUcontext context, bool blocking, CUstream *made)
{
    struct CUstream_st *s = calloc(1, sizeof *s);
    if (!s)
        return CUDA_ERROR_OUT_OF_MEMORY;
    s->context = context;
    s->blocking = blocking;
    s->end = &s->first;
    s->number = emulated_clock_take();
    s->next = streams.first;
    streams.first = s;
    *made = s;
    return CUDA_SUCCESS;
}

CUstream emulated_stream(CUstream stream)
{
    CUcontext context = emulated_context();
    if (stream && stream != CU_STREAM_LEGACY && stream != CU_STREAM_PER_THREAD) {
        for (struct CUstream_st *s = streams.first; s; s = s->next)
            if (s == stream)
                return s;
        emulated_violation("a stream is used that does not exist (any more)");
    }
    for (struct CUstream_st *s = streams.first; s; s = s->next)
        if (s->usual && s->context == context)
            return s;
    CUstream made = NULL;
    if (context && emulated_stream_make(context, true, &made) == CUDA_SUCCESS)
        made->usual = true;
    return made;
}

CUcontext emulated_stream_context(CUstream stream)
{
    return stream->context;
}

struct graph_capture **emulated_stream_capture(CUstream stream)
{
    return &stream->capture;
}

struct capture_point **emulated_stream_point(CUstream stream)
{
    return &stream->point;
}

void emulated_stream_end(CUstream stream)
{
    for (struct CUstream_st **s = &streams.first; *s; s = &(*s)->next)
        if (*s == stream) {
            *s = stream->next;
            emulated_clock_join(&emulated_host_clock, &stream->clock);
            emulated_clock_give(stream->number);
            free(stream->point);
            free(stream);
            return;
        }
}

void emulated_streams_forget_capture(const struct graph_capture *capture)
{
    for (struct CUstream_st *s = streams.first; s; s = s->next)
        if (s->capture == capture) {
            s->capture = NULL;
            free(s->point);
            s->point = NULL;
        }
}

void emulated_streams_end(CUcontext context)
{
    for (struct CUstream_st *s = streams.first, *next; s; s = next) {
        next = s->next;
        if (s->context == context)
            emulated_stream_end(s);
    }
}

int emulated_streams_left(void)
{
    int n = 0;
    for (struct CUstream_st *s = streams.first; s; s = s->next)
        n += !s->usual;
    return n;
}

/* -- submitting ------------------------------------------------------------------------------------------------------------------------ */

static void append(CUstream s, enum what what, emulated_work *work, emulated_record *record)
{
    piece *p = calloc(1, sizeof *p);
    if (!p)
        emulated_violation("no memory");
    p->what = what;
    p->work = work;
    p->record = record;
    p->clock = emulated_host_clock;
    if (record)
        record->references++;
    *s->end = p;
    s->end = &p->next;
}

static emulated_record *new_record(void)
{
    emulated_record *r = calloc(1, sizeof *r);
    if (!r)
        emulated_violation("no memory");
    return r;
}

static void follow(CUstream s, CUstream before)
{
    if (!before->first)
        return;
    emulated_record *r = new_record();
    append(before, RECORD, NULL, r);
    append(s, WAIT, NULL, r);
}

/* The default stream and those that were not made to be apart from it wait for each other. */
static void order_with_default(CUstream s)
{
    if (!s->blocking)
        return;
    for (CUstream other = streams.first; other; other = other->next)
        if (other != s && other->context == s->context && other->blocking && (s->usual || other->usual))
            follow(s, other);
}

static void *help(void *unused);

/* From now on a thread does what others may wait for. */
static void need_help(void)
{
    pthread_t thread;
    if (streams.helped)
        return;
    streams.helped = true;
    if (pthread_create(&thread, NULL, help, NULL) != 0)
        emulated_violation("no thread");
    pthread_detach(thread);
}

CUresult emulated_submit(CUstream stream, emulated_work *work)
{
    CUstream s = emulated_stream(stream);
    if (!s) {
        emulated_work_drop(work);
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (emulated_capturing(s))
        return emulated_capture_work(s, work);
    order_with_default(s);
    if (work->foreign || work->unlocked) {
        streams.others_need++;
        need_help();
    }
    append(s, WORK, work, NULL);
    return CUDA_SUCCESS;
}

CUresult emulated_record_event(CUstream stream, CUevent event)
{
    CUstream s = emulated_stream(stream);
    if (!s || event->context != s->context)
        return CUDA_ERROR_INVALID_HANDLE;
    if (emulated_capturing(s))
        return emulated_capture_record(s, event);
    order_with_default(s);
    free(event->captured);
    event->captured = NULL;
    if (event->last)
        emulated_record_release(event->last);
    event->last = new_record();
    event->last->references = 1;
    append(s, RECORD, NULL, event->last);
    return CUDA_SUCCESS;
}

CUresult emulated_wait_event(CUstream stream, CUevent event)
{
    CUstream s = emulated_stream(stream);
    if (!s)
        return CUDA_ERROR_INVALID_HANDLE;
    if (emulated_capture_waits(s, event))
        return CUDA_SUCCESS;
    if (!event->last)
        emulated_violation("cuStreamWaitEvent: the event was never recorded");
    append(s, WAIT, NULL, event->last);
    return CUDA_SUCCESS;
}

void emulated_record_release(emulated_record *record)
{
    if (--record->references == 0)
        free(record);
}

/* -- doing ------------------------------------------------------------------------------------------------------------------------------- */

static bool ready(const struct CUstream_st *s)
{
    return s->first && !s->busy && !s->waiting && (s->first->what != WAIT || s->first->record->done);
}

/* Does the first piece of a stream's work. False: it waits for another process. */
static bool do_work(CUstream s)
{
    emulated_work *work = s->first->work;
    if (s->context->error != CUDA_SUCCESS && !work->unlocked && !work->always)
        return true; /* nothing is computed after a failure */
    if (!work->unlocked)
        return work->run(work, s->context);
    s->busy = true;
    emulated_unlock();
    bool done = work->run(work, s->context);
    emulated_lock();
    s->busy = false;
    return done;
}

static void step(CUstream s)
{
    piece *p = s->first;
    emulated_clock_join(&s->clock, &p->clock);
    if (p->what == WAIT)
        emulated_clock_join(&s->clock, &p->record->clock);
    emulated_order_begin(s->number, &s->clock);
    bool done = p->what != WORK || do_work(s);
    emulated_order_end();
    if (!done) {
        s->waiting = true;
        return;
    }
    s->clock.of[s->number]++;
    for (CUstream other = streams.first; other; other = other->next)
        other->waiting = false;
    s->first = p->next;
    if (!s->first)
        s->end = &s->first;
    if (p->what == RECORD) {
        p->record->done = true;
        p->record->time = emulated_now();
        p->record->clock = s->clock;
    }
    if (p->record)
        emulated_record_release(p->record);
    if (p->work) {
        streams.others_need -= p->work->foreign || p->work->unlocked;
        emulated_work_drop(p->work);
    }
    free(p);
}

static CUstream choose(CUstream target, enum strategy strategy)
{
    unsigned n = 0;
    CUstream chosen = NULL;
    if (target && strategy == TARGET_FIRST && ready(target))
        return target;
    for (CUstream s = streams.first; s; s = s->next)
        if (ready(s) && (s != target || strategy != TARGET_LAST) && emulated_random(++n) == 0)
            chosen = s;
    return chosen || !target || !ready(target) ? chosen : target;
}

static void pause_for(long nanoseconds)
{
    emulated_unlock();
    nanosleep(&(struct timespec){0, nanoseconds}, NULL);
    emulated_lock();
}

/* Nothing may be done at once: others are waited for, or nobody will ever do it. */
static void stuck(const char *what)
{
    bool hope = false;
    for (CUstream s = streams.first; s; s = s->next) {
        hope |= s->busy || s->waiting;
        s->waiting = false;
    }
    if (!hope)
        emulated_violation("%s waits for what nobody will do", what);
    pause_for(50000);
}

static void work_once(CUstream target, enum strategy strategy, const char *what)
{
    CUstream s = choose(target, strategy);
    if (s)
        step(s);
    else
        stuck(what);
}

static bool context_idle(CUcontext context)
{
    for (CUstream s = streams.first; s; s = s->next)
        if (s->first && (!context || s->context == context))
            return false;
    return true;
}

CUresult emulated_finish(CUstream stream, CUcontext context)
{
    enum strategy strategy = emulated_random(STRATEGIES);
    while (stream ? stream->first != NULL : !context_idle(context))
        work_once(stream, strategy, "a stream");
    for (CUstream s = streams.first; s; s = s->next)
        if (stream ? s == stream : !context || s->context == context)
            emulated_clock_join(&emulated_host_clock, &s->clock);
    context = stream ? stream->context : context;
    if (context && context->error == CUDA_SUCCESS && emulated_fails("sync"))
        context->error = CUDA_ERROR_UNKNOWN;
    return context ? context->error : CUDA_SUCCESS;
}

CUresult emulated_finish_record(emulated_record *record, CUcontext context)
{
    record->references++;
    while (!record->done)
        work_once(NULL, ANY, "an event");
    emulated_clock_join(&emulated_host_clock, &record->clock);
    emulated_record_release(record);
    return context->error;
}

bool emulated_stream_idle(CUstream stream)
{
    if (!stream->first)
        emulated_clock_join(&emulated_host_clock, &stream->clock);
    return !stream->first;
}

void emulated_poke(void)
{
    if (emulated_random(3) != 0)
        return;
    for (unsigned n = 1 + emulated_random(8); n > 0; n--) {
        CUstream s = choose(NULL, ANY);
        if (!s) {
            for (CUstream each = streams.first; each; each = each->next)
                each->waiting = false;
            return;
        }
        step(s);
    }
}

static void *help(void *unused)
{
    (void)unused;
    emulated_lock();
    for (;;) {
        CUstream s = streams.others_need > 0 ? choose(NULL, ANY) : NULL;
        if (s) {
            step(s);
            if (emulated_random(4) != 0)
                continue;
        } else
            for (CUstream each = streams.first; each; each = each->next)
                each->waiting = false;
        pause_for(streams.others_need > 0 ? 200000 : 2000000);
    }
    return NULL;
}
