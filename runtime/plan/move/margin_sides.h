/* The sides of a device's block from which messages bring margins: what reads nothing beyond them can be worked while they are on
 * their way. Shared by stencil_overlap.c and time_tiling_overlap.c. */
#ifndef OLY_PLAN_MOVE_MARGIN_SIDES_H
#define OLY_PLAN_MOVE_MARGIN_SIDES_H
#include "plan/model/planner.h"

/* A device's block within its buffer, which has margins: in elements of `element` bytes. */
typedef struct oly_block_within {
    int rank;
    int64_t element, stride[OLY_MAX_RANK], lo[OLY_MAX_RANK], hi[OLY_MAX_RANK];
} oly_block_within;

/* The movement that brings margins to field k of a loop's step; NULL: none, or more than one. */
const oly_step *oly_margins_of(const oly_step *s, int k);
/* What brings margins: before the loop (NULL: nothing), and to both fields in turn, which is alike. False: it is not known what
 * they bring. */
bool oly_margin_moves(const oly_step *s, const oly_step *first, const oly_step *moves[2]);

/* Notes the sides, bits 2 d (low) and 2 d + 1 (high), beyond which all of an arrival's box lies: as bit `sides` of *seen, of at
 * most three dimensions. False: it lies beyond none, or its strides say something else. */
bool oly_margin_sides_add(uint64_t *seen, const oly_block_within *own, const oly_piece *piece);
/* The sides from which something comes. Corners lie beyond several, and belong to one from which more comes, if there is one. */
unsigned oly_margin_sides_late(uint64_t seen);
#endif
