/* SPDX-License-Identifier: BSD-3-Clause */
/* The sides of a device's block whose margins arrive in messages. What reads nothing beyond these sides can be
 * computed during the transfer. Shared by stencil_overlap.c and time_tiling_overlap.c. */
#ifndef OLY_PLAN_MOVE_MARGIN_SIDES_H
#define OLY_PLAN_MOVE_MARGIN_SIDES_H
#include "plan/model/planner.h"

/* A device's block within its buffer, which has margins. Strides and bounds are in elements of `element` bytes. */
typedef struct oly_block_within {
    int rank;
    int64_t element, stride[OLY_MAX_RANK], lo[OLY_MAX_RANK], hi[OLY_MAX_RANK];
} oly_block_within;

/* The transfer of the margins of field k of a stencil step; NULL: none, or several steps. */
const oly_step *oly_margins_of(const oly_step *s, int k);
/* The transfers of margins: before the loop (`first`, NULL: none), and in the loop, where those of both fields are
 * alike. False: it is not known what arrives. */
bool oly_margin_moves(const oly_step *s, const oly_step *first, const oly_step *moves[2]);

/* Finds the sides beyond which all of an arriving box is, bits 2 d (low) and 2 d + 1 (high), and sets bit number
 * `sides` of *seen. At most three dimensions. False: it is beyond none, or its strides do not match. */
bool oly_margin_sides_add(uint64_t *seen, const oly_block_within *own, const oly_piece *piece);
/* The sides from which something arrives. A corner is beyond several sides; it counts for one from which other boxes
 * arrive too, if there is one. */
unsigned oly_margin_sides_late(uint64_t seen);
#endif
