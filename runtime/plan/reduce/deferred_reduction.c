/* SPDX-License-Identifier: BSD-3-Clause */
/* Deferred reductions: a reduction over devices waits until its value is read. All that are waiting for the same axes
 * by then are done with it, in one exchange. Called by lowering. */
#include "plan/reduce/reduction_steps.h"
#include "core/optimisation.h"

struct oly_deferred_reduction {
    oly_deferred_reduction *next;
    oly_node *node;
    oly_reduction_rule rule;
    oly_axis_list axes;
};

oly_status oly_defer_reduction(oly_planner *p, oly_frame *f, oly_node *n, const oly_reduction_rule *rule,
                               const oly_axis_list *axes)
{
    oly_deferred_reduction *w = OLY_PLAN_NEW(p, oly_deferred_reduction, 1), **last = &f->deferred;
    OLY_PLAN_CHECK(w);
    *w = (oly_deferred_reduction){NULL, n, *rule, *axes};
    while (*last)
        last = &(*last)->next;
    *last = w;
    oly_value_of(f, n)->waits = true;
    return OLY_OK;
}

const oly_deferred *oly_deferred_of(oly_planner *p, oly_frame *f, const oly_node *n)
{
    const oly_deferred_reduction *w = f->deferred;
    while (w && w->node != n)
        w = w->next;
    oly_deferred *off = w ? OLY_PLAN_NEW(p, oly_deferred, 1) : NULL;
    if (off)
        *off = (oly_deferred){true, w->rule, w->axes};
    return off;
}

void oly_keep_partial(oly_frame *f, const oly_node *n)
{
    for (oly_deferred_reduction **at = &f->deferred; *at; at = &(*at)->next)
        if ((*at)->node == n) {
            *at = (*at)->next;
            break;
        }
    oly_value_of(f, n)->waits = false;
    f->n_reduced++;
}

static bool go_together(const oly_deferred_reduction *a, const oly_deferred_reduction *b)
{
    return a->rule.combiner == b->rule.combiner && oly_axis_list_equal(&a->axes, &b->axes) &&
           a->node->type.dtype == b->node->type.dtype;
}

/* Sets the slot of the reduced value: that of the partial results, unless it is an input or a slot that a loop
 * binds. */
static oly_status settle_result(oly_planner *p, oly_frame *f, oly_value *v, const oly_node *n)
{
    if (p->plan->slots[v->slot].kind != OLY_SLOT_INPUT && p->plan->slots[v->slot].kind != OLY_SLOT_BOUND)
        return OLY_OK;
    oly_region r = oly_region_of_layout(v->layout);
    v->slot = oly_slot_new(p, &r, oly_dtype_size(n->type.dtype));
    if (v->slot < 0)
        return OLY_MEMORY;
    p->plan->slots[v->slot].block = v->block = f->block;
    return OLY_OK;
}

/* Reduces all that can be done together with w, the first one waiting. */
static oly_status reduce_together(oly_planner *p, oly_frame *f, const oly_deferred_reduction *w)
{
    oly_reduction_item items[OLY_REDUCTION_TOGETHER];
    oly_deferred_reduction key = *w;
    bool together = oly_enabled(OLY_OPTIMISATION_REDUCTION_COMBINING);
    int n = 0;
    for (oly_deferred_reduction **at = &f->deferred; *at;) {
        bool goes = together ? go_together(*at, &key) : (*at)->node == key.node;
        if (n == OLY_REDUCTION_TOGETHER || !goes) {
            at = &(*at)->next;
            continue;
        }
        oly_value *v = oly_value_of(f, (*at)->node);
        v->waits = false;
        f->n_reduced++;
        int from = v->slot;
        OLY_TRY(settle_result(p, f, v, (*at)->node));
        items[n++] = (oly_reduction_item){(*at)->node, v->layout, from, v->slot, (*at)->rule};
        *at = (*at)->next;
    }
    return oly_add_reductions(p, f->block, &key.axes, n, items);
}

oly_status oly_reduce_now(oly_planner *p, oly_frame *f, const oly_node *n)
{
    if (n && !oly_value_of(f, n)->waits)
        return OLY_OK;
    for (oly_deferred_reduction *w; (w = f->deferred);) {
        while (n && w->node != n)
            w = w->next;
        OLY_TRY(reduce_together(p, f, w));
        if (n)
            return OLY_OK;
    }
    return OLY_OK;
}
