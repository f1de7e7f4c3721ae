/* SPDX-License-Identifier: BSD-3-Clause */
/* Spans as events of a trace, in the JSON that Chrome defined and Perfetto reads (docs/timeline.md lists what there is):
 *
 *   process      a rank
 *   its tracks   devices; messages, whose arrows lead to other ranks; exchanges, on as many tracks as overlap; threads
 *   counters     jobs in the queue, memory of the pool
 *
 * Every event is written when its span begins, but those of devices: the parts of a step on one device, computed by several threads, are
 * one slice, which is written when the device goes on to another. */
#include "array/timeline/timeline.h"
#include "core/json_text.h"
#include "core/machine.h"
#include "core/raw_text.h"
#include "device/device.h"
#include "layout/mesh.h"
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

/* Numbers of tracks. */
enum { THREADS = 1, MESSAGES = 2000, EXCHANGES = 2001, LANES = 32, DEVICES = 3000, FLUSH = 1 << 18 };

typedef struct device_slice {
    int64_t execution, begin, end, chunks; /* execution 0: none is open */
    int label, parts;
} device_slice;

typedef struct writer {
    oly_text text;
    oly_trace_sink *sink;
    const oly_trace_clock *clock;
    oly_tick_line line;
    int rank, n_devices;
    bool begun;           /* an event has been written */
    device_slice *device; /* owned; [n_devices] */
    int64_t lane_end[LANES];
    int lanes;
    bool messages;
} writer;

/* -- time ------------------------------------------------------------------------------------------------------------------ */

/* Nanoseconds of rank 0's clock since the beginning of the trace: between the two comparisons of clocks, the difference changes
 * evenly. */
static int64_t time_of(const writer *w, int64_t ticks)
{
    const oly_clock_offset *a = &w->clock->first, *b = &w->clock->last;
    int64_t ns = oly_ticks_to_ns(&w->line, ticks) + oly_clock_pretends;
    double passed = b->at > a->at ? (double)(ns - a->at) / (double)(b->at - a->at) : 0;
    int64_t time = ns + a->ahead + (int64_t)((double)(b->ahead - a->ahead) * passed) - w->clock->epoch;
    return time > 0 ? time : 0;
}

/* As microseconds with three decimals; ns >= 0. */
static void us_number(oly_text *t, int64_t ns)
{
    char decimals[4] = {'.', (char)('0' + ns / 100 % 10), (char)('0' + ns / 10 % 10), (char)('0' + ns % 10)};
    oly_text_add_int(t, ns / 1000);
    oly_text_add_chars(t, decimals, sizeof decimals);
}
static void us_text(oly_text *t, const char *key, int64_t ns)
{
    oly_text_add_chars(t, ",\"", 2);
    oly_text_add_string(t, key);
    oly_text_add_chars(t, "\":", 2);
    us_number(t, ns);
}

/* -- events ---------------------------------------------------------------------------------------------------------------- */

static oly_status flush(writer *w, size_t most)
{
    oly_status st = w->text.failed ? oly_out_of_memory(w->text.length, "writing the timeline") : OLY_OK;
    if (st == OLY_OK && w->text.length > most) {
        st = w->sink->write(w->sink, w->text.chars, w->text.length);
        w->text.length = 0;
    }
    return st;
}

static void open_event(writer *w, char phase, int track)
{
    oly_text_add_string(&w->text, w->begun ? ",\n{\"ph\":\"" : "{\"ph\":\"");
    oly_text_add_chars(&w->text, &phase, 1);
    oly_text_add_string(&w->text, "\",\"pid\":");
    oly_text_add_int(&w->text, w->rank);
    oly_text_add_string(&w->text, ",\"tid\":");
    oly_text_add_int(&w->text, track);
    w->begun = true;
}

static void name(writer *w, const char *category, const char *text)
{
    oly_text_add_string(&w->text, ",\"cat\":\"");
    oly_text_add_string(&w->text, category);
    oly_text_add_string(&w->text, "\",\"name\":");
    oly_json_quote(&w->text, text);
}

static void open_slice(writer *w, int track, int64_t begin, int64_t end)
{
    int64_t from = time_of(w, begin), to = time_of(w, end);
    open_event(w, 'X', track);
    us_text(&w->text, "ts", from);
    us_text(&w->text, "dur", to > from ? to - from : 0);
}

/* An argument; the first of an event follows "args":{. */
static void argument(writer *w, const char *key)
{
    bool first = w->text.length > 0 && w->text.chars[w->text.length - 1] == '{';
    oly_text_add_string(&w->text, first ? "\"" : ",\"");
    oly_text_add_string(&w->text, key);
    oly_text_add_chars(&w->text, "\":", 2);
}
static void integer(writer *w, const char *key, int64_t value)
{
    argument(w, key);
    oly_text_add_int(&w->text, value);
}
static void string(writer *w, const char *key, const char *value)
{
    argument(w, key);
    oly_json_quote(&w->text, value);
}
static void open_arguments(writer *w)
{
    oly_text_add_string(&w->text, ",\"args\":{");
}
static void close_event(writer *w)
{
    oly_text_add_chars(&w->text, "}}", 2);
}

static void site_arguments(writer *w, const oly_label *l)
{
    char line[400];
    if (!l || !l->call[0])
        return;
    string(w, "call", l->call);
    if (!l->file[0])
        return;
    size_t n = strnlen(l->file, sizeof line - 24);
    memcpy(line, l->file, n);
    line[n++] = ':';
    line[n + oly_raw_digits(line + n, l->line)] = 0;
    string(w, "line", line);
}

static void label_arguments(writer *w, const oly_label *l)
{
    if (!l)
        return;
    if (l->detail[0])
        string(w, "detail", l->detail);
    if (l->step >= 0 && l->plan)
        integer(w, "step", l->step);
    if (l->predicted > 0) {
        argument(w, "predicted_us");
        us_number(&w->text, (int64_t)(l->predicted * 1e9 + 0.5));
    }
    site_arguments(w, l);
}

/* number -1: none. */
static void say_track(writer *w, int track, int order, const char *what, int number)
{
    char text[64];
    if (number < 0)
        snprintf(text, sizeof text, "%s", what);
    else
        snprintf(text, sizeof text, "%s %d", what, number);
    open_event(w, 'M', track);
    name(w, "__metadata", "thread_name");
    open_arguments(w);
    string(w, "name", text);
    close_event(w);
    open_event(w, 'M', track);
    name(w, "__metadata", "thread_sort_index");
    open_arguments(w);
    integer(w, "sort_index", order);
    close_event(w);
}

/* -- devices --------------------------------------------------------------------------------------------------------------- */

static void end_device_slice(writer *w, int d)
{
    device_slice *s = &w->device[d];
    const oly_label *l = oly_label_get(s->label);
    if (!s->execution)
        return;
    open_slice(w, DEVICES + d, s->begin, s->end);
    name(w, "compute", l ? l->name : "step");
    open_arguments(w);
    integer(w, "device", oly_mesh_local_id(d));
    integer(w, "chunks", s->chunks);
    integer(w, "threads", s->parts);
    label_arguments(w, l);
    close_event(w);
    s->execution = 0;
}

static void add_part(writer *w, const oly_span *s, int d)
{
    if (d < 0 || d >= w->n_devices)
        return;
    device_slice *slice = &w->device[d];
    if (slice->execution != s->a)
        end_device_slice(w, d);
    if (!slice->execution)
        *slice = (device_slice){.execution = s->a, .begin = s->begin, .end = s->end, .label = s->label};
    slice->end = s->end > slice->end ? s->end : slice->end;
    slice->chunks += s->b;
    slice->parts++;
}

static void part(writer *w, const oly_span *s, int thread)
{
    const oly_label *l = oly_label_get(s->label);
    for (int d = 0; s->device < 0 && d < 63; d++)
        if (s->c >> d & 1)
            add_part(w, s, d);
    if (s->device < 0) /* all devices one after the other: the step's own slice says as much */
        return;
    add_part(w, s, s->device);
    open_slice(w, THREADS + thread, s->begin, s->end);
    name(w, "compute", l ? l->name : "step");
    open_arguments(w);
    integer(w, "device", oly_mesh_local_id(s->device));
    integer(w, "chunks", s->b);
    close_event(w);
}

/* -- communication --------------------------------------------------------------------------------------------------------- */

static void exchange(writer *w, const oly_span *s)
{
    int lane = 0;
    while (lane < LANES - 1 && w->lane_end[lane] > s->begin)
        lane++;
    w->lane_end[lane] = s->end;
    for (; w->lanes <= lane; w->lanes++)
        say_track(w, EXCHANGES + w->lanes, 200 + w->lanes, "exchanges", w->lanes ? w->lanes + 1 : -1);
    open_slice(w, EXCHANGES + lane, s->begin, s->end);
    const oly_label *l = oly_label_get(s->label);
    name(w, "exchange", "exchange");
    open_arguments(w);
    if (s->a >= 0)
        integer(w, "partner", s->a);
    else
        integer(w, "partners", -s->a);
    integer(w, "bytes_sent", s->b);
    integer(w, "number", s->c);
    if (s->phase == OLY_EVENT_BEGIN)
        string(w, "unfinished", "it had not ended when the trace was written");
    site_arguments(w, l);
    close_event(w);
}

/* An arrow begins and ends in the slices of the two messages. */
static void arrow(writer *w, const oly_span *s, bool sends)
{
    open_event(w, sends ? 's' : 'f', MESSAGES);
    if (!sends)
        oly_text_add(&w->text, ",\"bp\":\"e\"");
    us_text(&w->text, "ts", time_of(w, s->begin));
    oly_text_add(&w->text, ",\"id\":\"0x%" PRIx64 "\"", (uint64_t)s->c);
    name(w, "message", "message");
    oly_text_add(&w->text, "}");
}

static void message(writer *w, const oly_span *s)
{
    char text[64];
    bool sends = s->kind == OLY_EVENT_SEND;
    const oly_label *l = oly_label_get(s->label);
    if (!w->messages)
        say_track(w, MESSAGES, 100, "messages", -1);
    w->messages = true;
    snprintf(text, sizeof text, sends ? "send to rank %d" : "receive from rank %d", (int)s->a);
    open_slice(w, MESSAGES, s->begin, s->end);
    name(w, "message", text);
    open_arguments(w);
    integer(w, "partner", s->a);
    integer(w, "bytes", s->b);
    if (l)
        string(w, "call", l->name);
    close_event(w);
    arrow(w, s, sends);
}

/* -- everything else ------------------------------------------------------------------------------------------------------- */

static void counter(writer *w, const oly_span *s)
{
    open_event(w, 'C', 0);
    us_text(&w->text, "ts", time_of(w, s->begin));
    if (s->kind == OLY_EVENT_QUEUE) {
        name(w, "queue", "queue");
        open_arguments(w);
        integer(w, "calls", s->a);
    } else {
        name(w, "memory", "memory");
        open_arguments(w);
        integer(w, "in use", s->a);
        integer(w, "free", s->b);
    }
    close_event(w);
}

static void iterations(writer *w, const oly_span *s, int thread)
{
    char text[96];
    const oly_label *l = oly_label_get(s->label);
    if (s->b == s->a + 1)
        snprintf(text, sizeof text, "iteration %" PRId64, s->a);
    else
        snprintf(text, sizeof text, "iterations %" PRId64 " to %" PRId64, s->a, s->b - 1);
    open_slice(w, THREADS + thread, s->begin, s->end);
    name(w, "loop", text);
    open_arguments(w);
    integer(w, "iterations", s->b - s->a);
    label_arguments(w, l);
    close_event(w);
}

static void run(writer *w, const oly_span *s, int thread)
{
    const oly_label *l = oly_label_get(s->label);
    open_slice(w, THREADS + thread, s->begin, s->end);
    name(w, "run", l ? l->name : "run");
    open_arguments(w);
    integer(w, "number", s->a);
    argument(w, "queued_us");
    oly_text_add(&w->text, "%.3f", (double)(time_of(w, s->begin) - time_of(w, s->b)) * 1e-3);
    if (s->c >> 32)
        integer(w, "not_shown", s->c >> 32);
    site_arguments(w, oly_label_get((int)(uint32_t)s->c));
    close_event(w);
}

/* As events.def says. */
static void by_row(writer *w, const oly_span *s, int thread)
{
    const oly_event_row *row = &oly_event_rows[s->kind];
    const oly_label *l = oly_label_get(s->label);
    bool instant = s->begin == s->end && s->kind != OLY_EVENT_RANGE, says = row->has_text && l && l->name[0];
    char text[200];
    if (s->kind == OLY_EVENT_RANGE || s->kind == OLY_EVENT_STEP)
        snprintf(text, sizeof text, "%s", l ? l->name : row->name);
    else
        snprintf(text, sizeof text, l && l->name[0] ? "%s: %s" : "%s", row->name, l ? l->name : "");
    if (instant) {
        open_event(w, 'i', THREADS + thread);
        oly_text_add(&w->text, ",\"s\":\"t\"");
        us_text(&w->text, "ts", time_of(w, s->begin));
    } else {
        open_slice(w, THREADS + thread, s->begin, s->end);
    }
    name(w, row->category, text);
    open_arguments(w);
    const char *const keys[] = {row->a, row->b, row->c};
    const int64_t values[] = {s->a, s->b, s->c};
    for (int k = 0; k < 3; k++)
        if (keys[k][0])
            integer(w, keys[k], values[k]);
    if (s->phase == OLY_EVENT_BEGIN)
        string(w, "unfinished", "it had not ended when the trace was written");
    if (says)
        site_arguments(w, l);
    else
        label_arguments(w, l);
    close_event(w);
}

static oly_status see(void *context, const oly_span *s, int thread)
{
    writer *w = context;
    switch (s->kind) {
    case OLY_EVENT_PART: part(w, s, thread); break;
    case OLY_EVENT_EXCHANGE: exchange(w, s); break;
    case OLY_EVENT_SEND:
    case OLY_EVENT_RECEIVE: message(w, s); break;
    case OLY_EVENT_QUEUE:
    case OLY_EVENT_POOL: counter(w, s); break;
    case OLY_EVENT_ITERATIONS: iterations(w, s, thread); break;
    case OLY_EVENT_RUN: run(w, s, thread); break;
    default: by_row(w, s, thread);
    }
    return flush(w, FLUSH);
}

/* -- the whole ------------------------------------------------------------------------------------------------------------- */

static void introduce(writer *w)
{
    char host[65] = "", text[120];
    gethostname(host, sizeof host - 1);
    snprintf(text, sizeof text, "rank %d on %s", w->rank, host);
    open_event(w, 'M', 0);
    name(w, "__metadata", "process_name");
    open_arguments(w);
    string(w, "name", text);
    close_event(w);
    open_event(w, 'M', 0);
    name(w, "__metadata", "process_sort_index");
    open_arguments(w);
    integer(w, "sort_index", w->rank);
    close_event(w);
    for (int d = 0; d < w->n_devices; d++)
        say_track(w, DEVICES + d, d, "device", oly_mesh_local_id(d));
    for (int t = 0, workers = 0; t < oly_timeline_threads(); t++) {
        const char *thread = oly_timeline_thread_name(t);
        bool worker = thread && strcmp(thread, "worker") == 0;
        workers += worker;
        say_track(w, THREADS + t, 1000 + t, thread ? thread : "thread", worker ? workers : thread ? -1 : t);
    }
}

/* What is missing, and how good the clock is. */
static void conclude(writer *w)
{
    const oly_clock_offset *worse = w->clock->first.error > w->clock->last.error ? &w->clock->first : &w->clock->last;
    open_event(w, 'M', 0);
    name(w, "__metadata", "process_labels");
    open_arguments(w);
    char text[160];
    int64_t dropped = oly_timeline_dropped();
    snprintf(text, sizeof text, "clock exact to %.1f us%s", (double)worse->error * 1e-3,
             dropped ? ", incomplete: OLYMPUS_TIMELINE_LIMIT" : "");
    string(w, "labels", text);
    integer(w, "clock_ahead_ns", w->clock->last.ahead);
    integer(w, "clock_error_ns", worse->error);
    integer(w, "dropped", dropped);
    integer(w, "runs_not_shown", atomic_load(&oly_timeline_left_out));
    close_event(w);
}

oly_status oly_trace_write(oly_trace_sink *sink, const oly_trace_clock *clock, bool first)
{
    writer w = {.sink = sink,
                .clock = clock,
                .line = oly_ticks_line(),
                .rank = oly_world_rank(),
                .n_devices = oly_mesh_local_devices(),
                .begun = !first};
    w.device = oly_calloc((size_t)w.n_devices + 1, sizeof *w.device);
    if (!w.device)
        return oly_out_of_memory(sizeof *w.device * (size_t)w.n_devices, "writing the timeline");
    introduce(&w);
    oly_status st = oly_timeline_walk(see, &w);
    for (int d = 0; d < w.n_devices; d++)
        end_device_slice(&w, d);
    conclude(&w);
    if (st == OLY_OK)
        st = flush(&w, 0);
    oly_release(w.device);
    oly_text_free(&w.text);
    return st;
}
