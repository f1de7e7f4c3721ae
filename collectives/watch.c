/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread that watches waits which do not poll: MPI_Init, MPI_Finalize and other calls that return when all ranks have
 * arrived. It reports what is waited for and ends the process at the time limit. Polling waits check themselves (wait.c); if
 * one hangs inside MPI long after its limit, the thread ends the process, too. Called by the files of collectives/.
 *
 * The process is ended by _exit: MPI hangs, and exit handlers would wait for it. The launcher sees a rank that left without
 * MPI_Finalize, and ends the others. */
#include "world.h"
#include "core/error.h"
#include "core/option.h"
#include "core/progress.h"
#include "core/recorder.h"
#include "core/text.h"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { GRACE = 5 }; /* s */
static const int64_t TICK_NS = 100000000, LONGEST_TICK_NS = 1000000000;

typedef enum kind { NOTHING, BLOCKING, POLLING, ABORTING } kind;

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool started;
    /* under the lock */
    kind kind;
    int rank, status;
    int64_t began, next; /* ns */
    char call[160];      /* "oly_init (heat.c:12)" */
    const char *inside;  /* "MPI_Init" */
} watch = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .rank = -1};

static void __attribute__((noreturn)) end_process(int64_t waited, const char *ranks, const char *more)
{
    char line[1024];
    int n = snprintf(line, sizeof line,
                     "olympus: rank %d: %s: waited %lld s inside %s for %s%s; if they are still computing, raise "
                     "OLYMPUS_TIMEOUT [OLY_TIMEOUT: %s]\n",
                     watch.rank, watch.call, (long long)(waited / 1000000000), watch.inside, ranks, more,
                     oly_status_text(OLY_TIMEOUT));
    if (n >= (int)sizeof line)
        line[(n = sizeof line - 1) - 1] = '\n';
    fflush(NULL);
    line[n - 1] = 0; /* without the newline */
    oly_recorder_ends(OLY_TIMEOUT, line);
    line[n - 1] = '\n';
    if (write(STDERR_FILENO, line, (size_t)n) < 0)
        _exit(1);
    line[n - 1] = 0;
    oly_recorder_failed(OLY_TIMEOUT, line);
    oly_recording_leave();
    _exit(1);
}

/* The state that others see: this rank waits since it called MPI. */
static oly_late publish(void)
{
    oly_late late = {0};
    oly_peers_late(NULL, &late);
    oly_progress_wait(oly_peers_culprit(&late), watch.call, late.n > 0 ? oly_late_text_of(&late).chars : "");
    atomic_store(&oly_progress_here->since, watch.began);
    return late;
}

/* Of a call of MPI that has not returned. */
static void look_at_blocking(int64_t waited)
{
    bool over = waited >= oly_option.timeout * 1000000000;
    if (waited > TICK_NS)
        oly_recorder_look();
    if (waited > TICK_NS && atomic_load(&oly_progress_here->waits_for) == OLY_WAITS_FOR_NOBODY)
        publish();
    if (waited < watch.next && !over)
        return;
    oly_late late = publish();
    if (over) {
        oly_text more = {0};
        oly_peers_describe(&more, &late);
        end_process(waited, oly_late_text_of(&late).chars, oly_text_chars(&more));
    }
    oly_wait_say(watch.rank, &late, watch.call);
    watch.next = oly_wait_next_notice(waited);
}

static void look(void)
{
    int64_t waited = oly_wait_clock() - watch.began;
    switch (watch.kind) {
    case NOTHING: break;
    case BLOCKING: look_at_blocking(waited); break;
    case POLLING:
        if (waited > (oly_option.timeout + GRACE) * 1000000000)
            end_process(waited, "others", " and found no end");
        break;
    case ABORTING:
        if (waited > GRACE * (int64_t)1000000000)
            _exit(watch.status);
        break;
    }
}

/* Waits until something has changed, or for this long. */
static void sleep_locked(int64_t ns)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    ns += until.tv_nsec;
    until.tv_sec += ns / 1000000000;
    until.tv_nsec = ns % 1000000000;
    pthread_cond_timedwait(&watch.changed, &watch.lock, &until);
}

/* While this process does not wait, others may ask for its state. Not under the lock: a thread that begins to wait must not
 * wait for MPI here. */
static void answer(void)
{
    pthread_mutex_unlock(&watch.lock);
    bool again = oly_inquiry_watch();
    int64_t tick = oly_inquiry_interval() / 2;
    pthread_mutex_lock(&watch.lock);
    if (watch.kind != NOTHING)
        return;
    if (again)
        sleep_locked(tick < LONGEST_TICK_NS ? tick : LONGEST_TICK_NS);
    else
        pthread_cond_wait(&watch.changed, &watch.lock);
}

static void *run(void *unused)
{
    pthread_mutex_lock(&watch.lock);
    for (;;) {
        if (watch.kind == NOTHING)
            answer();
        else
            sleep_locked(TICK_NS);
        look();
    }
    return unused;
}

void oly_watch_start(int rank)
{
    watch.rank = rank;
    if (watch.started)
        return;
    sigset_t all, before;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals go to the program's threads */
    if (pthread_create(&thread, NULL, run, NULL) == 0) {
        pthread_detach(thread);
        watch.started = true;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void begin(kind what, const char *inside, const char *call, int status)
{
    pthread_mutex_lock(&watch.lock);
    if (watch.kind == ABORTING) { /* whatever other threads do */
        pthread_mutex_unlock(&watch.lock);
        return;
    }
    watch.kind = what;
    watch.inside = inside;
    watch.status = status;
    watch.began = oly_wait_clock();
    watch.next = oly_wait_next_notice(0);
    snprintf(watch.call, sizeof watch.call, "%s", call);
    pthread_cond_signal(&watch.changed);
    pthread_mutex_unlock(&watch.lock);
}

void oly_watch_block(const char *inside, const char *call)
{
    oly_peers_arrive();
    begin(BLOCKING, inside, call, 1);
}

void oly_watch_poll(const char *call)
{
    begin(POLLING, "MPI", call, 1);
}

void oly_watch_abort(int status)
{
    begin(ABORTING, "MPI_Abort", "", status);
}

void oly_watch_end(void)
{
    pthread_mutex_lock(&watch.lock);
    bool blocked = watch.kind == BLOCKING;
    if (watch.kind != ABORTING)
        watch.kind = NOTHING;
    pthread_mutex_unlock(&watch.lock);
    if (blocked)
        oly_progress_go_on();
}
