/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the sides of arriving boxes. See margin_sides.h. */
#include "plan/move/margin_sides.h"

const oly_step *oly_margins_of(const oly_step *s, int k)
{
    const oly_block *b = s->stencil.margins[k];
    return b && b->n_steps == 1 && b->steps[0].kind == OLY_STEP_MOVE ? &b->steps[0] : NULL;
}

/* Does the step say what arrives? Not if its boxes are listed later (listed_transfers.c). */
static bool is_known(const oly_step *move)
{
    return !move || !move->exchange || move->move.n_arrivals > 0 || oly_exchange_bytes_received(move->exchange) == 0;
}

bool oly_margin_moves(const oly_step *s, const oly_step *first, const oly_step *moves[2])
{
    moves[0] = first;
    moves[1] = oly_margins_of(s, 0);
    for (int k = 0; k < 2; k++)
        if (s->stencil.margins[k] && !oly_margins_of(s, k))
            return false;
    return is_known(moves[0]) && is_known(moves[1]);
}

bool oly_margin_sides_add(uint64_t *seen, const oly_block_within *own, const oly_piece *piece)
{
    int64_t rest = piece->offset / own->element;
    unsigned sides = 0;
    if (piece->rank != own->rank)
        return false;
    for (int d = 0; d < own->rank; d++) {
        int64_t stride = own->stride[d], lo = stride == 1 ? rest : rest / stride, hi = lo + piece->extent[d];
        if (piece->stride[d] != stride)
            return false;
        rest -= lo * stride;
        sides |= (unsigned)(hi <= own->lo[d]) << (2 * d);
        sides |= (unsigned)(lo >= own->hi[d]) << (2 * d + 1);
    }
    *seen |= (uint64_t)1 << sides;
    return sides != 0;
}

unsigned oly_margin_sides_late(uint64_t seen)
{
    unsigned late = 0;
    for (unsigned side = 1; side < 64; side *= 2)
        late |= seen >> side & 1 ? side : 0;
    for (unsigned sides = 1; sides < 64; sides++)
        if (seen >> sides & 1 && !(late & sides))
            late |= sides & -sides;
    return late;
}
