/* What every test program includes: cmocka, and a main that knows about ranks.
 * A test program is a list of functions and `int main(void) { return CHECK_MAIN(tests); }`; the first line of
 * its file says which sizes tests/run.sh runs it with: run: ranks=1,2,4 devices=8     each of these numbers of
 * processes; 8 devices in all, shared out evenly run: layouts                   ranks x devices per rank: 1x8,
 * 2x4, 4x2, 8x1 run: ranks=2 timeout=300       seconds allowed, where the default does not do Under mpirun only
 * rank 0 prints when all goes well, a rank that fails prints what it has to say and ends the job at once (the
 * others may be waiting for it), and a failure on any rank is a failure of the program. */
#ifndef CHECK_H
#define CHECK_H
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* Runs the tests of an array in order and returns the exit status for main. MPI is started first when a
 * launcher is seen in the environment (so oly_init and oly_finalize inside tests leave it running) and ended
 * last. */
#define CHECK_MAIN(tests) check_main(__FILE__, (tests), (int)(sizeof(tests) / sizeof((tests)[0])))
int check_main(const char *file, const struct CMUnitTest *tests, int count);

/* cmocka tells nobody that a test was skipped, so the skip is noted on its way. */
#undef skip
#define skip() (check_note_skip(), _skip(__FILE__, __LINE__))
void check_note_skip(void);
#endif
