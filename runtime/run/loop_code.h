/* SPDX-License-Identifier: BSD-3-Clause */
/* Loops on one device whose steps are all groups that have machine code, each a single row: recurrences of a few numbers, sweeps of short rows. An iteration is then the calls of that code, with the same memory as step by step; finding out how a step is run takes several
 * times as long as such a row. OLYMPUS_DISABLE=loops-of-code turns it off. Private to the interpreter and to loop_by_device.c. */
#ifndef OLY_RUN_LOOP_CODE_H
#define OLY_RUN_LOOP_CODE_H
#include "run/interpret.h"

/* Runs iterations of the loop from the i-th on, as long as a condition holds, and turns its carries after each. Returns how many; 0: none, as
 * where some step's code is not known, or it is another kind of loop. */
int64_t oly_loop_code_run(const oly_plan *plan, void **base, const oly_step *loop, int device, int64_t i);
/* Iterations that have been run so in this process; for tests. */
int64_t oly_loop_code_iterations(void);
#endif
