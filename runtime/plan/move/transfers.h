/* What a movement of a value is made of: copies within this process, and boxes from and to others. Between transfers.c, which finds
 * them, and reshard.c, which makes a step of them; private to both. */
#ifndef OLY_PLAN_MOVE_TRANSFERS_H
#define OLY_PLAN_MOVE_TRANSFERS_H
#include "plan/move/find_receivers.h"

struct mover;

typedef struct remote {
    int peer;             /* rank */
    int receiver, source; /* positions */
    oly_box box;
    int device; /* of this process: sender's or receiver's */
    bool sending;
    int64_t shift[OLY_MAX_RANK]; /* of the box on its way */
    uint64_t order[2];           /* in messages, before where the box begins */
    int item;                    /* the movement's number in its step, and the movement */
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
    bool in_place; /* from_slot is to_slot: it holds boxes of `to`, of which each device's own part is right */
    int from_slot, to_slot;
    oly_permutation permutation; /* of the slices of dimension `permuted`; NULL: none */
    int permuted;
    oly_wanted wanted; /* of `to` */
    const int64_t *shape;
    size_t element;
    const oly_box *held,
        *target; /* [n_devices] boxes in from_slot and to_slot of each device here; NULL: not worked out yet */
    int n_copies, copy_capacity;
    oly_copy_work *copies;
    oly_arena scratch;   /* until the exchange is made */
    remote_list remotes; /* in it */
    int wanted_at;       /* the position whose boxes of the parts that are wanted these are, counted from 1; 0: none */
    oly_box *wanted_box;
    int64_t received; /* most elements one device here gets from others */
    double work;
    bool remotes_only; /* copies are found before */
    /* Of those whose remotes are listed later: elements each device here wants, and from how many blocks. Else NULL. */
    int64_t *wanted_elements, *wanted_blocks;
} mover;

/* A part of a receiver's box that lies in one piece at the source: where, and how far it moves. */
typedef struct run {
    oly_box box;
    int64_t shift[OLY_MAX_RANK];
    bool begun;
    int64_t at; /* of permutations: the slice to go on with */
} run;
/* Where the value is continued beyond its ends, the first repetition of it in dimension d that meets [lo, ..) begins here; the
 * first that boxes of the region may meet, and the end of the last. */
int64_t oly_first_repetition(const mover *m, int d, int64_t lo);
void oly_repetitions(const mover *m, int d, int64_t *first, int64_t *end);
/* The next run of a box; false: no more. *r is zero at first. */
bool oly_next_run(const mover *m, const oly_box *box, run *r);
/* Position in from's mesh of the device that gives block `part` to a receiver. */
int oly_owner_of(const mover *m, const int *part, int receiver, int receiver_process);
int oly_process_at(oly_mesh mesh, int position);

/* Finds the copies and remotes of this process's devices, as receivers and as senders; with oly_forget_pieces in the end, also
 * after a failure. */
oly_status oly_find_pieces(mover *m);
void oly_forget_pieces(mover *m);
/* Works out m->held and m->target, if need be. */
oly_status oly_keep_boxes(mover *m);
/* The same of a process all of whose devices take from its own only. */
oly_status oly_find_copies(mover *m);
/* Where this process's end of a remote lies. */
void oly_place_remote(const mover *m, const remote *r, oly_piece *piece);
/* Where a box lies in a slot of a device that holds the box `holds`. */
oly_piece oly_piece_in(const mover *m, int device, int slot, const oly_box *holds, const oly_box *box);
/* Makes room in a list for n remotes in all, in m->scratch. */
oly_status oly_room_for_remotes(mover *m, remote_list *list, int n);
/* So many copies will be added. */
oly_status oly_room_for_copies(mover *m, int n);
/* Adds a copy of `box` between two devices of this process, the other one of which holds `holds`. */
oly_status oly_add_copy(mover *m, int source_device, int device, const oly_box *holds, const oly_box *box);

/* -- neighbours.c -- */
/* Is the value cut over the same axes before and after? Then oly_find_neighbours finds the pieces. */
bool oly_between_neighbours(const mover *m);
oly_status oly_find_neighbours(mover *m);
/* Is it so, and has every device at most so many neighbours that give it something, and that it gives something, together? By the
 * lengths of blocks only. */
bool oly_few_neighbours(const mover *m, int64_t most);

/* -- reshard.c -- */
/* Notes from where to where a step moves what, for explanations. */
oly_status oly_note_transfer(int n, const mover *movers, oly_step *s);

/* One exchange for the remotes of all movements, NULL when there are none. */
oly_status oly_movers_exchange(int n, mover *movers, oly_exchange **exchange);

/* -- listed_transfers.c -- */
/* Copies of movers whose boxes are worked out, and of what they need of the planner, that last as long as the plan. */
oly_status oly_keep_movers(int n, const mover *movers, oly_planner **planner, mover **kept);
/* Does listing the movements' remotes take long enough to be left to the first run? */
bool oly_worth_outline(int n, const mover *movers);
/* What the exchange brings, without its messages. */
oly_status oly_note_outline_arrivals(int n, const mover *movers, oly_step *s);
/* Finds the copies, and makes an exchange whose messages are listed when it is first started. */
oly_status oly_make_outline(int n, mover *movers, oly_exchange **exchange);

/* -- tree_exchange.c -- */
/* Adds the steps of those movements that many processes had better make in stages, and takes them off the list, which keeps its
 * order. */
oly_status oly_plan_stages(int *n, mover *movers, oly_block *b);
#endif
