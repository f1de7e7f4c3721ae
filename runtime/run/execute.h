/* SPDX-License-Identifier: BSD-3-Clause */
/* Running plans: binding buffers, submitting to the queue, interpreting the steps. Called by runtime/array. */
#ifndef OLY_RUN_EXECUTE_H
#define OLY_RUN_EXECUTE_H
#include "device/memory.h"
#include "device/queue.h"
#include "plan/plan.h"
#include "run/together.h"

/* A plan that is ready to run: the mapping of shards to the plan's devices, and run objects to reuse. */
typedef struct oly_program oly_program;

/* Takes ownership of the plan. */
oly_status oly_program_new(oly_plan *plan, oly_program **program);
void oly_program_free(oly_program *p); /* waits for its runs; NULL allowed */
const oly_plan *oly_program_plan(const oly_program *p);
/* Local shards (in mesh order) of output k. */
int oly_program_output_shards(const oly_program *p, int k);

/* Submits a run. inputs[k][s]: shard s of input k; known[k]: its identity among processes (NULL: none). donated[k]: the
 * input whose memory output k may take over if nobody else holds it, -1; or NULL. Fills outputs[k][s] with new
 * references. `moment` on local device `*device` says when it is complete (device -1: nothing here). made: the identity
 * of output 0 among processes; the next ones have the next numbers. */
oly_status oly_program_run(oly_program *p, oly_buffer *const *const *inputs, const oly_identity *known,
                           const int *donated, oly_buffer **const *outputs, oly_site site, int *device,
                           uint64_t *moment, oly_identity *made);

/* OLY_OK, or the failure after which communication cannot continue. */
oly_status oly_run_failure(void);
oly_status oly_run_refused(void); /* the same, with a message that names the failed call */
/* Records a failure after which communication cannot continue. */
void oly_run_fail(oly_status status);
/* This process has failed with `status` in a call that others make, too: notifies them, and stops all further runs.
 * Returns the status. */
oly_status oly_run_give_up(oly_status status);
void oly_run_reset(void); /* at finalize */
#endif
