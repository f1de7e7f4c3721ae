/* SPDX-License-Identifier: BSD-3-Clause */
/* Type rules of the rows behind random numbers. As typing.c: called only by oly_graph_add, through the table. */
#include "graph/typing/typing.h"
#include "graph/graph.h"

oly_status oly_typing_position(oly_node *node)
{
    node->params.dtype = OLY_UINT64;
    node->params.dimension = 0;
    OLY_TRY(oly_typing_given(node));
    node->params.dimension = -1; /* for the tile operation: no dimension */
    return OLY_OK;
}

oly_status oly_typing_words(oly_node *node)
{
    OLY_TRY(oly_typing_agree(node));
    if (node->type.dtype != OLY_UINT64)
        return oly_fail(OLY_DTYPE, "%s of %s; it takes uint64, two words in one", oly_ops[node->op].name,
                        oly_type_short(&node->type));
    if (node->op == OLY_OP_random_bits)
        node->type.dtype = OLY_UINT32;
    return OLY_OK;
}

oly_status oly_typing_agree3(oly_node *node)
{
    for (int k = 1; k < 3; k++)
        if (!oly_type_equal(&node->in[0]->type, &node->in[k]->type))
            return oly_fail(OLY_SHAPE, "%s: operands %s and %s must have one type; convert and broadcast first",
                            oly_ops[node->op].name, oly_type_short(&node->in[0]->type),
                            oly_type_short(&node->in[k]->type));
    node->type = node->in[0]->type;
    node->type.weak = node->in[0]->type.weak && node->in[1]->type.weak && node->in[2]->type.weak;
    if (node->type.dtype != OLY_FLOAT32 && node->type.dtype != OLY_FLOAT64)
        return oly_fail(OLY_DTYPE, "%s of %s; it takes float32 and float64", oly_ops[node->op].name,
                        oly_type_short(&node->type));
    return OLY_OK;
}
