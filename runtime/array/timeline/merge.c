/* SPDX-License-Identifier: BSD-3-Clause */
/* One trace of all ranks: rank 0 writes its own events, then those that the others send, one after the other, a piece at a time, so
 * that it needs memory for one piece only. See timeline.h.
 *
 * The file is written under another name and renamed. Where ranks cannot be reached, each writes FILE with its number before the
 * ending: trace.rank3.json. */
#include "array/timeline/timeline.h"
#include "core/option.h"
#include "core/simulate.h"
#include "file/file.h"
#include "file/zlib_late.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { PIECE = 1 << 20, MOST_PATH = 1200 };

static const char head[] = "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"producer\":\"Olympus %s\",\"ranks\":\"%d\"},"
                           "\"traceEvents\":[\n";
static const char what[] = "OLYMPUS_TIMELINE: gathering the trace";

static oly_trace_clock clocks;

/* -- files ----------------------------------------------------------------------------------------------------------------- */

/* Plain or compressed. */
typedef struct file_sink {
    oly_trace_sink sink; /* first member */
    const char *path;
    FILE *plain;
    gzFile packed;
} file_sink;

static oly_status cannot(const char *path)
{
    return oly_fail(OLY_IO, "OLYMPUS_TIMELINE: %s cannot be written: %s", path, errno ? strerror(errno) : "unknown");
}

static oly_status write_file(oly_trace_sink *sink, const char *bytes, size_t n)
{
    file_sink *f = (file_sink *)sink;
    errno = 0;
    for (size_t at = 0; f->packed && at < n;) {
        unsigned part = n - at < PIECE ? (unsigned)(n - at) : PIECE;
        if (oly_zlib.gzwrite(f->packed, bytes + at, part) != (int)part)
            return cannot(f->path);
        at += part;
    }
    return f->plain && fwrite(bytes, 1, n, f->plain) != n ? cannot(f->path) : OLY_OK;
}

static bool is_packed(const char *path)
{
    size_t n = strlen(path);
    return n > 3 && strcmp(path + n - 3, ".gz") == 0;
}

static oly_status open_file(file_sink *f, const char *path, bool packed)
{
    *f = (file_sink){.sink = {write_file}, .path = path};
    if (packed)
        OLY_TRY(oly_zlib_need());
    errno = 0;
    if (packed)
        f->packed = oly_zlib.gzopen(path, "wb4");
    else
        f->plain = fopen(path, "wb");
    return f->packed || f->plain ? OLY_OK : cannot(path);
}

static oly_status close_file(file_sink *f, oly_status st)
{
    errno = 0;
    bool good = f->packed ? oly_zlib.gzclose(f->packed) == Z_OK : !f->plain || fclose(f->plain) == 0;
    return st == OLY_OK && !good ? cannot(f->path) : st;
}

/* -- this rank's part ------------------------------------------------------------------------------------------------------ */

/* "run.json.gz" becomes "run.rank3.json.gz". */
static void part_path(char *path, size_t size)
{
    const char *whole = oly_option.timeline, *name = strrchr(whole, '/'), *dot;
    name = name ? name + 1 : whole;
    dot = strchr(name, '.');
    int before = (int)((dot ? dot : name + strlen(name)) - whole);
    snprintf(path, size, "%.*s.rank%d%s", before, whole, oly_world_rank(), dot ? dot : "");
}

static oly_status write_head(oly_trace_sink *sink)
{
    char text[200];
    int n = snprintf(text, sizeof text, head, oly_version(), oly_world_size());
    return sink->write(sink, text, (size_t)n);
}

/* Complete with its first write where the process is killed meanwhile: readers accept a list without its end. */
static void write_part(void)
{
    char path[MOST_PATH];
    file_sink f;
    part_path(path, sizeof path);
    oly_status st = open_file(&f, path, is_packed(path));
    if (st == OLY_OK) {
        st = write_head(&f.sink);
        if (st == OLY_OK)
            st = oly_trace_write(&f.sink, &clocks, true);
        if (st == OLY_OK)
            st = f.sink.write(&f.sink, "\n]}\n", 4);
        st = close_file(&f, st);
    }
    if (st != OLY_OK)
        fprintf(stderr, "olympus: rank %d: %s\n", oly_world_rank(), oly_pending_message());
    oly_drop_message();
}

/* -- all ranks' ------------------------------------------------------------------------------------------------------------ */

/* To rank 0, in pieces of the form: 8 bytes of length, as many bytes; the last has length 0, or -1 after a failure. */
typedef struct message_sink {
    oly_trace_sink sink; /* first member */
    bool lost;           /* rank 0 cannot be reached */
} message_sink;

static oly_status send_piece(message_sink *m, const char *bytes, int64_t n)
{
    oly_status st = oly_world_send(0, &n, sizeof n, what);
    if (st == OLY_OK && n > 0)
        st = oly_world_send(0, bytes, (size_t)n, what);
    m->lost = m->lost || st != OLY_OK;
    return st;
}

static oly_status send_text(oly_trace_sink *sink, const char *bytes, size_t n)
{
    for (size_t at = 0; at < n; at += PIECE)
        OLY_TRY(send_piece((message_sink *)sink, bytes + at, n - at < PIECE ? (int64_t)(n - at) : PIECE));
    return OLY_OK;
}

/* Its own failures, which it has said, are not rank 0's. */
static oly_status send_mine(void)
{
    message_sink m = {.sink = {send_text}};
    oly_status st = oly_trace_write(&m.sink, &clocks, false);
    return m.lost ? st : send_piece(&m, NULL, st == OLY_OK ? 0 : -1);
}

/* Receives all pieces also after the file could not be written, since the other rank sends them. */
static oly_status receive_from(int rank, file_sink *f, char *room, oly_status *written)
{
    for (int64_t n = 0;;) {
        OLY_TRY(oly_world_receive(rank, &n, sizeof n, what));
        if (n <= 0 || n > PIECE)
            return OLY_OK;
        OLY_TRY(oly_world_receive(rank, room, (size_t)n, what));
        if (*written == OLY_OK)
            *written = f->sink.write(&f->sink, room, (size_t)n);
    }
}

/* Ranks take turns, and all wait for each: so none waits longer than one takes. */
static oly_status merge(file_sink *f, char *room, oly_status *written)
{
    int me = oly_world_rank();
    for (int r = 1; r < oly_world_size(); r++) {
        oly_status st = me == r ? send_mine() : me == 0 ? receive_from(r, f, room, written) : OLY_OK;
        OLY_TRY(oly_world_vote(st, what));
    }
    return OLY_OK;
}

static oly_status write_own(file_sink *f)
{
    OLY_TRY(write_head(&f->sink));
    return oly_trace_write(&f->sink, &clocks, true);
}

/* fails if ranks cannot be reached. written: how rank 0 fared with the file. */
static oly_status gather(oly_status *written)
{
    char path[MOST_PATH];
    file_sink f = {.sink = {write_file}, .path = path};
    char *room = NULL;
    bool exists;
    if (oly_world_rank() == 0) {
        snprintf(path, sizeof path, "%s.part", oly_option.timeline);
        room = oly_malloc(PIECE);
        *written = room ? open_file(&f, path, is_packed(oly_option.timeline)) : oly_out_of_memory(PIECE, what);
        if (*written == OLY_OK)
            *written = write_own(&f);
    }
    /* all learn whether rank 0 has room; without, nobody sends */
    oly_status st = oly_world_vote(room || oly_world_rank() ? OLY_OK : OLY_MEMORY, what);
    if (st == OLY_OK)
        st = merge(&f, room, written);
    oly_release(room);
    if (oly_world_rank() != 0)
        return st;
    if (*written == OLY_OK)
        *written = f.sink.write(&f.sink, "\n]}\n", 4);
    *written = close_file(&f, *written);
    if (*written == OLY_OK && st == OLY_OK)
        *written = oly_file_may_replace(oly_option.timeline, &exists);
    if (*written == OLY_OK && st == OLY_OK && rename(path, oly_option.timeline) != 0)
        *written = cannot(oly_option.timeline);
    if (*written != OLY_OK || st != OLY_OK)
        remove(path);
    return st;
}

static void say_dropped(void)
{
    if (oly_timeline_dropped() > 0)
        fprintf(stderr,
                "olympus: rank %d: OLYMPUS_TIMELINE: %lld events left out after the first %lld MiB; raise "
                "OLYMPUS_TIMELINE_LIMIT\n",
                oly_world_rank(), (long long)oly_timeline_dropped(), (long long)oly_option.timeline_limit);
}

/* -- start and end --------------------------------------------------------------------------------------------------------- */

/* Where it would be written at the end, it can be created now, and takes the place of a regular file only. */
static oly_status try_file(void)
{
    char path[MOST_PATH];
    file_sink f;
    bool exists;
    OLY_TRY(oly_file_may_replace(oly_option.timeline, &exists));
    snprintf(path, sizeof path, "%s.part", oly_option.timeline);
    OLY_TRY(open_file(&f, path, false));
    oly_status st = close_file(&f, OLY_OK);
    remove(path);
    return st;
}

oly_status oly_timeline_start(void)
{
    if (oly_is_simulated())
        return OLY_OK;
    bool spans = oly_option.timeline[0];
    if (!spans && !oly_option.measure)
        return OLY_OK;
    if (spans && oly_world_rank() == 0)
        OLY_TRY(try_file());
    OLY_TRY(oly_timeline_begin(spans ? OLY_TIMELINE_SPANS : OLY_TIMELINE_STEPS, oly_option.timeline_limit << 20));
    if (!spans)
        return OLY_OK;
    OLY_TRY(oly_world_clock(&clocks.first));
    clocks.last = clocks.first;
    clocks.epoch = clocks.first.at;
    OLY_TRY(oly_world_share(&clocks.epoch, sizeof clocks.epoch, 0));
    return oly_rescue_begin(write_part);
}

/* The end of the process's work: nothing more is recorded. */
static oly_status write_together(void)
{
    oly_status written = OLY_OK;
    OLY_TRY(oly_world_clock(&clocks.last));
    OLY_TRY(gather(&written));
    if (written != OLY_OK)
        fprintf(stderr, "olympus: rank %d: %s\n", oly_world_rank(), oly_pending_message());
    oly_drop_message();
    return OLY_OK;
}

void oly_timeline_finish(bool together)
{
    if (oly_timeline_mode != OLY_TIMELINE_SPANS)
        return;
    oly_timeline_mode = OLY_TIMELINE_STEPS;
    oly_rescue_end();
    say_dropped();
    oly_status st = together ? write_together() : OLY_STATE;
    if (st == OLY_OK)
        return;
    char why[1024]; /* a rank that failed, ranks that diverged */
    snprintf(why, sizeof why, "%s", oly_pending_message());
    oly_drop_message();
    write_part();
    if (together)
        oly_raise(oly_fail(st, "%s", why));
}

void oly_timeline_stop(void)
{
    oly_rescue_end();
    if (oly_timeline_mode != OLY_TIMELINE_OFF)
        oly_timeline_end();
}
