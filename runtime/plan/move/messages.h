/* Pieces on the wire, from which an exchange is made. Both ends list their pieces with the same keys; sorted by key, the pieces of
 * a message come in the same order at both ends. Private to runtime/plan. */
#ifndef OLY_PLAN_MOVE_MESSAGES_H
#define OLY_PLAN_MOVE_MESSAGES_H
#include "plan/model/planner.h"

typedef struct oly_process_message {
    int peer; /* process */
    bool sending;
    int64_t key[2]; /* received pieces of one peer with equal keys are the same bytes, sent once */
    oly_piece piece;
} oly_process_message;

typedef struct oly_wires {
    int n, capacity;
    oly_process_message
        *wire; /* in the plan's arena, until the exchange is made or they are dropped: then others take its place */
} oly_wires;

oly_status oly_messages_add(oly_planner *p, oly_wires *w, const oly_process_message *wire);
/* NULL when there are none. A sent piece listed twice with one key and peer is sent once. */
oly_status oly_messages_exchange(oly_planner *p, oly_wires *w, size_t element_bytes, oly_exchange **exchange);
void oly_messages_drop(oly_planner *p, oly_wires *w);
#endif
