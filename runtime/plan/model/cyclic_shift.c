/* SPDX-License-Identifier: BSD-3-Clause */
/* Cyclic shifts: the concatenation of the last part of an array and the first. Readers look through it at the array
 * itself, with regions that wrap, so all shifts of an array share one exchange and nothing is copied. Where the
 * shifted value itself is needed, one transfer makes it. Called by all rooms that follow an operand to memory. */
#include "plan/model/planner.h"
#include "core/optimisation.h"
#include "graph/view.h"
#include <string.h>

/* Is `part` the elements [from, to) of dimension d of x, and all of the other dimensions? */
static bool is_piece(const oly_node *part, const oly_node *x, int d, int64_t from, int64_t to)
{
    if (!oly_is_part(part, 1) || part->in[0] != x)
        return false;
    for (int e = 0; e < x->type.rank; e++)
        if (part->params.start[e] != (e == d ? from : 0) ||
            part->type.shape[e] != (e == d ? to - from : x->type.shape[e]))
            return false;
    return true;
}

bool oly_is_cyclic_shift(const oly_node *n, int *dimension, int64_t *start)
{
    if (oly_ops[n->op].lowering != OLY_LOWER_WRITE || oly_ops[n->op].detail != OLY_WRITE_ALL || n->n_in != 2 ||
        !oly_is_part(n->in[0], 1))
        return false;
    const oly_node *x = n->in[0]->in[0];
    int d = n->params.dimension;
    if (x->type.rank != n->type.rank)
        return false;
    int64_t size = x->type.shape[d], from = size - n->in[0]->type.shape[d];
    *dimension = d;
    *start = from;
    return is_piece(n->in[0], x, d, from, size) && is_piece(n->in[1], x, d, 0, from);
}

/* Only regions of values in memory may wrap: the ends of a view are inside the array it looks at. */
static bool may_wrap(oly_frame *f, const oly_node *x)
{
    for (const oly_node *outer; (outer = oly_captured(f, x)); f = f->outer)
        x = outer;
    return !oly_is_constant(x) && oly_ops[x->op].lowering != OLY_LOWER_VIEW;
}

/* Do the node's steps read operands by region? Only these can read through a shift. */
static bool reads_anywhere(const oly_node *user)
{
    switch (oly_ops[user->op].lowering) {
    case OLY_LOWER_TILE:
    case OLY_LOWER_VIEW:
    case OLY_LOWER_REDUCE:
    case OLY_LOWER_PAD:
    case OLY_LOWER_WRITE: return true;
    default: return false;
    }
}

bool oly_find_cyclic_shifts(oly_frame *f)
{
    bool any = false, enabled = oly_enabled(OLY_OPTIMISATION_ROLL_LOOK_THROUGH);
    int d;
    int64_t start;
    for (int k = 0; k < f->graph->n_nodes; k++) {
        oly_graph_ahead(f->graph, k, 1);
        const oly_node *n = f->graph->nodes[k];
        f->values[k].rolled = enabled && oly_is_cyclic_shift(n, &d, &start) && may_wrap(f, n->in[0]->in[0]);
        for (int j = 0; j < n->n_in; j++)
            if (!reads_anywhere(n))
                oly_value_of(f, n->in[j])->rolled = false;
        any = any || f->values[k].rolled;
    }
    for (int k = 0; k < f->graph->n_outputs; k++)
        oly_value_of(f, f->graph->outputs[k])->rolled = false;
    return any;
}

oly_node *oly_looks_at(oly_frame *f, const oly_node *n)
{
    if (oly_ops[n->op].lowering == OLY_LOWER_VIEW)
        return n->in[0];
    return oly_value_of(f, n)->rolled ? n->in[0]->in[0] : NULL;
}

oly_region oly_shifted_region(const oly_node *n, const oly_region *r)
{
    int d;
    int64_t start;
    oly_region o = *r;
    if (oly_is_cyclic_shift(n, &d, &start)) {
        int64_t size = n->type.shape[d], by = start > size / 2 ? start - size : start; /* the shorter direction */
        o.dim[d].lo += by;
        o.dim[d].hi += by;
        o.dim[d].wraps = true;
    }
    return o;
}
