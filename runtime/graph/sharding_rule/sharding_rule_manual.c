/* SPDX-License-Identifier: BSD-3-Clause */
/* Sharding types inside shard_map: along which Manual axes a value may vary, and what the other axes do. */
#include "graph/sharding_rule/sharding_rule.h"

static unsigned over(const oly_node *node)
{
    unsigned axes = 0;
    for (int k = 0; k < node->params.over.n && !node->params.unchecked; k++)
        axes |= 1u << node->params.over.axis[k];
    return axes;
}

oly_status oly_sharding_rule_varying(oly_node *node)
{
    node->type.varying |= over(node);
    return oly_sharding_rule_by_factors(node);
}

oly_status oly_sharding_rule_invariant(oly_node *node)
{
    node->type.varying &= ~over(node);
    return oly_sharding_rule_by_factors(node);
}

void oly_sharding_settle(oly_node *node)
{
    oly_type *t = &node->type;
    const oly_spec *spec = &node->params.sharding->spec;
    for (int d = 0; d < t->rank; d++) {
        oly_axis_list list = {0}, old = t->axes[d];
        for (int k = 0; d < spec->n_dims && k < spec->dim[d].n; k++)
            if (t->mesh->explicit_axes >> spec->dim[d].axis[k] & 1)
                list.axis[list.n++] = spec->dim[d].axis[k];
        for (int k = 0; k < old.n; k++)
            if (!(node->params.settled >> old.axis[k] & 1))
                list.axis[list.n++] = old.axis[k];
        t->axes[d] = list;
    }
    if (!(t->mesh->explicit_axes | t->mesh->manual_axes))
        oly_type_clear_sharding(t);
}
