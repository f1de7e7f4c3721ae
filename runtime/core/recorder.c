/* SPDX-License-Identifier: BSD-3-Clause */
/* See recorder.h. Everything that may be called from a signal handler uses prepared memory and system calls only. */
#define _GNU_SOURCE /* SYS_getdents64, struct dirent64 */
#include "core/recorder.h"
#include "core/events.h"
#include "core/option.h"
#include "core/progress.h"
#include "core/short_lock.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NAME "olympus-recorder."
enum { JOB_LENGTH = 64, PATH_LENGTH = 1024 };

void (*oly_recorder_peers)(oly_raw *raw);
bool (*oly_recorder_tells)(void);
oly_peers_state (*oly_recorder_peers_state)(void);

static struct {
    bool begun;
    _Atomic bool armed;
    int rank, ranks;
    char job[JOB_LENGTH], host[128], program[512];
    char folder[PATH_LENGTH], otherwise[PATH_LENGTH]; /* where the file goes, and where if it cannot be written there */
    char file[PATH_LENGTH + JOB_LENGTH + 64];         /* the last one written */
    char temporary[PATH_LENGTH + JOB_LENGTH + 64];
    struct timespec began;
    _Atomic bool recorded[OLY_N_STATUS]; /* a failure of this kind */
    _Atomic bool peer_recorded, end_recorded;
    const char *_Atomic ends_with; /* the reason to record the failure that ends this process; NULL: none */
    char because[2048];
    atomic_flag writing;
} own = {.rank = -1, .ranks = 1, .writing = ATOMIC_FLAG_INIT};

/* -- the start -------------------------------------------------------------------------------------------------- */

/* A name for files: letters, digits, dots, dashes and underlines, not beginning with a dot. */
static void copy_name(char *to, size_t size, const char *from)
{
    size_t n = 0;
    for (; from[n] && n + 1 < size; n++) {
        char c = from[n];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                     (c == '.' && n > 0);
        to[n] = plain ? c : '_';
    }
    to[n] = 0;
}

static void choose_folder(void)
{
    const char *temporary = getenv("TMPDIR");
    char here[PATH_LENGTH];
    if (!temporary || temporary[0] != '/' || strlen(temporary) >= sizeof own.otherwise)
        temporary = "/tmp";
    snprintf(own.otherwise, sizeof own.otherwise, "%s", temporary);
    const char *wanted = oly_option.recorder_dir[0] ? oly_option.recorder_dir : ".";
    char *full = realpath(wanted, NULL);
    snprintf(here, sizeof here, "%s", full && strlen(full) < sizeof here ? full : "");
    free(full);
    bool usable = here[0] && access(here, W_OK | X_OK) == 0;
    snprintf(own.folder, sizeof own.folder, "%s", usable ? here : own.otherwise);
}

void oly_recorder_begin(const char *job, int rank, int ranks)
{
    if (!own.begun) {
        ssize_t n = readlink("/proc/self/exe", own.program, sizeof own.program - 1);
        own.program[n > 0 ? n : 0] = 0;
        if (gethostname(own.host, sizeof own.host - 1) != 0)
            own.host[0] = 0;
        clock_gettime(CLOCK_REALTIME, &own.began);
        choose_folder();
        own.file[0] = 0;
        own.ends_with = NULL;
        own.peer_recorded = false;
        own.end_recorded = false;
        for (int k = 0; k < OLY_N_STATUS; k++)
            own.recorded[k] = false;
    }
    copy_name(own.job, sizeof own.job, job);
    own.rank = rank;
    own.ranks = ranks;
    own.begun = true;
}

void oly_recorder_arm(void)
{
    own.armed = true;
}

void oly_recorder_end(void)
{
    own.begun = false;
    own.armed = false;
}

const char *oly_recorder_job(void)
{
    return own.job;
}

int oly_recorder_rank(void)
{
    return own.rank;
}

const char *oly_recorder_file(void)
{
    return own.file;
}

/* -- the state as text ------------------------------------------------------------------------------------------ */

static void line_text(oly_raw *raw, const char *name, const char *text, size_t most)
{
    oly_raw_text(raw, name);
    oly_raw_text(raw, "\t");
    oly_raw_field(raw, text, most);
    oly_raw_text(raw, "\n");
}

static void line_int(oly_raw *raw, const char *name, int64_t value)
{
    oly_raw_text(raw, name);
    oly_raw_text(raw, "\t");
    oly_raw_int(raw, value);
    oly_raw_text(raw, "\n");
}

static void line_seconds(oly_raw *raw, const char *name, int64_t ns)
{
    oly_raw_text(raw, name);
    oly_raw_text(raw, "\t");
    oly_raw_seconds(raw, ns);
    oly_raw_text(raw, "\n");
}

static int64_t wall_ns(const struct timespec *t)
{
    return (int64_t)t->tv_sec * 1000000000 + t->tv_nsec;
}

/* Bytes of this process's memory that are in use: the second number of statm, in pages. */
static int64_t resident_bytes(void)
{
    char text[128];
    int64_t pages = 0;
    oly_raw_read("/proc/self/statm", text, sizeof text);
    const char *at = strchr(text, ' ');
    for (at = at ? at + 1 : ""; *at >= '0' && *at <= '9'; at++)
        pages = pages * 10 + (*at - '0');
    return pages * sysconf(_SC_PAGESIZE);
}

/* A fixed list: nothing else of the environment is ever written. */
static void write_settings(oly_raw *raw)
{
    line_int(raw, "setting\tOLYMPUS_NUM_CPU_DEVICES", oly_option.num_cpu_devices);
    line_int(raw, "setting\tOLYMPUS_NUM_THREADS", oly_option.threads);
    line_int(raw, "setting\tOLYMPUS_TIMEOUT", oly_option.timeout);
    line_int(raw, "setting\tOLYMPUS_OVERLAP", oly_option.overlap);
    line_text(raw, "setting\tOLYMPUS_DISABLE", oly_option.disable, 200);
}

static void write_identity(oly_raw *raw, const char *reason, const char *because)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    oly_raw_text(raw, "olympus-recorder\t1\n");
    line_text(raw, "job", own.job, sizeof own.job);
    line_int(raw, "rank", own.rank);
    line_int(raw, "ranks", own.ranks);
    line_text(raw, "host", own.host, sizeof own.host);
    line_int(raw, "pid", getpid());
    line_text(raw, "version", OLY_STR(OLY_VERSION_MAJOR) "." OLY_STR(OLY_VERSION_MINOR), 16);
    line_text(raw, "program", own.program, sizeof own.program);
    line_seconds(raw, "began", wall_ns(&own.began));
    line_seconds(raw, "written", wall_ns(&now));
    line_seconds(raw, "clock", oly_monotonic_ns());
    line_text(raw, "reason", reason, 32);
    line_text(raw, "because", because, 2048);
    write_settings(raw);
}

static void write_progress(oly_raw *raw)
{
    const oly_progress *p = oly_progress_here;
    int waits_for = atomic_load(&p->waits_for);
    oly_raw_text(raw, "call\t");
    oly_raw_int(raw, atomic_load(&p->line));
    oly_raw_text(raw, "\t");
    oly_raw_field(raw, p->call, sizeof p->call);
    oly_raw_text(raw, "\t");
    oly_raw_field(raw, p->file, sizeof p->file);
    oly_raw_text(raw, "\n");
    line_int(raw, "meetings", (int64_t)atomic_load(&p->meetings));
    if (waits_for == OLY_WAITS_FOR_NOBODY)
        return;
    oly_raw_text(raw, "wait\t");
    oly_raw_int(raw, waits_for);
    oly_raw_text(raw, "\t");
    oly_raw_seconds(raw, atomic_load(&p->since));
    oly_raw_text(raw, "\t");
    oly_raw_field(raw, p->wait, sizeof p->wait);
    oly_raw_text(raw, "\n");
}

static void write_event(oly_raw *raw, const oly_tick_line *line, const oly_event_record *e)
{
    static const char *const phases[] = {
        [OLY_EVENT_INSTANT] = "at", [OLY_EVENT_BEGIN] = "begin", [OLY_EVENT_FINISH] = "end"};
    bool known = e->kind < OLY_N_EVENTS && e->phase <= OLY_EVENT_FINISH;
    if (!known || e->kind == OLY_EVENT_NONE)
        return;
    const int64_t numbers[] = {e->thread, e->a, e->b, e->c, e->line};
    oly_raw_text(raw, "event\t");
    oly_raw_seconds(raw, oly_ticks_to_ns(line, e->ticks));
    oly_raw_text(raw, "\t");
    oly_raw_text(raw, oly_event_rows[e->kind].name);
    oly_raw_text(raw, "\t");
    oly_raw_text(raw, phases[e->phase]);
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
        oly_raw_text(raw, "\t");
        oly_raw_int(raw, numbers[k]);
    }
    oly_raw_text(raw, "\t");
    oly_raw_field(raw, e->call ? e->call : "", 64);
    oly_raw_text(raw, "\t");
    oly_raw_field(raw, e->file ? e->file : "", 256);
    oly_raw_text(raw, "\t");
    oly_raw_field(raw, e->text, sizeof e->text);
    oly_raw_text(raw, "\n");
}

static void write_events(oly_raw *raw, int most)
{
    oly_event_record e;
    int n = 0, all = 0;
    oly_tick_line line = oly_ticks_line();
    for (oly_event_cursor c = oly_events_recent(); oly_events_next(&c, &e);)
        all++;
    line_int(raw, "recorded", (int64_t)oly_events_count());
    for (oly_event_cursor c = oly_events_recent(); oly_events_next(&c, &e);)
        if (++n > all - most)
            write_event(raw, &line, &e);
}

/* The bytes of the pool by the last event that tells them. */
static void write_memory(oly_raw *raw)
{
    oly_event_record e, last = {0};
    for (oly_event_cursor c = oly_events_recent(); oly_events_next(&c, &e);)
        if (e.kind == OLY_EVENT_MEMORY)
            last = e;
    oly_raw_text(raw, "memory\t");
    oly_raw_int(raw, resident_bytes());
    oly_raw_text(raw, "\t");
    oly_raw_int(raw, last.a);
    oly_raw_text(raw, "\t");
    oly_raw_int(raw, last.b);
    oly_raw_text(raw, "\n");
}

void oly_recorder_write(oly_raw *raw, const char *reason, const char *because, int most)
{
    write_identity(raw, reason, because);
    write_progress(raw);
    write_memory(raw);
    if (oly_recorder_peers)
        oly_recorder_peers(raw);
    oly_raw_flush(raw); /* what matters most is there if a SIGKILL follows */
    write_events(raw, most);
    oly_raw_flush(raw); /* the sum is of all lines above */
    oly_raw_text(raw, "end\t");
    oly_raw_hex(raw, raw->sum);
    oly_raw_text(raw, "\n");
    oly_raw_flush(raw);
}

/* -- the file ----------------------------------------------------------------------------------------------------- */

/* FOLDER/PREFIX olympus-recorder.JOB.RANK SUFFIX; snprintf is not for signal handlers. */
static void make_path(char *to, size_t size, const char *folder, const char *prefix, const char *suffix)
{
    char rank[24];
    const char *const parts[] = {folder, "/", prefix, NAME, own.job, ".", rank, suffix};
    size_t n = 0;
    oly_raw_digits(rank, own.rank);
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
        for (const char *c = parts[k]; *c && n + 1 < size; c++)
            to[n++] = *c;
    to[n] = 0;
}

/* Recorder files in a folder, as far as needed. */
static int64_t count_files(const char *folder, int64_t enough)
{
    static char entries[8192] __attribute__((aligned(16))); /* under own.writing */
    int64_t n = 0;
    int file = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (long bytes; file >= 0 && n < enough && (bytes = syscall(SYS_getdents64, file, entries, sizeof entries)) > 0;)
        for (long at = 0; at < bytes;) {
            const struct dirent64 *entry = (const struct dirent64 *)(entries + at);
            n += strncmp(entry->d_name, NAME, sizeof NAME - 1) == 0;
            at += entry->d_reclen;
        }
    if (file >= 0)
        close(file);
    return n;
}

static int open_new(const char *path)
{
    int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    int file = open(path, flags, S_IRUSR | S_IWUSR);
    if (file < 0 && errno == EEXIST && unlink(path) == 0) /* left by a process that was killed */
        file = open(path, flags, S_IRUSR | S_IWUSR);
    return file;
}

static bool write_file(const char *folder, const char *reason, const char *because)
{
    static oly_raw raw; /* under own.writing */
    make_path(own.file, sizeof own.file, folder, "", "");
    if (access(own.file, F_OK) != 0 && count_files(folder, oly_option.recorder) >= oly_option.recorder)
        return false;
    make_path(own.temporary, sizeof own.temporary, folder, ".", ".new");
    int file = open_new(own.temporary);
    if (file < 0)
        return false;
    oly_raw_begin(&raw, file, false);
    oly_recorder_write(&raw, reason, because, OLY_EVENTS_KEPT);
    bool written = close(file) == 0 && !raw.failed && rename(own.temporary, own.file) == 0;
    if (!written)
        unlink(own.temporary);
    return written;
}

static void say(const char *folder, bool written, const char *reason)
{
    oly_raw line;
    if (written && oly_recorder_tells && !oly_recorder_tells())
        return;
    oly_raw_begin(&line, STDERR_FILENO, false);
    oly_raw_text(&line, "olympus: rank ");
    oly_raw_int(&line, own.rank);
    oly_raw_text(&line, written ? ": flight recorder (" : ": the flight recorder (");
    oly_raw_text(&line, reason);
    oly_raw_text(&line, written ? ") written to " : ") cannot be written to ");
    oly_raw_field(&line, written ? own.file : folder, PATH_LENGTH + JOB_LENGTH);
    if (written) {
        oly_raw_text(&line, "; for all ranks: oly report ");
        oly_raw_field(&line, folder, PATH_LENGTH);
    } else {
        oly_raw_text(&line, ": no space, no permission, or too many such files (OLYMPUS_RECORDER)");
    }
    oly_raw_text(&line, "\n");
    oly_raw_flush(&line);
}

/* Signals whose handlers write, or end the process, wait until this thread has written: else the file would stay half written. */
static void hold_signals(sigset_t *before)
{
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGQUIT);
    pthread_sigmask(SIG_BLOCK, &ends, before);
}

/* Another thread may be writing: its file is as good. */
static bool begin_writing(sigset_t *before)
{
    hold_signals(before);
    for (int k = 0; k < 500; k++) {
        if (!atomic_flag_test_and_set(&own.writing))
            return true;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    pthread_sigmask(SIG_SETMASK, before, NULL);
    return false;
}

void oly_recorder_finish(void)
{
    sigset_t before;
    if (!own.begun || !begin_writing(&before))
        return;
    atomic_flag_clear(&own.writing);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

bool oly_recorder_dump(const char *reason, const char *because)
{
    sigset_t signals;
    int before = errno;
    if (!own.begun || oly_option.recorder == 0 || !begin_writing(&signals))
        return false;
    const char *folder = own.folder;
    bool written = write_file(folder, reason, because);
    if (!written && strcmp(own.folder, own.otherwise) != 0) {
        folder = own.otherwise;
        written = write_file(folder, reason, because);
    }
    say(folder, written, reason);
    if (!written)
        own.file[0] = 0;
    atomic_flag_clear(&own.writing);
    pthread_sigmask(SIG_SETMASK, &signals, NULL);
    errno = before;
    return written;
}

/* The reason to record a failure; NULL: it is the program's, and its message says everything. */
static const char *reason_of(oly_status status)
{
    return status == OLY_DIVERGED && own.armed ? OLY_RECORDER_DIVERGED
           : status == OLY_TIMEOUT             ? OLY_RECORDER_TIMEOUT
           : status == OLY_MPI && own.armed    ? OLY_RECORDER_MPI
                                               : NULL;
}

void oly_recorder_ends(oly_status status, const char *text)
{
    const char *reason = reason_of(status);
    if (reason && !own.ends_with) {
        snprintf(own.because, sizeof own.because, "%s", text);
        own.ends_with = reason;
    }
    atomic_store(&oly_progress_here->leaving, reason ? OLY_LEAVES_BY_FAILURE : OLY_LEAVES_BY_ERROR);
}

void oly_recorder_why(const char **reason, const char **because)
{
    if (!own.ends_with)
        return;
    *reason = own.ends_with;
    *because = own.because;
}

bool oly_recorder_is_stuck(int64_t ns)
{
    const oly_progress *p = oly_progress_here;
    oly_event_record e;
    oly_tick_line line = oly_ticks_line();
    int64_t now = oly_monotonic_ns(), begun = now;
    if (atomic_load(&p->waits_for) != OLY_WAITS_FOR_NOBODY && now - atomic_load(&p->since) > ns)
        return true;
    for (oly_event_cursor c = oly_events_recent(); oly_events_next(&c, &e);)
        if (e.kind == OLY_EVENT_EXCHANGE)
            begun = e.phase == OLY_EVENT_BEGIN ? oly_ticks_to_ns(&line, e.ticks) : now;
    return now - begun > ns;
}

void oly_recorder_look(void)
{
    if (own.begun && own.armed && !own.peer_recorded && oly_recorder_peers_state &&
        oly_recorder_peers_state() == OLY_PEERS_FAILURE && !atomic_exchange(&own.peer_recorded, true))
        oly_recorder_dump(OLY_RECORDER_PEER, "another rank has failed or ended while this one waits for it");
}

bool oly_recorder_has_recorded(void)
{
    return own.peer_recorded || own.end_recorded;
}

void oly_recorder_failed(oly_status status, const char *text)
{
    const char *reason = reason_of(status);
    if (!reason || atomic_exchange(&own.recorded[status], true) || !oly_recorder_dump(reason, text))
        return;
    own.end_recorded = own.ends_with != NULL;
    /* Ranks time out together, and the launcher kills the others as soon as the first has ended: they are writing, too. */
    if (own.end_recorded && status == OLY_TIMEOUT && own.ranks > 1)
        nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
}
