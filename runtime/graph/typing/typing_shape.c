/* SPDX-License-Identifier: BSD-3-Clause */
/* Type rules of padding and reversing. As typing.c: called only by oly_graph_add, through the table. */
#include "graph/typing/typing.h"
#include "graph/graph.h"
#include <inttypes.h>

static const oly_type *operand(const oly_node *node, int k)
{
    return &node->in[k]->type;
}

oly_status oly_typing_pad(oly_node *node)
{
    const oly_params *p = &node->params;
    const oly_type *x = operand(node, 0), *value = operand(node, 1);
    const char *name = oly_ops[node->op].name;
    if (value->dtype != x->dtype || value->rank != 0)
        return oly_fail(value->dtype != x->dtype ? OLY_DTYPE : OLY_SHAPE,
                        "%s: the padding value of %s is %s; it is one element of the same type", name,
                        oly_type_short(x), oly_type_short(value));
    if (p->rank != x->rank)
        return oly_fail(OLY_SHAPE, "%s: padding for %d dimensions, %s has %d", name, p->rank, oly_type_short(x),
                        x->rank);
    node->type = *x;
    node->type.weak = x->weak && value->weak;
    for (int d = 0; d < x->rank; d++) {
        if (p->step[d] < 1 || p->shape[d] < 0)
            return oly_fail(OLY_INVALID,
                            "%s: dimension %d of %s would have %" PRId64 " elements, %" PRId64 " from one to the next",
                            name, d, oly_type_short(x), p->shape[d], p->step[d]);
        node->type.shape[d] = p->shape[d];
    }
    return OLY_OK;
}

oly_status oly_typing_rev(oly_node *node)
{
    const oly_params *p = &node->params;
    node->type = *operand(node, 0);
    for (int k = 0; k < p->n_axes; k++)
        if (p->axes[k] < 0 || p->axes[k] >= node->type.rank || (k > 0 && p->axes[k] <= p->axes[k - 1]))
            return oly_fail(OLY_SHAPE, "%s: axis %d of %s; axes must exist and ascend", oly_ops[node->op].name,
                            p->axes[k], oly_type_short(&node->type));
    return OLY_OK;
}
