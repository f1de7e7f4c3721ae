/* When the steps of a plan run: what schedule.c and its helpers share. Private to runtime/plan. */
#ifndef OLY_PLAN_SCHEDULE_SCHEDULER_H
#define OLY_PLAN_SCHEDULE_SCHEDULER_H
#include "plan/model/effects.h"
#include "plan/move/move.h"
#include "plan/model/planner.h"

/* -- schedule_numbers.c: numbers steps and finds lives of slots anew -- */
void oly_renumber_steps(oly_planner *p);

/* -- overlap.c -- */
enum { OLY_AFTER_START = -1, OLY_AFTER_WAIT = -2 };
typedef struct oly_part {
    oly_step step;
    int after; /* what of the movement it needs: its start, all of it, or the message of parts->peers[after] and those before */
} oly_part;

typedef struct oly_parts {
    int n; /* 0: the step stays whole */
    oly_part part[2 * OLY_MAX_RANK + 1 > OLY_MOST_PEERS + 1 ? 2 * OLY_MAX_RANK + 1 : OLY_MOST_PEERS + 1];
    int n_peers, peers[OLY_MOST_PEERS];
} oly_parts;

/* Some iterations of a loop nest. */
typedef struct oly_ranges {
    int rank;
    int64_t lo[OLY_MAX_RANK], hi[OLY_MAX_RANK];
} oly_ranges;
double oly_ranges_volume(const oly_ranges *r);
/* Which of the iterations `all`, reading (or writing) at `place` of the slot the piece is of, meet some of it. The slot is
 * row-major, and the piece has its strides. False: cannot be said. */
bool oly_find_readers(const oly_piece *piece, int64_t element, const oly_place *place, const oly_ranges *all,
                      oly_ranges *found);

/* Cuts a step that reads what the moves bring, which takes `flight` seconds, where that pays. */
oly_status oly_split_step(oly_planner *p, const oly_step *s, int n, const oly_step *const *moves, double flight,
                          oly_parts *parts);

/* -- overlap_scatter.c -- */
/* Makes one step of a product and the exchange that sends it in parts to other processes, which takes `flight` seconds, if that
 * pays: what goes to a process is sent as soon as its blocks are made. *done tells; then `fed` is that step. */
oly_status oly_send_blocks_early(oly_planner *p, const oly_step *product, const oly_step *move, double flight,
                                 oly_step *fed, bool *done);
#endif
