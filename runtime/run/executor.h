/* The executor: computes on the devices of this process. The interpreter (interpret.c) decides which step comes when, how often a loop
 * runs and what waits for what; it reaches devices by these functions only. There is one implementation, for CPUs (executor_cpu.c;
 * stencil passes in stencil_run.c and time_tiling_run.c): it splits a step into chunks by shapes alone and spreads them over the threads, so
 * results have the same bits on any number of threads. docs/platforms.md says what one for GPUs needs. Private to runtime/run. */
#ifndef OLY_RUN_EXECUTOR_H
#define OLY_RUN_EXECUTOR_H
#include "device/platform.h"
#include "run/interpret.h"

/* -- preparing a plan ------------------------------------------------------------------------------------------------- */

/* Sets `prepared` of every step, once, before the first run: how this executor divides its work. In the plan's arena.
 * fails OLY_MEMORY. */
oly_status oly_executor_prepare(oly_plan *plan);
/* The same for a level of a reduction, which is listed at its first run; of one that is prepared: nothing. */
oly_status oly_executor_prepare_level(const oly_plan *plan, oly_reduction_level *level);

/* Memory that a run takes on its first device, beside its slots: for the tiles of stencil passes. 0: none. */
size_t oly_executor_workspace(const oly_plan *plan);

/* -- running a step on all devices of this process ------------------------------------------------------------------------
 * When they return, the results are there or, where devices compute late, are submitted: the host drains (device_order.h) before it
 * uses them. fail as a device does. */

/* Steps of kind TILE, REDUCE and LOCAL, and products without their exchange. */
oly_status oly_compute(oly_run *r, const oly_step *step);
/* Phase k of a product whose result is sent in parts. */
oly_status oly_compute_phase(oly_run *r, const oly_step *product, int k);
/* Between devices of this process, of a step or level. work: element-operations, by which it is decided whether threads share it. */
oly_status oly_run_copies(oly_run *r, const struct oly_prepared *prepared, const oly_copy_work *copies, int n,
                          double work);
/* Adds partial results of devices, by the step's combiner. */
oly_status oly_compute_sums(oly_run *r, const oly_step *step, int n_groups, const oly_reduction_work *groups,
                            double work);
/* Copies and sums of a level whose messages have arrived: what oly_exchange_outline.between calls, on the thread that waits.
 * staged: an oly_staged_reduction; base: of every buffer. */
void oly_compute_level(const void *staged, int stage, void *const *base);
/* Stencil loops: oly_run_stencil, oly_run_march in stencil_run.h. */

/* -- values that control flow needs: conditions, counters, results of loops. They drain the device. ------------------------- */
oly_status oly_slot_read(const oly_run *r, int device, int slot, size_t bytes, void *value);
oly_status oly_slot_write(const oly_run *r, int device, int slot, size_t bytes, const void *value);
oly_status oly_slot_copy(const oly_run *r, int device, int to, int from, size_t bytes);

/* -- around what uses the memory of the run's buffers on this thread ---------------------------------------------------------
 * A step, unless devices compute late: then what was submitted opens the buffers that it uses, and messages those of the run. */
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
