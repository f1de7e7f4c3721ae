/* SPDX-License-Identifier: BSD-3-Clause */
/* Which executor computes: the platform's. Called at start by runtime/array/start.c. */
#ifndef OLY_RUN_EXECUTOR_CHOICE_H
#define OLY_RUN_EXECUTOR_CHOICE_H
#include "core/error.h"

void oly_executor_choose(void); /* after the platform has been chosen */
/* Forecasts plans as its devices run them (plan/cost/forecast.h), when these have started. fails OLY_MEMORY. */
oly_status oly_executor_forecasts(void);
#endif
