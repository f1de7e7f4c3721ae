/* When the steps of a plan run: what schedule.c and its helpers share. Private to runtime/plan. */
#ifndef OLY_PLAN_SCHEDULE_H
#define OLY_PLAN_SCHEDULE_H
#include "plan/planner.h"

/* -- uses.c -- */
typedef void oly_use_visit(void *context, int slot, bool writes);
/* Names every slot the step reads or writes on this process, some more than once; those of blocks inside it too. */
void oly_step_uses(const oly_plan *plan, const oly_step *s, oly_use_visit *visit, void *context);

/* -- overlap.c -- */
enum { OLY_MOST_PEERS = 16, OLY_AFTER_START = -1, OLY_AFTER_WAIT = -2 };
typedef struct oly_part {
    oly_step step;
    int after; /* what of the movement it needs: its start, all of it, or the message of parts->peers[after] and those before */
} oly_part;

typedef struct oly_parts {
    int n; /* 0: the step stays whole */
    oly_part part[2 * OLY_MAX_RANK + 1 > OLY_MOST_PEERS + 1 ? 2 * OLY_MAX_RANK + 1 : OLY_MOST_PEERS + 1];
    int n_peers, peers[OLY_MOST_PEERS];
} oly_parts;

/* Cuts a step that reads what the moves bring, which takes `flight` seconds, where that pays. */
oly_status oly_split_step(oly_planner *p, const oly_step *s, int n, const oly_step *const *moves, double flight,
                          oly_parts *parts);
#endif
