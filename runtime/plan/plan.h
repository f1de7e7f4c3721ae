/* From graph to plan: propagate, group, partition, lower, assign memory. plan.c is the whole way on a page. Knows nothing of MPI
 * or CUDA beyond the exchange object. Called by runtime/run. */
#ifndef OLY_PLAN_PLAN_H
#define OLY_PLAN_PLAN_H
#include <olympus/transform.h>
#include "plan/model/steps.h"

oly_status oly_plan_make(const oly_plan_request *request, oly_plan **plan);
void oly_plan_free(oly_plan *plan);
/* Tests: called with every plan that is made, which it may damage; NULL: nothing. */
extern void (*oly_plan_damage)(oly_plan *plan);
/* May this output be written over this input's memory where that is donated (scratch_memory.c)? Its cost grows with the plan's steps. */
bool oly_plan_may_take(const oly_plan *plan, int input, int output);
/* Frees what is kept for the next plan; at finalize. */
void oly_plan_forget(void);

/* The plan explained (explain.c), with hints on request: those plan again, several times. names: of the inputs, for people, NULL
 * entries unknown; or NULL. What differs between two plans. In
 * numbers. */
oly_status oly_plan_explain(oly_text *t, const oly_plan *plan, oly_explain_form form, bool hints,
                            const char *const *names);
oly_status oly_plan_diff(oly_text *t, const oly_plan *before, const oly_plan *after);
void oly_plan_count(const oly_plan *plan, oly_plan_costs *costs);
#endif
