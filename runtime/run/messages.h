/* SPDX-License-Identifier: BSD-3-Clause */
/* The exchanges of a run, as the interpreter calls them: collectives/communicator.h, ordered with the devices. Messages
 * are packed and unpacked by the host. Where devices compute late, they are drained before anything is packed, and
 * before an exchange starts that will write slots: work submitted while it is pending uses none of those (plans wait
 * first). Private to runtime/run. */
#ifndef OLY_RUN_MESSAGES_H
#define OLY_RUN_MESSAGES_H
#include "run/interpret.h"

/* Number of the run's next exchange, and the call that makes it. */
const oly_ticket *oly_next_ticket(oly_run *r);

oly_status oly_messages_start(oly_run *r, oly_exchange *x, const oly_ticket *ticket);
/* Starts it and leaves it pending, for oly_messages_join. */
oly_status oly_messages_leave_pending(oly_run *r, oly_exchange *x, const oly_ticket *ticket);
oly_status oly_messages_finish(oly_run *r, oly_exchange *x, const oly_ticket *ticket);
/* Posts the receives and leaves it pending; messages are then sent to one process after the other. */
oly_status oly_messages_begin_pending(oly_run *r, oly_exchange *x, const oly_ticket *ticket);
oly_status oly_messages_send(oly_run *r, oly_exchange *x, int peer);
/* Waits for a pending exchange, or for the message of one process. */
oly_status oly_messages_join(oly_run *r, oly_exchange *x);
oly_status oly_messages_await(oly_run *r, oly_exchange *x, int peer);

/* Are there messages that need calls of MPI to progress? */
bool oly_is_under_way(const oly_run *r);
/* Advances pending exchanges; called by the interpreting thread. A failure is kept in r->advance. */
void oly_advance_exchanges(oly_run *r);
#endif
