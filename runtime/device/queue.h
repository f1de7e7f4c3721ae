/* SPDX-License-Identifier: BSD-3-Clause */
/* The run queue: jobs in program order on each device, unordered across devices. A job occupies a set of local devices
 * and, if it communicates with other processes, the communication queue; it starts when the jobs before it on each of
 * these are complete. So plans on different devices overlap, plans on one device keep order, and all traffic between
 * processes keeps program order. Jobs run on workers; a small job with nothing before it runs on the calling thread.
 * Called by runtime/run. */
#ifndef OLY_DEVICE_QUEUE_H
#define OLY_DEVICE_QUEUE_H
#include <olympus/base.h>

typedef struct oly_job oly_job;
struct oly_job {
    void (*execute)(oly_job *job); /* the work */
    void (*release)(oly_job *job); /* called once after execute, when nothing refers to the job: frees or reuses it */
    /* NULL allowed; called, under the queue's lock, when it is in all its lines and will not run before this
     * returns; not called if it runs on the caller at once */
    void (*entered)(oly_job *job);
    int n_devices;      /* local device indexes it occupies */
    const int *devices; /* distinct; borrowed until release */
    bool communicates;  /* with other processes */
    bool small;         /* worth running on the calling thread */
    bool quiet;         /* not shown in the timeline, nor what it calls */
    /* queue's own: */
    struct oly_job_links *links;
};

oly_status oly_queue_start(int n_local_devices, int depth);
void oly_queue_stop(void); /* drains first */
/* Runs or enqueues; the queue owns the job until it is released, which may be before this returns. fails (the job was
 * not taken) OLY_INVALID, OLY_MEMORY. Waits (helping) while `depth` jobs are pending. Jobs that communicate where MPI
 * may be called from the main thread only (oly_queue_inline(true)) run at once on the caller after draining. */
oly_status oly_queue_submit(oly_job *job);
void oly_queue_inline(bool always);
bool oly_queue_is_inside(void); /* is this thread running a job? */

/* A point in a device's order: all jobs submitted to it so far. */
uint64_t oly_queue_now(int device);
bool oly_queue_reached(int device, uint64_t moment);
/* Wait (helping) until the device has completed all jobs up to that point, and all devices every job; and until what those jobs
 * have left pending is done (pending.h). */
void oly_queue_wait(int device, uint64_t moment);
void oly_queue_drain(void);
#endif
