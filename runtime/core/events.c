/* SPDX-License-Identifier: BSD-3-Clause */
/* The flight recorder: two rings of slots. See events.h.
 *
 *   calls    written by the thread whose turn it is to call Olympus: its position needs no atomic addition
 *   others   written by any thread, which takes the next position by an atomic addition
 *
 * A slot has the number of its event, 0 while it is being written; a reader copies a slot and reads the number again. A thread that
 * stops in the middle of a slot until the ring has come round may mix two events, never more than numbers: pointers are those of one
 * of them, texts end. The reader merges the rings by time. */
#include "core/events.h"
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

enum {
    SLOTS = 1024,
    WORDS = OLY_EVENT_TEXT / 8,
    CALLS = 0,
    OTHERS = 1
}; /* more than are kept: the oldest are being overwritten */

typedef struct slot {
    _Atomic uint64_t number; /* from 1; 0: being written, or empty */
    _Atomic int64_t ticks;
    _Atomic uint64_t head; /* kind, phase, thread, line */
    _Atomic int64_t a, b, c;
    _Atomic(const char *) call, file;
    _Atomic uint64_t text[WORDS];
} slot;

static struct {
    _Atomic uint64_t count;
    slot slots[SLOTS];
} rings[2] __attribute__((aligned(64)));

/* -- threads ----------------------------------------------------------------------------------------------------------------- */

static atomic_int n_threads;
static _Thread_local int own_thread = -1;

int oly_event_thread(void)
{
    if (__builtin_expect(own_thread < 0, 0))
        own_thread = atomic_fetch_add(&n_threads, 1);
    return own_thread;
}

/* -- writing ----------------------------------------------------------------------------------------------------------------- */

#define SET(field, value) atomic_store_explicit(&(field), value, memory_order_relaxed)
#define GET(field)        atomic_load_explicit(&(field), memory_order_relaxed)

static uint64_t head_of(oly_event_kind kind, oly_event_phase phase, int line)
{
    return (uint64_t)kind | (uint64_t)phase << 8 | (uint64_t)(oly_event_thread() & 0xffff) << 16 |
           (uint64_t)(uint32_t)line << 32;
}

/* Begins event number n of the ring, and writes what all events have. */
static inline slot *begin(int ring, uint64_t n, uint64_t head, oly_site site)
{
    slot *s = &rings[ring].slots[(n - 1) % SLOTS];
    SET(s->number, 0);
    atomic_thread_fence(memory_order_release);
    SET(s->ticks, oly_ticks());
    SET(s->head, head);
    SET(s->call, site.call);
    SET(s->file, site.file);
    return s;
}

static inline void end(slot *s, uint64_t n)
{
    atomic_store_explicit(&s->number, n, memory_order_release);
}

static uint64_t next_number(void)
{
    return atomic_fetch_add_explicit(&rings[OTHERS].count, 1, memory_order_relaxed) + 1;
}

void oly_event_call(oly_site site, int64_t number, int64_t plan)
{
    uint64_t n = GET(rings[CALLS].count) + 1;
    slot *s = begin(CALLS, n, head_of(OLY_EVENT_CALL, OLY_EVENT_INSTANT, site.line), site);
    SET(s->a, number);
    SET(s->b, plan);
    end(s, n);
    SET(rings[CALLS].count, n);
}

void oly_event_at(oly_event_kind kind, oly_event_phase phase, oly_site site, int64_t a, int64_t b, int64_t c)
{
    uint64_t n = next_number();
    slot *s = begin(OTHERS, n, head_of(kind, phase, site.line), site);
    SET(s->a, a);
    SET(s->b, b);
    SET(s->c, c);
    if (oly_event_rows[kind].has_text)
        SET(s->text[0], 0);
    end(s, n);
}

void oly_event_text(oly_event_kind kind, oly_event_phase phase, const char *text, int64_t a, int64_t b)
{
    uint64_t words[WORDS] = {0}, n = next_number();
    memcpy(words, text, strnlen(text, sizeof words - 1));
    oly_site site = oly_current_site();
    slot *s = begin(OTHERS, n, head_of(kind, phase, site.line), site);
    SET(s->a, a);
    SET(s->b, b);
    SET(s->c, 0);
    for (int k = 0; k < WORDS; k++)
        SET(s->text[k], words[k]);
    end(s, n);
}

/* -- reading ----------------------------------------------------------------------------------------------------------------- */

/* False: it is being overwritten. */
static bool copy(int ring, uint64_t n, oly_event_record *e)
{
    slot *s = &rings[ring].slots[(n - 1) % SLOTS];
    if (atomic_load_explicit(&s->number, memory_order_acquire) != n)
        return false;
    uint64_t head = GET(s->head), words[WORDS];
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
    return GET(s->number) == n && e->kind < OLY_N_EVENTS;
}

static void fill(oly_event_cursor *c, int ring)
{
    while (!c->ready[ring] && c->at[ring] <= c->end[ring])
        c->ready[ring] = copy(ring, c->at[ring]++, &c->next[ring]);
}

/* The first events of both rings that belong to the last 1,000 of this process. */
oly_event_cursor oly_events_recent(void)
{
    oly_event_cursor c;
    for (int r = 0; r < 2; r++) {
        c.end[r] = GET(rings[r].count);
        c.at[r] = c.end[r] > SLOTS ? c.end[r] - SLOTS + 1 : 1;
        c.ready[r] = false;
        c.next[r].kind = OLY_EVENT_NONE;
    }
    uint64_t there = c.end[0] - c.at[0] + 1 + c.end[1] - c.at[1] + 1;
    for (oly_event_record e; there > OLY_EVENTS_KEPT; there--)
        if (!oly_events_next(&c, &e))
            break;
    return c;
}

bool oly_events_next(oly_event_cursor *c, oly_event_record *event)
{
    fill(c, 0);
    fill(c, 1);
    if (!c->ready[0] && !c->ready[1])
        return false;
    int first = !c->ready[0] || (c->ready[1] && c->next[1].ticks < c->next[0].ticks);
    *event = c->next[first];
    c->ready[first] = false;
    return true;
}

uint64_t oly_events_count(void)
{
    return GET(rings[CALLS].count) + GET(rings[OTHERS].count);
}
