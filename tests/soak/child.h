/* SPDX-License-Identifier: BSD-3-Clause */
/* Running programs so that failing ones can be shrunk. Alone: in a child process, so that crashes and programs that do
 * not end become outcomes (child.c). Under a launcher: all ranks together, in step (together.c); programs that end the
 * job are run in jobs of their own. */
#ifndef SOAK_CHILD_H
#define SOAK_CHILD_H
#include "program.h"

typedef void child_function(const void *context, long from, long to, outcome *o, long *at);

/* Options that change plans but not values, for the programs of a session: set in the environment unless set
 * already. */
void choose_options(uint64_t number);
void print_options(FILE *f); /* as a comment of C */
void begin_session(void);    /* oly_init, with errors returned */
/* Runs f in a child. *reached: how far it got. A signal is an outcome with its negative number as status. */
outcome run_child(child_function *f, const void *context, long from, long to, long *reached);

/* Three ways to run a program that is being shrunk, until the given time is over. */
void allow_attempts(double seconds);
bool time_is_over(void);
bool attempt_alone(program *p, outcome *o);
bool attempt_together(program *p, outcome *o); /* on all ranks; after a failure they begin a new session */
bool attempt_job(program *p, outcome *o);      /* with a launcher, from outside: SOAK_RANKS ranks */
void agree(outcome *o);                        /* all ranks: the outcome of the first rank that failed */
bool run_for_job(const char *file);            /* what the ranks of attempt_job do */
#endif
