/* SPDX-License-Identifier: BSD-3-Clause */
/* See trace_summary.h. Events are read one by one: a timeline may have millions. */
#define _GNU_SOURCE /* memmem, strverscmp */
#include "trace_summary.h"
#include "core/hash.h"
#include "file/json.h"
#include "oly.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 1 << 30, ROOM = 1 << 13, SHOWN = 12, MOST_RANKS = 1 << 20, DEVICES = 3000 };

/* Sums of the events of one kind. */
typedef struct group {
    char *name; /* owned; NULL: empty */
    int64_t count, bytes;
    double time, predicted, from, to; /* us; of tracks also their begin and end */
    double predicted_of;              /* the time of those that have a prediction */
} group;

typedef struct table {
    group of[ROOM];
    int n, missed; /* groups for which there was no room */
} table;

typedef struct summary {
    table steps, lines, exchanges, devices, waits, ranges, compiling;
    double from, to; /* us */
    int64_t events;
    int64_t ranks; /* the highest, and one */
} summary;

static group *find(table *t, const char *name)
{
    uint64_t h = oly_hash_text(0, name);
    for (int k = 0; k < ROOM; k++) {
        group *g = &t->of[(h + (uint64_t)k) % ROOM];
        if (g->name && strcmp(g->name, name) != 0)
            continue;
        if (!g->name) {
            if (t->n >= ROOM / 2 || !(g->name = oly_strdup(name))) {
                t->missed++;
                return NULL;
            }
            t->n++;
        }
        return g;
    }
    return NULL;
}

static void add(table *t, const char *name, double begin, double time, int64_t bytes, double predicted)
{
    group *g = find(t, name);
    if (!g)
        return;
    g->from = g->count ? fmin(g->from, begin) : begin;
    g->to = g->count ? fmax(g->to, begin + time) : begin + time;
    g->count++;
    g->bytes += bytes;
    g->time += time;
    if (predicted > 0) {
        g->predicted += predicted;
        g->predicted_of += time;
    }
}

/* Terminals act on control characters. */
static const char *harmless(char *copy, size_t size, const char *text)
{
    size_t n = 0;
    for (; text[n] && n + 1 < size; n++)
        copy[n] = (unsigned char)text[n] < 0x20 || text[n] == 0x7f ? '?' : text[n];
    copy[n] = 0;
    return copy;
}

static double bounded(double x)
{
    return isfinite(x) && fabs(x) < 1e15 ? x : 0;
}

static void add_event(summary *s, const oly_json *e)
{
    char name[200], key[240], line[200];
    const oly_json *arguments = oly_json_get(e, "args");
    const char *category = oly_json_text(e, "cat", "");
    double begin = bounded(oly_json_number(e, "ts", 0)), time = bounded(oly_json_number(e, "dur", 0));
    double predicted = bounded(oly_json_number(arguments, "predicted_us", 0));
    int64_t rank = oly_json_integer(e, "pid", 0), track = oly_json_integer(e, "tid", 0);
    int64_t bytes = oly_json_integer(arguments, "bytes_sent", 0);
    if (strcmp(oly_json_text(e, "ph", ""), "X") != 0)
        return;
    harmless(name, sizeof name, oly_json_text(e, "name", ""));
    harmless(line, sizeof line, oly_json_text(arguments, "line", "(no line)"));
    s->from = s->events ? fmin(s->from, begin) : begin;
    s->to = s->events ? fmax(s->to, begin + time) : begin + time;
    s->events++;
    s->ranks = rank >= s->ranks && rank < MOST_RANKS ? rank + 1 : s->ranks;
    if (strcmp(category, "step") == 0) {
        snprintf(key, sizeof key, "%.150s", name);
        add(&s->steps, key, begin, time, 0, predicted);
        add(&s->lines, line, begin, time, 0, predicted);
    } else if (strcmp(category, "exchange") == 0) {
        add(&s->exchanges, line, begin, time, bytes > 0 ? bytes : 0, 0);
    } else if (strcmp(category, "compute") == 0 && track >= DEVICES) {
        snprintf(key, sizeof key, "device %lld (rank %lld)",
                 (long long)oly_json_integer(arguments, "device", track - DEVICES), (long long)rank);
        add(&s->devices, key, begin, time, 0, 0);
    } else if (strcmp(category, "wait") == 0 && strncmp(name, "wait", 4) == 0) {
        snprintf(key, sizeof key, "rank %lld", (long long)rank);
        add(&s->waits, key, begin, time, 0, 0);
    } else if (strcmp(category, "range") == 0) {
        add(&s->ranges, name, begin, time, 0, 0);
    } else if (strcmp(category, "compile") == 0) {
        add(&s->compiling, name, begin, time, 0, 0);
    }
}

/* Where the list of events begins: in an object with traceEvents, or the text is a list. */
static const char *find_events(const char *text, size_t length)
{
    static const char key[] = "\"traceEvents\"";
    size_t at = strspn(text, " \t\r\n");
    if (text[at] == '[')
        return text + at + 1;
    const char *found = text[at] == '{' ? memmem(text, length, key, sizeof key - 1) : NULL;
    if (!found)
        return NULL;
    found += sizeof key - 1;
    found += strspn(found, " \t\r\n");
    if (*found++ != ':')
        return NULL;
    found += strspn(found, " \t\r\n");
    return *found == '[' ? found + 1 : NULL;
}

static oly_status add_events(summary *s, const char *name, const char *text, size_t length)
{
    const char *begin = find_events(text, length);
    oly_arena arena = {0};
    const oly_json *e;
    if (!begin)
        return oly_fail(OLY_PARSE, "%s: this is no timeline: it has no list traceEvents", name);
    for (size_t at = (size_t)(begin - text);;) {
        at += strspn(text + at, " \t\r\n,");
        if (at < length && text[at] == ']')
            break;
        oly_status st = oly_json_next(&arena, name, text, length, &at, &e);
        if (st == OLY_OK && !e)
            st = oly_fail(OLY_PARSE, "%s: the list of events has no end", name);
        if (st == OLY_OK)
            add_event(s, e);
        oly_arena_free(&arena);
        OLY_TRY(st);
    }
    return OLY_OK;
}

/* -- printing --------------------------------------------------------------------------------------------------------- */

static void time_text(oly_text *t, double us)
{
    if (us >= 1e6)
        oly_text_add(t, "%10.3f s ", us * 1e-6);
    else if (us >= 1e3)
        oly_text_add(t, "%10.3f ms", us * 1e-3);
    else
        oly_text_add(t, "%10.3f us", us);
}

static int by_time(const void *a, const void *b)
{
    const group *x = *(const group *const *)a, *y = *(const group *const *)b;
    return x->time > y->time ? -1 : x->time < y->time ? 1 : strcmp(x->name, y->name);
}

static int by_name(const void *a, const void *b)
{
    const group *x = *(const group *const *)a, *y = *(const group *const *)b;
    return strverscmp(x->name, y->name);
}

static int sorted(table *t, group **list, int (*by)(const void *, const void *))
{
    int n = 0;
    for (int k = 0; k < ROOM; k++)
        if (t->of[k].name)
            list[n++] = &t->of[k];
    qsort(list, (size_t)n, sizeof *list, by);
    return n;
}

static void print_table(oly_text *t, table *of, const char *title, bool bytes)
{
    group *list[ROOM];
    int n = sorted(of, list, by_time);
    if (n == 0)
        return;
    oly_text_add(t, "\n%s\n", title);
    for (int k = 0; k < n && k < SHOWN; k++) {
        const group *g = list[k];
        time_text(t, g->time);
        oly_text_add(t, " in %8lld  ", (long long)g->count);
        if (bytes)
            oly_text_add(t, "%10s  ", oly_size_text_of((size_t)g->bytes).chars);
        oly_text_add(t, "%s", g->name);
        if (g->predicted > 0)
            oly_text_add(t, "   (%.3g times the predicted time)", g->predicted_of / g->predicted);
        oly_text_add(t, "\n");
    }
    if (n > SHOWN || of->missed)
        oly_text_add(t, "           ... and %d more\n", n - SHOWN + of->missed);
}

static void print_devices(oly_text *t, summary *s)
{
    enum { MOST = 64 };
    group *list[ROOM];
    int n = sorted(&s->devices, list, by_name);
    double whole = s->to - s->from;
    if (n == 0 || whole <= 0)
        return;
    oly_text_add(t, "\ndevices: busy, idle\n");
    for (int k = 0; k < n && k < MOST; k++) {
        double busy = fmin(list[k]->time, whole);
        time_text(t, busy);
        oly_text_add(t, "  idle %5.1f %%   %s\n", 100 * (1 - busy / whole), list[k]->name);
    }
    if (n > MOST)
        oly_text_add(t, "           ... and %d more\n", n - MOST);
}

static void print(oly_text *t, const char *name, summary *s)
{
    oly_text_add(t, "%s: %lld rank%s, %d device%s, %lld events, ", name, (long long)s->ranks, s->ranks == 1 ? "" : "s",
                 s->devices.n, s->devices.n == 1 ? "" : "s", (long long)s->events);
    oly_text_add(t, "%.6f s from the first to the last\n", (s->to - s->from) * 1e-6);
    print_table(t, &s->steps, "steps, by kind (time of all ranks together)", false);
    print_table(t, &s->lines, "steps, by line of the program", false);
    print_table(t, &s->exchanges, "exchanges, by line: time in flight, number, bytes sent", true);
    print_table(t, &s->waits, "waiting for other ranks (longer than 1 ms)", false);
    print_table(t, &s->ranges, "ranges of the program (oly_range)", false);
    print_table(t, &s->compiling, "planning", false);
    print_devices(t, s);
}

static void free_table(table *t)
{
    for (int k = 0; k < ROOM; k++)
        oly_release(t->of[k].name);
}

oly_status trace_sum_up_text(const char *name, const char *text, size_t length, oly_text *to)
{
    summary *s = oly_calloc(1, sizeof *s);
    if (!s)
        return oly_out_of_memory(sizeof *s, "the sums of a timeline");
    oly_status st = add_events(s, name, text, length);
    if (st == OLY_OK)
        print(to, name, s);
    table *const all[] = {&s->steps, &s->lines, &s->exchanges, &s->devices, &s->waits, &s->ranges, &s->compiling};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        free_table(all[k]);
    oly_release(s);
    return st;
}

oly_status trace_sum_up(const char *path, oly_text *to)
{
    char *text;
    size_t length;
    OLY_TRY(tool_read(path, MOST_BYTES, &text, &length));
    oly_status st = trace_sum_up_text(path, text, length, to);
    free(text);
    return st;
}
