/* SPDX-License-Identifier: BSD-3-Clause */
/* Propagation: which mesh axes split which dimensions, before any cost is computed. What other rooms may call. */
#ifndef OLY_PLAN_PROPAGATE_PROPAGATE_H
#define OLY_PLAN_PROPAGATE_PROPAGATE_H
#include "plan/model/planner.h"

/* -- common_mesh.c -- */
/* Finds the common mesh of several meshes of the same devices, if there is one, and moves the graph's shardings to
 * it. */
oly_status oly_find_common_mesh(oly_planner *p);
/* The same sharding on the plan's mesh, as far as possible; and back on a mesh of the program. NULL: out of memory. */
oly_sharding oly_on_common_mesh(const oly_planner *p, oly_sharding s);
oly_sharding oly_off_common_mesh(const oly_planner *p, oly_sharding s);

/* -- propagate.c -- */
oly_status oly_propagate(oly_planner *p, oly_frame *f);

/* -- late_expansion.c -- */
oly_status oly_expand_late(oly_planner *p, oly_frame *f);

/* -- sub_axes.c -- */
/* Distances between neighbouring devices along sub-axes of p->mesh, as reshapes divide its axes. */
typedef struct oly_axis_cuts {
    int n;
    int64_t distance[OLY_MAX_RANK];
} oly_axis_cuts;
oly_status oly_find_axis_cuts(const oly_planner *p, oly_axis_cuts *cuts);
#endif
