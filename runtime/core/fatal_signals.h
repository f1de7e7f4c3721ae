/* SPDX-License-Identifier: BSD-3-Clause */
/* Signals that end this process, or ask for its state, write the flight recorder first (recorder.h):
 *
 *   SIGSEGV SIGBUS SIGFPE SIGILL SIGABRT   recorded, then passed to the handler that was there before, or to the system
 *   SIGTERM   if the program has no handler: recorded if this process waits for another rank or another has failed, then the process ends
 *   SIGQUIT   if the program has no handler: recorded, and the process goes on
 *
 * Begun after MPI, whose own handlers are called after these. Called by collectives/world.c, and for their threads by
 * runtime/device/workers.c. */
#ifndef OLY_CORE_FATAL_SIGNALS_H
#define OLY_CORE_FATAL_SIGNALS_H
#include <signal.h>
#include <stdbool.h>

void oly_fatal_signals_begin(void);
/* Handlers that have been replaced since then stay. */
void oly_fatal_signals_end(void);
/* Is this action that of fatal_signals.c? It stands for the system's where the signal is one that it takes only from that. */
bool oly_fatal_signals_is(const struct sigaction *action);
/* On a thread of the library, which blocks all signals: lets in those that it can cause itself, with a stack of their own. The end is
 * called by the same thread. */
void oly_fatal_signals_thread_begin(void);
void oly_fatal_signals_thread_end(void);
#endif
