/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread that writes the timeline when the process is about to end by a failure or a signal: a handler may only wake it. See
 * timeline.h. */
#include "array/timeline/timeline.h"
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { PATIENCE_MS = 5000 };

static struct {
    sem_t wake;
    pthread_t thread;
    atomic_bool running, asked, ending, written;
    void (*write)(void);
} rescue;

static void *serve(void *unused)
{
    (void)unused;
    while (sem_wait(&rescue.wake) != 0)
        ; /* interrupted */
    if (!atomic_load(&rescue.ending))
        rescue.write();
    atomic_store(&rescue.written, true);
    return NULL;
}

/* Async-signal-safe. */
static void ask(void)
{
    static const struct timespec moment = {.tv_nsec = 1000000};
    if (!atomic_load(&rescue.running) || pthread_equal(pthread_self(), rescue.thread))
        return;
    if (!atomic_exchange(&rescue.asked, true))
        sem_post(&rescue.wake);
    for (int ms = 0; ms < PATIENCE_MS && !atomic_load(&rescue.written); ms++)
        nanosleep(&moment, NULL);
}

/* The program ends without oly_finalize. */
static void at_exit(void)
{
    if (oly_timeline_rescue)
        oly_timeline_rescue();
}

oly_status oly_rescue_begin(void (*write)(void))
{
    static bool watching;
    sigset_t every, before;
    if (!watching)
        watching = atexit(at_exit) == 0;
    sem_init(&rescue.wake, 0, 0);
    rescue.write = write;
    atomic_store(&rescue.asked, false);
    atomic_store(&rescue.ending, false);
    atomic_store(&rescue.written, false);
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &before); /* signals go to the program's threads */
    int error = pthread_create(&rescue.thread, NULL, serve, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error)
        return oly_fail(OLY_STATE, "no thread for the timeline: %s", strerror(error));
    atomic_store(&rescue.running, true);
    oly_timeline_rescue = ask;
    return OLY_OK;
}

void oly_rescue_end(void)
{
    oly_timeline_rescue = NULL;
    if (!atomic_exchange(&rescue.running, false))
        return;
    if (!atomic_exchange(&rescue.asked, true)) {
        atomic_store(&rescue.ending, true);
        sem_post(&rescue.wake);
    }
    pthread_join(rescue.thread, NULL);
    sem_destroy(&rescue.wake);
}
