/* Running programs in a child process: crashes and programs that do not end become outcomes. Not under a launcher. */
#ifndef SOAK_CHILD_H
#define SOAK_CHILD_H
#include "program.h"

typedef void child_function(const void *context, long from, long to, outcome *o, long *at);

void begin_session(void); /* oly_init, with errors returned */
/* f in a child. *reached: where it was. A signal is an outcome with its negative number as status. */
outcome run_child(child_function *f, const void *context, long from, long to, long *reached);
#endif
