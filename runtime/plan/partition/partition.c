/* SPDX-License-Identifier: BSD-3-Clause */
/* The layout of a fused group: the axes come from propagation, the cuts from the operands, so that slices of one array
 * are combined by moving no more than the difference of their offsets. */
#include "plan/partition/partition.h"
#include "core/optimisation.h"
#include "graph/view.h"
#include <stdlib.h>
#include <string.h>

static bool same_origin(const oly_split *a, const oly_split *b)
{
    return a->base == b->base && a->unit == b->unit && a->step == b->step;
}

typedef struct candidates {
    int n;
    oly_split split[64];
    int64_t weight[64];
} candidates;

static int by_start(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The cuts of the largest operand; among operands that are slices of the same array, those of the middle one. */
static oly_split choose(const candidates *c, const oly_split *fallback)
{
    int best = -1, n = 0;
    int64_t starts[64];
    for (int k = 0; k < c->n; k++)
        if (best < 0 || c->weight[k] > c->weight[best])
            best = k;
    if (best < 0)
        return *fallback;
    for (int k = 0; k < c->n; k++)
        if (same_origin(&c->split[k], &c->split[best]))
            starts[n++] = c->split[k].start;
    qsort(starts, (size_t)n, sizeof *starts, by_start);
    oly_split s = c->split[best];
    s.start = starts[(n - 1) / 2];
    return s;
}

static bool in_group(oly_frame *f, const oly_group *g, const oly_node *n)
{
    return oly_value_of(f, n)->group == (int)(g - f->groups);
}

/* The layout of the part of a larger array to which the group's result will be written. */
static bool wanted_by_group(oly_planner *p, oly_frame *f, const oly_group *g, oly_layout *l)
{
    for (int k = 0; k < g->n_nodes; k++) {
        const oly_node *u = oly_value_of(f, g->nodes[k])->written_by;
        oly_layout natural;
        if (!u || !oly_natural_layout(f, u->in[0], &natural) || natural.mesh != p->mesh)
            continue;
        oly_layout whole = oly_written_layout(p, f, u);
        *l = whole;
        for (int d = 0; d < l->rank; d++) {
            l->shape[d] = g->nodes[k]->type.shape[d];
            l->split[d] = oly_split_sliced(&whole.split[d], u->params.start[d], u->params.step[d]);
        }
        return true;
    }
    return false;
}

/* The group that continues this one's values; NULL: none. */
static const oly_group *after(const oly_frame *f, const oly_group *g, int k)
{
    return g->next >= 0 && k < OLY_LONGEST_CHAIN ? &f->groups[g->next] : NULL;
}

static bool wanted_layout(oly_planner *p, oly_frame *f, const oly_group *g, oly_layout *l)
{
    int k = 0;
    for (; g; g = after(f, g, ++k))
        if (wanted_by_group(p, f, g, l))
            return true;
    return false;
}

/* A dimension of one element is not split, but may be placed on one of several devices: the one where it will be
 * written. */
static bool is_on_one(const oly_layout *l, const oly_layout *wanted, int d)
{
    if (l->shape[d] != 1 || l->split[d].parts > 1 || wanted->split[d].parts == 1)
        return false;
    for (int e = 0; e < l->rank; e++)
        for (int j = 0; j < l->split[e].axes.n; j++)
            for (int k = 0; k < wanted->split[d].axes.n; k++)
                if (l->split[e].axes.axis[j] == wanted->split[d].axes.axis[k])
                    return false;
    return true;
}

/* A node that is a result, of the group or of those that continue it. */
static const oly_node *result_in(const oly_frame *f, const oly_group *g)
{
    int chain = 0;
    for (; g; g = after(f, g, ++chain))
        for (int k = g->n_nodes - 1; k >= 0; k--)
            if (oly_is_result(f, g->nodes[k]))
                return g->nodes[k];
    return NULL;
}

/* A reduction of the group's value that is a result. */
static const oly_node *reduction_of(const oly_frame *f, const oly_group *g)
{
    for (int k = 0; k < f->graph->n_outputs; k++) {
        const oly_node *n = f->graph->outputs[k];
        if (n && oly_ops[n->op].lowering == OLY_LOWER_REDUCE && n->in[0] == g->nodes[g->n_nodes - 1])
            return n;
    }
    return NULL;
}

/* Does the reduction keep dimension d, split over these axes? */
static bool stays(oly_frame *f, const oly_node *reduction, int d, const oly_axis_list *axes)
{
    int to = 0;
    for (int e = 0; e < d; e++)
        to += !oly_has_axis(reduction, e);
    return !oly_has_axis(reduction, d) && oly_axis_list_equal(&oly_value_of(f, reduction)->axes[to], axes);
}

/* Notes the cuts of the group's operands along dimension d. */
static void note_candidates(oly_planner *p, oly_frame *f, const oly_group *g, int d, const oly_axis_list *axes,
                            candidates *c, oly_cut_choice *choice)
{
    for (int k = 0; k < g->n_nodes; k++)
        for (int j = 0; j < g->nodes[k]->n_in && c->n < 64; j++) {
            oly_node *in = g->nodes[k]->in[j];
            oly_layout natural;
            if (in_group(f, g, in) || !oly_natural_layout(f, in, &natural) || natural.mesh != p->mesh ||
                !oly_axis_list_equal(&natural.split[d].axes, axes))
                continue;
            c->split[c->n] = natural.split[d];
            c->weight[c->n++] = oly_type_size(&in->type);
            if (choice)
                oly_cut_choice_add(choice, f, in, &natural.split[d]);
        }
}

oly_status oly_settle_group(oly_planner *p, oly_frame *f, oly_group *g)
{
    oly_layout wanted, *l = &g->layout;
    if (g->settled)
        return OLY_OK;
    const oly_node *last = g->nodes[g->n_nodes - 1];
    const oly_choice *chosen = oly_value_of(f, last)->choice;
    *l = chosen ? oly_axes_layout(p, last, chosen->work) : oly_node_layout(p, f, last);
    if (!oly_enabled(OLY_OPTIMISATION_ALIGNED_CUTS)) {
        g->settled = true;
        return OLY_OK;
    }
    bool has_wanted = wanted_layout(p, f, g, &wanted);
    const oly_node *result = has_wanted ? NULL : result_in(f, g), *reduction = NULL;
    if (!has_wanted && !result)
        result = reduction = reduction_of(f, g);
    int64_t n_results = reduction ? oly_type_size(&reduction->type) : 0;
    int64_t times = n_results > 0 ? oly_type_size(&last->type) / n_results : 1;
    oly_cut_choice *choice = result ? oly_cut_choice_new(p) : NULL;
    OLY_PLAN_CHECK(choice || !result ? p : NULL);
    for (int d = 0; d < l->rank; d++) {
        if (has_wanted && is_on_one(l, &wanted, d))
            l->split[d] = wanted.split[d];
        if (l->split[d].parts == 1)
            continue;
        candidates c = {0};
        if (choice)
            oly_cut_choice_clear(choice);
        int chain = 0;
        for (const oly_group *h = g; h; h = after(f, h, ++chain))
            note_candidates(p, f, h, d, &l->split[d].axes, &c, choice);
        oly_split at = choose(&c, &l->split[d]);
        if (has_wanted && oly_axis_list_equal(&wanted.split[d].axes, &l->split[d].axes))
            l->split[d] = wanted.split[d];
        else if (!choice || (reduction && !stays(f, reduction, d, &l->split[d].axes)) ||
                 !oly_cut_at_result(choice, &at, &l->split[d], l->shape[d], (int64_t)oly_dtype_size(result->type.dtype),
                                    times))
            l->split[d] = at;
    }
    g->settled = true;
    return OLY_OK;
}
