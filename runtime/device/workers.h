/* SPDX-License-Identifier: BSD-3-Clause */
/* The thread pool of this process: n-1 workers beside the calling thread. Regions may be opened from any thread,
 * workers included; idle workers help. Idle workers spin briefly, then sleep. With n = 1 there are no workers and
 * everything runs on the calling thread. Called by device/queue and runtime/run. */
#ifndef OLY_DEVICE_WORKERS_H
#define OLY_DEVICE_WORKERS_H
#include <olympus/base.h>

oly_status oly_workers_start(int threads);
void oly_workers_stop(void);
int oly_workers_count(void); /* threads that compute, the calling one included */
/* A small number of the calling thread, 0 .. oly_workers_slots()-1, constant for its life: for per-thread scratch
 * memory. Threads that are not workers get one on their first call. */
int oly_workers_slot(void);
int oly_workers_slots(void);

/* Calls body(context, i) for i in 0..n-1, on the caller and idle workers; returns when all are complete. */
void oly_parallel(int n, void (*body)(void *context, int i), void *context);

/* Used by the queue: gives idle workers something to call; `poll` is called by workers that have nothing to do and
 * returns whether it did anything. oly_workers_wake wakes one sleeping worker. oly_workers_help: the calling thread
 * helps with open regions or polls once; returns whether it did anything. */
void oly_workers_set_poll(bool (*poll)(void));
void oly_workers_wake(void);
bool oly_workers_help(void);

/* Helps until over(context) holds; spins briefly when there is nothing to do, then sleeps. Whoever makes it hold calls
 * oly_workers_notify afterwards. Not for use inside the body of a region. */
void oly_workers_wait(bool (*over)(void *context), void *context);
void oly_workers_notify(void);
#endif
