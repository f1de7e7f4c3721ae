/* SPDX-License-Identifier: BSD-3-Clause */
/* Questions about a node that several passes ask. The answers depend only on the operation's row in the table and on
 * the node itself. */
#include "plan/model/planner.h"
#include "graph/numbers.h"

bool oly_has_axis(const oly_node *n, int d)
{
    for (int k = 0; k < n->params.n_axes; k++)
        if (n->params.axes[k] == d)
            return true;
    return false;
}

bool oly_is_result(const oly_frame *f, const oly_node *n)
{
    for (int k = 0; k < f->graph->n_outputs; k++)
        if (f->graph->outputs[k] == n)
            return true;
    return false;
}

static bool is_concatenation(const oly_node *n)
{
    return oly_ops[n->op].lowering == OLY_LOWER_WRITE && oly_ops[n->op].detail == OLY_WRITE_ALL;
}

bool oly_writes_parts(const oly_node *n)
{
    if (oly_ops[n->op].lowering == OLY_LOWER_WRITE)
        return !is_concatenation(n);
    return oly_ops[n->op].lowering == OLY_LOWER_LOCAL && oly_local_writes_parts(n);
}

void oly_splat_instruction(const oly_node *constant, oly_tile_instruction *i)
{
    *i = (oly_tile_instruction){.op = OLY_TILE_splat,
                                .dtype = (uint8_t)constant->type.dtype,
                                .to = (uint8_t)constant->type.dtype,
                                .in = {-1, -1, -1}};
    oly_number_store(&constant->params, &i->value);
}

/* Scatters and updates write in place where they may. */
bool oly_local_writes_parts(const oly_node *n)
{
    return oly_local_way_of((oly_local_op)oly_ops[n->op].detail) == OLY_LOCAL_WRITES;
}

bool oly_is_linear_in(const oly_node *n, bool first, bool second)
{
    oly_kind kind = oly_dtype_kind(n->type.dtype);
    bool whole = kind != OLY_KIND_FLOAT && kind != OLY_KIND_COMPLEX;
    switch (oly_linearity_of(n->op)) {
    case OLY_LINEAR_SUM:
    case OLY_LINEAR_DIFFERENCE: return first || second;
    case OLY_LINEAR_NEGATION: return first;
    case OLY_LINEAR_PRODUCT: return first != second;
    case OLY_LINEAR_QUOTIENT: return !whole && first && !second;
    case OLY_LINEAR_CAST: /* to a type that has all values of the old one: the sum is at least as accurate */
        return first && !whole && oly_dtype_kind(n->in[0]->type.dtype) == kind &&
               oly_dtype_size(n->in[0]->type.dtype) < oly_dtype_size(n->type.dtype);
    case OLY_NOT_LINEAR: break;
    }
    return false;
}
