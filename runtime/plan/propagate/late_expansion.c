/* SPDX-License-Identifier: BSD-3-Clause */
/* Late expansion: a value that repeats another, as repeat(x, 2) or tile(x, [1, 2]), is computed where it is read.
 * Propagation gives it the layout of x, so that a reader that is split otherwise would move all copies. Here it takes
 * the axes of its readers, and the smaller x moves instead. The same holds for the result of a sort, or of another
 * operation on whole lines, that is computed in another layout than propagation assumes. Called by plan.c after
 * propagation. */
#include "graph/factors.h"
#include "core/optimisation.h"
#include "graph/view.h"
#include "plan/propagate/propagate.h"
#include <string.h>

static bool is_broadcast(const oly_node *n)
{
    return oly_ops[n->op].lowering == OLY_LOWER_VIEW && oly_ops[n->op].detail == OLY_VIEW_BROADCAST;
}

/* repeat: a reshape of a broadcast value with no other reader; tile: a concatenation of one value with itself. */
static bool repeats(const oly_node *n)
{
    const oly_op_row *row = &oly_ops[n->op];
    if (n->type.mesh || n->params.sharding)
        return false;
    if (row->lowering == OLY_LOWER_RESHAPE)
        return is_broadcast(n->in[0]) && n->in[0]->n_uses == 1 && n->in[0]->in[0]->type.rank > 0 &&
               !n->in[0]->params.sharding;
    bool all = row->lowering == OLY_LOWER_WRITE && row->detail == OLY_WRITE_ALL && n->n_in > 1;
    for (int k = 1; all && k < n->n_in; k++)
        all = n->in[k] == n->in[0];
    return all;
}

/* The axes that the readers of a value ask for. */
typedef struct wish {
    int n_readers;
    bool differ;
    oly_node *reader; /* the first */
    oly_axis_list axes[OLY_MAX_RANK];
} wish;

/* The axes that the reader's result implies for this operand, dimension by dimension; false: some dimension is
 * undetermined. */
static bool asks(oly_frame *f, const oly_node *reader, const oly_factors *fs, int operand, oly_axis_list *axes)
{
    const oly_value *v = oly_value_of(f, reader);
    bool known = operand < fs->n_operands && (oly_ops[reader->op].lowering != OLY_LOWER_VIEW || v->late);
    for (int e = 0; known && e < reader->in[operand]->type.rank; e++) {
        const oly_dim_factors *dim = &fs->operand[operand][e];
        axes[e].n = 0;
        if (dim->n == 0)
            continue;
        known = false;
        for (int d = 0; d < reader->type.rank && !known; d++) {
            known = dim->n == 1 && fs->result[d].n == 1 && fs->result[d].factor[0] == dim->factor[0] &&
                    fs->kind[dim->factor[0]] == OLY_FACTOR_PARALLEL;
            if (known)
                axes[e] = v->axes[d];
        }
    }
    return known;
}

static bool same_axes(const oly_axis_list *a, const oly_axis_list *b, int rank)
{
    bool same = true;
    for (int d = 0; d < rank; d++)
        same = same && oly_axis_list_equal(&a[d], &b[d]);
    return same;
}

static oly_status note_wish(oly_planner *p, oly_frame *f, oly_node *reader, wish **wishes)
{
    oly_factors fs;
    oly_axis_list axes[OLY_MAX_RANK];
    bool described = false;
    for (int j = 0; j < reader->n_in; j++) {
        const oly_node *n = reader->in[j];
        if (!repeats(n))
            continue;
        if (!described)
            OLY_TRY(oly_factors_of(reader, &fs));
        described = true;
        wish *w = wishes[n->index];
        if (!w)
            OLY_PLAN_CHECK(w = wishes[n->index] = OLY_PLAN_NEW(p, wish, 1));
        bool known = asks(f, reader, &fs, j, axes);
        if (known && w->n_readers == 0)
            memcpy(w->axes, axes, sizeof axes);
        w->differ = w->differ || !known || !same_axes(w->axes, axes, n->type.rank);
        w->reader = w->n_readers++ ? w->reader : reader;
    }
    return OLY_OK;
}

/* The axes of a reshape's result as axes of its operand; false: they do not correspond to its dimensions. */
static bool through_reshape(const oly_factors *fs, oly_mesh mesh, const oly_node *n, const oly_axis_list *axes,
                            oly_axis_list *operand)
{
    oly_axis_list of_factor[OLY_MAX_FACTORS];
    memset(of_factor, 0, sizeof of_factor);
    for (int d = 0; d < n->type.rank; d++) {
        int next = 0;
        for (int k = 0; k < fs->result[d].n && next < axes[d].n; k++) {
            int factor = fs->result[d].factor[k];
            int64_t left = fs->size[factor];
            while (next < axes[d].n && left % mesh->size[axes[d].axis[next]] == 0 && left > 1) {
                left /= mesh->size[axes[d].axis[next]];
                of_factor[factor].axis[of_factor[factor].n++] = axes[d].axis[next++];
            }
            if (left > 1)
                break;
        }
        if (next < axes[d].n)
            return false;
    }
    for (int d = 0; d < n->in[0]->type.rank; d++) {
        operand[d].n = 0;
        for (int k = 0; k < fs->operand[0][d].n; k++) {
            const oly_axis_list *more = &of_factor[fs->operand[0][d].factor[k]];
            if (more->n && k > 0)
                return false;
            for (int j = 0; j < more->n; j++)
                operand[d].axis[operand[d].n++] = more->axis[j];
        }
    }
    return true;
}

static void place(oly_planner *p, oly_frame *f, const oly_node *n, const oly_axis_list *axes, const oly_node *reader)
{
    oly_value *v = oly_value_of(f, n);
    v->late = true;
    for (int d = 0; d < n->type.rank; d++) {
        v->axes[d] = axes[d];
        if (axes[d].n)
            oly_note_reason(p, v, d, (oly_reason){.why = OLY_WHY_FACTOR, .node = reader, .operand = reader->n_in});
    }
}

/* Is the value computed in another layout than propagation assumes, because its operation needs whole lines and one is
 * split? A part of a value counts as the value. */
static oly_status is_made_elsewhere(oly_frame *f, const oly_node *n, bool *elsewhere)
{
    oly_factors fs;
    while (!oly_captured(f, n) && oly_is_part(n, 1))
        n = n->in[0];
    *elsewhere = false;
    if (oly_captured(f, n) || oly_ops[n->op].lowering != OLY_LOWER_LOCAL)
        return OLY_OK;
    OLY_TRY(oly_factors_of(n, &fs));
    for (int d = 0; d < n->type.rank; d++)
        for (int k = 0; k < fs.result[d].n; k++)
            *elsewhere = *elsewhere ||
                         (fs.kind[fs.result[d].factor[k]] == OLY_FACTOR_WHOLE && oly_value_of(f, n)->axes[d].n > 0);
    return OLY_OK;
}

/* Then the broadcast below a repeat takes the layout that propagation gave the result. */
static oly_status bring_first(oly_planner *p, oly_frame *f, const oly_node *n)
{
    oly_axis_list operand[OLY_MAX_RANK];
    oly_factors fs;
    bool elsewhere = false;
    if (!repeats(n) || oly_ops[n->op].lowering != OLY_LOWER_RESHAPE || oly_value_of(f, n)->late)
        return OLY_OK;
    OLY_TRY(is_made_elsewhere(f, n->in[0]->in[0], &elsewhere));
    if (!elsewhere)
        return OLY_OK;
    OLY_TRY(oly_factors_of(n, &fs));
    if (through_reshape(&fs, p->mesh, n, oly_value_of(f, n)->axes, operand)) {
        oly_value_of(f, n)->late = oly_value_of(f, n->in[0])->late = true;
        memcpy(oly_value_of(f, n->in[0])->axes, operand, sizeof *operand * (size_t)n->in[0]->type.rank);
    }
    return OLY_OK;
}

/* It takes the axes that all its readers ask for. A result of the graph stays: one of its uses is no reader. */
static oly_status expand(oly_planner *p, oly_frame *f, const oly_node *n, const wish *w)
{
    oly_axis_list operand[OLY_MAX_RANK];
    oly_factors fs;
    if (w->differ || w->n_readers < n->n_uses || oly_value_of(f, n)->closed)
        return OLY_OK;
    if (oly_ops[n->op].lowering == OLY_LOWER_RESHAPE) {
        OLY_TRY(oly_factors_of(n, &fs));
        if (!through_reshape(&fs, p->mesh, n, w->axes, operand))
            return OLY_OK;
        place(p, f, n->in[0], operand, n);
    }
    place(p, f, n, w->axes, w->reader);
    return OLY_OK;
}

oly_status oly_expand_late(oly_planner *p, oly_frame *f)
{
    const oly_graph *g = f->graph;
    bool any = false;
    for (int k = 0; k < g->n_nodes; k++) {
        oly_graph_ahead(g, k, 1);
        any = any || repeats(g->nodes[k]);
        for (oly_frame *body = f->bodies[k]; body; body = body->next)
            OLY_TRY(oly_expand_late(p, body));
    }
    if (!any || !oly_enabled(OLY_OPTIMISATION_LATE_EXPANSION))
        return OLY_OK;
    wish **wishes = OLY_PLAN_NEW(p, wish *, g->n_nodes);
    OLY_PLAN_CHECK(wishes);
    for (int k = g->n_nodes - 1; k >= 0; k--) {
        if (wishes[k])
            OLY_TRY(expand(p, f, g->nodes[k], wishes[k]));
        OLY_TRY(bring_first(p, f, g->nodes[k]));
        OLY_TRY(note_wish(p, f, g->nodes[k], wishes));
    }
    return OLY_OK;
}
