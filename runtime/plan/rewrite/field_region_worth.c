/* SPDX-License-Identifier: BSD-3-Clause */
/* Which field regions are worth it: those that read computed values at an offset, whose reach is shorter than their fields,
 * and for whose margins devices would send no more than for one value after the other. Called by field_regions.c. */
#include "core/min_max.h"
#include "plan/rewrite/field_regions.h"
#include "plan/rewrite/rewrite.h"

/* Does some value read another one, computed in the same step, at an offset? */
static bool reads_computed_ones(const oly_tiling_form *form)
{
    for (int k = 0; k < form->n_stages; k++)
        for (int j = 0; j < form->stages[k].n_pieces; j++)
            for (int l = 0; l < form->stages[k].pieces[j].program.n_loads; l++) {
                const oly_tiling_load *load = &form->stages[k].pieces[j].loads[l];
                for (int d = 0; d < form->rank; d++)
                    if (load->of.kind == OLY_TILING_STAGE && load->shift[d] != 0)
                        return true;
            }
    return false;
}

/* What devices would send along a dimension, in bytes per element of a cut. */
typedef struct traffic {
    int64_t together, one_by_one; /* margins of what the region reads; of every value that is read at an offset */
} traffic;

static void count_together(const oly_tiling_form *form, const oly_tiling_pass *pass, int d, traffic *t)
{
    for (int j = 0; j < form->n_fields; j++) {
        int64_t lo = 0, hi = 0;
        for (int k = 0; k < pass->n_needs[j]; k++) {
            lo = oly_smaller(lo, pass->needs[j][k].lo[d]);
            hi = oly_larger(hi, pass->needs[j][k].hi[d]);
        }
        t->together += (hi - lo) * (int64_t)oly_dtype_size(form->field[j]->type.dtype);
    }
    for (int k = 0; k < form->n_fixed; k++)
        if (form->fixed[k].node->type.rank == form->rank)
            t->together += (pass->fixed_hi[k][d] - pass->fixed_lo[k][d]) *
                           (int64_t)oly_dtype_size(form->fixed[k].node->type.dtype);
}

static void widen(const oly_tiling_form *form, oly_tiling_ref of, int d, int64_t *lo, int64_t *hi)
{
    for (int k = 0; k < form->n_stages; k++)
        for (int j = 0; j < form->stages[k].n_pieces; j++)
            for (int l = 0; l < form->stages[k].pieces[j].program.n_loads; l++) {
                const oly_tiling_load *load = &form->stages[k].pieces[j].loads[l];
                if (load->of.kind != of.kind || load->of.index != of.index)
                    continue;
                *lo = oly_smaller(*lo, load->shift[d]);
                *hi = oly_larger(*hi, load->shift[d]);
            }
}

static void count_one_by_one(const oly_tiling_form *form, int d, traffic *t)
{
    const int n[] = {form->n_fields, form->n_stages, form->n_fixed};
    static const oly_tiling_kind kinds[] = {OLY_TILING_FIELD, OLY_TILING_STAGE, OLY_TILING_FIXED};
    for (int kind = 0; kind < 3; kind++)
        for (int k = 0; k < n[kind]; k++) {
            int64_t lo = 0, hi = 0;
            const oly_node *node = kind == 0 ? form->field[k] : kind == 1 ? form->stages[k].node : form->fixed[k].node;
            widen(form, (oly_tiling_ref){kinds[kind], k}, d, &lo, &hi);
            t->one_by_one += (hi - lo) * (int64_t)oly_dtype_size(node->type.dtype);
        }
}

oly_status oly_is_region_worth_it(oly_planner *p, const oly_tiling_form *form, bool *yes)
{
    oly_tiling_pass pass;
    bool alone = oly_input_devices(p) == 1;
    *yes = reads_computed_ones(form);
    if (!*yes)
        return OLY_OK;
    OLY_TRY(oly_tiling_unroll(p, form, 1, true, &pass));
    for (int d = 0; d < form->rank && *yes; d++) {
        traffic t = {0, 0};
        count_together(form, &pass, d, &t);
        count_one_by_one(form, d, &t);
        *yes = pass.hi[d] - pass.lo[d] < form->shape[d] && pass.field_hi[d] - pass.field_lo[d] < form->shape[d] &&
               (alone || t.together <= t.one_by_one);
    }
    return OLY_OK;
}
