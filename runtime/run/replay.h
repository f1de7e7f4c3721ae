/* SPDX-License-Identifier: BSD-3-Clause */
/* Replay: maximal runs of steps that the devices compute without the host are recorded once and launched as one, where the executor can
 * (executor.h, on GPUs as a CUDA graph). OLYMPUS_DISABLE=graph-replay turns it off. Private to runtime/run. */
#ifndef OLY_RUN_REPLAY_H
#define OLY_RUN_REPLAY_H
#include "run/interpret.h"
#include "run/prepare_cpu.h"

/* Steps first, first + 1, ... of a block; in the plan's arena. */
typedef struct oly_segment {
    const oly_block *block;
    int first, n;
    void *kept; /* the executor's; NULL: nothing */
} oly_segment;

/* Is the step nothing but launches? Of steps that compute, copy or reduce; the others are not. */
bool oly_replays(const oly_plan *plan, const oly_step *s);
/* Finds the segments of a prepared plan. fails OLY_MEMORY. */
oly_status oly_replay_prepare(oly_plan *plan);
/* Gives back what the executor keeps for the plan, which nothing runs any more. */
void oly_replay_forget(const oly_plan *plan);

/* Runs the segment as one launch: *done. Not done: the steps are to be run one by one. */
oly_status oly_replay_run(oly_run *r, oly_segment *s, bool *done);
static inline oly_segment *oly_segment_at(const oly_step *step)
{
    return step->prepared ? step->prepared->segment : NULL;
}
#endif
