/* SPDX-License-Identifier: BSD-3-Clause */
/* How a rank waits for others: polls, yields its core after a while, prints a notice when it takes long, and gives up at the time
 * limit. Every polling wait of collectives/ goes through here; waits inside MPI are watched (watch.c). */
#include "world.h"
#include "core/error.h"
#include "core/events.h"
#include "core/option.h"
#include "core/progress.h"
#include "core/progress_line.h"
#include "core/recorder.h"
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Reading the clock costs about as much as a poll, so it is not read each time. Others see a wait only after a while. */
enum { POLLS_PER_LOOK = 64, SPIN_NS = 20000, LONG_NS = 1000000 };
/* A rank that has failed in a later call has sent what this one waits for before: which may still be in flight. */
enum { MOMENT_NS = 50000000 };
enum { CHECK_NS = 100000000 }; /* between two looks whether another rank has ended */

static bool crowded_node;

void oly_wait_set_crowded(bool crowded)
{
    crowded_node = crowded;
}

int64_t oly_wait_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t oly_wait_next_notice(int64_t waited)
{
    int64_t first = oly_option.wait_notice * 1000000000, next = first;
    while (next <= waited)
        next += 6 * first;
    return next;
}

/* -- who is waited for --------------------------------------------------------------------------------------- */

void oly_late_add(oly_late *late, int rank)
{
    if (late->n < OLY_LATE_NAMED)
        late->rank[late->n] = rank;
    late->n++;
}

oly_late_text oly_late_text_of(const oly_late *late)
{
    oly_late_text text;
    int named = late->n < OLY_LATE_NAMED ? late->n : OLY_LATE_NAMED;
    if (late->n == 0)
        snprintf(text.chars, sizeof text.chars, "%s", late->otherwise ? late->otherwise : "others");
    else
        snprintf(text.chars, sizeof text.chars, late->n == 1 ? "rank" : "ranks");
    for (int k = 0, length; k < named; k++) {
        length = (int)strlen(text.chars);
        snprintf(text.chars + length, sizeof text.chars - (size_t)length, k > 0 ? ", %d" : " %d", late->rank[k]);
    }
    size_t length = strlen(text.chars);
    if (late->n > named)
        snprintf(text.chars + length, sizeof text.chars - length, " and %d more", late->n - named);
    return text;
}

/* -- waiting ------------------------------------------------------------------------------------------------- */

void oly_wait_say(int rank, const oly_late *late, const char *call)
{
    char line[512];
    int n =
        snprintf(line, sizeof line, "olympus: rank %d waits for %s in %s\n", rank, oly_late_text_of(late).chars, call);
    if (n >= (int)sizeof line)
        line[(n = sizeof line - 1) - 1] = '\n';
    oly_progress_line_end();
    fflush(stdout); /* after the program's own output */
    if (write(STDERR_FILENO, line, (size_t)n) < 0)
        return;
}

/* The state that other ranks of the node see. */
static oly_late publish(oly_wait *w)
{
    oly_late late = {0};
    if (w->late)
        w->late(w->context, &late);
    int culprit = oly_peers_culprit(&late);
    oly_progress_wait(culprit, w->call, late.n > 0 ? oly_late_text_of(&late).chars : "");
    if (!w->published)
        oly_event_text(OLY_EVENT_WAIT, OLY_EVENT_BEGIN, w->call, late.n == 1 ? late.rank[0] : culprit, late.n);
    oly_watch_poll(w->call);
    w->published = true;
    return late;
}

bool oly_wait_more(oly_wait *w)
{
    bool yields = w->yielding || crowded_node;
    if (yields)
        sched_yield(); /* which may take long on a busy machine */
    if (++w->polls % POLLS_PER_LOOK && !yields)
        return true;
    int64_t now = oly_wait_clock();
    if (w->began == 0)
        w->began = now;
    int64_t waited = now - w->began;
    w->yielding = waited > SPIN_NS;
    if (waited < LONG_NS)
        return true;
    if (w->next == 0) {
        w->next = oly_wait_next_notice(0);
        w->asking = oly_inquiry_interval();
    }
    if (!w->published)
        publish(w);
    if (waited >= w->asking) {
        oly_late late = publish(w);
        oly_inquiry_ask(&late, w->asking == oly_inquiry_interval());
        w->asking = waited + oly_inquiry_interval();
    }
    if (waited >= w->next) {
        oly_late late = publish(w);
        oly_wait_say(oly_world_rank(), &late, w->call);
        w->next = oly_wait_next_notice(waited);
    }
    if (now - w->looked > LONG_NS) {
        w->looked = now;
        oly_inquiry_look();
        if (now - w->checked > CHECK_NS) {
            w->checked = now;
            if (waited > CHECK_NS)
                oly_recorder_look();
        }
        if (w->told == 0 && oly_failure_is_told())
            w->told = now;
        if (w->told != 0 && now - w->told > MOMENT_NS)
            return false;
    }
    w->in_vain = waited >= oly_option.timeout * 1000000000;
    return !w->in_vain;
}

void oly_wait_restart(oly_wait *w)
{
    oly_wait_end(w);
    *w = (oly_wait){.call = w->call, .late = w->late, .context = w->context};
}

void oly_wait_end(oly_wait *w)
{
    if (!w->published)
        return;
    oly_watch_end();
    oly_event_text(OLY_EVENT_WAIT, OLY_EVENT_FINISH, w->call, -1, w->in_vain);
    if (!w->in_vain) /* otherwise others should know that this rank reaches nothing that they wait for */
        oly_progress_go_on();
    w->published = false;
}
