/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups of stages that machine code computes together. See time_tiling_group.c. Private to time_tiling_fuse.c and time_tiling.c. */
#ifndef OLY_PLAN_STENCIL_TIME_TILING_GROUP_H
#define OLY_PLAN_STENCIL_TIME_TILING_GROUP_H
#include "plan/stencil/time_tiling_code.h"

/* Puts the stages in an order in which groups are adjacent, and sets form->group_of. */
oly_status oly_tiling_sort(oly_planner *p, oly_tiling_form *form);
/* The groups' programs, made of the stages' own programs for machine code; large groups are divided. form->n_groups 0: not all pieces have such
 * programs. */
oly_status oly_tiling_find_groups(oly_planner *p, oly_tiling_form *form);
/* The same, with groups whose members are needed over the same elements. needed: [n_stages] of one step. */
oly_status oly_tiling_divide_groups(oly_planner *p, oly_tiling_form *form, const oly_tiling_instance *needed);
#endif
