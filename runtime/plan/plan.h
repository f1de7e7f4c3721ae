/* SPDX-License-Identifier: BSD-3-Clause */
/* From a graph to a plan: propagation, fusion, partition, lowering, scratch memory. plan.c runs the passes. Knows
 * MPI only through the exchange object. Called by runtime/run. */
#ifndef OLY_PLAN_PLAN_H
#define OLY_PLAN_PLAN_H
#include <olympus/transform.h>
#include "plan/model/steps.h"

oly_status oly_plan_make(const oly_plan_request *request, oly_plan **plan);
void oly_plan_free(oly_plan *plan);
/* For tests: called with every new plan, which it may damage. NULL: not called. */
extern void (*oly_plan_damage)(oly_plan *plan);
/* May this output be written over this input's memory when the input is donated (scratch_memory.c)? Takes time
 * linear in the steps of the plan. */
bool oly_plan_may_take(const oly_plan *plan, int input, int output);
/* Frees what is cached for later plans. Called at finalize. */
void oly_plan_forget(void);

/* Describe a plan (explain.c), optionally with hints, which need several more plans; the differences of two plans;
 * the totals of a plan. names: of the inputs, as the caller wrote them; entries may be NULL, and so may names. */
oly_status oly_plan_explain(oly_text *t, const oly_plan *plan, oly_explain_form form, bool hints,
                            const char *const *names);
oly_status oly_plan_diff(oly_text *t, const oly_plan *before, const oly_plan *after);
void oly_plan_count(const oly_plan *plan, oly_plan_costs *costs);
/* Is a device's share of the step computed on the host, because the device's platform has no kernel for it? For explanations; set by
 * runtime/run. NULL: none is. */
extern bool (*oly_plan_on_host)(const oly_plan *plan, const oly_step *step);
/* How many devices of this process get copies of what another one computes in the step. For explanations; set by runtime/run. NULL: none. */
extern int (*oly_plan_served)(const oly_plan *plan, const oly_step *step);
#endif
