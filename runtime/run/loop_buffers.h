/* SPDX-License-Identifier: BSD-3-Clause */
/* The buffers of a loop's carries on one device: which ones an iteration reads and writes, in a table of base pointers (oly_cell).
 * Private to runtime/run: the interpreter, and loops that devices run each for itself (loop_by_device.h). */
#ifndef OLY_RUN_LOOP_BUFFERS_H
#define OLY_RUN_LOOP_BUFFERS_H
#include "plan/model/steps.h"

/* The first iteration reads the initial values. */
void oly_loop_begin(const oly_plan *plan, void **base, const oly_step *loop, int device);
/* Binds the rows that iteration i reads and writes where they are (oly_loop_row). */
void oly_loop_bind_rows(const oly_plan *plan, void **base, const oly_step *loop, int device, int64_t i);
/* The next iteration reads what this one wrote, and overwrites what no carry holds any more. */
void oly_loop_turn(const oly_plan *plan, void **base, const oly_step *loop, int device);
/* After n iterations, as before the first: for the next iteration of an outer loop. */
void oly_loop_restore(const oly_plan *plan, void **base, const oly_step *loop, int device, int64_t n);
/* The slot, before the loop, whose memory has what iteration `written` made of computed carry k; -1: of the initial value. */
int oly_loop_slot_written(const oly_step *loop, int k, int64_t written);
#endif
