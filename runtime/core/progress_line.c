/* SPDX-License-Identifier: BSD-3-Clause */
/* Progress lines. See progress_line.h. Most calls only compare the clock with the time of the next line. */
#include "core/progress_line.h"
#include "core/error.h"
#include "core/option.h"
#include "core/text.h"
#include "core/ticks.h"
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static const int64_t SECOND = 1000000000, SHORTEST = 200000000;

enum { MOST_NAME = 64, MOST_LINE = 400, NARROWEST = 20 };

static struct {
    pthread_mutex_t lock;
    char what[MOST_NAME];
    int64_t first, last;           /* done at the first call, and at the last */
    int64_t began, next, interval; /* ns */
    bool open;                     /* there is a line on the terminal, not ended */
    bool spoke;                    /* a line has been printed of this loop */
} line = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The time of the next line, and the number done at the last call: what most calls look at. */
static _Atomic int64_t next_time;
static _Atomic int64_t last_done;
static _Atomic(const char *) last_what;

static bool on_terminal(void)
{
    return isatty(STDERR_FILENO);
}

/* "1:05", "2:03:04" */
static void time_text(oly_text *t, double seconds)
{
    int64_t s = (int64_t)(seconds + 0.5);
    if (s >= 3600)
        oly_text_add(t, "%" PRId64 ":%02d:%02d", s / 3600, (int)(s / 60 % 60), (int)(s % 60));
    else
        oly_text_add(t, "%d:%02d", (int)(s / 60), (int)(s % 60));
}

static void rate_text(oly_text *t, double rate)
{
    if (rate >= 100 || rate <= 0)
        oly_text_add(t, ", %.0f/s", rate);
    else if (rate >= 1)
        oly_text_add(t, ", %.1f/s", rate);
    else
        oly_text_add(t, ", %.1f s each", 1 / rate);
}

static void compose(oly_text *t, int64_t done, int64_t total, const char *note, int64_t now)
{
    double seconds = (double)(now - line.began) * 1e-9, rate = seconds > 0 ? (double)(done - line.first) / seconds : 0;
    oly_text_add(t, "%s: %" PRId64, line.what, done);
    if (total > 0)
        oly_text_add(t, " of %" PRId64 " (%.0f %%)", total, 100. * (double)done / (double)total);
    if (done > line.first)
        rate_text(t, rate);
    if (total > 0 && done >= total) {
        oly_text_add(t, ", ");
        time_text(t, seconds);
        oly_text_add(t, " in all");
    } else if (total > 0 && rate > 0) {
        oly_text_add(t, ", ");
        time_text(t, (double)(total - done) / rate);
        oly_text_add(t, " left");
    }
    if (note && note[0])
        oly_text_add(t, ", %s", note);
}

/* Columns of the terminal, for a line that does not wrap. */
static size_t room(void)
{
    struct winsize size = {0};
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < NARROWEST)
        return 79;
    return (size_t)size.ws_col - 1 < MOST_LINE ? (size_t)size.ws_col - 1 : MOST_LINE;
}

/* Bytes of the text that fill at most so many columns; control characters in it become spaces. */
static size_t cut(char *text, size_t columns)
{
    size_t n = 0;
    for (size_t k = 0; text[k]; k = n) {
        if ((unsigned char)text[k] < 0x20 || text[k] == 0x7f)
            text[k] = ' ';
        n = k + 1;
        while (((unsigned char)text[n] & 0xc0) == 0x80)
            n++;
        if (columns-- == 0)
            return k;
    }
    return n;
}

static void put(const char *text, size_t n)
{
    for (ssize_t done; n > 0; text += done, n -= (size_t)done)
        if ((done = write(STDERR_FILENO, text, n)) <= 0)
            return;
}

static void print(int64_t done, int64_t total, const char *note, bool last, int64_t now)
{
    oly_text t = {0}, whole = {0};
    bool terminal = on_terminal();
    compose(&t, done, total, note, now);
    if (t.chars && !t.failed) {
        fflush(stdout); /* after the program's own output */
        oly_text_add(&whole, "%s", terminal ? "\r" : "");
        oly_text_add_chars(&whole, t.chars, cut(t.chars, terminal ? room() : MOST_LINE));
        oly_text_add(&whole, "%s%s", terminal ? "\033[K" : "", last || !terminal ? "\n" : "");
        put(oly_text_chars(&whole), whole.length);
    }
    oly_text_free(&t);
    oly_text_free(&whole);
    line.open = terminal && !last;
    line.spoke = true;
}

static void end_locked(void)
{
    if (line.open)
        put("\n", 1);
    line.open = false;
}

static void begin_locked(const char *what, int64_t done, int64_t now)
{
    end_locked();
    snprintf(line.what, sizeof line.what, "%s", what);
    line.first = done;
    line.began = now;
    line.interval = on_terminal() ? SHORTEST : 10 * SECOND;
    line.next = now + (on_terminal() ? 2 * SECOND : line.interval);
    line.spoke = false;
}

static void say_locked(const char *what, int64_t done, int64_t total, const char *note)
{
    int64_t now = oly_monotonic_ns();
    if (strncmp(line.what, what, sizeof line.what - 1) != 0 || done < line.last || !line.what[0])
        begin_locked(what, done, now);
    bool last = total > 0 && done >= total;
    if (now >= line.next || (last && line.spoke)) {
        print(done, total, note, last, now);
        if (!on_terminal() && line.interval < 600 * SECOND)
            line.interval *= 2;
        line.next = now + line.interval;
    }
    line.last = done;
    if (last)
        line.what[0] = 0;
}

void oly_progress_say(const char *what, int64_t done, int64_t total, const char *note)
{
    if (!oly_option.progress || oly_error_rank() > 0)
        return;
    what = what && what[0] ? what : "progress";
    bool same = atomic_load_explicit(&last_what, memory_order_relaxed) == what &&
                done >= atomic_load_explicit(&last_done, memory_order_relaxed);
    atomic_store_explicit(&last_done, done, memory_order_relaxed);
    if (same && (total <= 0 || done < total) && oly_ticks() < atomic_load_explicit(&next_time, memory_order_relaxed))
        return;
    if (pthread_mutex_trylock(&line.lock) != 0)
        return;
    say_locked(what, done, total, note);
    oly_tick_line ticks = oly_ticks_line();
    int64_t wait = line.next - oly_monotonic_ns();
    atomic_store(&next_time, oly_ticks() + (int64_t)((double)(wait < SHORTEST ? wait : SHORTEST) / ticks.ns_per_tick));
    atomic_store(&last_what, line.what[0] ? what : NULL);
    pthread_mutex_unlock(&line.lock);
}

void oly_progress_line_end(void)
{
    if (pthread_mutex_trylock(&line.lock) != 0)
        return;
    end_locked();
    pthread_mutex_unlock(&line.lock);
}
