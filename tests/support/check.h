/* SPDX-License-Identifier: BSD-3-Clause */
/* What every test program includes: cmocka, and a main that knows about ranks.
 *
 * A test program is a list of functions and `int main(void) { return CHECK_MAIN(tests); }`. A comment in the first three
 * lines of its file tells tests/run.sh with which sizes to run it:
 *      run: ranks=1,2,4 devices=8      on 1, 2 and 4 ranks, which share 8 devices evenly
 *      run: layouts                    on ranks x devices of each: 1x8, 2x4, 4x2, 8x1
 *      run: ranks=2 timeout=300        with that many seconds, where the default is too short
 *      run: alone ranks=2              not beside other tests; one=NAME: not beside others that say so
 *
 * Under mpirun only rank 0 prints if all tests pass. A rank that fails prints its messages and ends the job at once, since
 * others may be waiting for it: a failure on any rank is a failure of the program. */
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

/* Runs the tests in order and returns the exit status for main. Under a launcher MPI is initialised before the first
 * test, so that oly_init and oly_finalize inside tests leave it running, and finalised after the last. */
#define CHECK_MAIN(tests) check_main(__FILE__, (tests), (int)(sizeof(tests) / sizeof((tests)[0])))
int check_main(const char *file, const struct CMUnitTest *tests, int count);

/* cmocka does not report skipped tests: note them here. */
#undef skip
#define skip() (check_note_skip(), _skip(__FILE__, __LINE__))
void check_note_skip(void);
#endif
