/* SPDX-License-Identifier: BSD-3-Clause */
/* Sinks reductions over devices past linear operations: a value that is reduced again is reduced over devices once,
 * when it is smaller; of a value that is read only in part, only that part is reduced. Decided by the graph and
 * layouts alone, so that sums have the same order on every layout of ranks. graph/linear.def says what is linear.
 * Elementwise operations: sink_through_groups.c. Called by the lowerings and lowering_order.c. */
#include "plan/lower/sink_reductions.h"
#include "plan/lower/lower.h"
#include "core/optimisation.h"

oly_node *oly_deferred_root(oly_frame *f, const oly_node *operand)
{
    const oly_node *n = operand;
    while (oly_ops[n->op].lowering == OLY_LOWER_VIEW) {
        n = n->in[0];
        if (n->n_uses != 1)
            return NULL;
    }
    return oly_enabled(OLY_OPTIMISATION_SINKING) && !oly_captured(f, n) && oly_value_of(f, n)->waits
               ? f->graph->nodes[n->index]
               : NULL;
}

bool oly_cut_over(const oly_layout *l, const oly_axis_list *axes)
{
    for (int d = 0; d < l->rank; d++)
        for (int j = 0; j < l->split[d].axes.n; j++)
            for (int k = 0; k < axes->n; k++)
                if (l->split[d].axes.axis[j] == axes->axis[k])
                    return true;
    return false;
}

static bool share(const oly_axis_list *a, const oly_axis_list *b)
{
    for (int j = 0; j < a->n; j++)
        for (int k = 0; k < b->n; k++)
            if (a->axis[j] == b->axis[k])
                return true;
    return false;
}

oly_status oly_sink_reduce(oly_planner *p, oly_frame *f, const oly_node *n, const oly_layout *in, oly_combiner combiner,
                           oly_axis_list *axes)
{
    const oly_node *operand = n->in[0];
    oly_node *root = operand->n_uses == 1 ? oly_deferred_root(f, operand) : NULL;
    const oly_deferred *w = root ? oly_deferred_of(p, f, root) : NULL;
    if (!w || w->rule.combiner != combiner || n->type.dtype != operand->type.dtype || share(&w->axes, axes) ||
        in->mesh != p->mesh || oly_cut_over(in, &w->axes) || oly_value_of(f, root)->layout->mesh != p->mesh)
        return OLY_OK;
    if (oly_type_size(&operand->type) > oly_type_size(&root->type) &&
        (combiner != OLY_COMBINE_SUM || oly_type_size(&n->type) > oly_type_size(&root->type)))
        return OLY_OK; /* broadcast before it is reduced */
    oly_append_axes(axes, &w->axes);
    oly_keep_partial(f, root);
    return OLY_OK;
}

bool oly_reduces_further(oly_frame *f, const oly_node *n)
{
    if (oly_ops[n->op].lowering != OLY_LOWER_REDUCE || n->in[0]->n_uses != 1 || n->type.dtype != n->in[0]->type.dtype)
        return false;
    const oly_node *root = oly_deferred_root(f, n->in[0]);
    return root && oly_ops[root->op].lowering == OLY_LOWER_REDUCE &&
           oly_ops[root->op].detail == oly_ops[n->op].detail &&
           oly_type_size(&n->in[0]->type) <= oly_type_size(&root->type) &&
           oly_type_size(&n->type) < oly_type_size(&root->type);
}

oly_status oly_sink_product(oly_planner *p, oly_frame *f, const oly_node *n, const oly_layout operand[2],
                            const oly_layout *out, oly_axis_list *axes, oly_reduction_rule *rule)
{
    for (int o = 0; o < 2; o++) {
        oly_node *root = n->in[o]->n_uses == 1 ? oly_deferred_root(f, n->in[o]) : NULL;
        const oly_deferred *w = root ? oly_deferred_of(p, f, root) : NULL;
        oly_layout natural;
        if (!w || w->rule.combiner != OLY_COMBINE_SUM || root->type.dtype != n->type.dtype || share(&w->axes, axes) ||
            !oly_natural_layout(f, n->in[o], &natural) || natural.mesh != p->mesh || out->mesh != p->mesh ||
            oly_cut_over(out, &w->axes) || oly_cut_over(&operand[0], &w->axes) || oly_cut_over(&operand[1], &w->axes))
            continue;
        oly_region r = oly_region_of_layout(&operand[o]);
        oly_box whole = oly_layout_box(oly_value_of(f, root)->layout, 0), part = oly_layout_box(out, 0);
        if (!oly_region_inside_layout(&r, &natural) || oly_box_count(&part) >= oly_box_count(&whole))
            continue;
        rule->in_pairs = w->rule.in_pairs && (axes->n == 0 || rule->in_pairs);
        oly_append_axes(axes, &w->axes);
        oly_keep_partial(f, root);
        return OLY_OK;
    }
    return OLY_OK;
}

oly_status oly_sink_reshape(oly_planner *p, oly_frame *f, const oly_node *n, const oly_layout *in,
                            const oly_layout *out, oly_deferred *off)
{
    oly_node *root = n->in[0]->n_uses == 1 ? oly_deferred_root(f, n->in[0]) : NULL;
    const oly_deferred *w = root == n->in[0] ? oly_deferred_of(p, f, root) : NULL;
    off->any = w && in->mesh == p->mesh && oly_layout_equal(oly_value_of(f, root)->layout, in) &&
               !oly_cut_over(out, &w->axes) && oly_shrinks_later(f, n);
    if (!off->any)
        return OLY_OK;
    *off = *w;
    oly_keep_partial(f, root);
    return OLY_OK;
}

/* -- parts --------------------------------------------------------------------------------------------------------- */

static bool is_part(const oly_node *n)
{
    return oly_ops[n->op].lowering == OLY_LOWER_VIEW && oly_ops[n->op].detail == OLY_VIEW_SLICE;
}

oly_status oly_sink_parts(oly_planner *p, oly_frame *f, oly_node *n, const oly_reduction_rule *rule,
                          const oly_axis_list *axes, bool *done)
{
    enum { MOST = 8 };
    oly_node *parts[MOST];
    int n_parts = 0;
    int64_t elements = 0;
    *done = false;
    if (!oly_enabled(OLY_OPTIMISATION_PARTIAL_REDUCTION))
        return OLY_OK;
    for (int k = n->index + 1; k < f->graph->n_nodes && n_parts < n->n_uses && n->n_uses <= MOST; k++) {
        oly_node *user = f->graph->nodes[k];
        bool reads = false;
        for (int j = 0; j < user->n_in; j++)
            reads = reads || user->in[j] == n;
        if (!reads)
            continue;
        if (!is_part(user))
            return OLY_OK;
        parts[n_parts++] = user;
        elements += oly_type_size(&user->type);
    }
    if (n_parts == 0 || n_parts != n->n_uses || elements >= oly_type_size(&n->type))
        return OLY_OK;
    for (int k = 0; k < n_parts; k++) {
        oly_layout l;
        oly_value *v = oly_value_of(f, parts[k]);
        if (v->slot >= 0 || !oly_natural_layout(f, parts[k], &l) || l.mesh != p->mesh)
            return OLY_OK;
    }
    for (int k = 0; k < n_parts; k++) {
        oly_layout l;
        oly_value *v = oly_value_of(f, parts[k]);
        int slot;
        oly_natural_layout(f, parts[k], &l);
        OLY_TRY(oly_materialise(p, f, parts[k], &l, &slot));
        OLY_TRY(oly_set_layout(p, v, &l));
        v->block = f->block;
        v->slot = slot;
        p->plan->slots[slot].shared = true;
        OLY_TRY(oly_defer_reduction(p, f, parts[k], rule, axes));
    }
    *done = true;
    return OLY_OK;
}
