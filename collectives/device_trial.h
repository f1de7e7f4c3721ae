/* SPDX-License-Identifier: BSD-3-Clause */
/* Does MPI take memory of GPUs? Asked in a process of its own. For transport.c only. */
#ifndef OLY_COLLECTIVES_DEVICE_TRIAL_H
#define OLY_COLLECTIVES_DEVICE_TRIAL_H
#include <stdbool.h>
#include <stddef.h>

/* Runs the program olyaware; `why` says what came of it. Takes a fraction of a second, and at most 20; once in a process that
 * learns something. Called by one thread, at the start of a session. */
/* Does the MPI of this process say that it takes memory of GPUs? Costs nothing, and proves nothing. */
bool oly_device_claim(void);
bool oly_device_trial(char *why, size_t room);
#endif
