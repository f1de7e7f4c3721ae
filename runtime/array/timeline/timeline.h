/* SPDX-License-Identifier: BSD-3-Clause */
/* Writing the timeline (core/timeline.h) as a trace that Perfetto and Chrome read: docs/timeline.md. Begun and ended by
 * runtime/array/start.c. Private to this folder and start.c. */
#ifndef OLY_ARRAY_TIMELINE_TIMELINE_H
#define OLY_ARRAY_TIMELINE_TIMELINE_H
#include "communicator.h"
#include "core/text.h"
#include "core/timeline.h"

/* -- merge.c --------------------------------------------------------------------------------------------------------------- */
/* With OLYMPUS_TIMELINE or OLYMPUS_MEASURE: begins to record; compares clocks, so it is called by all ranks. fails OLY_IO where rank 0
 * cannot write the file. */
oly_status oly_timeline_start(void);
/* When all work has ended, before communication does: rank 0 writes the trace of all ranks or, where ranks cannot be reached, each its
 * own. together: this rank can still communicate. Problems are reported, and fail nothing. */
void oly_timeline_finish(bool together);
void oly_timeline_stop(void); /* forgets everything */

/* -- spans.c --------------------------------------------------------------------------------------------------------------- */
/* Calls see(context, span, thread) for every span of this process in the order of their beginnings, outer ones first; halves have become
 * spans, `phase` OLY_EVENT_BEGIN meaning that the end is missing. fails OLY_MEMORY. */
typedef oly_status oly_span_visitor(void *context, const oly_span *span, int thread);
oly_status oly_timeline_walk(oly_span_visitor *see, void *context);

/* -- trace_events.c -------------------------------------------------------------------------------------------------------- */
/* What the times of this process are in the trace. */
typedef struct oly_trace_clock {
    oly_clock_offset first, last; /* of rank 0's clock; `last` the same if there was only one */
    int64_t epoch;                /* of rank 0's clock: where the trace begins */
} oly_trace_clock;

/* Where text goes. */
typedef struct oly_trace_sink {
    oly_status (*write)(struct oly_trace_sink *sink, const char *bytes, size_t n);
} oly_trace_sink;

/* Writes the events of this process: objects separated by ",\n", the first without one in front if it is `first`. */
oly_status oly_trace_write(oly_trace_sink *sink, const oly_trace_clock *clock, bool first);

/* -- rescue.c -------------------------------------------------------------------------------------------------------------- */
/* From here on oly_timeline_rescue works: calls write() in a thread of its own, once. */
oly_status oly_rescue_begin(void (*write)(void));
void oly_rescue_end(void);
#endif
