/* SPDX-License-Identifier: BSD-3-Clause */
/* Private to field_regions.c, which makes field regions, and field_region_worth.c, which says which ones are worth it. */
#ifndef OLY_PLAN_REWRITE_FIELD_REGIONS_H
#define OLY_PLAN_REWRITE_FIELD_REGIONS_H
#include "plan/stencil/time_tiling_plan.h"

/* form: of a loop that runs once. */
oly_status oly_is_region_worth_it(oly_planner *p, const oly_tiling_form *form, bool *yes);
#endif
