/* SPDX-License-Identifier: BSD-3-Clause */
/* The timeline in memory: spans and marks of each thread, in chunks up to a limit, and the labels that say what they are. It exists
 * with OLYMPUS_TIMELINE, and without spans with OLYMPUS_MEASURE; runtime/array/timeline writes it. Everything here is behind
 * oly_timeline_mode, which is set while no other thread runs. Callable from every layer. */
#ifndef OLY_CORE_TIMELINE_H
#define OLY_CORE_TIMELINE_H
#include "core/events.h"
#include <stdatomic.h>

/* What is recorded: nothing, times of steps, or also spans. */
enum { OLY_TIMELINE_OFF, OLY_TIMELINE_STEPS, OLY_TIMELINE_SPANS };
extern int oly_timeline_mode;
static inline bool oly_times_steps(void)
{
    return __builtin_expect(oly_timeline_mode != OLY_TIMELINE_OFF, 0);
}

/* -- labels ---------------------------------------------------------------------------------------------------------------- */

/* What a span is: texts, copied. */
typedef struct oly_label_texts {
    const char *name;   /* "halo exchange" */
    const char *detail; /* "16 bytes, float32[102]"; NULL: none */
    oly_site site;      /* of the program's call; file NULL: none */
    uint64_t plan;      /* and the number of the step, to tell equal texts apart; 0: not a step */
    int step;
    double predicted; /* seconds; 0: unknown */
} oly_label_texts;

typedef struct oly_label {
    const char *name, *detail, *call, *file; /* owned, never NULL */
    int line, step;
    uint64_t plan, hash;
    double predicted;
    struct oly_label *next;            /* of its bucket */
    _Atomic int64_t runs, ticks, most; /* of the step: how often it ran, how long in all, and at most */
} oly_label;

/* The number of a label, from 1; the same for equal texts. 0: no room. */
int oly_label_of(const oly_label_texts *texts);
int oly_label_of_text(const char *name);
int oly_label_of_site(oly_site site);
const oly_label *oly_label_get(int label); /* NULL: of 0 */
int oly_labels(void);                      /* the largest number */
/* A step has run. */
void oly_label_ran(int label, int64_t ticks);
/* How often, and seconds on average and at most; runs 0: it has not been timed. */
typedef struct oly_measured {
    int64_t runs;
    double mean, most;
} oly_measured;
oly_measured oly_label_measured(int label);

/* -- spans ----------------------------------------------------------------------------------------------------------------- */

typedef struct oly_span {
    int64_t begin, end; /* ticks */
    uint8_t kind;       /* oly_event_kind */
    uint8_t phase;      /* OLY_EVENT_INSTANT: a span; BEGIN, FINISH: half of one of this thread */
    int16_t device;     /* local; -1: none */
    int32_t label;      /* 0: none */
    int64_t a, b, c;
} oly_span;

/* Adds one to the buffer of this thread; nothing in quiet times. */
void oly_timeline_add(oly_span span);
/* Values that change, at this moment. */
static inline void oly_timeline_count(oly_event_kind kind, int64_t a, int64_t b)
{
    int64_t now = oly_ticks();
    oly_timeline_add((oly_span){.begin = now, .end = now, .kind = (uint8_t)kind, .device = -1, .a = a, .b = b});
}
/* Part of a step on a device, which took from `begin` until now; joined with the part before it, if that is of the same execution
 * (a number that no other has). */
void oly_timeline_part(int label, int device, int64_t execution, int64_t begin);
/* How many enclosing loops of this thread are in iterations that are not shown. */
extern _Thread_local int oly_timeline_quiet;
static inline bool oly_timeline_shows(void)
{
    return oly_times_steps() && oly_timeline_quiet == 0;
}
static inline bool oly_timeline_spans(void)
{
    return __builtin_expect(oly_timeline_mode == OLY_TIMELINE_SPANS, 0) && oly_timeline_quiet == 0;
}
/* Is iteration i of a loop shown? The first 128, then ever fewer: 64 of each doubling. */
static inline bool oly_timeline_shows_iteration(int64_t i)
{
    return i < 128 || (i & (((int64_t)1 << (57 - __builtin_clzll((uint64_t)i))) - 1)) == 0;
}
/* Of runs the first 2^log are shown, then half as many of each doubling, log from 1 to 7: the number of the next after i, which is shown. */
static inline int64_t oly_timeline_next_run(int64_t i, int log)
{
    return i < (int64_t)1 << log ? i + 1 : i + ((int64_t)1 << (64 - log - __builtin_clzll((uint64_t)i)));
}

/* -- start, reading, end --------------------------------------------------------------------------------------------------- */

/* limit: bytes for spans and labels. fails OLY_MEMORY. */
oly_status oly_timeline_begin(int mode, int64_t limit);
void oly_timeline_end(void); /* while no other thread runs */
int oly_timeline_threads(void);
const char *oly_timeline_thread_name(int thread);
void oly_timeline_name_thread(const char *name); /* this one; static */
int64_t oly_timeline_dropped(void);              /* spans for which there was no room */
/* Runs of plans of which only some are shown: this one is not; and how many were not. */
extern _Atomic int64_t oly_timeline_left_out;
static inline void oly_timeline_leave_out_run(void)
{
    int64_t n = atomic_load_explicit(&oly_timeline_left_out, memory_order_relaxed);
    atomic_store_explicit(&oly_timeline_left_out, n + 1,
                          memory_order_relaxed); /* cheaper than exact, should threads call at once */
}
/* Walks the spans of a thread, also while it adds some: `at` begins as 0. NULL: there are no more. By one thread at a time, which may
 * change spans. */
oly_span *oly_timeline_next(int thread, int64_t *at);

/* Set where the timeline is to be written (runtime/array/timeline): writes what this process has, because it is ending. From any thread,
 * also from signal handlers; returns after a few seconds at most. */
extern void (*oly_timeline_rescue)(void);
#endif
