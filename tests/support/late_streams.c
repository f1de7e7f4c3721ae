/* SPDX-License-Identifier: BSD-3-Clause */
/* See late_streams.h. */
#include "late_streams.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct entry {
    struct entry *next;
    void (*run)(void *argument); /* NULL: waits for `event` */
    void *argument;
    oly_event event;
} entry;

typedef struct stream {
    entry *first, **end;
    uint64_t submitted, done; /* entries */
    bool runs;                /* the first, in some thread */
} stream;

static struct {
    pthread_mutex_t lock;
    pthread_cond_t progress;
    stream streams[OLY_MOST_LATE_DEVICES];
    unsigned seed;
    uint64_t random;
    int favourite; /* device */
} all = {.lock = PTHREAD_MUTEX_INITIALIZER, .progress = PTHREAD_COND_INITIALIZER, .seed = 1, .random = 1};

void late_set_seed(unsigned seed)
{
    all.seed = seed;
    all.random = seed * 0x9e3779b97f4a7c15u | 1;
}

unsigned late_seed(void)
{
    return all.seed;
}

static void __attribute__((constructor)) read_seed(void)
{
    const char *seed = getenv("LATE_SEED");
    late_set_seed(seed ? (unsigned)strtoul(seed, NULL, 10) : 1);
}

static unsigned drawn(unsigned below)
{
    all.random ^= all.random << 13;
    all.random ^= all.random >> 7;
    all.random ^= all.random << 17;
    return (unsigned)(all.random >> 32) % below;
}

/* -- submitting --------------------------------------------------------------------------------------------------------- */

static bool add(int device, entry what)
{
    entry *e = malloc(sizeof *e);
    if (!e)
        return false;
    *e = what;
    pthread_mutex_lock(&all.lock);
    stream *s = &all.streams[device];
    if (!s->first)
        s->end = &s->first;
    *s->end = e;
    s->end = &e->next;
    s->submitted++;
    pthread_mutex_unlock(&all.lock);
    return true;
}

bool late_submit(int device, void (*run)(void *argument), void *argument)
{
    return add(device, (entry){.run = run, .argument = argument});
}

bool late_wait(int device, oly_event event)
{
    return add(device, (entry){.event = event});
}

bool late_record(int device, oly_event *event)
{
    pthread_mutex_lock(&all.lock);
    *event = (oly_event){device, all.streams[device].submitted};
    pthread_mutex_unlock(&all.lock);
    return true;
}

/* -- running ------------------------------------------------------------------------------------------------------------ */

static bool may_run(int device)
{
    const stream *s = &all.streams[device];
    const entry *e = s->first;
    return e && !s->runs && (e->run || all.streams[e->event.device].done >= e->event.number);
}

/* Stays with one device for a while, so that some get far ahead of others; -1: none may run. */
static int next_device(void)
{
    int device = -1, n = 0;
    if (drawn(4) == 0)
        all.favourite = (int)drawn(OLY_MOST_LATE_DEVICES);
    if (may_run(all.favourite))
        return all.favourite;
    for (int d = 0; d < OLY_MOST_LATE_DEVICES; d++)
        if (may_run(d) && drawn((unsigned)++n) == 0)
            device = d;
    if (device >= 0)
        all.favourite = device;
    return device;
}

static void run_next_locked(stream *s)
{
    entry *e = s->first;
    s->runs = true;
    pthread_mutex_unlock(&all.lock);
    if (e->run)
        e->run(e->argument);
    pthread_mutex_lock(&all.lock);
    s->runs = false;
    s->first = e->next;
    s->done++;
    free(e);
    pthread_cond_broadcast(&all.progress);
}

static bool any_runs(void)
{
    for (int d = 0; d < OLY_MOST_LATE_DEVICES; d++)
        if (all.streams[d].runs)
            return true;
    return false;
}

oly_status late_drain(int device)
{
    pthread_mutex_lock(&all.lock);
    while (all.streams[device].first) {
        int next = next_device();
        if (next >= 0) {
            run_next_locked(&all.streams[next]);
        } else if (any_runs()) {
            pthread_cond_wait(&all.progress, &all.lock);
        } else {
            fprintf(stderr, "late streams: device %d waits for what will never be (LATE_SEED=%u)\n", device, all.seed);
            abort();
        }
    }
    pthread_mutex_unlock(&all.lock);
    return OLY_OK;
}
