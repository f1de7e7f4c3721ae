/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of a transfer: copies within this process, and boxes sent to and received from others. transfers.c,
 * neighbours.c and listed_transfers.c find them, reshard.c makes a step of them. Private to runtime/plan/move. */
#ifndef OLY_PLAN_MOVE_TRANSFERS_H
#define OLY_PLAN_MOVE_TRANSFERS_H
#include "plan/move/find_receivers.h"

struct mover;

typedef struct remote {
    int peer;             /* rank */
    int receiver, source; /* positions */
    oly_box box;
    int device; /* of this process: the sender's or receiver's */
    bool sending;
    int64_t shift[OLY_MAX_RANK]; /* from the source's coordinates of the box to the receiver's */
    uint64_t order[2];           /* sort key within messages, before the box's first element */
    int item;                    /* the movement's number in its step */
    const struct mover *mover;
} remote;

typedef struct remote_list {
    int n, capacity;
    remote *remote;
} remote_list;

typedef struct mover {
    oly_planner *p;
    const oly_node *node;
    const oly_layout *from;
    const oly_region *to;
    bool in_place; /* from_slot is to_slot and holds boxes of `to`, in which each device's own block is up to date */
    int from_slot, to_slot;
    oly_permutation permutation; /* of the slices of dimension `permuted`; NULL: none */
    int permuted;
    oly_wanted wanted; /* of `to` */
    const int64_t *shape;
    size_t element;
    const oly_box *held, *target; /* [n_devices] boxes in from_slot and in to_slot; NULL: not computed yet */
    int n_copies, copy_capacity;
    oly_copy_work *copies;
    oly_arena scratch;   /* freed when the exchange is made */
    remote_list remotes; /* in scratch */
    int wanted_at;       /* the position, plus 1, for which wanted_box was computed; 0: none */
    oly_box *wanted_box;
    int64_t received; /* the most elements that one device here gets from others */
    double work;
    bool remotes_only; /* copies were found before */
    /* If the remotes are listed later: the elements each device here needs, and from how many blocks. Else NULL. */
    int64_t *wanted_elements, *wanted_blocks;
} mover;

/* A part of a receiver's box that is contiguous in the source's coordinates, and its shift from there. */
typedef struct run {
    oly_box box;
    int64_t shift[OLY_MAX_RANK];
    bool begun;
    int64_t at; /* permutations: the next slice */
} run;
/* For values that continue periodically beyond their ends: oly_first_repetition gives where the first repetition in
 * dimension d that meets [lo, ..) begins; oly_repetitions gives where the first begins that boxes of the region may
 * meet, and where the last ends. */
int64_t oly_first_repetition(const mover *m, int d, int64_t lo);
void oly_repetitions(const mover *m, int d, int64_t *first, int64_t *end);
/* The next run of a box; false: no more. *r is zero at first. */
bool oly_next_run(const mover *m, const oly_box *box, run *r);
/* The position in from's mesh of the device that sends block `part` to a receiver. */
int oly_owner_of(const mover *m, const int *part, int receiver, int receiver_process);
int oly_process_at(oly_mesh mesh, int position);

/* Finds the copies and remotes of this process's devices, as receivers and as senders. Call oly_forget_pieces
 * afterwards, also after a failure. */
oly_status oly_find_pieces(mover *m);
void oly_forget_pieces(mover *m);
/* Computes m->held and m->target, if not done before. */
oly_status oly_keep_boxes(mover *m);
/* The same for a process whose devices receive only from its own. */
oly_status oly_find_copies(mover *m);
/* The piece of a remote at this process's end. */
void oly_place_remote(const mover *m, const remote *r, oly_piece *piece);
/* The piece of a box in a device's slot that holds the box `holds`. peer_device: id of the device at the other end. */
oly_piece oly_piece_in(const mover *m, int device, int peer_device, int slot, const oly_box *holds, const oly_box *box);
/* Makes room for a total of n remotes in a list, in m->scratch. */
oly_status oly_room_for_remotes(mover *m, remote_list *list, int n);
/* Makes room for n more copies. */
oly_status oly_room_for_copies(mover *m, int n);
/* Adds a copy of `box` between two devices of this process. holds: the receiver's whole box, in the source's
 * coordinates. */
oly_status oly_add_copy(mover *m, int source_device, int device, const oly_box *holds, const oly_box *box);

/* -- neighbours.c -- */
/* Is the value split over the same axes before and after? Then oly_find_neighbours finds the pieces. */
bool oly_between_neighbours(const mover *m);
oly_status oly_find_neighbours(mover *m);
/* Is it, and does every device have at most `most` senders and receivers together? An upper bound from block
 * sizes. */
bool oly_few_neighbours(const mover *m, int64_t most);

/* -- reshard.c -- */
/* Notes what a step moves from where to where, for explanations. */
oly_status oly_note_transfer(int n, const mover *movers, oly_step *s);

/* One exchange for the remotes of all movements, NULL when there are none. */
oly_status oly_movers_exchange(int n, mover *movers, oly_exchange **exchange);

/* -- listed_transfers.c -- */
/* Copies movers whose boxes are computed, and what they need of the planner, to the plan's memory. */
oly_status oly_keep_movers(int n, const mover *movers, oly_planner **planner, mover **kept);
/* Would listing the movements' remotes take so long that it is better done at the first run? */
bool oly_worth_outline(int n, const mover *movers);
/* Notes what the exchange may bring, without its messages. */
oly_status oly_note_outline_arrivals(int n, const mover *movers, oly_step *s);
/* Finds the copies, and makes an exchange whose messages are listed when it is first started. */
oly_status oly_make_outline(int n, mover *movers, oly_exchange **exchange);

/* -- tree_exchange.c -- */
/* Adds the steps of those movements that should be done in stages, and removes them from the list, which stays in
 * order. */
oly_status oly_plan_stages(int *n, mover *movers, oly_block *b);
#endif
