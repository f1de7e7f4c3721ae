/* SPDX-License-Identifier: BSD-3-Clause */
/* The choice of the executor. See executor_choice.h. */
#include "run/executor_choice.h"
#include "run/cuda/executor_cuda.h"
#include "run/device_counts.h"
#include "run/executor.h"
#include "run/repeated_work.h"
#include "plan/cost/forecast.h"
#include "plan/plan.h"
#include <string.h>

const oly_executor *oly_executor_chosen = &oly_executor_cpu;

bool oly_step_has_work(const oly_step *s, int device)
{
    switch (s->kind) {
    case OLY_STEP_TILE: return s->tile.device[device].has_work;
    case OLY_STEP_REDUCE: return s->reduce.device[device].has_work;
    case OLY_STEP_GEMM: return s->gemm.device[device].has_work;
    case OLY_STEP_LOCAL: return s->local.device[device].has_work;
    case OLY_STEP_CALL:
    case OLY_STEP_STENCIL: return true;
    default: return false;
    }
}

static bool on_host(const oly_plan *plan, const oly_step *step)
{
    for (int d = 0; d < plan->n_devices; d++)
        if (oly_step_has_work(step, d) && !oly_executor_chosen->has(plan, step, d))
            return true;
    return false;
}

void oly_executor_choose(void)
{
    oly_counts_begin();
    oly_executor_chosen = strcmp(oly_platform_get()->name, "cuda") == 0 ? oly_executor_cuda() : &oly_executor_cpu;
    oly_plan_on_host = oly_executor_chosen->has ? on_host : NULL;
    oly_plan_served = oly_served_devices;
}

oly_status oly_executor_forecasts(void)
{
    if (!oly_executor_chosen->forecast)
        return OLY_OK;
    const oly_forecast_model *model = oly_executor_chosen->forecast();
    if (!model)
        return oly_out_of_memory(0, "rates of devices");
    oly_forecast_by(model);
    return OLY_OK;
}
