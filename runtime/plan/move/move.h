/* SPDX-License-Identifier: BSD-3-Clause */
/* Moves values between devices: from any layout to the boxes that devices need. What other rooms may call. */
#ifndef OLY_PLAN_MOVE_MOVE_H
#define OLY_PLAN_MOVE_MOVE_H
#include "plan/model/planner.h"

/* -- reshard.c -- */
/* Adds a MOVE step to block b: every device gets its box of `to` in slot to_slot from the devices that hold it. */
typedef struct oly_movement {
    const oly_node *node;
    const oly_layout *from;
    int from_slot;
    const oly_region *to;
    int to_slot;
    oly_wanted wanted; /* of `to` */
    bool in_place;     /* from_slot is to_slot, whose own blocks are up to date (oly_plan_margins) */
} oly_movement;
/* The same for several values with elements of one size, in one step and one exchange. */
oly_status oly_plan_moves(oly_planner *p, oly_block *b, int n, const oly_movement *movements);
oly_status oly_plan_reshard(oly_planner *p, oly_block *b, const oly_node *node, const oly_layout *from, int from_slot,
                            const oly_region *to, int to_slot);

/* The same within slots that already hold boxes of `to` in which each device's own block is up to date: block b[j]
 * gets the step that transfers the margins of slots[j][k] for movement k. The movements' own slots are ignored. */
oly_status oly_plan_margins(oly_planner *p, oly_block *const b[2], int n, const oly_movement *movements,
                            const int *const slots[2]);

/* Permutes the slices of dimension d: slice i of `to` is slice source[i] of the value. Other dimensions are
 * unchanged. */
oly_status oly_reshard_permuted(oly_planner *p, oly_block *b, const oly_node *node, const oly_layout *from,
                                int from_slot, const oly_region *to, int to_slot, int d, oly_permutation permutation);

/* -- wanted_boxes.c -- */
/* Splits what some parts cover of a box into disjoint boxes, at most OLY_MOST_WANTED. Returns their number. */
#define OLY_MOST_WANTED 64
int oly_wanted_boxes(int n, const oly_box *parts, const oly_box *within, oly_box *boxes);

enum { OLY_MOST_PEERS = 16 }; /* most messages of a transfer that steps may wait for individually */
#endif
