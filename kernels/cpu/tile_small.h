/* Shared by tile.c and tile_small.c. */
#ifndef OLY_KERNEL_TILE_SMALL_H
#define OLY_KERNEL_TILE_SMALL_H
#include "table.h"

/* The function of an instruction; bit k of scalars: operand k is one element for all. */
static inline oly_tile_function *oly_tile_function_of(const oly_tile_instruction *c, unsigned scalars)
{
    const oly_convert_table *moves = &OLY_ISA_NAME(oly_convert);
    if (c->op == OLY_TILE_select)
        return moves->select[oly_element_bytes[c->dtype]][scalars];
    if (c->op == OLY_TILE_convert)
        return moves->convert[c->dtype][c->to];
    /* all scalar: one element, any variant */
    return OLY_ISA_NAME(oly_elementwise).cell[c->op][c->dtype][c->in[1] < 0 || scalars == 3 ? 0 : scalars];
}

/* Works the whole box when it is small and plain; false: it did nothing. */
bool OLY_ISA_NAME(oly_tile_run_small)(const oly_tile_program *program, const oly_tile_box *box,
                                      const oly_tile_operand *loads, const oly_tile_operand *stores);
#endif
