/* SPDX-License-Identifier: BSD-3-Clause */
/* The flight recorder: two rings of slots. See events.h.
 *
 *   calls    written by the thread whose turn it is to call Olympus, so that its position needs no atomic addition; slots are small
 *   others   written by any thread, which takes the next position by an atomic addition
 *
 * A slot has the number of its event, 0 while it is being written; a reader copies a slot and reads the number again. A thread that
 * stops in the middle of a slot until the ring has come round may mix two events, but each word is one that was written: pointers
 * are valid, texts end. The reader merges the rings by time. */
#include "core/events.h"
#include "core/timeline.h"
#include <string.h>

const oly_event_row oly_event_rows[OLY_N_EVENTS] = {
    [OLY_EVENT_NONE] = {"none", "none", false, "", "", ""},
#define SITE                                           false
#define TEXT                                           true
#define OLY_EVENT(name, text, category, form, a, b, c) [OLY_EVENT_##name] = {text, category, form, a, b, c},
#include "core/events.def"
#undef OLY_EVENT
#undef SITE
#undef TEXT
};

/* Slots: more than are kept, since the oldest are being overwritten. */
enum { SLOTS = 1024, WORDS = OLY_EVENT_TEXT / 8 };
enum { CALLS, OTHERS };

typedef struct slot {
    _Atomic uint64_t number; /* from 1; 0: being written, or empty */
    _Atomic int64_t ticks;
    _Atomic uint64_t head; /* kind, phase, thread, line */
    _Atomic int64_t a, b, c;
    _Atomic(const char *) call, file;
    _Atomic uint64_t text[WORDS];
} slot;

typedef struct call_slot {
    _Atomic uint64_t head; /* the call's number, as far as 32 bits hold it, and its line; 0: being written, or empty */
    _Atomic int64_t ticks;
    _Atomic(const char *) call, file;
} call_slot;

static _Atomic uint64_t counts[2];
static slot others[SLOTS] __attribute__((aligned(64)));
static call_slot calls[SLOTS] __attribute__((aligned(64)));

#define SET(field, value) atomic_store_explicit(&(field), value, memory_order_relaxed)
#define GET(field)        atomic_load_explicit(&(field), memory_order_relaxed)

/* -- threads ----------------------------------------------------------------------------------------------------------------- */

static atomic_int n_threads;
static _Thread_local int own_thread = -1;

int oly_event_thread(void)
{
    if (__builtin_expect(own_thread < 0, 0))
        own_thread = atomic_fetch_add(&n_threads, 1);
    return own_thread;
}

/* -- time --------------------------------------------------------------------------------------------------------------------
 * Reading the clock costs more than the rest of a call's event and several percent of a small call, so a call takes the time of
 * the event before it, and every eighth looks. */

enum { CALLS_PER_LOOK = 8 };
static _Atomic int64_t latest;

static inline int64_t look(void)
{
    int64_t now = oly_ticks();
    SET(latest, now);
    return now;
}

/* -- writing ----------------------------------------------------------------------------------------------------------------- */

static void add_to_timeline(oly_event_kind kind, oly_event_phase phase, int label, int64_t a, int64_t b, int64_t c)
{
    int64_t now = oly_ticks();
    oly_timeline_add((oly_span){.begin = now,
                                .end = now,
                                .kind = (uint8_t)kind,
                                .phase = (uint8_t)phase,
                                .device = -1,
                                .label = label,
                                .a = a,
                                .b = b,
                                .c = c});
}

static inline uint64_t call_head(uint64_t n, int line)
{
    return (n & 0xffffffff) << 32 | (uint64_t)(uint32_t)line;
}

void oly_event_call(oly_site site)
{
    uint64_t n = GET(counts[CALLS]) + 1;
    call_slot *s = &calls[n % SLOTS];
    SET(s->head, 0);
    atomic_thread_fence(memory_order_release);
    SET(s->ticks, n % CALLS_PER_LOOK ? GET(latest) : look());
    SET(s->call, site.call);
    SET(s->file, site.file);
    atomic_store_explicit(&s->head, call_head(n, site.line), memory_order_release);
    SET(counts[CALLS], n);
    if (oly_timeline_spans())
        add_to_timeline(OLY_EVENT_CALL, OLY_EVENT_INSTANT, oly_label_of_site(site), (int64_t)n, 0, 0);
}

/* Begins an event, and writes what all have. */
static slot *begin(oly_event_kind kind, oly_event_phase phase, oly_site site, uint64_t *number)
{
    uint64_t n = *number = atomic_fetch_add_explicit(&counts[OTHERS], 1, memory_order_relaxed) + 1;
    slot *s = &others[n % SLOTS];
    SET(s->number, 0);
    atomic_thread_fence(memory_order_release);
    SET(s->ticks, look());
    SET(s->head, (uint64_t)kind | (uint64_t)phase << 8 | (uint64_t)(oly_event_thread() & 0xffff) << 16 |
                     (uint64_t)(uint32_t)site.line << 32);
    SET(s->call, site.call);
    SET(s->file, site.file);
    return s;
}

static void end(slot *s, uint64_t number)
{
    atomic_store_explicit(&s->number, number, memory_order_release);
}

void oly_event_at(oly_event_kind kind, oly_event_phase phase, oly_site site, int64_t a, int64_t b, int64_t c)
{
    uint64_t number;
    slot *s = begin(kind, phase, site, &number);
    SET(s->a, a);
    SET(s->b, b);
    SET(s->c, c);
    if (oly_event_rows[kind].has_text)
        SET(s->text[0], 0);
    end(s, number);
    if (oly_timeline_spans())
        add_to_timeline(kind, phase, oly_label_of_site(site), a, b, c);
}

void oly_event_text(oly_event_kind kind, oly_event_phase phase, const char *text, int64_t a, int64_t b)
{
    uint64_t words[WORDS] = {0}, number;
    memcpy(words, text, strnlen(text, sizeof words - 1));
    slot *s = begin(kind, phase, oly_current_site(), &number);
    SET(s->a, a);
    SET(s->b, b);
    SET(s->c, 0);
    for (int k = 0; k < WORDS; k++)
        SET(s->text[k], words[k]);
    end(s, number);
    if (oly_timeline_spans() && kind != OLY_EVENT_SIGNAL) /* a handler may neither allocate nor take a lock */
        add_to_timeline(kind, phase, oly_label_of_text(text), a, b, 0);
}

/* -- reading ----------------------------------------------------------------------------------------------------------------- */

/* False: it is being overwritten. */
static bool copy_call(uint64_t n, oly_event_record *e)
{
    call_slot *s = &calls[n % SLOTS];
    uint64_t head = atomic_load_explicit(&s->head, memory_order_acquire);
    *e = (oly_event_record){.ticks = GET(s->ticks),
                            .kind = OLY_EVENT_CALL,
                            .line = (int32_t)head,
                            .a = (int64_t)n,
                            .call = GET(s->call),
                            .file = GET(s->file)};
    atomic_thread_fence(memory_order_acquire);
    return head >> 32 == (n & 0xffffffff) && GET(s->head) == head;
}

static bool copy_other(uint64_t n, oly_event_record *e)
{
    slot *s = &others[n % SLOTS];
    uint64_t number = atomic_load_explicit(&s->number, memory_order_acquire), head = GET(s->head), words[WORDS];
    *e = (oly_event_record){.ticks = GET(s->ticks),
                            .kind = (uint8_t)head,
                            .phase = (uint8_t)(head >> 8),
                            .thread = (uint16_t)(head >> 16),
                            .line = (int32_t)(head >> 32),
                            .a = GET(s->a),
                            .b = GET(s->b),
                            .c = GET(s->c),
                            .call = GET(s->call),
                            .file = GET(s->file)};
    for (int k = 0; k < WORDS; k++)
        words[k] = GET(s->text[k]);
    if (e->kind < OLY_N_EVENTS && oly_event_rows[e->kind].has_text)
        memcpy(e->text, words, sizeof e->text - 1);
    atomic_thread_fence(memory_order_acquire);
    return number == n && GET(s->number) == n && e->kind < OLY_N_EVENTS;
}

static void fill(oly_event_cursor *c, int ring)
{
    while (!c->ready[ring] && c->at[ring] <= c->end[ring]) {
        uint64_t n = c->at[ring]++;
        c->ready[ring] = ring == CALLS ? copy_call(n, &c->next[ring]) : copy_other(n, &c->next[ring]);
    }
}

/* At the first of the last 1,000 of this process. */
oly_event_cursor oly_events_recent(void)
{
    oly_event_cursor c;
    uint64_t there = 0;
    for (int r = 0; r < 2; r++) {
        c.end[r] = GET(counts[r]);
        c.at[r] = c.end[r] > SLOTS ? c.end[r] - SLOTS + 1 : 1;
        c.ready[r] = false;
        c.next[r].kind = OLY_EVENT_NONE;
        there += c.end[r] + 1 - c.at[r];
    }
    oly_event_record e;
    while (there > OLY_EVENTS_KEPT && oly_events_next(&c, &e))
        there--;
    return c;
}

bool oly_events_next(oly_event_cursor *c, oly_event_record *event)
{
    fill(c, CALLS);
    fill(c, OTHERS);
    if (!c->ready[CALLS] && !c->ready[OTHERS])
        return false;
    /* a call with the time of another event comes after it */
    int first =
        c->ready[OTHERS] && (!c->ready[CALLS] || c->next[OTHERS].ticks <= c->next[CALLS].ticks) ? OTHERS : CALLS;
    *event = c->next[first];
    c->ready[first] = false;
    return true;
}

uint64_t oly_events_count(void)
{
    return GET(counts[CALLS]) + GET(counts[OTHERS]);
}
