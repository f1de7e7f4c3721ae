/* SPDX-License-Identifier: BSD-3-Clause */
/* Which model forecasts steps. See forecast.h. */
#include "plan/cost/forecast.h"
#include "plan/cost/cost.h"

static oly_forecaster *in_use = oly_cost_step;

void oly_forecast_by(oly_forecaster *forecaster)
{
    in_use = forecaster ? forecaster : oly_cost_step;
}

double oly_forecast_step(const oly_plan *plan, const oly_step *step)
{
    return in_use(plan, step);
}

double oly_forecast_plan(const oly_plan *plan)
{
    double seconds = 0;
    for (int k = 0; plan->main && k < plan->main->n_steps; k++)
        seconds += oly_forecast_step(plan, &plan->main->steps[k]);
    return seconds;
}
