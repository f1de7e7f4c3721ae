/* OLYMPUS_VERIFY: at its first run a compiled function is also evaluated operation by operation, loops as loops, without
 * optimisations (evaluate.h), and the results are compared on every device (compare.h): equal bits, but where a reduction may be
 * added in another order (rounding.h), which is then within what such roundings change. A difference is OLY_VERIFY: it names the
 * function, the first operation that differs, the element, and the optimisation without which there is none (blame.c). docs/verify.md
 * says what that means to users. Called by runtime/array: for each compiled function one verification, made before its graph is
 * planned and of use for one run. Everything here is done by all processes with devices of the plan's mesh alike. */
#ifndef OLY_VERIFY_VERIFY_H
#define OLY_VERIFY_VERIFY_H
#include "run/execute.h"

typedef struct oly_verification oly_verification;

/* Of a graph that is about to be planned for these inputs and wanted shardings of its outputs (NULL: open). NULL where there is
 * nothing to compare: a single operation is its own plan. */
oly_status oly_verification_new(const oly_graph *g, const oly_plan_value *inputs, const oly_sharding *wanted,
                                oly_verification **made);
void oly_verification_free(oly_verification *v); /* NULL allowed */

/* Before the run: waits for all work and copies what goes in. inputs[k][s]: shard s of input k. */
oly_status oly_verify_before(oly_verification *v, oly_buffer *const *const *inputs);
/* After it: compares. donated[k]: input whose memory output k may have; -1; or NULL. */
oly_status oly_verify_after(oly_verification *v, const oly_plan *plan, oly_buffer *const *const *inputs,
                            const int *donated, oly_buffer *const *const *outputs);
#endif
