/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks behind views, captures and reshapes that change nothing: which stored value is read, and where it is placed if
 * no unit computes it. See chooser.h. */
#include "plan/choose/chooser.h"
#include "graph/factors.h"
#include "graph/view.h"
#include <string.h>

static bool is_view(const oly_node *n)
{
    return oly_ops[n->op].lowering == OLY_LOWER_VIEW;
}

/* Is the value a view of its operand? `from`: the corresponding dimensions. */
bool oly_looks_through(const oly_node *n, int8_t *from)
{
    if (!is_view(n))
        return oly_is_thin(n, from);
    oly_view_dim dims[OLY_MAX_RANK];
    oly_view_of(n, dims);
    for (int d = 0; d < n->type.rank; d++)
        from[d] = (int8_t)dims[d].from;
    return true;
}

/* A view of all elements of its operand, each once or repeated, without a placement of its own. */
bool oly_is_clear(const oly_node *n)
{
    int how = oly_ops[n->op].detail;
    if (!is_view(n))
        return !n->params.settled;
    return (how == OLY_VIEW_SAME || how == OLY_VIEW_TRANSPOSE || how == OLY_VIEW_BROADCAST ||
            how == OLY_VIEW_SQUEEZE) &&
           !n->params.settled;
}

/* -- values behind views ------------------------------------------------------------------------------------------- */

/* A part of an input that is not split in the sliced dimensions is a value of its own, placed as the input: one step of
 * a sequence. */
static bool part_placed(const oly_chooser *c, const oly_node *n, oly_cuts *cuts)
{
    if (c->outer || !is_view(n) || oly_ops[n->op].detail != OLY_VIEW_SLICE || n->params.settled ||
        oly_ops[n->in[0]->op].lowering != OLY_LOWER_INPUT || !oly_placed_fixed(c, n->in[0], cuts))
        return false;
    for (int a = 0; a < c->mesh->n_axes; a++) {
        int d = (oly_cuts_byte(*cuts, a) >> 4) - 1;
        if (d >= 0 && n->type.shape[d] != n->in[0]->type.shape[d])
            return false;
    }
    return true;
}

/* Steps that read a cyclic shift read the array itself (cyclic_shift.c). Several shifts are followed only along one
 * dimension. */
static bool look_through_roll(oly_unit_read *r, const oly_node *n)
{
    int dimension;
    int64_t start;
    if (!oly_value_of(r->owner->f, n)->rolled || n->params.settled || !oly_is_cyclic_shift(n, &dimension, &start) ||
        (r->shift && r->rolled != dimension))
        return false;
    r->rolled = dimension;
    r->shift = (r->shift + start) % n->type.shape[dimension];
    return true;
}

bool oly_trace_read(oly_chooser *c, const oly_node *n, oly_unit_read *r)
{
    bool clear = true;
    for (int d = 0; d < OLY_MAX_RANK; d++)
        r->to[d] = d < n->type.rank ? (int8_t)d : -1;
    int rank = n->type.rank;
    r->owner = c;
    r->rolled = 0;
    r->shift = 0;
    for (const oly_node *outer;;) {
        if ((outer = oly_captured(r->owner->f, n))) {
            if (r->owner == c)
                r->entry = n->index;
            r->owner = r->owner->outer;
            n = outer;
            continue;
        }
        int8_t from[OLY_MAX_RANK];
        oly_cuts cuts;
        if (look_through_roll(r, n)) {
            n = n->in[0]->in[0];
            continue;
        }
        if (!oly_looks_through(n, from) || part_placed(r->owner, n, &cuts))
            break;
        clear = clear && oly_is_clear(n) && r->shift == 0;
        for (int d = 0; d < rank; d++)
            if (r->to[d] >= 0)
                r->to[d] = from[r->to[d]];
        n = n->in[0];
    }
    r->root = n;
    if (r->owner == c)
        r->entry = n->index;
    memset(r->from, -1, sizeof r->from);
    for (int d = 0; d < rank; d++)
        if (r->to[d] >= 0)
            r->from[r->to[d]] = (int8_t)d;
    return clear;
}

static int input_number(const oly_graph *g, const oly_node *n)
{
    for (int k = 0; k < g->n_inputs; k++)
        if (g->inputs[k] == n)
            return k;
    return -1;
}

static bool is_loop(const oly_node *n)
{
    return oly_ops[n->op].lowering == OLY_LOWER_LOOP;
}

/* Results of a loop are placed as its carries, those of branches as in the graph around. */
static bool result_placed(const oly_chooser *c, const oly_node *n, oly_cuts *cuts)
{
    const oly_chooser *body = c->f->bodies[n->in[0]->index]->chooser;
    if (is_loop(n->in[0]))
        *cuts = body->carries[n->params.dimension];
    return true;
}

/* Sorts, searches, gathers and the like place their results as propagation has them, unless they need a dimension whole
 * that is split. Not in bodies: there they keep the layouts of the values around them. */
static bool local_placement(const oly_chooser *c, const oly_node *n)
{
    oly_factors fs;
    if (oly_ops[n->op].lowering != OLY_LOWER_LOCAL || c->outer || oly_factors_of(n, &fs) != OLY_OK)
        return false;
    const oly_value *v = oly_value_of(c->f, n);
    for (int d = 0; d < n->type.rank; d++)
        for (int k = 0; k < fs.result[d].n && v->axes[d].n > 0; k++)
            if (fs.kind[fs.result[d].factor[k]] == OLY_FACTOR_WHOLE)
                return false;
    return true;
}

/* Where a value that no unit computes is placed, if that is known. */
bool oly_placed_fixed(const oly_chooser *c, const oly_node *n, oly_cuts *cuts)
{
    const oly_value *v = oly_value_of(c->f, n);
    bool is_input = oly_ops[n->op].lowering == OLY_LOWER_INPUT;
    bool input = is_input && v->layout && v->layout->mesh == c->mesh;
    bool placed = oly_is_placed(n) && oly_settles_all(&n->params) && n->params.sharding->mesh == c->mesh;
    *cuts = oly_cuts_of(v->axes, n->type.rank);
    if (is_input && c->carries && !oly_captured(c->f, n)) {
        int k = input_number(c->f->graph, n);
        *cuts = k > 0 ? c->carries[k - 1] : 0; /* every device has the counter */
        return k >= 0;
    }
    if (oly_ops[n->op].lowering == OLY_LOWER_RESULT)
        return result_placed(c, n, cuts);
    if (part_placed(c, n, cuts))
        return true;
    return (input && oly_layout_is_canonical(v->layout)) || placed || local_placement(c, n);
}

bool oly_placed_now(const oly_chooser *c, const oly_node *n, oly_cuts *cuts)
{
    const oly_unit *u = c->unit_of && c->unit_of[n->index] >= 0 ? &c->units[c->unit_of[n->index]] : NULL;
    if (!u)
        return oly_placed_fixed(c, n, cuts);
    *cuts = u->greedy.placed;
    return u->trusted;
}
