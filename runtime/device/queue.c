/* SPDX-License-Identifier: BSD-3-Clause */
/* The run queue. Each local device has a line of jobs, and so has the communication queue; a job is in the line of each of
 * its devices and starts when it is first in all of them. Called by runtime/run.
 *
 * One lock protects the lines. The `places` of a job remember which job is behind it in each line; they come from a list of
 * used ones, so that in steady state submitting allocates nothing. A job is released before it leaves its lines: after a
 * wait for a device everything is complete, the release included. */
#include "device/queue.h"
#include "device/pending.h"
#include "device/workers.h"
#include "core/error.h"
#include "core/timeline.h"
#include <pthread.h>
#include <stdatomic.h>

typedef struct oly_job_links links;

typedef struct place {
    int line;      /* device index, or that of the communication queue */
    links *behind; /* the next job in this line */
} place;

struct oly_job_links {
    oly_job *job;
    int n_places, capacity;
    int first_in; /* in how many lines it is first */
    links *next;  /* in the list of ready jobs or of used links */
    place places[];
};

typedef struct line {
    links *last;                          /* NULL: empty */
    int last_place;                       /* the last job's place in this line */
    atomic_uint_fast64_t submitted, done; /* written under the lock */
} line;

static struct {
    pthread_mutex_t lock;
    line *lines; /* owned; one per device, then the communication queue's */
    int n_devices, depth;
    atomic_int pending; /* submitted and not complete; written under the lock */
    int shown;          /* of these, in the timeline */
    links *ready, **ready_end;
    links *used; /* owned; for later jobs */
    atomic_bool inline_only;
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER, .ready_end = &queue.ready};

/* Jobs this thread is running: a job that waits for other processes helps with other jobs, but those do not help in
 * turn. */
static _Thread_local int own_jobs;
#define MOST_OWN_JOBS 2

/* -- links of jobs ----------------------------------------------------------------------------- */

static links *take_links_locked(oly_job *job)
{
    int n_places = job->n_devices + job->communicates;
    links *l = queue.used;
    if (l)
        queue.used = l->next;
    if (!l || l->capacity < n_places) {
        links *larger = oly_realloc(l, sizeof *l + (size_t)n_places * sizeof *l->places);
        if (!larger) {
            oly_release(l);
            return NULL;
        }
        l = larger;
        l->capacity = n_places;
    }
    l->job = job;
    l->n_places = n_places;
    l->first_in = 0;
    l->next = NULL;
    for (int i = 0; i < n_places; i++)
        l->places[i] = (place){.line = i < job->n_devices ? job->devices[i] : queue.n_devices};
    job->links = l;
    return l;
}

static void free_used_links(void)
{
    while (queue.used) {
        links *next = queue.used->next;
        oly_release(queue.used);
        queue.used = next;
    }
}

/* -- lines ------------------------------------------------------------------------------------- */

static void show_pending_locked(int pending)
{
    int quiet = oly_timeline_quiet;
    oly_timeline_quiet = 0;
    if (oly_timeline_spans()) {
        oly_timeline_count(OLY_EVENT_QUEUE, pending, 0);
        queue.shown = pending;
    }
    oly_timeline_quiet = quiet;
}

/* In the timeline jobs that are not shown change nothing, but that the queue is empty is shown if it was not when last shown. */
static void add_pending_locked(int n)
{
    int pending = atomic_load_explicit(&queue.pending, memory_order_relaxed) + n;
    atomic_store_explicit(&queue.pending, pending, memory_order_release);
    if (oly_times_steps() && (oly_timeline_quiet == 0 || (pending == 0 && queue.shown != 0)))
        show_pending_locked(pending);
}

static void stand_in_lines_locked(links *l)
{
    for (int i = 0; i < l->n_places; i++) {
        line *at = &queue.lines[l->places[i].line];
        uint64_t submitted = atomic_load_explicit(&at->submitted, memory_order_relaxed);
        atomic_store_explicit(&at->submitted, submitted + 1, memory_order_relaxed);
        if (at->last)
            at->last->places[at->last_place].behind = l;
        else
            l->first_in++;
        at->last = l;
        at->last_place = i;
    }
    add_pending_locked(1);
}

static void add_ready_locked(links *l)
{
    l->next = NULL;
    *queue.ready_end = l;
    queue.ready_end = &l->next;
}

static links *take_ready_locked(void)
{
    links *l = queue.ready;
    if (l) {
        queue.ready = l->next;
        if (!queue.ready)
            queue.ready_end = &queue.ready;
    }
    return l;
}

/* Moves the jobs behind up. Returns how many became ready. */
static int leave_lines_locked(links *l)
{
    int made_ready = 0;
    for (int i = 0; i < l->n_places; i++) {
        const place *p = &l->places[i];
        line *at = &queue.lines[p->line];
        links *behind = p->behind;
        if (!behind) {
            at->last = NULL;
        } else if (++behind->first_in == behind->n_places) {
            add_ready_locked(behind);
            made_ready++;
        }
        uint64_t done = atomic_load_explicit(&at->done, memory_order_relaxed);
        atomic_store_explicit(&at->done, done + 1, memory_order_release);
    }
    add_pending_locked(-1);
    l->next = queue.used;
    queue.used = l;
    return made_ready;
}

/* -- running ----------------------------------------------------------------------------------- */

/* Runs a job that is first in all its lines. */
static void run(links *l)
{
    int outer = oly_timeline_quiet;
    oly_timeline_quiet = l->job->quiet;
    own_jobs++;
    l->job->execute(l->job);
    own_jobs--;
    l->job->release(l->job);

    pthread_mutex_lock(&queue.lock);
    int made_ready = leave_lines_locked(l);
    pthread_mutex_unlock(&queue.lock);
    oly_timeline_quiet = outer;
    for (int i = 0; i < made_ready; i++)
        oly_workers_wake();
    oly_workers_notify();
}

/* Called by idle threads. */
static bool run_a_ready_job(void)
{
    if (own_jobs >= MOST_OWN_JOBS)
        return false;
    pthread_mutex_lock(&queue.lock);
    links *l = take_ready_locked();
    pthread_mutex_unlock(&queue.lock);
    if (l)
        run(l);
    return l != NULL;
}

static bool below_depth(void *unused)
{
    (void)unused;
    return atomic_load_explicit(&queue.pending, memory_order_acquire) < queue.depth;
}

static bool nothing_pending(void *unused)
{
    (void)unused;
    return atomic_load_explicit(&queue.pending, memory_order_acquire) == 0;
}

static void wait_for_all(void)
{
    if (!nothing_pending(NULL))
        oly_workers_wait(nothing_pending, NULL);
}

/* Runs it here and, if there are no workers, the jobs that it blocked. */
static void run_here(links *l)
{
    run(l);
    if (oly_workers_count() == 1 && own_jobs == 0)
        while (run_a_ready_job())
            ;
}

static oly_status check_devices(const oly_job *job)
{
    for (int i = 0; i < job->n_devices; i++)
        if (job->devices[i] < 0 || job->devices[i] >= queue.n_devices)
            return oly_fail(OLY_INVALID, "a job on local device %d; there are %d", job->devices[i], queue.n_devices);
    return OLY_OK;
}

oly_status oly_queue_submit(oly_job *job)
{
    OLY_TRY(check_devices(job));
    bool inline_only = atomic_load_explicit(&queue.inline_only, memory_order_relaxed);
    if (own_jobs == 0) { /* a job that submits cannot wait for itself */
        if (inline_only)
            wait_for_all();
        else if (!below_depth(NULL))
            oly_workers_wait(below_depth, NULL);
    }
    pthread_mutex_lock(&queue.lock);
    links *l = take_links_locked(job);
    if (!l) {
        pthread_mutex_unlock(&queue.lock);
        return oly_out_of_memory(sizeof *l, "a queued call");
    }
    stand_in_lines_locked(l);
    bool is_ready = l->first_in == l->n_places;
    bool here = is_ready && (job->small || inline_only || oly_workers_count() == 1);
    if (!here && job->entered)
        job->entered(job);
    if (is_ready && !here)
        add_ready_locked(l);
    pthread_mutex_unlock(&queue.lock);
    if (here)
        run_here(l);
    else if (is_ready)
        oly_workers_wake();
    return OLY_OK;
}

bool oly_queue_is_inside(void)
{
    return own_jobs > 0;
}

void oly_queue_inline(bool always)
{
    atomic_store(&queue.inline_only, always);
}

/* -- waiting ----------------------------------------------------------------------------------- */

uint64_t oly_queue_now(int device)
{
    return atomic_load_explicit(&queue.lines[device].submitted, memory_order_relaxed);
}

bool oly_queue_reached(int device, uint64_t moment)
{
    return atomic_load_explicit(&queue.lines[device].done, memory_order_acquire) >= moment;
}

typedef struct wish {
    int device;
    uint64_t moment;
} wish;

static bool fulfilled(void *context)
{
    const wish *w = context;
    return oly_queue_reached(w->device, w->moment);
}

void oly_queue_wait(int device, uint64_t moment)
{
    wish w = {.device = device, .moment = moment};
    if (!fulfilled(&w))
        oly_workers_wait(fulfilled, &w);
    oly_pending_settle(device);
}

void oly_queue_drain(void)
{
    wait_for_all();
    oly_pending_settle_all();
}

/* -- start and stop ---------------------------------------------------------------------------- */

oly_status oly_queue_start(int n_local_devices, int depth)
{
    if (queue.lines)
        return oly_fail(OLY_STATE, "the queue is already running");
    size_t n_lines = (size_t)n_local_devices + 1;
    queue.lines = oly_calloc(n_lines, sizeof *queue.lines);
    if (!queue.lines)
        return oly_out_of_memory(n_lines * sizeof *queue.lines, "the queue");
    queue.n_devices = n_local_devices;
    queue.depth = depth;
    atomic_store(&queue.inline_only, false);
    oly_workers_set_poll(run_a_ready_job);
    return OLY_OK;
}

void oly_queue_stop(void)
{
    if (!queue.lines)
        return;
    oly_queue_drain();
    oly_pending_forget();
    oly_workers_set_poll(NULL);
    pthread_mutex_lock(&queue.lock); /* a worker may still be looking for a job */
    free_used_links();
    oly_release(queue.lines);
    queue.lines = NULL;
    queue.n_devices = 0;
    pthread_mutex_unlock(&queue.lock);
}
