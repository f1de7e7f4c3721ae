/* SPDX-License-Identifier: BSD-3-Clause */
/* Times of steps, for the timeline and for explanations of functions that have run: labels of a plan's steps, and spans of steps,
 * of their parts on devices and of iterations. Called by the interpreter and the executor only where oly_times_steps(), and by each
 * of these functions nothing is allocated but the timeline's chunks. Private to runtime/run. */
#ifndef OLY_RUN_TIMED_STEPS_H
#define OLY_RUN_TIMED_STEPS_H
#include "core/timeline.h"
#include "run/interpret.h"

/* Gives the plan's steps labels. fails OLY_MEMORY. */
oly_status oly_label_steps(oly_plan *plan);

/* Where recording all runs would take more than 2 % of the plan's predicted time: the logarithm of how many are shown before only some are
 * (oly_timeline_next_run), less for plans of many events. 0: all are shown. */
int oly_shown_runs(const oly_plan *plan);
static inline bool oly_run_is_timed(const oly_run *r)
{
    return oly_times_steps() && !r->job.quiet;
}

/* A step that is running: its parts on devices are shown, as r->label says, and those of the steps inside it. */
typedef struct oly_timed_step {
    int64_t begin; /* 0: not timed */
    int label, outer_label;
    int64_t outer_execution;
} oly_timed_step;
oly_timed_step oly_timed_step_begins(oly_run *r, const oly_step *s);
void oly_timed_step_ends(oly_run *r, const oly_step *s, const oly_timed_step *t);
void oly_timed_run_ends(const oly_run *r, int64_t begun);

/* Iterations of a loop, of which only some are shown one by one (oly_timeline_shows_iteration); between those one span stands for all.
 * Steps of iterations that are not shown are not timed. */
typedef struct oly_iterations {
    bool on, hides;
    int label;
    int64_t first, begin; /* of the span that is open */
} oly_iterations;
oly_iterations oly_iterations_begin(const oly_run *r, const oly_step *s);
void oly_iteration_shows_or_hides(oly_iterations *w, int64_t i);
void oly_iteration_is_over(oly_iterations *w, int64_t i);
/* After iteration i - 1. */
void oly_iterations_end(oly_iterations *w, int64_t i);
static inline void oly_iteration_begins(oly_iterations *w, int64_t i)
{
    if (w->on)
        oly_iteration_shows_or_hides(w, i);
}
static inline void oly_iteration_ends(oly_iterations *w, int64_t i)
{
    if (w->on)
        oly_iteration_is_over(w, i);
}

/* Of a step whose computation takes less than about 5 us on all devices, they are shown together. */
void oly_show_together(const oly_run *r, int64_t begin);
static inline void oly_show_part(const oly_run *r, int device, int64_t begin)
{
    oly_timeline_part(r->label, r->plan->devices[device], r->execution, begin);
}
#endif
