/* SPDX-License-Identifier: BSD-3-Clause */
/* Speculated iterations: where devices compute late, the condition of a loop is copied to the host behind the iteration that makes it, and
 * while that is under way the next iteration is launched already:
 *
 *      device   iteration k | iteration k+1 ...      | iteration k+2 ...
 *                      condition k        condition k+1
 *      host     launches k+1, reads k, launches k+2, reads k+1 ...
 *
 * An iteration past the end has no effect: carries have two sets of buffers, and it writes the one that is not the result. So only bodies
 * that are nothing but launches are speculated, without messages, functions of the program, conditions of their own and carries that are
 * updated in place. OLYMPUS_DISABLE=speculation turns it off. Private to runtime/run. */
#ifndef OLY_RUN_SPECULATION_H
#define OLY_RUN_SPECULATION_H
#include "run/interpret.h"
#include "run/prepare_cpu.h"

typedef struct oly_speculation {
    double work; /* of an iteration, on this process: element-operations */
} oly_speculation;

/* Finds the loops of a prepared plan that may be speculated. fails OLY_MEMORY. */
oly_status oly_speculation_prepare(oly_plan *plan);

/* Before iteration i of a loop with a condition is launched: *early: its condition is being copied, and the iteration is to be launched
 * without knowing it. Then, after the launches, which ended with `launched`: *more: is there such an iteration? Its failure counts
 * only then. */
oly_status oly_speculation_begins(oly_run *r, const oly_step *s, int64_t i, bool *early);
oly_status oly_speculation_ends(oly_run *r, const oly_step *s, oly_status launched, bool *more);
#endif
