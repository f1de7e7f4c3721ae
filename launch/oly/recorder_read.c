/* SPDX-License-Identifier: BSD-3-Clause */
/* See recorder_read.h. */
#include "recorder_read.h"
#include "core/raw_text.h"
#include "core/text.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_FIELDS = 16 };

typedef struct reader {
    oly_arena *arena;
    const char *name;
    int number; /* of the line */
    int n;      /* its fields, the first of which is its kind */
    const char *field[MOST_FIELDS];
    recorder *r;
    int room_for_peers, room_for_events;
    bool ended;
    uint32_t sum;       /* of the lines so far */
    const char *missed; /* the kind of line that must be there and is not */
} reader;

static oly_status wrong(const reader *d, const char *what)
{
    return oly_fail(OLY_PARSE, "%s: line %d: %s", d->name, d->number, what);
}

/* -- fields ------------------------------------------------------------------------------------------------------------- */

static bool read_int(const char *text, int64_t *value)
{
    char *end;
    const char *digits = *text == '-' ? text + 1 : text;
    errno = 0;
    *value = strtoll(text, &end, 10);
    return *digits >= '0' && *digits <= '9' && *end == 0 && errno == 0;
}

static bool read_seconds(const char *text, double *value)
{
    const char *digits = *text == '-' ? text + 1 : text;
    size_t whole = strspn(digits, "0123456789");
    bool good = whole > 0 && whole < 16 && digits[whole] == '.' && strlen(digits + whole + 1) == 9 &&
                strspn(digits + whole + 1, "0123456789") == 9;
    locale_t before = oly_numbers_with_point();
    *value = good ? strtod(text, NULL) : 0;
    oly_numbers_as_before(before);
    return good;
}

static bool is_one_of(const char *text, const char *const *list)
{
    while (*list && strcmp(*list, text) != 0)
        list++;
    return *list;
}

/* Characters that would act on a terminal, and bytes that are not UTF-8, become '?'. */
static void make_harmless(char *text)
{
    for (unsigned char *s = (unsigned char *)text; *s;) {
        int n = *s < 0x80                 ? 1
                : *s >= 0xc2 && *s < 0xe0 ? 2
                : *s >= 0xe0 && *s < 0xf0 ? 3
                : *s >= 0xf0 && *s < 0xf5 ? 4
                                          : 0;
        bool good = n > 0 && !(n == 1 && (*s < 0x20 || *s == 0x7f)) && !(*s == 0xc2 && s[1] < 0xa0);
        for (int k = 1; k < n && good; k++)
            good = (s[k] & 0xc0) == 0x80;
        bool beyond = (*s == 0xe0 && s[1] < 0xa0) || (*s == 0xed && s[1] >= 0xa0) || (*s == 0xf0 && s[1] < 0x90) ||
                      (*s == 0xf4 && s[1] >= 0x90);
        bool turns = *s == 0xe2 && s[1] == 0x80 && s[2] >= 0xaa && s[2] <= 0xae; /* the direction of writing */
        if (good && !beyond && !turns) {
            s += n;
        } else {
            *s++ = '?';
        }
    }
}

/* -- kinds of lines ------------------------------------------------------------------------------------------------- */

typedef struct line_kind {
    const char *name;
    int fields; /* with the name */
    oly_status (*read)(reader *d);
} line_kind;

static oly_status need_int(const reader *d, int field, int64_t low, int64_t high, int64_t *value)
{
    if (!read_int(d->field[field], value))
        return wrong(d, "a whole number is expected");
    return *value < low || *value > high ? wrong(d, "a number is out of range") : OLY_OK;
}

static oly_status need_seconds(const reader *d, int field, double *value)
{
    return read_seconds(d->field[field], value) ? OLY_OK : wrong(d, "seconds with nine decimals are expected");
}

#define TEXT_LINE(member)                                                                                              \
    static oly_status read_##member(reader *d)                                                                         \
    {                                                                                                                  \
        d->r->member = d->field[1];                                                                                    \
        return OLY_OK;                                                                                                 \
    }
#define INT_LINE(member, low, high)                                                                                    \
    static oly_status read_##member(reader *d)                                                                         \
    {                                                                                                                  \
        return need_int(d, 1, low, high, &d->r->member);                                                               \
    }
#define SECONDS_LINE(member)                                                                                           \
    static oly_status read_##member(reader *d)                                                                         \
    {                                                                                                                  \
        return need_seconds(d, 1, &d->r->member);                                                                      \
    }
TEXT_LINE(job)
TEXT_LINE(host)
TEXT_LINE(version)
TEXT_LINE(program)
TEXT_LINE(reason)
TEXT_LINE(because)
INT_LINE(rank, -1, RECORDER_MOST_RANKS)
INT_LINE(ranks, 1, RECORDER_MOST_RANKS)
INT_LINE(pid, 0, INT64_MAX)
INT_LINE(meetings, 0, INT64_MAX)
INT_LINE(recorded, 0, INT64_MAX)
SECONDS_LINE(began)
SECONDS_LINE(written)
SECONDS_LINE(clock)

static oly_status read_setting(reader *d)
{
    return strncmp(d->field[1], "OLYMPUS_", 8) == 0 ? OLY_OK : wrong(d, "a setting is expected");
}

static oly_status read_call(reader *d)
{
    OLY_TRY(need_int(d, 1, 0, INT32_MAX, &d->r->line));
    d->r->call = d->field[2];
    d->r->file = d->field[3];
    return OLY_OK;
}

static oly_status read_wait(reader *d)
{
    OLY_TRY(need_int(d, 1, -1, RECORDER_MOST_RANKS, &d->r->waits_for));
    OLY_TRY(need_seconds(d, 2, &d->r->since));
    d->r->wait = d->field[3];
    return OLY_OK;
}

static oly_status read_memory(reader *d)
{
    OLY_TRY(need_int(d, 1, 0, INT64_MAX, &d->r->resident));
    OLY_TRY(need_int(d, 2, 0, INT64_MAX, &d->r->pool));
    return need_int(d, 3, 0, INT64_MAX, &d->r->pool_free);
}

/* Room for one more entry; lists double, in the arena. */
static void *grow(oly_arena *arena, void *list, int n, int *room, size_t size)
{
    if (n < *room)
        return list;
    int more = *room ? *room * 2 : 16;
    void *longer = oly_arena_take(arena, size * (size_t)more);
    if (longer && n)
        memcpy(longer, list, size * (size_t)n);
    *room = longer ? more : *room;
    return longer;
}

static oly_status read_peer(reader *d)
{
    recorder_peer p = {.state = d->field[3][0], .call = d->field[10], .file = d->field[11], .wait = d->field[12]};
    OLY_TRY(need_int(d, 1, 0, RECORDER_MOST_RANKS, &p.rank));
    OLY_TRY(need_int(d, 2, 0, INT64_MAX, &p.pid));
    if (!p.state || d->field[3][1])
        return wrong(d, "the state of a process is one letter");
    OLY_TRY(need_int(d, 4, 0, INT32_MAX, &p.ended));
    OLY_TRY(need_int(d, 5, 0, INT32_MAX, &p.leaving));
    OLY_TRY(need_int(d, 6, RECORDER_NOBODY, RECORDER_MOST_RANKS, &p.waits_for));
    OLY_TRY(need_seconds(d, 7, &p.since));
    OLY_TRY(need_int(d, 8, 0, INT64_MAX, &p.meetings));
    OLY_TRY(need_int(d, 9, 0, INT32_MAX, &p.line));
    recorder_peer *peers = grow(d->arena, d->r->peers, d->r->n_peers, &d->room_for_peers, sizeof *peers);
    if (!peers)
        return oly_out_of_memory(sizeof *peers, "the ranks of a node");
    d->r->peers = peers;
    peers[d->r->n_peers++] = p;
    return OLY_OK;
}

static oly_status read_event(reader *d)
{
    static const char *const phases[] = {"at", "begin", "end", NULL};
    recorder_event e = {
        .kind = d->field[2], .phase = d->field[3], .call = d->field[9], .file = d->field[10], .text = d->field[11]};
    OLY_TRY(need_seconds(d, 1, &e.time));
    if (!is_one_of(e.phase, phases))
        return wrong(d, "the phase of an event is at, begin or end");
    OLY_TRY(need_int(d, 4, 0, INT32_MAX, &e.thread));
    OLY_TRY(need_int(d, 5, INT64_MIN, INT64_MAX, &e.a));
    OLY_TRY(need_int(d, 6, INT64_MIN, INT64_MAX, &e.b));
    OLY_TRY(need_int(d, 7, INT64_MIN, INT64_MAX, &e.c));
    OLY_TRY(need_int(d, 8, INT32_MIN, INT32_MAX, &e.line));
    recorder_event *events = grow(d->arena, d->r->events, d->r->n_events, &d->room_for_events, sizeof *events);
    if (!events)
        return oly_out_of_memory(sizeof *events, "the events of a rank");
    d->r->events = events;
    events[d->r->n_events++] = e;
    return OLY_OK;
}

static oly_status read_end(reader *d)
{
    char *end;
    unsigned long sum = strtoul(d->field[1], &end, 16);
    if (strncmp(d->field[1], "0x", 2) != 0 || *end || strlen(d->field[1]) > 10)
        return wrong(d, "a checksum is expected");
    if (sum != d->sum)
        return wrong(d, "the checksum is another: the file has been changed or damaged");
    d->ended = true;
    return OLY_OK;
}

static const line_kind kinds[] = {
    {"job", 2, read_job},           {"rank", 2, read_rank},     {"ranks", 2, read_ranks},
    {"host", 2, read_host},         {"pid", 2, read_pid},       {"version", 2, read_version},
    {"program", 2, read_program},   {"began", 2, read_began},   {"written", 2, read_written},
    {"clock", 2, read_clock},       {"reason", 2, read_reason}, {"because", 2, read_because},
    {"setting", 3, read_setting},   {"call", 4, read_call},     {"meetings", 2, read_meetings},
    {"wait", 4, read_wait},         {"memory", 4, read_memory}, {"peer", 13, read_peer},
    {"recorded", 2, read_recorded}, {"event", 12, read_event},  {"end", 2, read_end},
};

/* -- lines -------------------------------------------------------------------------------------------------------------- */

static oly_status split(reader *d, char *line)
{
    d->n = 0;
    for (char *at = line;; at++) {
        if (d->n == MOST_FIELDS)
            return wrong(d, "it has too many fields");
        d->field[d->n++] = at;
        at += strcspn(at, "\t");
        if (!*at)
            break;
        *at = 0;
    }
    for (int k = 0; k < d->n; k++)
        make_harmless((char *)d->field[k]);
    return OLY_OK;
}

static oly_status read_line(reader *d, char *line)
{
    if (d->ended)
        return wrong(d, "nothing may follow the end");
    OLY_TRY(split(d, line));
    if (d->number == 1)
        return d->n == 2 && strcmp(d->field[0], "olympus-recorder") == 0 && strcmp(d->field[1], "1") == 0
                   ? OLY_OK
                   : wrong(d, strcmp(d->field[0], "olympus-recorder") == 0 ? "a recorder of another version of Olympus"
                                                                           : "this is no recorder of Olympus");
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        if (strcmp(kinds[k].name, d->field[0]) == 0)
            return kinds[k].fields == d->n ? kinds[k].read(d) : wrong(d, "it has another number of fields");
    return wrong(d, "a line of an unknown kind");
}

/* The lines up to "reason", from which everything else can be understood. */
static oly_status check_whole(const reader *d)
{
    const recorder *r = d->r;
    bool known = r->job && r->host && r->program && r->reason && r->ranks > 0;
    if (!known)
        return oly_fail(OLY_PARSE, "%s: it ends before it says which rank it is of", d->name);
    if (r->rank >= r->ranks)
        return oly_fail(OLY_PARSE, "%s: rank %lld of %lld", d->name, (long long)r->rank, (long long)r->ranks);
    return OLY_OK;
}

static oly_status index_calls(oly_arena *arena, recorder *r)
{
    r->calls = oly_arena_take(arena, sizeof *r->calls * ((size_t)r->n_events + 1));
    if (!r->calls)
        return oly_out_of_memory(sizeof *r->calls * (size_t)r->n_events, "the calls of a rank");
    for (int k = 0; k < r->n_events; k++)
        if (strcmp(r->events[k].kind, "call") == 0)
            r->calls[r->n_calls++] = &r->events[k];
    return OLY_OK;
}

oly_status recorder_read(oly_arena *arena, const char *name, const char *text, size_t length, recorder *r)
{
    reader d = {.arena = arena, .name = name, .r = r, .sum = OLY_RAW_SUM};
    char *copy = oly_arena_take_raw(arena, length + 1);
    if (!copy)
        return oly_out_of_memory(length, "a recorder");
    memcpy(copy, text, length);
    copy[length] = 0;
    *r = (recorder){.name = name, .waits_for = RECORDER_NOBODY, .call = "", .file = "", .because = ""};
    for (char *line = copy, *end; (end = memchr(line, '\n', (size_t)(copy + length - line))); line = end + 1) {
        d.number++;
        size_t n = (size_t)(end + 1 - line);
        if (memchr(line, 0, n))
            return wrong(&d, "it contains a zero byte");
        uint32_t sum = oly_raw_sum(d.sum, line, n);
        *end = 0;
        OLY_TRY(read_line(&d, line));
        d.sum = sum;
    }
    r->complete = d.ended;
    OLY_TRY(check_whole(&d));
    return index_calls(arena, r);
}

/* -- files -------------------------------------------------------------------------------------------------------------- */

static oly_status read_all(oly_arena *arena, int file, const char *path, char **text, size_t *length)
{
    struct stat s;
    if (fstat(file, &s) != 0 || !S_ISREG(s.st_mode))
        return oly_fail(OLY_PARSE, "%s: this is no file", path);
    if (s.st_size > RECORDER_MOST_BYTES)
        return oly_fail(OLY_PARSE, "%s: a recorder has at most %d MiB", path, RECORDER_MOST_BYTES >> 20);
    *text = oly_arena_take_raw(arena, (size_t)s.st_size + 1);
    if (!*text)
        return oly_out_of_memory((size_t)s.st_size, "a recorder");
    *length = 0;
    for (ssize_t n; *length < (size_t)s.st_size; *length += (size_t)n)
        if ((n = read(file, *text + *length, (size_t)s.st_size - *length)) <= 0)
            return n < 0 ? oly_fail(OLY_IO, "%s: %s", path, strerror(errno)) : OLY_OK;
    return OLY_OK;
}

oly_status recorder_read_file(oly_arena *arena, const char *path, recorder *r)
{
    char *text;
    size_t length;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe would wait */
    if (file < 0)
        return oly_fail(OLY_IO, "%s: %s", path, strerror(errno));
    oly_status st = read_all(arena, file, path, &text, &length);
    close(file);
    return st == OLY_OK ? recorder_read(arena, path, text, length, r) : st;
}

double recorder_calendar(const recorder *r, double clock)
{
    return r->written - (r->clock - clock);
}
