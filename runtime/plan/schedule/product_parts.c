/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of a product's result on the devices of this process, and the phase in which each is computed. Which parts there are is
 * the kernel's to say (kernels/planning.h): a part has the same bits in any phase. Called by overlap.c and overlap_scatter.c. */
#include "plan/schedule/scheduler.h"
#include "kernel.h"

oly_status oly_product_phases_of(oly_planner *p, const oly_step *product, oly_phase_of *phase_of, const void *context,
                                 oly_product_phases *found)
{
    int n_devices = p->plan->n_devices;
    *found = (oly_product_phases){.phase = OLY_PLAN_NEW(p, int *, n_devices + 1)};
    OLY_PLAN_CHECK(found->phase);
    for (int d = 0; d < n_devices; d++) {
        const oly_gemm_work *w = &product->gemm.device[d];
        int n = w->has_work ? oly_gemm_parts(&w->task) : 0;
        if (w->has_work && n == 0)
            return OLY_OK;
        found->phase[d] = OLY_PLAN_NEW(p, int, n + 1);
        OLY_PLAN_CHECK(found->phase[d]);
        for (int k = 0; k < n; k++, found->total++) {
            oly_gemm_part part = oly_gemm_part_at(&w->task, k);
            found->phase[d][k] = phase_of(context, w, &part);
            if (found->phase[d][k] < 0)
                return OLY_OK;
            found->in_phase[found->phase[d][k]]++;
        }
    }
    found->known = true;
    return OLY_OK;
}

oly_status oly_product_phase_work(oly_planner *p, const oly_step *product, const oly_product_phases *phases, int phase,
                                  const oly_gemm_work **work)
{
    oly_gemm_work *made = OLY_PLAN_NEW(p, oly_gemm_work, p->plan->n_devices);
    OLY_PLAN_CHECK(made);
    for (int d = 0; d < p->plan->n_devices; d++) {
        made[d] = product->gemm.device[d];
        int n = made[d].has_work ? oly_gemm_parts(&made[d].task) : 0;
        oly_gemm_part *parts = OLY_PLAN_NEW(p, oly_gemm_part, n + 1);
        OLY_PLAN_CHECK(parts);
        made[d].n_parts = 0;
        for (int k = 0; k < n; k++)
            if (phases->phase[d][k] == phase)
                parts[made[d].n_parts++] = oly_gemm_part_at(&made[d].task, k);
        made[d].parts = parts;
        made[d].has_work = made[d].n_parts > 0;
    }
    *work = made;
    return OLY_OK;
}
