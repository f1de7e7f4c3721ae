/* SPDX-License-Identifier: BSD-3-Clause */
/* Which model forecasts steps. See forecast.h. */
#include "plan/cost/forecast.h"
#include "plan/cost/cost.h"

static const oly_forecast_model costs = {.step = oly_cost_step}, *in_use = &costs;

void oly_forecast_by(const oly_forecast_model *model)
{
    in_use = model ? model : &costs;
}

double oly_forecast_step(const oly_plan *plan, const oly_step *step)
{
    return in_use->step(plan, step);
}

double oly_forecast_plan(const oly_plan *plan)
{
    int n = plan->main ? plan->main->n_steps : 0;
    double seconds = n > 0 ? in_use->call : 0;
    for (int k = 0; k < n; k++)
        seconds += oly_forecast_step(plan, &plan->main->steps[k]);
    return seconds;
}

const char *oly_forecast_rates(void)
{
    return in_use->rates;
}
