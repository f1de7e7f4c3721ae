/* SPDX-License-Identifier: BSD-3-Clause */
/* Pieces to send and receive, from which an exchange is made. Both ends give their pieces the same keys, so that the
 * pieces of a message, sorted by key, are in the same order at both ends. Private to runtime/plan. */
#ifndef OLY_PLAN_MOVE_MESSAGES_H
#define OLY_PLAN_MOVE_MESSAGES_H
#include "plan/model/planner.h"

typedef struct oly_process_message {
    int peer; /* process */
    bool sending;
    int64_t key[2]; /* received pieces of one peer with equal keys are the same bytes, sent once */
    oly_piece piece;
} oly_process_message;

typedef struct oly_message_list {
    int n, capacity;
    oly_process_message *message; /* in the plan's arena; reused once the exchange is made or the list dropped */
} oly_message_list;

oly_status oly_messages_add(oly_planner *p, oly_message_list *w, const oly_process_message *message);
/* Makes the exchange and drops the list; NULL if it is empty. A piece listed twice for one peer and key is sent
 * once. */
oly_status oly_messages_exchange(oly_planner *p, oly_message_list *w, size_t element_bytes, oly_exchange **exchange);
void oly_messages_drop(oly_planner *p, oly_message_list *w);
#endif
