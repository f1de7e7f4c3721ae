/* SPDX-License-Identifier: BSD-3-Clause */
/* Replay of loops: where an iteration is nothing but launches, several of them are recorded once and launched as one, where the executor
 * can (executor.h, on GPUs as a CUDA graph):
 *
 *      counted loops     iteration 0 | graph: 1, 2, ... 8 | the same graph: 9, ... 16 | 17 | 18
 *      with a condition  iteration 0 | graph: while the condition holds: two iterations | the host reads how many there were
 *
 * A graph has fixed buffers, so it has as many iterations as it takes until carries are in the same buffers again (the period: two, or more where
 * carries take over others). The first iteration reads the initial values, elsewhere, and is launched by itself. Of a loop with a condition and
 * a small body the second iteration of the last pair may be in vain; it has no effect, as those of speculation.h. OLYMPUS_DISABLE=loop-graphs and
 * conditional-graphs turn the two off. Private to runtime/run. */
#ifndef OLY_RUN_LOOP_REPLAY_H
#define OLY_RUN_LOOP_REPLAY_H
#include "run/interpret.h"
#include "run/prepare_cpu.h"

enum { OLY_MOST_PERIOD = 4 }; /* of a loop with a condition */

/* Of a loop; in the plan's arena. */
typedef struct oly_loop_replay {
    const oly_step *step;
    int64_t first; /* the first iteration whose buffers come again */
    int period;    /* after so many iterations */
    int unrolled;  /* iterations of a graph: a multiple of the period */
    bool exact;    /* of a loop with a condition: no iteration may be in vain */
    double work;   /* of an iteration: element-operations */
    void *kept;    /* the executor's; NULL: nothing */
} oly_loop_replay;

/* Finds the loops of a prepared plan that may be replayed. fails OLY_MEMORY. */
oly_status oly_loop_replay_prepare(oly_plan *plan);
/* Gives back what the executor keeps for the plan, which nothing runs any more. */
void oly_loop_replay_forget(const oly_plan *plan);

/* Runs iterations from the i-th on: *done of them, 0: none. Of a loop with a condition, *decided: *more says whether another follows
 * those. */
oly_status oly_loop_replay_run(oly_run *r, const oly_step *s, int64_t i, int64_t *done, bool *decided, bool *more);
#endif
