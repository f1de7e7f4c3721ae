/* SPDX-License-Identifier: BSD-3-Clause */
/* Layouts chosen by cost. What other rooms may call. */
#ifndef OLY_PLAN_CHOOSE_CHOOSE_H
#define OLY_PLAN_CHOOSE_CHOOSE_H
#include "plan/model/planner.h"

/* Runs after propagation: gives values whose layout is free other layouts, if the whole graph then costs clearly less
 * and moves fewer bytes. Makes the frame's groups. */
oly_status oly_choose(oly_planner *p, oly_frame *f);
#endif
