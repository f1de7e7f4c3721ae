/* Running programs in a child process: crashes and programs that do not end become outcomes. Not under a launcher. */
#ifndef SOAK_CHILD_H
#define SOAK_CHILD_H
#include "program.h"

typedef void child_function(const void *context, long from, long to, outcome *o, long *at);

/* Options that change plans and not values, for the programs of a session: set in the environment unless they are there. */
void choose_options(uint64_t number);
void print_options(FILE *f); /* as a comment of C */
void begin_session(void);    /* oly_init, with errors returned */
/* f in a child. *reached: where it was. A signal is an outcome with its negative number as status. */
outcome run_child(child_function *f, const void *context, long from, long to, long *reached);
#endif
