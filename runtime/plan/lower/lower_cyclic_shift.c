/* SPDX-License-Identifier: BSD-3-Clause */
/* Lowering of cyclic shifts whose own value is needed: one transfer. Called by lower_write.c. */
#include "plan/lower/lower.h"
#include "plan/move/move.h"
#include "core/optimisation.h"

oly_status oly_lower_cyclic_shift(oly_planner *p, oly_frame *f, oly_node *n, const oly_layout *l, bool *done)
{
    int d;
    int64_t start;
    if (!oly_enabled(OLY_OPTIMISATION_ROLL_LOOK_THROUGH) || !oly_is_cyclic_shift(n, &d, &start))
        return OLY_OK;
    oly_node *x = n->in[0]->in[0];
    oly_region r = oly_region_of_layout(l);
    r = oly_shifted_region(n, &r);
    for (; oly_value_of(f, x)->rolled && !oly_value_of(f, x)->replicas; x = oly_looks_at(f, x))
        r = oly_shifted_region(x, &r);
    if (oly_captured(f, x) || oly_is_constant(x) || oly_value_of(f, x)->slot < 0 ||
        oly_value_of(f, x)->layout->mesh != l->mesh)
        return OLY_OK;
    *done = true;
    OLY_TRY(oly_reduce_now(p, f, x));
    OLY_TRY(oly_settle(p, f, n, l));
    const oly_value *v = oly_value_of(f, x);
    return oly_plan_reshard(p, f->block, x, v->layout, v->slot, &r, oly_value_of(f, n)->slot);
}
