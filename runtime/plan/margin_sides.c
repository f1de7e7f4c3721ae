/* Telling sides from arrivals. See margin_sides.h. */
#include "plan/margin_sides.h"

const oly_step *oly_margins_of(const oly_step *s, int k)
{
    const oly_block *b = s->stencil.margins[k];
    return b && b->n_steps == 1 && b->steps[0].kind == OLY_STEP_MOVE ? &b->steps[0] : NULL;
}

/* Is it said what the movement brings? Not when its boxes are listed later (outline.c). */
static bool is_known(const oly_step *move)
{
    return !move || !move->exchange || move->move.n_arrivals > 0 || oly_exchange_bytes_received(move->exchange) == 0;
}

bool oly_margin_moves(const oly_step *s, const oly_step *first, const oly_step *moves[3])
{
    moves[0] = first;
    for (int k = 0; k < 2; k++) {
        moves[k + 1] = oly_margins_of(s, k);
        if (s->stencil.margins[k] && !moves[k + 1])
            return false;
    }
    return is_known(moves[0]) && is_known(moves[1]) && is_known(moves[2]);
}

bool oly_margin_side_add(unsigned *late, const oly_block_within *own, const oly_piece *piece, bool corners)
{
    int64_t rest = piece->offset / own->element;
    unsigned sides = 0;
    if (piece->rank != own->rank)
        return false;
    for (int d = 0; d < own->rank; d++) {
        if (piece->stride[d] != own->stride[d])
            return false;
        int64_t lo = rest / own->stride[d], hi = lo + piece->extent[d];
        rest %= own->stride[d];
        sides |= (unsigned)(hi <= own->lo[d]) << (2 * d);
        sides |= (unsigned)(lo >= own->hi[d]) << (2 * d + 1);
    }
    unsigned lowest = sides & -sides;
    if ((sides != lowest) == corners && !(*late & sides))
        *late |= lowest;
    return sides != 0;
}
