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

/* Is an iteration of this work small enough to be launched in vain, as the i-th? What a GPU computes while a condition goes to the host and the
 * next launches come back, some 20 microseconds, is about 2 million element-operations. An iteration in vain may take as long as the
 * iterations before it would have spent waiting, so a loop takes at most twice the time that it would take with the better of both
 * ways. */
static inline bool oly_may_be_in_vain(double work, int64_t i)
{
    return work <= 2e6 * (double)(i + 1);
}
/* Does an iteration leave what the condition's reader and the result need? */
bool oly_keeps_carries(const oly_step *loop);

/* Finds the loops of a prepared plan that may be speculated. fails OLY_MEMORY. */
oly_status oly_speculation_prepare(oly_plan *plan);

/* Before iteration i of a loop with a condition is launched: *early: its condition is being copied, and the iteration is to be launched
 * without knowing it. Then, after the launches, which ended with `launched`: *more: is there such an iteration? Its failure counts
 * only then. */
oly_status oly_speculation_begins(oly_run *r, const oly_step *s, int64_t i, bool *early);
oly_status oly_speculation_ends(oly_run *r, const oly_step *s, oly_status launched, bool *more);
#endif
