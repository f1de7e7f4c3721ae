/* SPDX-License-Identifier: BSD-3-Clause */
/* The coordinator of a meeting, in the olymeet of process 0: waits for all processes, compares what they say of themselves, divides
 * them into nodes, passes messages between nodes, and ends the job when one of them is lost. Used by olymeet.c. */
#ifndef OLYMEET_COORDINATOR_H
#define OLYMEET_COORDINATOR_H
#include "wire.h"
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

/* Takes over a listening socket. `address` and `deadline` (s, by the clock of `now`) are for messages. */
void coordinator_start(int socket, const oly_request *request, double deadline);
/* What to poll for; adds to `fds`, which has room for `room`. Returns how many. */
size_t coordinator_poll(struct pollfd *fds, size_t room);
size_t coordinator_sockets(void);
/* After poll, with the same entries. */
void coordinator_move(const struct pollfd *fds, size_t n, double now);
/* All have left, or know why the meeting has failed. */
bool coordinator_is_over(double now);
#endif
