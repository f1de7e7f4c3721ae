/* SPDX-License-Identifier: BSD-3-Clause */
/* How partial results become a value: a reduce-scatter if its layout is split over the reduced axes, otherwise
 * deferred, or in parts if it is large. Called by the lowerings that leave partial results. */
#include "plan/lower/lower.h"
#include "plan/lower/reduce_in_parts.h"
#include "core/optimisation.h"
#include <string.h>

static bool all_in(const oly_axis_list *some, int first, const oly_axis_list *axes)
{
    for (int k = first; k < some->n; k++) {
        bool found = false;
        for (int j = 0; j < axes->n; j++)
            found = found || axes->axis[j] == some->axis[k];
        if (!found)
            return false;
    }
    return true;
}

bool oly_scattered_layout(oly_planner *p, oly_frame *f, const oly_node *n, const oly_layout *partial,
                          const oly_axis_list *axes, oly_layout *target)
{
    const oly_value *v = oly_value_of(f, n);
    const oly_layout all = v->choice ? oly_axes_layout(p, n, v->choice->wanted) : oly_node_layout(p, f, n),
                     *wanted = &all;
    int n_more = 0;
    *target = *partial;
    for (int d = 0; d < partial->rank; d++) {
        const oly_axis_list *have = &partial->split[d].axes, *want = &wanted->split[d].axes;
        if (want->n <= have->n || memcmp(want->axis, have->axis, have->n) != 0 || !all_in(want, have->n, axes))
            continue;
        target->split[d] = wanted->split[d];
        n_more += want->n - have->n;
    }
    oly_region r = oly_region_of_layout(target);
    return n_more == axes->n && partial->mesh == p->mesh && oly_region_inside_layout(&r, partial);
}

oly_status oly_place_reduction(oly_planner *p, oly_frame *f, oly_node *n, const oly_reduction_rule *rule,
                               const oly_axis_list *axes)
{
    oly_value *v = oly_value_of(f, n);
    if (oly_axis_list_parts(p->mesh, axes) == 1)
        return OLY_OK; /* replicated over the axes */
    oly_layout target;
    if (!oly_enabled(OLY_OPTIMISATION_REDUCE_SCATTER) || !oly_scattered_layout(p, f, n, v->layout, axes, &target)) {
        bool done;
        OLY_TRY(oly_sink_parts(p, f, n, rule, axes, &done));
        return done ? OLY_OK : oly_defer_reduction(p, f, n, rule, axes);
    }
    if (oly_reduces_in_parts(p, f, n, &target))
        return oly_defer_reduction(p, f, n, rule, axes);
    oly_region r = oly_region_of_layout(&target);
    int slot = oly_slot_new(p, &r, oly_dtype_size(n->type.dtype));
    if (slot < 0)
        return OLY_MEMORY;
    p->plan->slots[slot].block = f->block;
    OLY_TRY(oly_reduce_scatter(p, f->block, n, rule, v->layout, v->slot, axes, &target, slot));
    OLY_TRY(oly_set_layout(p, v, &target));
    v->slot = slot;
    return OLY_OK;
}
