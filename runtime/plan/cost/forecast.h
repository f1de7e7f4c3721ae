/* SPDX-License-Identifier: BSD-3-Clause */
/* Predicted times as people read them: in explanations and in the timeline. Those of the cost model (cost.h), by which layouts and schedules
 * are chosen, unless whoever runs plans knows better: with OLYMPUS_COSTS=measure, runtime/run/forecast.c forecasts a step from rates of
 * each kernel on this machine; on GPUs runtime/run/cuda/forecast_gpu.c does, from what the driver says of the card. No choice may depend on
 * them: plans are the same whatever was measured. Called by plan/explain and runtime/run/timed_steps.c. */
#ifndef OLY_PLAN_COST_FORECAST_H
#define OLY_PLAN_COST_FORECAST_H
#include "plan/model/steps.h"

/* Seconds of one run of a step, with everything inside it, and of a plan, on this process. */
double oly_forecast_step(const oly_plan *plan, const oly_step *step);
double oly_forecast_plan(const oly_plan *plan);
/* By whose rates, for people: "NVIDIA H100 (copies 3017 GB/s, ...)"; NULL: those of the cost model, or of this machine's CPU. */
const char *oly_forecast_rates(void);

/* Sets how plans are forecast; NULL: by the cost model. Keeps the pointer. */
typedef double oly_forecaster(const oly_plan *plan, const oly_step *step);
typedef struct oly_forecast_model {
    oly_forecaster *step;
    double call;       /* seconds of a run of a plan beside its steps */
    const char *rates; /* as oly_forecast_rates */
} oly_forecast_model;
void oly_forecast_by(const oly_forecast_model *model);
#endif
