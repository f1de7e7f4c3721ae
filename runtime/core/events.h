/* SPDX-License-Identifier: BSD-3-Clause */
/* What happens in this process: one interface for two readers.
 *
 *   flight recorder   always on: the last 1,000 events, in fixed memory, without locks or allocation; written at 10 to 25 ns each:
 *                     calls, exchanges, long waits, meetings, planning, new memory, ranges, failures
 *   timeline          OLYMPUS_TIMELINE (timeline.h): all of these and every step, chunk and message, in buffers of each thread
 *
 * Events that only the timeline takes are behind oly_timeline_shows(), one predictable branch. Callable from every layer. */
#ifndef OLY_CORE_EVENTS_H
#define OLY_CORE_EVENTS_H
#include "core/error.h"
#include "core/ticks.h"

typedef enum oly_event_kind {
    OLY_EVENT_NONE,
#define OLY_EVENT(name, text, category, form, a, b, c) OLY_EVENT_##name,
#include "core/events.def"
#undef OLY_EVENT
    OLY_N_EVENTS
} oly_event_kind;

typedef enum oly_event_phase { OLY_EVENT_INSTANT, OLY_EVENT_BEGIN, OLY_EVENT_FINISH } oly_event_phase;

/* What events.def says of a kind. */
typedef struct oly_event_row {
    const char *name, *category;
    bool has_text;
    const char *a, *b, *c;
} oly_event_row;
extern const oly_event_row oly_event_rows[OLY_N_EVENTS];

/* -- recording ------------------------------------------------------------------------------------------------------------ */

/* An event of this process, of the call at `site`. From any thread, also from signal handlers. */
void oly_event_at(oly_event_kind kind, oly_event_phase phase, oly_site site, int64_t a, int64_t b, int64_t c);
/* The same with a text, of which the first OLY_EVENT_TEXT - 1 bytes are kept, and the call of this thread. */
void oly_event_text(oly_event_kind kind, oly_event_phase phase, const char *text, int64_t a, int64_t b);
/* A call is issued: by one thread at a time. Most take their time from the event before them: 4 ns instead of 17. */
void oly_event_call(oly_site site);

/* -- reading: the flight recorder ------------------------------------------------------------------------------------------ */
enum { OLY_EVENTS_KEPT = 1000, OLY_EVENT_TEXT = 64 };

typedef struct oly_event_record {
    int64_t ticks; /* oly_ticks_to_ns; of calls: of one of the last eight calls, or of a later event before it */
    uint8_t kind, phase;
    uint16_t thread; /* 0: the first that recorded an event */
    int32_t line;
    int64_t a, b, c;
    const char *call, *file; /* of the program's call, "" if none; never freed while the process lives */
    char text[OLY_EVENT_TEXT];
} oly_event_record;

/* Walks the last events, oldest first:
 *     oly_event_cursor c = oly_events_recent();
 *     while (oly_events_next(&c, &event)) ...
 * Async-signal-safe; other threads may go on recording: what they overwrite meanwhile is left out. */
typedef struct oly_event_cursor {
    uint64_t at[2], end[2]; /* in each ring */
    oly_event_record next[2];
    bool ready[2];
} oly_event_cursor;
oly_event_cursor oly_events_recent(void);
bool oly_events_next(oly_event_cursor *cursor, oly_event_record *event);
/* Number of events recorded since the start. */
uint64_t oly_events_count(void);
/* The number of this thread among those that have recorded events. */
int oly_event_thread(void);
#endif
