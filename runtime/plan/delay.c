/* Reductions over devices put off past what is linear: sums of several reduced values, their differences, negations and products
 * with numbers are worked on the partials of each device, so that one value is reduced instead of several; a reduced value that is
 * reduced again is reduced over devices once, when it is smaller; of a reduced value that is only looked at in part, only
 * the parts are reduced. Decided by the graph and layouts alone, so that sums keep their order on every layout of ranks. graph/linear.def
 * says what is linear. Called by lower.c and scatter.c. */
#include "plan/planner.h"

/* A number that is known while planning, possibly broadcast. */
static bool is_number(const oly_node *n)
{
    while (oly_ops[n->op].lowering == OLY_LOWER_VIEW)
        n = n->in[0];
    return oly_is_constant(n);
}

static int place_in(const oly_group *g, const oly_node *n)
{
    for (int k = 0; k < g->n_nodes; k++)
        if (g->nodes[k] == n)
            return k;
    return -1;
}

/* Is the operand linear in values that wait, which are all to be reduced alike? */
static bool is_partial(oly_frame *f, const oly_group *g, const oly_node *n)
{
    return place_in(g, n) >= 0 || (!oly_captured(f, n) && oly_value_of(f, n)->waits);
}

static bool is_linear(oly_frame *f, const oly_group *g, const oly_node *n)
{
    oly_kind kind = oly_dtype_kind(n->type.dtype);
    bool whole = kind != OLY_KIND_FLOAT && kind != OLY_KIND_COMPLEX;
    switch (oly_linearity_of(n->op)) {
    case OLY_LINEAR_SUM:
    case OLY_LINEAR_DIFFERENCE: return is_partial(f, g, n->in[0]) && is_partial(f, g, n->in[1]);
    case OLY_LINEAR_NEGATION: return is_partial(f, g, n->in[0]);
    case OLY_LINEAR_PRODUCT:
        return (is_partial(f, g, n->in[0]) && is_number(n->in[1])) ||
               (is_number(n->in[0]) && is_partial(f, g, n->in[1]));
    case OLY_LINEAR_QUOTIENT: return !whole && is_partial(f, g, n->in[0]) && is_number(n->in[1]);
    case OLY_NOT_LINEAR: break;
    }
    return false;
}

static int uses_in(const oly_group *g, const oly_node *n)
{
    int uses = 0;
    for (int k = 0; k < g->n_nodes; k++)
        for (int j = 0; j < g->nodes[k]->n_in; j++)
            uses += g->nodes[k]->in[j] == n;
    return uses;
}

/* The values that wait, in order; 0: the group does not only put them together. */
static int partials_of(oly_frame *f, const oly_group *g, oly_node **partials, int most)
{
    int n = 0, results = 0;
    for (int k = 0; k < g->n_nodes; k++) {
        oly_node *node = g->nodes[k];
        if (!is_linear(f, g, node) || node->type.dtype == OLY_BOOL)
            return 0;
        results += node->n_uses > uses_in(g, node);
        for (int j = 0; j < node->n_in; j++) {
            oly_node *in = node->in[j];
            int seen = 0;
            if (place_in(g, in) >= 0 || is_number(in))
                continue;
            while (seen < n && partials[seen] != in)
                seen++;
            if (seen < n)
                continue;
            if (n == most || in->n_uses != uses_in(g, in))
                return 0;
            partials[n++] = in;
        }
    }
    return results == 1 ? n : 0;
}

oly_status oly_put_off_group(oly_planner *p, oly_frame *f, const oly_group *g, oly_put_off *off)
{
    enum { MOST = 16 };
    oly_node *partials[MOST];
    bool any = false;
    off->any = false;
    for (int j = 0; j < g->nodes[0]->n_in; j++)
        any = any || (!oly_captured(f, g->nodes[0]->in[j]) && oly_value_of(f, g->nodes[0]->in[j])->waits);
    int n = any ? partials_of(f, g, partials, MOST) : 0;
    if (n < 2)
        return OLY_OK;
    for (int k = 0; k < n; k++) {
        const oly_value *v = oly_value_of(f, partials[k]);
        const oly_put_off *w = oly_waits_for(p, f, partials[k]);
        if (!w || w->rule.combiner != OLY_COMBINE_SUM || !oly_layout_equal(v->layout, &g->layout) ||
            (k > 0 && (!oly_axis_list_equal(&w->axes, &off->axes) || w->rule.in_pairs != off->rule.in_pairs)))
            return OLY_OK;
        *off = *w;
        off->any = false;
    }
    off->any = true;
    for (int k = 0; k < n; k++)
        oly_waits_no_more(f, partials[k]);
    return OLY_OK;
}

static bool share(const oly_axis_list *a, const oly_axis_list *b)
{
    for (int j = 0; j < a->n; j++)
        for (int k = 0; k < b->n; k++)
            if (a->axis[j] == b->axis[k])
                return true;
    return false;
}

oly_status oly_put_off_reduce(oly_planner *p, oly_frame *f, const oly_node *n, oly_combiner combiner,
                              oly_axis_list *axes)
{
    const oly_node *in = n->in[0];
    if (oly_captured(f, in) || !oly_value_of(f, in)->waits || in->n_uses != 1)
        return OLY_OK;
    const oly_put_off *w = oly_waits_for(p, f, in);
    if (!w || w->rule.combiner != combiner || share(&w->axes, axes) || oly_value_of(f, in)->layout->mesh != p->mesh)
        return OLY_OK;
    oly_append_axes(axes, &w->axes);
    oly_waits_no_more(f, in);
    return OLY_OK;
}

/* -- parts ------------------------------------------------------------------------------------------------------------- */

static bool is_part(const oly_node *n)
{
    return oly_ops[n->op].lowering == OLY_LOWER_VIEW && oly_ops[n->op].detail == OLY_VIEW_SLICE;
}

oly_status oly_put_off_parts(oly_planner *p, oly_frame *f, oly_node *n, const oly_fold_rule *rule,
                             const oly_axis_list *axes, bool *done)
{
    enum { MOST = 8 };
    oly_node *parts[MOST];
    int n_parts = 0;
    int64_t elements = 0;
    *done = false;
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
        OLY_TRY(oly_fold_later(p, f, parts[k], rule, axes));
    }
    *done = true;
    return OLY_OK;
}
