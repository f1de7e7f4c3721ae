/* SPDX-License-Identifier: BSD-3-Clause */
/* The executor: computes on the devices of this process. The interpreter (interpret.c) decides the order of steps, how
 * often a loop runs and what waits for what; it reaches devices through these functions only. The executor for CPUs
 * (executor_cpu.c; stencil passes in stencil_run.c and time_tiling_run.c) splits a step into chunks by shapes alone and
 * distributes them over the threads, so results have the same bits on any number of threads. An executor for other devices
 * (run/cuda) is a table of what it does itself; what it does not have, the CPU's kernels compute on copies in host memory
 * (detour.h). docs/platforms.md says how one is added. Private to runtime/run. */
#ifndef OLY_RUN_EXECUTOR_H
#define OLY_RUN_EXECUTOR_H
#include "device/platform.h"
#include "run/device_order.h"
#include "run/interpret.h"

/* -- executors ---------------------------------------------------------------------------------------------------------- */

struct oly_segment;
struct oly_loop_replay;
typedef struct oly_executor {
    const char *name; /* "cpu" */
    /* Launches a device's share on the device, in its order: true, and *st says how that went. False: it has no kernel for
     * it. Called for one device by one thread at a time. NULL: there are none. */
    bool (*launch)(const oly_device_work *w, oly_work_of of, oly_status *st);
    /* Does it have a kernel for a device's share of a step, as far as the plan tells? For explanations; NULL: they say nothing. */
    bool (*has)(const oly_plan *plan, const oly_step *step, int device);
    /* Adds to what is prepared for the steps of a plan. NULL: nothing. fails OLY_MEMORY. */
    oly_status (*prepare)(oly_plan *plan);
    /* In the device's order, without waiting for it; NULL: the device is drained, and the platform writes or copies. */
    oly_status (*write)(int device, void *to, const void *value, size_t bytes); /* at most 8 bytes */
    oly_status (*copy)(int device, void *to, const void *from, size_t bytes);
    /* A value (at most 8 bytes) on its way to the host, which waits for it in read_end: what the device is given between the two runs
     * meanwhile, and must not write it. *begun: false: the device has no such way. One at a time for each device. NULL: there are none. */
    oly_status (*read_begin)(int device, const void *from, size_t bytes, bool *begun);
    oly_status (*read_end)(int device, void *value, size_t bytes);
    /* How plans are forecast, once the devices have started; NULL: as on CPUs. Its result is NULL: out of memory. */
    const struct oly_forecast_model *(*forecast)(void);
    /* Runs a segment as one launch: *done (replay.h). Not done: nothing was launched. forget: gives back what is kept for it. NULL: steps
     * are run one by one. */
    oly_status (*replay)(oly_run *r, struct oly_segment *s, bool *done);
    void (*forget)(struct oly_segment *s);
    /* Iterations of a loop, from the i-th on, as launches of a graph of several (loop_replay.h): *done of them, 0 or a multiple of the
     * loop's period; of a loop with a condition, and *decided: whether *more follow. Not done: nothing was launched. NULL: they are
     * launched one by one. */
    oly_status (*iterate)(oly_run *r, struct oly_loop_replay *l, int64_t i, int64_t *done, bool *decided, bool *more);
    void (*forget_loop)(struct oly_loop_replay *l);
} oly_executor;
extern const oly_executor oly_executor_cpu;
extern const oly_executor *oly_executor_chosen;
static inline const oly_executor *oly_executor_get(void)
{
    return oly_executor_chosen;
}

/* Is there something to compute on the device? Of steps that compute. */
bool oly_step_has_work(const oly_step *s, int device);

/* -- preparing a plan ------------------------------------------------------------------------------------------------- */

/* Sets `prepared` of every step, once, before the first run: how this executor divides it. In the plan's arena. fails
 * OLY_MEMORY. */
oly_status oly_executor_prepare(oly_plan *plan);
/* The same for a level of a reduction, which is listed when it first runs; does nothing if it is prepared. */
oly_status oly_executor_prepare_level(const oly_plan *plan, oly_reduction_level *level);

/* Memory that a run takes on its first device besides its slots: for the tiles of stencil passes. 0: none. */
size_t oly_executor_workspace(const oly_plan *plan);

/* -- running a step on all devices of this process ---------------------------------------------------------------------
 * On return the results are complete or, where devices compute late, submitted: the host drains (device_order.h) before it
 * uses them. fail as a device does. */

/* Steps of kind TILE, REDUCE and LOCAL, and products without their exchange. */
oly_status oly_compute(oly_run *r, const oly_step *step);
/* A device's share of a step of that kind, or of one that copies within devices, on this thread, with other base pointers than the
 * run's. Where devices compute at once. */
void oly_compute_share(oly_run *r, void *const *base, const oly_step *step, int device);
/* Phase k of a product whose result is sent in parts. */
oly_status oly_compute_phase(oly_run *r, const oly_step *product, int k);
/* Copies between devices of this process, of a step or level. work: element-operations, which decide whether threads
 * share it. */
oly_status oly_run_copies(oly_run *r, const struct oly_prepared *prepared, const oly_copy_work *copies, int n,
                          double work);
/* Reduces partial results of devices by the step's combiner. */
oly_status oly_compute_sums(oly_run *r, const oly_step *step, int n_groups, const oly_reduction_work *groups,
                            double work);
/* Copies and reductions of a level whose messages have arrived: called through oly_exchange_outline.between on the
 * waiting thread. staged: an oly_staged_reduction; base: of every buffer. */
oly_status oly_compute_level(const void *staged, int stage, void *const *base);
/* Stencil loops: oly_run_stencil, oly_run_time_tiling in stencil_run.h. */

/* -- values that control flow needs: conditions, counters, results of loops. They drain the device ----------------- */
oly_status oly_slot_read(const oly_run *r, int device, int slot, size_t bytes, void *value);
oly_status oly_slot_write(const oly_run *r, int device, int slot, size_t bytes, const void *value);
oly_status oly_slot_copy(const oly_run *r, int device, int to, int from, size_t bytes);

/* Around the use of the run's buffers by this thread, during a step. Where devices compute late, submitted work opens
 * the buffers that it uses, and messages open those of the run. */
void oly_executor_open(const oly_run *r);
void oly_executor_close(const oly_run *r);
static inline void oly_executor_enter(const oly_run *r)
{
    if (oly_platform_get()->open && !oly_platform_is_late())
        oly_executor_open(r);
}
static inline void oly_executor_leave(const oly_run *r)
{
    if (oly_platform_get()->close && !oly_platform_is_late())
        oly_executor_close(r);
}
#endif
