/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by tile.c, tile_small.c and tile_narrow.c. */
#ifndef OLY_KERNEL_TILE_SMALL_H
#define OLY_KERNEL_TILE_SMALL_H
#include "table.h"

/* How an instruction is computed. */
typedef struct oly_tile_call {
    oly_tile_function *function;
    uint8_t narrow;  /* the operands' type, when it is a narrow one and the function's float32; else 0 */
    uint8_t to;      /* with `narrow`: the result's type */
    uint8_t scalars; /* with `narrow`: bit k: operand k is one element for all */
} oly_tile_call;

/* Widens the operands, calls the function, and rounds the result if it has the operands' type (tile_narrow.c). */
void OLY_ISA_NAME(oly_tile_narrow)(const oly_tile_call *call, int n, void *out, const void *x, const void *y);

/* The call of an instruction; bit k of scalars: operand k is one element for all. */
static inline oly_tile_call oly_tile_call_of(const oly_tile_instruction *c, unsigned scalars)
{
#define OLY_TABLE(kind, number, ...)                                                                                   \
    [OLY_##number] = {&OLY_ISA_NAME(oly_elementwise_##kind), &OLY_ISA_NAME(oly_math_##kind)},
    static const oly_elementwise_table *const tables[OLY_N_DTYPES][2] = {
        OLY_BOOL_TYPES(OLY_TABLE, integer) OLY_INTEGER_TYPES(OLY_TABLE, integer) OLY_NARROW_TYPES(OLY_TABLE, float)
            OLY_WIDE_TYPES(OLY_TABLE, float) OLY_COMPLEX_TYPES(OLY_TABLE, complex)};
#undef OLY_TABLE
    const oly_convert_table *moves = &OLY_ISA_NAME(oly_convert);
    const oly_random_table *random = &OLY_ISA_NAME(oly_random);
    if (c->op == OLY_TILE_select)
        return (oly_tile_call){.function = moves->select[oly_element_bytes[c->dtype]][scalars]};
    if (c->op == OLY_TILE_convert)
        return (oly_tile_call){.function = moves->convert[c->dtype][c->to]};
    if (c->op == OLY_TILE_copy)
        return (oly_tile_call){.function = moves->copy[oly_element_bytes[c->dtype]]};
    if (c->op == OLY_TILE_fma)
        return (oly_tile_call){.function = (c->dtype == OLY_FLOAT32 ? random->fma32 : random->fma64)[scalars]};
    int variant = c->in[1] < 0 || scalars == 3 ? 0 : (int)scalars; /* all scalar: one element, any variant */
    if (c->op == OLY_TILE_threefry2x32)
        return (oly_tile_call){.function = random->threefry2x32[variant]};
    if (c->op == OLY_TILE_random_bits)
        return (oly_tile_call){.function = random->random_bits[variant]};
    oly_tile_function *const(*cell)[3] = tables[c->dtype][c->op >= OLY_TILE_MATH]->cell[c->op];
    if (oly_is_narrow((oly_dtype)c->dtype) && !cell[c->dtype][variant])
        return (oly_tile_call){cell[OLY_FLOAT32][variant], c->dtype, c->to, (uint8_t)scalars};
    return (oly_tile_call){.function = cell[c->dtype][variant]};
}

/* Calls it on n elements. */
static inline void oly_tile_apply(const oly_tile_call *call, int n, void *out, const void *x, const void *y,
                                  const void *z)
{
    if (call->narrow)
        OLY_ISA_NAME(oly_tile_narrow)(call, n, out, x, y);
    else
        call->function(n, out, x, y, z);
}

/* Computes the whole box if it is small and contiguous; false: nothing was done. */
bool OLY_ISA_NAME(oly_tile_run_small)(const oly_tile_program *program, const oly_tile_box *box,
                                      const oly_tile_operand *loads, const oly_tile_operand *stores);
#endif
