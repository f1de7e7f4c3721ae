/* SPDX-License-Identifier: BSD-3-Clause */
/* Partition specs and shardings. Interned: equal shardings are one object. */
#ifndef OLY_LAYOUT_SHARDING_H
#define OLY_LAYOUT_SHARDING_H
#include "layout/mesh.h"

typedef struct oly_axis_list {
    uint8_t n;
    uint8_t axis[OLY_MAX_RANK]; /* mesh axes, major first */
} oly_axis_list;

typedef struct oly_spec {
    int n_dims; /* trailing dimensions without axes are dropped: equal placements have equal specs */
    oly_axis_list dim[OLY_MAX_RANK];
    unsigned unreduced; /* bit k: the value is the sum of the terms of the devices along axis k */
    unsigned reduced;   /* bit k: the same along axis k; its gradient is unreduced there */
    unsigned open;      /* bit d: UNCONSTRAINED, the planner may split dimension d over any Auto axes */
} oly_spec;

struct oly_sharding_impl {
    oly_tag tag;
    oly_mesh mesh;
    oly_spec spec;
    int written_dims; /* entries the user wrote, for printing P('x', None) */
    uint64_t hash;
};

oly_sharding oly_sharding_intern(oly_mesh mesh, const oly_spec *spec, int written_dims);
/* A spec in the notation of oly_named (unreduced and reduced: Explicit axes only). */
oly_status oly_spec_parse(oly_mesh mesh, const char *text, oly_spec *spec);
/* Each process's own first device. */
oly_sharding oly_sharding_default(void);
/* The sharding of uncommitted arrays made now (oly_mesh_uncommitted). */
oly_sharding oly_sharding_uncommitted(void);
/* fails OLY_SHARDING if the spec is longer than the rank, or leaves a dimension open. */
oly_status oly_sharding_check_rank(oly_sharding s, int rank);
/* The same for a constraint, which may leave dimensions open. */
oly_status oly_sharding_check_constraint(oly_sharding s, int rank);
/* fails OLY_SHARDING if a dimension is left open: the placement of arrays must be complete. */
oly_status oly_sharding_check_closed(oly_sharding s);
bool oly_axis_list_equal(const oly_axis_list *a, const oly_axis_list *b);
/* Product of the sizes of the axes. */
int oly_axis_list_parts(oly_mesh mesh, const oly_axis_list *list);
/* "x", "(x,y)", "None" */
struct oly_text;
void oly_spec_text(struct oly_text *t, oly_mesh mesh, const oly_spec *spec, int written_dims);
#endif
