/* SPDX-License-Identifier: BSD-3-Clause */
/* OLYMPUS_VERIFY: at its first run a compiled function is also evaluated operation by operation, loops as loops,
 * without optimisations (evaluate.h), and the results are compared on every device (compare.h): bit by bit, except
 * where a reduction may be computed in another order (rounding.h), whose result must be within the effect of such
 * roundings. A difference is OLY_VERIFY: it names the function, the first operation that differs, the element, and the
 * optimisation without which there is none (blame.c). docs/verify.md says what that means to users. Called by
 * runtime/array: each compiled function has one verification, created before its graph is planned and used for one run.
 * All processes with devices of the plan's mesh make the same calls. */
#ifndef OLY_VERIFY_VERIFY_H
#define OLY_VERIFY_VERIFY_H
#include "run/execute.h"

typedef struct oly_verification oly_verification;

/* For a graph about to be planned with these inputs and wanted shardings of its outputs (NULL: open). NULL where there
 * is nothing to compare: a single operation is its own plan. */
oly_status oly_verification_new(const oly_graph *g, const oly_plan_value *inputs, const oly_sharding *wanted,
                                oly_verification **made);
void oly_verification_free(oly_verification *v); /* NULL allowed */

/* Before the run: waits for all work and copies the inputs. inputs[k][s]: shard s of input k. */
oly_status oly_verify_before(oly_verification *v, oly_buffer *const *const *inputs);
/* After the run: compares. donated[k]: the input whose memory output k may have; -1; or NULL. */
oly_status oly_verify_after(oly_verification *v, const oly_plan *plan, oly_buffer *const *const *inputs,
                            const int *donated, oly_buffer *const *const *outputs);
#endif
