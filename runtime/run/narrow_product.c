/* SPDX-License-Identifier: BSD-3-Clause */
/* See narrow_product.h. */
#include "run/narrow_product.h"
#include "core/optimisation.h"
#include "device/platform.h"
#include "gemm_bfloat.h"
#include "plan/schedule/narrow_reads.h"

/* Conversions of bfloat16 are to float32. */
static bool converts_to_float(const oly_step *product)
{
    return product->gemm.converted[0]->tile.program.store_dtype[0] == OLY_FLOAT32;
}

bool oly_has_bytes(const oly_step *product)
{
    return product->kind == OLY_STEP_GEMM && product->gemm.converted[0] && !converts_to_float(product);
}

oly_byte_way oly_byte_way_of(const oly_step *product)
{
    if (!oly_has_bytes(product) || oly_platform_is_late())
        return OLY_BYTES_NONE;
    return oly_byte_products(oly_enabled(OLY_OPTIMISATION_MATRIX_REGISTERS));
}

bool oly_has_bfloat_products(void)
{
    return oly_enabled(OLY_OPTIMISATION_MATRIX_REGISTERS) && oly_bfloat_products();
}

bool oly_multiplies_bfloats(const oly_plan *plan, const oly_step *product)
{
    if (product->kind != OLY_STEP_GEMM || oly_platform_is_late())
        return false;
    const bool converted = product->gemm.converted[0] && converts_to_float(product);
    bool any = false;
    for (int d = 0; d < plan->n_devices; d++) {
        const oly_gemm_work *w = &product->gemm.device[d];
        if (w->has_work && ((w->task.dtype != OLY_BFLOAT16 && !converted) || w->task.k < OLY_BFLOAT_TERMS))
            return false;
        any |= w->has_work;
    }
    return any && oly_has_bfloat_products();
}

const char *oly_narrow_operand(void *const *base, const oly_step *product, int o, int device, oly_gemm_task *task,
                               oly_dtype *type)
{
    const oly_step *group = product->gemm.converted[o];
    const oly_tile_program *p = &group->tile.program;
    const oly_tile_work *w = &group->tile.device[device];
    oly_narrow_read read;
    oly_read_narrow(&product->gemm.device[device], o, p, w, task, &read); /* it can: fused_products.c has asked */
    const oly_place *load = &w->loads[read.load];
    *type = p->load_dtype[read.load];
    return (const char *)base[load->base] + load->offset + read.offset * (int64_t)oly_dtype_size(*type);
}

void oly_run_byte_product(void *const *base, const oly_step *product, int device, oly_byte_way way, int chunk,
                          int n_chunks)
{
    const oly_gemm_work *w = &product->gemm.device[device];
    oly_gemm_task t = w->task;
    oly_dtype of_a, of_b;
    const char *a = oly_narrow_operand(base, product, 0, device, &t, &of_a),
               *b = oly_narrow_operand(base, product, 1, device, &t, &of_b);
    oly_gemm_bytes_run(way, &t, of_a == OLY_INT8, of_b == OLY_INT8, a, b, base[w->out_base], chunk, n_chunks);
}

void oly_run_converted_bfloats(void *const *base, const oly_step *product, int device, int chunk, int n_chunks)
{
    const oly_gemm_work *w = &product->gemm.device[device];
    oly_gemm_task t = w->task;
    oly_dtype type;
    const char *a = oly_narrow_operand(base, product, 0, device, &t, &type),
               *b = oly_narrow_operand(base, product, 1, device, &t, &type);
    oly_gemm_bfloat_run(&t, a, b, base[w->out_base], chunk, n_chunks);
}
