/* SPDX-License-Identifier: BSD-3-Clause */
/* See byte_product.h. */
#include "run/byte_product.h"
#include "core/optimisation.h"
#include "device/platform.h"

oly_byte_way oly_byte_way_of(const oly_step *product)
{
    if (product->kind != OLY_STEP_GEMM || !product->gemm.converted[0] || oly_platform_is_late())
        return OLY_BYTES_NONE;
    return oly_byte_products(oly_enabled(OLY_OPTIMISATION_MATRIX_REGISTERS));
}

/* The conversion that would have written the operand has a load for each store, with the same strides. */
const char *oly_bytes_of(void *const *base, const oly_step *product, int o, int device, bool *has_sign)
{
    const oly_gemm_work *w = &product->gemm.device[device];
    const oly_place *read = o == 0 ? &w->a : &w->b;
    const oly_step *group = product->gemm.converted[o];
    const oly_tile_program *p = &group->tile.program;
    const oly_tile_work *t = &group->tile.device[device];
    int store = 0, convert = 0, load = 0;
    while (t->stores[store].base != read->base)
        store++;
    while (p->instructions[convert].out != p->store_register[store])
        convert++;
    while (p->load_register[load] != p->instructions[convert].in[0])
        load++;
    *has_sign = p->load_dtype[load] == OLY_INT8;
    int64_t elements = ((int64_t)read->offset - (int64_t)t->stores[store].offset) / (int64_t)sizeof(int32_t);
    return (const char *)base[t->loads[load].base] + t->loads[load].offset + elements;
}

void oly_run_byte_product(void *const *base, const oly_step *product, int device, oly_byte_way way, int chunk,
                          int n_chunks)
{
    const oly_gemm_work *w = &product->gemm.device[device];
    bool a_signed, b_signed;
    const char *a = oly_bytes_of(base, product, 0, device, &a_signed),
               *b = oly_bytes_of(base, product, 1, device, &b_signed);
    oly_gemm_bytes_run(way, &w->task, a_signed, b_signed, a, b, base[w->out_base], chunk, n_chunks);
}
