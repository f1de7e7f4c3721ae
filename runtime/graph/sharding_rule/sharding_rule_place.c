/* SPDX-License-Identifier: BSD-3-Clause */
/* Sharding types of values that are given or moved: places, and the values of loops. */
#include "graph/sharding_rule/sharding_rule.h"
#include <string.h>

/* The requested sharding, on any mesh. */
oly_status oly_sharding_rule_place(oly_node *node)
{
    if (node->params.settled) { /* at the boundary of shard_map: oly_sharding_settle does the rest */
        OLY_TRY(oly_sharding_rule_by_factors(node));
        node->type.mesh = node->params.sharding->mesh;
        return OLY_OK;
    }
    oly_type_set_sharding(&node->type, node->params.sharding);
    oly_type_keep_open(&node->type, &node->in[0]->type, node->params.sharding);
    return OLY_OK;
}

/* The requested sharding, over Explicit axes. */
oly_status oly_sharding_rule_reshard(oly_node *node)
{
    return oly_sharding_take_out(node);
}

/* Drops Explicit axes; Manual ones stay. */
oly_status oly_sharding_rule_untyped(oly_node *node)
{
    oly_mesh mesh = node->type.mesh;
    unsigned varying = node->type.varying;
    OLY_TRY(oly_sharding_refuse_marks(node));
    oly_type_clear_sharding(&node->type);
    if (!mesh->manual_axes)
        return OLY_OK;
    node->type.mesh = oly_mesh_retyped(mesh, 0, mesh->manual_axes);
    node->type.varying = varying;
    return node->type.mesh ? OLY_OK : OLY_MEMORY;
}

/* Loops and branches have no value: their results have. */
oly_status oly_sharding_rule_region(oly_node *node)
{
    (void)node;
    return OLY_OK;
}

/* A carry comes out as it went in; a branch's result is as all branches return it. */
oly_status oly_sharding_rule_result(oly_node *node)
{
    const oly_node *from = node->in[0];
    int k = node->params.dimension;
    const oly_type *carry = from->params.n_branches ? &from->params.branches[0]->outputs[k]->type : &from->in[k]->type;
    node->type.mesh = carry->mesh ? carry->mesh : node->type.mesh;
    memcpy(node->type.axes, carry->axes, sizeof carry->axes);
    node->type.unreduced = carry->unreduced;
    node->type.reduced = carry->reduced;
    node->type.varying = carry->varying;
    return OLY_OK;
}
