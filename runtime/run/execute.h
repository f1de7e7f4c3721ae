/* Running plans: binding buffers, submitting to the queue, interpreting the steps. Called by runtime/array. */
#ifndef OLY_RUN_EXECUTE_H
#define OLY_RUN_EXECUTE_H
#include "device/memory.h"
#include "device/queue.h"
#include "plan/plan.h"
#include "run/together.h"

/* A plan ready to run: how shards map to the plan's devices, and run objects to reuse. */
typedef struct oly_program oly_program;

/* Takes the plan over. */
oly_status oly_program_new(oly_plan *plan, oly_program **program);
void oly_program_free(oly_program *p); /* waits for its runs; NULL allowed */
const oly_plan *oly_program_plan(const oly_program *p);
/* Local shards (in mesh order) of output k. */
int oly_program_output_shards(const oly_program *p, int k);

/* Submits a run. inputs[k][s]: shard s of input k; known[k]: what other processes know it by (NULL: nothing). donated[k]: input whose memory output k may take over if nobody else holds
 * it, -1; or NULL. Fills outputs[k][s] with new references. moment: with local device `*device`
 * tells when it is done (device -1: nothing here). made: what others know output 0 by, the next by
 * the next number. */
oly_status oly_program_run(oly_program *p, oly_buffer *const *const *inputs, const oly_identity *known,
                           const int *donated, oly_buffer **const *outputs, oly_site site, int *device,
                           uint64_t *moment, oly_identity *made);

/* OLY_OK, or the failure after which communication cannot go on. */
oly_status oly_run_failure(void);
oly_status oly_run_refused(void); /* the same, with a message that says what has failed */
/* Records a failure after which communication cannot go on. */
void oly_run_fail(oly_status status);
/* This process has failed with `status` in a call that others make, too: tells them, and lets nothing run any more. Returns it. */
oly_status oly_run_give_up(oly_status status);
void oly_run_reset(void); /* at finalize */
#endif
