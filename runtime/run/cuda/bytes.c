/* SPDX-License-Identifier: BSD-3-Clause */
/* Products of bytes. See bytes.h. */
#include "run/cuda/bytes.h"
#include "core/error.h"
#include "device/cuda/gpus.h"
#include "device/platform.h"
#include "run/narrow_product.h"
#include "run/prepare_cpu.h"
#include "run/prepared_steps.h"

/* Is all that the product and its conversions use the device's own? Then what it reads is as it was when they would have run: the device's
 * stream orders it. */
static bool is_own(const oly_plan *plan, const oly_step *product, int device)
{
    const oly_gemm_work *p = &product->gemm.device[device];
    if (plan->devices[device] >= oly_cuda_device_count() || p->parts || !oly_cuda_has_gemm(&p->task) ||
        oly_cell_device(plan, p->out_base) != device || oly_cell_device(plan, p->a.base) != device ||
        oly_cell_device(plan, p->b.base) != device)
        return false;
    for (int o = 0; o < 2; o++) {
        const oly_step *group = product->gemm.converted[o];
        const oly_tile_work *w = &group->tile.device[device];
        for (int k = 0; k < group->tile.program.n_loads; k++)
            if (!w->has_work || oly_cell_device(plan, w->loads[k].base) != device)
                return false;
    }
    return true;
}

static bool is_byte_product(const oly_plan *plan, const oly_step *product)
{
    int working = 0;
    if (!oly_has_bytes(product) || product->exchange || product->gemm.n_phases)
        return false;
    for (int d = 0; d < plan->n_devices; d++) {
        if (product->gemm.device[d].has_work && !is_own(plan, product, d))
            return false;
        working += product->gemm.device[d].has_work;
    }
    return working > 0;
}

static oly_status find_in(const oly_block *b, void *context)
{
    oly_plan *plan = context;
    for (int k = 0; k < b->n_steps; k++) {
        oly_step *s = &b->steps[k];
        if (is_byte_product(plan, s)) {
            oly_prepared *of_product = oly_prepared_own(plan, s);
            if (!of_product)
                return oly_out_of_memory(sizeof *of_product, "a program");
            of_product->reads_narrow = true;
            of_product->bytes = OLY_BYTES_QUADS;
            for (int o = 0; o < 2; o++) {
                oly_prepared *of_group = oly_prepared_own(plan, (oly_step *)(uintptr_t)s->gemm.converted[o]);
                if (!of_group)
                    return oly_out_of_memory(sizeof *of_group, "a program");
                of_group->left_out = true;
            }
        }
    }
    return OLY_OK;
}

oly_status oly_cuda_find_byte_products(oly_plan *plan)
{
    return oly_platform_is_late() ? oly_each_block(plan->main, find_in, plan) : OLY_OK;
}

bool oly_cuda_reads_bytes(const oly_step *product)
{
    return product->prepared && product->prepared->bytes != OLY_BYTES_NONE;
}

bool oly_cuda_is_left_out(const oly_step *group)
{
    return group->prepared && group->prepared->left_out;
}

oly_status oly_cuda_launch_byte_product(const oly_cuda_launcher *l, void *const *base, const oly_step *product,
                                        int device)
{
    const oly_gemm_work *w = &product->gemm.device[device];
    oly_gemm_task t = w->task;
    oly_dtype of_a, of_b;
    const char *a = oly_narrow_operand(base, product, 0, device, &t, &of_a),
               *b = oly_narrow_operand(base, product, 1, device, &t, &of_b);
    return oly_cuda_gemm_bytes(l, &t, of_a == OLY_INT8, of_b == OLY_INT8, a, b, base[w->out_base]);
}
