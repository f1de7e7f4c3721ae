/* SPDX-License-Identifier: BSD-3-Clause */
/* Where time goes: ranges of the program in the timeline (OLYMPUS_TIMELINE, docs/timeline.md), and progress lines.
 * Included by <olympus.h>; programs include that one. */
#ifndef OLYMPUS_TIMELINE_H
#define OLYMPUS_TIMELINE_H

#include <olympus/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* -- ranges ---------------------------------------------------------------------------------------------------------
 * A range is a part of the program with a name, such as "epoch 3": a slice of its thread in the timeline, which encloses what happens
 * meanwhile, and an event of the flight recorder. Calls are queued, so a range that is to include their work ends with
 * oly_block_until_ready. Ranges cost 0.1 us. Nothing communicates; errors are none of theirs: a range closes however its block ends. */

/* Opens and closes a range of this thread. They nest; a pop without a push does nothing.
 *   name   of which the first 63 bytes are used; it may be freed after the call. NULL: "range"
 *   ranks  any rank, any thread, at any time */
OLY_API void oly_range_push(const char *name);
OLY_API void oly_range_pop(void);
#define oly_range_push(...) OLY_AT(oly_range_push)(__VA_ARGS__)
#define oly_range_pop(...)  OLY_AT(oly_range_pop)(__VA_ARGS__)

/* OLY_RANGE("load") { ... } is a range around the block, which also ends where `return`, `break` (out of the block), `continue` (the
 * same) or `goto` leave it. */
#define OLY_RANGE(name)              OLY_RANGE_NAMED_(name, __LINE__)
#define OLY_RANGE_NAMED_(name, line) OLY_RANGE_FOR_(name, line)
#define OLY_RANGE_FOR_(name, line)                                                                                     \
    for (int oly_range_##line __attribute__((cleanup(oly_range_end_))) = (oly_range_push(name), 1); oly_range_##line;  \
         oly_range_##line = 0)
static inline void oly_range_end_(const int *open)
{
    (void)open;
    (oly_range_pop)();
}

/* -- progress ------------------------------------------------------------------------------------------------------- */
typedef struct oly_progress_options {
    char first_;      /* not used: lets the macro begin the list */
    const char *note; /* added to the line: "loss 0.25" */
} oly_progress_options;

/* Says how far a long loop is: oly_progress("training", step, steps, .note = text) prints on standard error
 *      training: 1200 of 5000 (24 %), 85.3/s, 0:44 left, loss 0.25
 * On a terminal one line that is written anew five times a second at most, cut to the terminal's width; anywhere else a line after 10 s,
 * and then after intervals that double up to 10 minutes. A loop that is over sooner (2 s on a terminal) prints nothing. Another `what`,
 * a smaller `done`, or the end (done == total) completes the line. A call that prints nothing takes 20 ns.
 *   what   the loop, a few words; NULL: "progress"
 *   done   rounds that are over
 *   total  of all rounds; 0: unknown, then without percentage and time left
 *   ranks  any rank, alone; only process 0 prints. OLYMPUS_PROGRESS=0: nobody */
OLY_API void oly_progress_with(const char *what, int64_t done, int64_t total, oly_progress_options options);
#define oly_progress(...) oly_progress_(__VA_ARGS__, )
#define oly_progress_(what, done, total, ...)                                                                          \
    OLY_AT_AS(oly_progress, oly_progress_with)(what, done, total, OLY_OPTIONS_(oly_progress_options, __VA_ARGS__))
#define oly_progress_with(...) OLY_AT_AS(oly_progress, oly_progress_with)(__VA_ARGS__)

#ifdef __cplusplus
}
#endif
#endif
